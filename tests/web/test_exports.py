"""Downloads: what spreadsheets and parsers make of them."""

from __future__ import annotations

import csv
import io
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from accounting.domain.answers import answer
from accounting.domain.metrics import REPORTS
from accounting.domain.reports import Report, ReportError
from accounting.exports import csv as csv_export
from accounting.exports import xlsx
from accounting.requests import report_request
from estate.models import Project, User
from tests.web.reports import HOSTILE, Door, body, door, report

__all__ = ["door"]

NOVEMBER = {"from": "2026-11-01", "to": "2026-12-01"}


def asked(name: str, *by: str) -> Report:
    params = {"from": ["2026-11-01"], "to": ["2026-12-01"], "by": list(by)}
    return report(report_request(name, params, visible_projects=None, reporting_zone=ZoneInfo("UTC")))


def as_csv(found: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(csv_export.chunks(found, "EUR")), newline="")))


def as_sheets(found: Report) -> dict[str, list[tuple[Any, ...]]]:
    book = load_workbook(io.BytesIO(xlsx.as_bytes(found, "EUR")))
    assert not [cell for sheet in book for line in sheet for cell in line if cell.data_type == "f" or cell.hyperlink]
    return {sheet.title: [tuple(cell.value for cell in line) for line in sheet] for sheet in book}


@pytest.mark.parametrize("name", REPORTS)
def test_csv_figures_are_those_of_json(name: str) -> None:
    found = asked(name, "cluster", "day")
    assert [{**line, "cluster": ""} for line in as_csv(found)] == [
        {key: "" if value is None else str(value) for key, value in row.items()} | {"cluster": ""}
        for row in answer(found, "EUR")["rows"]
    ]


def test_text_that_a_spreadsheet_would_run_is_neutralised_and_nothing_else_is_changed() -> None:
    assert [line["user"] for line in as_csv(asked("usage", "user"))] == [
        f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text for text in HOSTILE
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_csv_cell_ever_starts_a_formula(text: str) -> None:
    found = asked("usage", "user")
    found.rows[:] = [{"user": text, "gpu_seconds": Decimal(-1)}]
    (line,) = as_csv(found)
    assert not line["user"].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert line["user"].removeprefix("'") in {text, text.removeprefix("'")}
    assert line["gpu_seconds"] == "-1"


def test_every_csv_line_ends_as_rfc_4180_says() -> None:
    text = "".join(csv_export.chunks(asked("usage"), "EUR"))
    assert text.count("\r\n") == text.count("\n") == 1 + len(HOSTILE)


@pytest.mark.parametrize("name", REPORTS)
def test_numeric_cells_of_a_workbook_are_the_numbers_of_json(name: str) -> None:
    found = asked(name, "cluster", "day")
    header, *lines = as_sheets(found)["Rows"]
    figures = {figure.id for figure in REPORTS[name].figures}
    for line, row in zip(lines, answer(found, "EUR")["rows"], strict=True):
        for column, value in zip(header, line, strict=True):
            if column in figures:
                assert value is None if row[column] is None else Decimal(str(value)) == Decimal(str(row[column]))
                assert not isinstance(value, str)


def test_text_in_a_workbook_is_text_whatever_it_looks_like_and_a_day_is_a_date() -> None:
    _, *lines = as_sheets(asked("usage", "user", "day"))["Rows"]
    # Excel's own escape for a carriage return; openpyxl leaves it as it is written.
    assert [(line[0] or "").replace("_x000D_", "\r").replace("\r\n", "\n") for line in lines] == [
        text.replace("\r\n", "\n") for text in HOSTILE
    ]
    assert {line[1] for line in lines} == {datetime(2026, 11, 2)}  # noqa: DTZ001 - a spreadsheet's dates have no zone


def test_a_workbook_has_the_total_apart_and_says_what_it_holds() -> None:
    sheets = as_sheets(asked("costs", "project"))
    header, total = sheets["Total"]
    assert dict(zip(header, total, strict=True))["total_cost"] == 12345678.8
    about = dict(sheets["About"])
    assert (about["report"], about["from"], about["to"], about["by"]) == ("costs", "2026-11-01", "2026-12-01", "project")
    assert about["quality: coverage_ratio"] == 0.333333
    assert "GPU-hours × the price" in about["usage_cost"]


def test_a_workbook_has_a_frozen_header_with_filters() -> None:
    sheet = load_workbook(io.BytesIO(xlsx.as_bytes(asked("usage", "user", "day"), "EUR")))["Rows"]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("C2", f"A1:G{len(HOSTILE) + 1}")


def test_more_rows_than_a_sheet_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MOST_ROWS", 3)
    with pytest.raises(ReportError, match="ask for CSV"):
        xlsx.as_bytes(asked("usage"), "EUR")


def test_a_browser_gets_a_byte_order_mark_so_that_a_spreadsheet_reads_umlauts(as_lead: Client, door: Door) -> None:
    got = as_lead.get(reverse("export-report", args=["usage", "csv"]), NOVEMBER | {"by": "user"})
    content = body(got)
    assert content.startswith(b"\xef\xbb\xbfuser,")
    assert "Jörg" in content.decode("utf-8-sig")
    assert got["Content-Disposition"] == 'attachment; filename="usage_2026-11-01_2026-12-01.csv"'
    assert got["Content-Type"] == "text/csv; charset=utf-8"


@pytest.mark.parametrize("output", ["csv", "xlsx", "json"])
def test_an_anonymous_visitor_is_sent_to_sign_in(client: Client, door: Door, db: None, output: str) -> None:
    got = client.get(f"/export/usage.{output}", NOVEMBER)
    assert got.status_code == 302
    assert got["Location"].startswith(reverse("sign-in"))


@pytest.mark.usefixtures("charlie")
@pytest.mark.parametrize(("name", "sees"), [("alice", True), ("bob", True), ("charlie", False)])
def test_downloads_hold_what_the_reader_may_see(client: Client, door: Door, vision: Project, name: str, sees: bool) -> None:
    client.force_login(User.objects.get(username=name))
    assert client.get("/export/costs.csv", NOVEMBER).status_code == 200
    assert door().scope.visible_projects == ((vision.pk,) if sees else ())
    assert door().first == date(2026, 11, 1)


@pytest.mark.parametrize("path", ["/export/usage.pdf", "/export/colour.csv", "/export/usage"])
def test_what_does_not_exist_is_not_found(as_lead: Client, door: Door, path: str) -> None:
    assert as_lead.get(path, NOVEMBER).status_code == 404


def test_a_bad_request_says_why_in_plain_text_and_never_as_a_page(as_lead: Client, door: Door) -> None:
    got = as_lead.get("/export/usage.csv", NOVEMBER | {"by": "<img onerror>"})
    assert (got.status_code, got["Content-Type"]) == (400, "text/plain; charset=utf-8")
    assert "no dimension of usage" in got.content.decode()


def test_parameters_of_the_page_that_mean_nothing_to_a_report_are_ignored(as_lead: Client, door: Door) -> None:
    assert as_lead.get("/export/usage.csv", NOVEMBER | {"sort": "user"}).status_code == 200


def test_downloads_are_only_read(as_lead: Client, door: Door) -> None:
    assert as_lead.post("/export/usage.csv").status_code == 405
