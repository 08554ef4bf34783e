"""A report as CSV (RFC 4180): one header with the names of the API, then rows. No total, so that the sum of a column is right.

Text that a spreadsheet would run as a formula gets a leading apostrophe; numbers are never touched.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice

from accounting.domain import answers
from accounting.domain.metrics import REPORTS, ReportDefinition
from accounting.domain.reports import Report

# Browsers hand a download to a spreadsheet, which takes UTF-8 for Latin-1 unless the file starts with this.
BYTE_ORDER_MARK = "\ufeff"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
ROWS_PER_CHUNK = 500


def chunks(report: Report, currency: str, *, byte_order_mark: bool = False) -> Iterator[str]:
    """The file, a few hundred rows at a time."""
    definition = REPORTS[report.request.name]
    by = report.request.by
    rows = (cells(answers.row(row, definition, by, currency), definition) for row in report.rows)
    yield (BYTE_ORDER_MARK if byte_order_mark else "") + _lines([answers.columns(definition, by)])
    while chunk := list(islice(rows, ROWS_PER_CHUNK)):
        yield _lines(chunk)


def cells(row: dict[str, answers.Json], definition: ReportDefinition) -> list[str]:
    """The row's values as text: unknown is empty, figures as in JSON, anything else neutralised."""
    return [_cell(value, is_figure=definition.figure(name) is not None) for name, value in row.items()]


def neutral(text: str) -> str:
    """Text that no spreadsheet takes for a formula (OWASP, "CSV injection")."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _cell(value: answers.Json, *, is_figure: bool) -> str:
    if value is None:
        return ""
    return neutral(value) if isinstance(value, str) and not is_figure else str(value)


def _lines(rows: list[list[str]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerows(rows)
    return buffer.getvalue()
