"""A report as a table for a terminal: hours, percent and short waits for people, the total last. Scripts read JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from accounting.domain import answers
from accounting.domain.metrics import REPORTS, Kind, ReportDefinition
from accounting.domain.reports import Report

UNKNOWN = "–"
SECONDS_PER_HOUR = 3600


def lines(report: Report, currency: str) -> Iterator[str]:
    """The table's lines, without line ends: header, rows, total, and what was asked."""
    definition, by = REPORTS[report.request.name], report.request.by
    body = [_cells(row, definition, by, currency) for row in report.rows]
    total = ["total", *[""] * (len(by) - 1)] if by else []
    figures = _cells(report.total, definition, (), currency)
    table = [_header(definition, by), *body, total + figures]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for number, cells in enumerate(table):
        if number in {1, len(table) - 1}:
            yield "  ".join("-" * width for width in widths)
        yield _padded(cells, widths, len(by))
    yield ""
    yield _caption(report)


def _header(definition: ReportDefinition, by: tuple[str, ...]) -> list[str]:
    labels = [next(each.label for each in definition.dimensions if each.id == name) for name in by]
    return labels + [each.label + (" (h)" if each.kind is Kind.RESOURCE_SECONDS else "") for each in definition.figures]


def _cells(row: Mapping[str, Any], definition: ReportDefinition, by: tuple[str, ...], currency: str) -> list[str]:
    dimensions = [printable(answers.scalar(row.get(name))) for name in by]
    money = str(row.get(answers.CURRENCY) or currency)
    return dimensions + [_figure(row.get(each.id), each.kind, money) for each in definition.figures]


def printable(value: answers.Json) -> str:
    """Text that cannot move the cursor or ring the bell."""
    return UNKNOWN if value is None else "".join(char if char.isprintable() else "�" for char in str(value))


def _figure(value: Any, kind: Kind, currency: str) -> str:
    if value is None:
        return UNKNOWN
    if kind is Kind.RATIO:
        return f"{value:.1%}"
    if kind is Kind.MONEY:
        return f"{Decimal(value):,f} {currency}"
    if kind is Kind.RESOURCE_SECONDS:
        return f"{Decimal(value) / SECONDS_PER_HOUR:,.1f}"
    return str(timedelta(seconds=int(value))) if kind is Kind.DURATION else f"{value:,}"


def _padded(cells: list[str], widths: list[int], text_columns: int) -> str:
    padded = [
        cell.ljust(width) if column < text_columns else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _caption(report: Report) -> str:
    request = report.request
    through = f"data to {answers.instant(report.data_through)}" if report.data_through else "no data yet"
    return f"{request.name}, {request.first} up to but not including {request.last}, {request.zone.key}; {through}"
