"""`GET /api/v1/reports/NAME`: who may ask, what is refused, what comes back."""

from __future__ import annotations

import csv
import io
from datetime import date, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from openpyxl import load_workbook

from accounting.domain.metrics import REPORTS
from accounting.domain.reports import ReportError
from accounting.queries import reports
from estate.models import ApiToken, Cluster, GpuModel, GpuModelAlias, Partition, Project, User
from tests.web.reports import HOSTILE, Door, body, door

__all__ = ["door"]
pytestmark = pytest.mark.django_db

NOVEMBER = {"from": "2026-11-01", "to": "2026-12-01"}


def bearer(user: User, **changes: Any) -> dict[str, str]:
    token, text = ApiToken.issue(user, "script")
    ApiToken.objects.filter(pk=token.pk).update(**changes) if changes else None
    return {"authorization": f"Bearer {text}"}


@pytest.mark.parametrize("name", REPORTS)
def test_nobody_reads_a_report_without_signing_in(client: Client, door: Door, name: str) -> None:
    answer = client.get(f"/api/v1/reports/{name}", NOVEMBER)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_token_signs_a_script_in(client: Client, door: Door, lead: User) -> None:
    assert client.get("/api/v1/reports/usage", NOVEMBER, headers=bearer(lead)).status_code == 200


def test_an_expired_token_is_refused_and_one_that_expires_later_is_not(client: Client, door: Door, lead: User) -> None:
    soon = timezone.now() + timedelta(minutes=1)
    assert client.get("/api/v1/reports/usage", NOVEMBER, headers=bearer(lead, expires_at=timezone.now())).status_code == 401
    assert client.get("/api/v1/reports/usage", NOVEMBER, headers=bearer(lead, expires_at=soon)).status_code == 200


@pytest.mark.parametrize("words", ["Bearer wrong", "Bearer \u00ff\u00fe", "Bearer ", "Basic bGVhZDpsZWFk", "Bearer a b"])
def test_a_wrong_token_is_refused(client: Client, door: Door, lead: User, words: str) -> None:
    assert client.get("/api/v1/reports/usage", NOVEMBER, headers={"authorization": words}).status_code == 401


def test_the_token_of_somebody_who_left_is_refused(client: Client, door: Door, lead: User) -> None:
    headers = bearer(lead)
    User.objects.update(is_active=False)
    assert client.get("/api/v1/reports/usage", NOVEMBER, headers=headers).status_code == 401


@pytest.mark.usefixtures("lead", "charlie")
@pytest.mark.parametrize(("name", "sees"), [("lead", None), ("alice", True), ("bob", True), ("charlie", False)])
def test_owner_and_member_see_their_projects_a_stranger_none_and_the_lead_all(
    client: Client, door: Door, vision: Project, name: str, sees: bool | None
) -> None:
    below = Project.objects.create(code="P-SEG", name="Segmentation", parent=vision)
    Project.objects.create(code="P-OTHER", name="Other")
    client.force_login(User.objects.get(username=name))
    for report in ("usage", "waits", "costs"):
        assert client.get(f"/api/v1/reports/{report}", NOVEMBER).status_code == 200
        assert door().scope.visible_projects == (None if sees is None else (vision.pk, below.pk) if sees else ())


def test_everybody_who_is_signed_in_sees_all_capacity(client: Client, door: Door, charlie: User) -> None:
    client.force_login(charlie)
    assert client.get("/api/v1/reports/capacity", NOVEMBER).status_code == 200
    assert door().scope.visible_projects is None


def test_a_stranger_is_not_told_the_names_of_projects(client: Client, door: Door, charlie: User, vision: Project) -> None:
    client.force_login(charlie)
    answer = client.get("/api/v1/reports/usage", NOVEMBER | {"project": "Vision"})
    assert answer.json() == {"errors": {"project": ["“Vision” is no known project; known: none"]}}


def test_an_answer_has_the_shape_of_the_interface(as_lead: Client, door: Door) -> None:
    answer = as_lead.get("/api/v1/reports/usage", NOVEMBER | {"by": ["user", "day"]}).json()
    assert list(answer) == ["report", "from", "to", "zone", "by", "data_through", "rows", "total", "quality"]
    assert answer["rows"][0] == {
        "user": "=1+1",
        "day": "2026-11-02",
        "record_count": 3,
        "started_count": 2,
        "gpu_seconds": "-1234567890.125",
        "cpu_seconds": 7200,
        "wall_seconds": None,
    }
    assert [row["user"] for row in answer["rows"]] == list(HOSTILE)
    assert (answer["by"], answer["zone"], answer["data_through"]) == (["user", "day"], "UTC", "2026-11-03T12:00:00Z")
    assert answer["quality"] == {"coverage_ratio": 0.333333, "unattributed_gpu_seconds": "0.5", "rejected_count": 0}


def test_money_is_text_with_its_currency_and_a_ratio_is_a_number(as_lead: Client, door: Door) -> None:
    costs = as_lead.get("/api/v1/reports/costs", NOVEMBER).json()["total"]
    assert (costs["usage_cost"], costs["shared_cost"], costs["adjustment"], costs["currency"]) == (
        "12345678.90",
        "0.00",
        None,
        "EUR",
    )
    assert as_lead.get("/api/v1/reports/capacity", NOVEMBER).json()["total"]["occupancy_ratio"] == 0.666667


