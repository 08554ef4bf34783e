"""A report as an HTTP response in each format."""

from __future__ import annotations

from collections.abc import Iterable
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from django.conf import settings
from django.http import FileResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse

from accounting.domain.answers import answer
from accounting.domain.reports import Report
from accounting.exports import csv, xlsx

FORMATS = ("json", "csv", "xlsx")
XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def response(report: Report, output: str, *, for_browser: bool = False) -> HttpResponseBase:
    """`report` in one of `FORMATS`, a download where the format is a file's. Raises ReportError when it cannot hold the report."""
    currency: str = settings.ESTATE_CURRENCY
    if output == "csv":
        found: HttpResponseBase = _csv(csv.chunks(report, currency, byte_order_mark=for_browser))
    elif output == "xlsx":
        found = _xlsx(report, currency)
    else:
        found = JsonResponse(answer(report, currency), json_dumps_params={"ensure_ascii": False})
    if output != "json" or for_browser:
        found["Content-Disposition"] = f'attachment; filename="{filename(report, output)}"'
    found["Cache-Control"] = "private, no-cache"
    return found


def filename(report: Report, output: str) -> str:
    """Report and dates, both ends as asked: `usage_2026-11-01_2026-12-01.csv`."""
    request = report.request
    return f"{request.name}_{request.first}_{request.last}.{output}"


def _csv(chunks: Iterable[str]) -> StreamingHttpResponse:
    return StreamingHttpResponse(chunks, content_type="text/csv; charset=utf-8")


def _xlsx(report: Report, currency: str) -> FileResponse:
    file = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - the response closes it
    xlsx.write(report, currency, file)
    file.seek(0)
    return FileResponse(file, content_type=XLSX_TYPE)
