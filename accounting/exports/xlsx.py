"""A report as a workbook: sheets Rows, Total and About. Written row by row in constant memory."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any, BinaryIO

import xlsxwriter

from accounting.domain import answers
from accounting.domain.metrics import REPORTS, Kind, ReportDefinition
from accounting.domain.reports import Report, ReportError

MOST_ROWS = 1_048_575  # of a sheet, without the header
NUMBER_FORMATS = {Kind.RATIO: "0.0%", Kind.MONEY: "#,##0.00##", Kind.COUNT: "#,##0", Kind.DURATION: "#,##0"}
OTHER_NUMBERS = "#,##0.######"


def write(report: Report, currency: str, to: BinaryIO) -> None:
    """Write the workbook of `report` to a seekable binary file. Raises ReportError when a sheet cannot hold the rows."""
    if len(report.rows) > MOST_ROWS:
        raise ReportError(f"{len(report.rows)} rows do not fit into a sheet ({MOST_ROWS}); ask for CSV, or for fewer dimensions")
    definition = REPORTS[report.request.name]
    with xlsxwriter.Workbook(to, {"constant_memory": True, "in_memory": False}) as book:
        sheets = _Sheets(book, definition)
        sheets.table("Rows", report.rows, report.request.by, currency)
        sheets.table("Total", [report.total], (), currency)
        sheets.pairs("About", about(report, definition, currency))


def as_bytes(report: Report, currency: str) -> bytes:
    """The workbook in memory, for a pipe, which cannot seek. Raises as `write`."""
    buffer = BytesIO()
    write(report, currency, buffer)
    return buffer.getvalue()


def about(report: Report, definition: ReportDefinition, currency: str) -> Iterable[tuple[str, answers.Json]]:
    """What was asked, how far the data reaches, how far to trust it, and what each column means."""
    head = answers.answer(report, currency)
    yield from ((name, head[name]) for name in ("report", "from", "to", "zone"))
    yield "by", ", ".join(head["by"])
    yield from ((name, ", ".join(values)) for name, values in _scope(report).items())
    yield "data_through", head["data_through"]
    yield from ((f"quality: {name}", _flat(value)) for name, value in head["quality"].items())
    yield from ((each.id, each.definition) for each in definition.dimensions if each.id in report.request.by)
    yield from ((each.id, f"{each.definition} ({each.unit})") for each in definition.figures)


def _scope(report: Report) -> dict[str, tuple[str, ...]]:
    scope = report.request.scope
    return {
        "clusters": scope.clusters,
        "partitions": scope.partitions,
        "projects": scope.projects,
        "GPU models": scope.gpu_models,
    }


def _flat(value: Any) -> answers.Json:
    return str(value) if isinstance(value, dict | list | bool) else value


class _Sheets:
    """Writes cells by their column: figures are numbers, dates are dates, all else is text, never a formula or a link."""

    def __init__(self, book: Any, definition: ReportDefinition) -> None:
        self.book = book
        self.definition = definition
        self.bold = book.add_format({"bold": True})
        self.date = book.add_format({"num_format": "yyyy-mm-dd"})
        self.formats = {
            each.id: book.add_format({"num_format": NUMBER_FORMATS.get(each.kind, OTHER_NUMBERS)}) for each in definition.figures
        }

    def table(self, title: str, rows: Iterable[dict[str, Any]], by: tuple[str, ...], currency: str) -> None:
        """A sheet with a frozen, filterable header; raw dates stay dates, figures become numbers."""
        sheet = self.book.add_worksheet(title)
        names = answers.columns(self.definition, by)
        sheet.freeze_panes(1, len(by))
        sheet.set_column(0, len(names) - 1, 20)
        for column, name in enumerate(names):
            sheet.write_string(0, column, name, self.bold)
        last = 0
        for last, row in enumerate(rows, start=1):
            values = answers.row(row, self.definition, by, currency)
            for column, name in enumerate(names):
                self._cell(sheet, last, column, name, row.get(name) if isinstance(row.get(name), date) else values[name])
        sheet.autofilter(0, 0, last, len(names) - 1)

    def pairs(self, title: str, pairs: Iterable[tuple[str, answers.Json]]) -> None:
        sheet = self.book.add_worksheet(title)
        sheet.set_column(0, 0, 30)
        sheet.set_column(1, 1, 100)
        for line, (name, value) in enumerate(pairs):
            sheet.write_string(line, 0, name, self.bold)
            self._cell(sheet, line, 1, "", value)

    def _cell(self, sheet: Any, line: int, column: int, name: str, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, datetime):
            sheet.write_string(line, column, answers.instant(value))
        elif isinstance(value, date):
            sheet.write_datetime(line, column, value, self.date)
        elif name in self.formats:
            sheet.write_number(line, column, Decimal(value), self.formats[name])
        elif isinstance(value, int | float):
            sheet.write_number(line, column, value)
        else:
            sheet.write_string(line, column, value)