def test_parameters_reach_the_query(as_lead: Client, door: Door, slurm: Cluster, vision: Project) -> None:
    Partition.objects.create(cluster=slurm, name="gpu")
    model = GpuModel.objects.create(name="NVIDIA A100")
    GpuModelAlias.objects.create(alias="a100", gpu_model=model)
    query = {
        "by": ["user,day", "user"],
        "cluster": "alpha",
        "partition": ["gpu", "gpu"],
        "project": "P-VISION",
        "gpu_model": "a100",
    }
    answer = as_lead.get("/api/v1/reports/usage", NOVEMBER | query | {"zone": "Europe/Berlin"})
    assert answer.status_code == 200, answer.content
    request = door()
    assert (request.first, request.last, request.zone.key, request.by) == (
        date(2026, 11, 1),
        date(2026, 12, 1),
        "Europe/Berlin",
        ("user", "day"),
    )
    scope = request.scope
    assert (scope.clusters, scope.partitions, scope.projects, scope.gpu_models) == (
        ("alpha",),
        ("gpu",),
        ("Vision",),
        ("NVIDIA A100",),
    )


@pytest.mark.usefixtures("door", "slurm")
@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"from": ""}, "from", "is missing"),
        ({"from": "01.11.2026"}, "from", "write it as"),
        ({"from": "20261101"}, "from", "write it as"),
        ({"from": "2026-11-31"}, "from", "is no date"),
        ({"from": "0001-01-01"}, "from", "is not between"),
        ({"to": "9999-12-31"}, "to", "is not between"),
        ({"to": "2026-11-01"}, "to", "is not after"),
        ({"to": ["2026-12-01", "2026-12-02"]}, "to", "give it once"),
        ({"by": "colour"}, "by", "choose from cluster, scheduler"),
        ({"by": "node"}, "by", "no dimension of usage"),
        ({"zone": "Mars/Olympus"}, "zone", "no time zone"),
        ({"zone": "../../etc/passwd"}, "zone", "no time zone"),
        ({"zone": "\0"}, "zone", "no time zone"),
        ({"zone": "Europe"}, "zone", "no time zone"),
        ({"cluster": "beta"}, "cluster", "known: alpha"),
        ({"cluster": "\0"}, "cluster", "known: alpha"),
        ({"project": "' OR 1=1 --"}, "project", "no known project"),
        ({"gpu_model": "a100"}, "gpu_model", "known: none"),
        ({"partition": "x"}, "partition", "known: none"),
        ({"clusters": "alpha"}, "clusters", "no parameter"),
        ({"format": "pdf"}, "format", "json, csv, xlsx"),
    ],
)
def test_bad_input_is_refused_by_field(as_lead: Client, changes: dict[str, Any], field: str, says: str) -> None:
    answer = as_lead.get("/api/v1/reports/usage", NOVEMBER | changes)
    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert list(errors) == [field]
    assert says in errors[field][0]


def test_all_that_is_wrong_is_said_at_once(as_lead: Client, door: Door) -> None:
    assert list(as_lead.get("/api/v1/reports/usage", {"by": "x", "zone": "y"}).json()["errors"]) == ["by", "from", "to", "zone"]


def test_what_the_query_cannot_answer_is_bad_input_too(as_lead: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: object) -> None:
        raise ReportError("not by pool")

    monkeypatch.setattr(reports, "run", refuse)
    answer = as_lead.get("/api/v1/reports/usage", NOVEMBER)
    assert (answer.status_code, answer.json()) == (400, {"errors": {"report": ["not by pool"]}})


def test_an_unknown_report_is_not_found_and_the_known_ones_are_named(as_lead: Client) -> None:
    answer = as_lead.get("/api/v1/reports/colour", NOVEMBER)
    assert answer.status_code == 404
    assert "usage, waits, capacity, costs" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_reports_are_only_read(as_lead: Client, door: Door, method: str) -> None:
    assert getattr(as_lead, method)("/api/v1/reports/usage").status_code == 405


def test_head_is_answered_without_a_body(as_lead: Client, door: Door) -> None:
    answer = as_lead.head("/api/v1/reports/usage", NOVEMBER)
    assert (answer.status_code, answer.content) == (200, b"")


def test_an_accept_header_never_changes_the_format(as_lead: Client, door: Door) -> None:
    assert as_lead.get("/api/v1/reports/usage", NOVEMBER, headers={"accept": "text/csv"})["Content-Type"] == "application/json"


def test_csv_has_rows_only_and_no_byte_order_mark(as_lead: Client, door: Door) -> None:
    answer = as_lead.get("/api/v1/reports/usage", NOVEMBER | {"by": "user", "format": "csv"})
    text = body(answer).decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert text.startswith("user,record_count,started_count,gpu_seconds,cpu_seconds,wall_seconds\r\n")
    assert len(lines) == len(HOSTILE)
    assert (lines[0]["gpu_seconds"], lines[0]["wall_seconds"]) == ("-1234567890.125", "")


def test_a_workbook_comes_as_a_download(as_lead: Client, door: Door) -> None:
    answer = as_lead.get("/api/v1/reports/costs", NOVEMBER | {"by": "project", "format": "xlsx"})
    assert answer["Content-Disposition"] == 'attachment; filename="costs_2026-11-01_2026-12-01.xlsx"'
    assert load_workbook(io.BytesIO(body(answer))).sheetnames == ["Rows", "Total", "About"]


def test_the_list_of_reports_defines_every_figure(as_lead: Client) -> None:
    listed = as_lead.get("/api/v1/reports").json()["reports"]
    assert {each["name"]: [figure["id"] for figure in each["figures"]] for each in listed} == {
        name: [figure.id for figure in definition.figures] for name, definition in REPORTS.items()
    }
