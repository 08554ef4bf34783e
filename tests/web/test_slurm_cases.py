"""Cases C6 at the edge: what spreadsheets run, what strangers may see, what a hostile name does, how much a page asks."""

from __future__ import annotations

import csv
import io
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounting.domain.reports import Report, ReportRequest
from accounting.exports import csv as csv_export
from estate.models import Cluster, Project, User
from tests.cases import case
from tests.db.slurm_cases.world import MARCH as MARCH_DAYS
from tests.db.slurm_cases.world import UTC_ZONE, load
from tests.records import record
from tests.web.reports import body
from tests.web.rules import take_in
from tests.web.test_limits import PATH as LIMITS
from tests.web.world import MARCH, PAGES, REPORT_PAGES, fill

pytestmark = pytest.mark.django_db
HOSTILE = (
    '<img src=x onerror="alert(1)">',
    "<script>alert(1)</script>",
    "'\"><svg onload=alert(1)>",
    "{{7*7}}",
    "'; DROP TABLE x; --",
)


@pytest.fixture
def world(slurm: Cluster, vision: Project) -> Cluster:
    fill(slurm)
    return slurm


def as_user(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "Jörg", "训练"])
@pytest.mark.parametrize("case", [pytest.param(95, id="C95")])
def test_a_name_in_a_csv_is_text_and_umlauts_are_whole(as_lead: Client, slurm: Cluster, text: str, case: object) -> None:
    load(slurm, record("1", user=text))
    content = body(as_lead.get(f"/export/usage.csv?{MARCH}&by=user")).decode("utf-8-sig")
    [row] = csv.DictReader(io.StringIO(content, newline=""))
    assert row["user"] == (text if text[0].isalpha() else f"'{text}")
    assert row["gpu_seconds"] == "14400"


@pytest.mark.parametrize("rows", [20_000, 100_000])
@pytest.mark.parametrize("case", [pytest.param(96, id="C96")])
def test_a_csv_is_written_in_pieces_with_flat_memory(rows: int, case: object) -> None:
    row: dict[str, Any] = {"user": "ann", "gpu_seconds": Decimal(1)}
    request = ReportRequest(name="usage", first=MARCH_DAYS[0], last=MARCH_DAYS[1], zone=UTC_ZONE, by=("user",))
    report = Report(request=request, rows=[row] * rows, total=row, quality={}, data_through=None)
    tracemalloc.start()
    try:
        size = sum(len(chunk) for chunk in csv_export.chunks(report, "EUR"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > rows * 8
    assert peak < 4_000_000


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("case", [pytest.param(97, id="C97")])
def test_a_name_of_a_job_user_or_account_is_never_markup(as_lead: Client, world: Cluster, text: str, case: object) -> None:
    load(world, record("x", name=text, user=text, account=text, partition=text, qos=text, nodes=("gpu01",)))
    for path in PAGES:
        for query in (MARCH, f"{MARCH}&by=user", f"{MARCH}&partition={text}"):
            page = as_lead.get(f"{path}?{query}").content.decode()
            assert "<img src=x" not in page
            assert "<script>alert" not in page
            assert "<svg onload" not in page
    rows = as_lead.get(f"/api/v1/reports/usage?{MARCH}&by=user").json()["rows"]
    assert text in [row["user"] for row in rows], "kept as it came, in data"


@pytest.mark.parametrize("token", ["", "none", "eyJhbGciOiJub25lIn0.e30.", "a" * 40])
@pytest.mark.parametrize("case", [pytest.param(97, id="C97")])
def test_an_empty_or_made_up_token_opens_nothing(client: Client, world: Cluster, token: str, case: object) -> None:
    answer = client.get(f"/api/v1/reports/usage?{MARCH}", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code in {401, 403}
    assert "total" not in answer.content.decode()


@pytest.mark.parametrize("report", ["usage", "costs", "waits"])
@pytest.mark.parametrize("case", [pytest.param(98, id="C98")])
def test_rules_of_rows_hold_in_exports_and_in_the_api(world: Cluster, charlie: User, report: str, case: object) -> None:
    for name, sees in (("bob", True), ("charlie", False)):
        reader = as_user(name)
        texts = (
            body(reader.get(f"/export/{report}.csv?{MARCH}&by=account")).decode(),
            reader.get(f"/api/v1/reports/{report}?{MARCH}&by=account").content.decode(),
        )
        for text in texts:
            assert "speech" not in text
            assert "nobodys" not in text
            assert ("vision" in text) is sees


@pytest.mark.parametrize("path", REPORT_PAGES)
@pytest.mark.parametrize("case", [pytest.param(99, id="C99")])
def test_a_page_asks_as_much_of_wide_jobs_and_many_as_of_few(
    as_lead: Client, slurm: Cluster, vision: Project, path: str, case: object
) -> None:
    fill(slurm)
    counts = []
    for number in (1, 40):
        wide = [record(f"w{number}-{n}", nodes=tuple(f"gpu{k:03}" for k in range(200))) for n in range(number)]
        load(slurm, *wide)
        as_lead.get(f"{path}?{MARCH}")
        with CaptureQueriesContext(connection) as asked:
            as_lead.get(f"{path}?{MARCH}")
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 60


@case(89)
def test_what_the_scheduler_counts_with_decay_stands_under_its_own_name(as_lead: Client, world: Cluster, case: object) -> None:
    """Beside what was used, which never decays."""
    take_in(world)
    text = as_lead.get(LIMITS).content.decode()
    assert "Decayed usage" in text
    assert "usage halves every" in text
