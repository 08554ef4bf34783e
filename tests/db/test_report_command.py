"""`report`: formats, files, exit codes, and the same figures as the API."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from django.core.management import CommandError, call_command
from django.test import Client
from openpyxl import load_workbook

from accounting.domain.metrics import REPORTS
from estate.models import AccountMapping, Cluster, Project, ProjectMember, User
from tests.db.dumps import job, write
from tests.web.reports import HOSTILE, door

__all__ = ["door"]
pytestmark = pytest.mark.django_db

MARCH = ("--from", "2026-03-01", "--to", "2026-04-01")
ROOT = Path(__file__).resolve().parents[2]


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True


def report(*words: str, out: io.StringIO | None = None) -> str:
    out = out or io.StringIO()
    call_command("report", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def jobs(tmp_path: Path) -> None:
    """Two jobs of one hour on two GPUs, and one that was cancelled while it waited."""
    waiting = job(3, state="CANCELLED by 1", start="Unknown", end="2026-03-01T10:30:00")
    call_command(
        "collect",
        "import",
        "sacct",
        "--cluster",
        "alpha",
        str(write(tmp_path / "j", job(1), job(2), waiting)),
        stderr=io.StringIO(),
    )


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.usefixtures("jobs")
def test_the_command_and_the_api_say_the_same(client: Client, lead: User, name: str) -> None:
    client.force_login(lead)
    query = {"from": "2026-03-01", "to": "2026-04-01", "by": ["cluster", "day"]}
    assert json.loads(report(name, *MARCH, "--by", "cluster,day")) == client.get(f"/api/v1/reports/{name}", query).json()


ADDITIVE = ("gpu_seconds", "record_count", "started_count", "cpu_seconds", "wall_seconds", "reported_gpu_seconds")


# Which pool a record ran in is not asked of the facts yet.
UNANSWERED = {("usage", "pool"), ("costs", "pool")}


def cuts() -> Iterator[ParameterSet]:
    """Every report by every one of its dimensions."""
    waiting = pytest.mark.xfail(raises=CommandError, strict=True, reason="records are not placed in pools yet")
    for name, definition in REPORTS.items():
        for dimension in definition.dimension_ids:
            yield pytest.param(name, dimension, marks=waiting if (name, dimension) in UNANSWERED else ())


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(("name", "dimension"), list(cuts()))
def test_every_dimension_of_the_registry_is_answered_and_its_rows_add_to_the_total(name: str, dimension: str) -> None:
    answer = json.loads(report(name, *MARCH, "--by", dimension))
    for figure in set(ADDITIVE) & set(answer["total"]):
        assert sum(row[figure] for row in answer["rows"]) == answer["total"][figure]


@pytest.mark.usefixtures("jobs")
def test_usage_of_real_records_comes_out() -> None:
    answer = json.loads(report("usage", *MARCH, "--by", "user", "--by", "day", "--cluster", "alpha"))
    (row,) = answer["rows"]
    assert (row["user"], row["day"], row["record_count"], row["started_count"], row["gpu_seconds"]) == (
        "ann",
        "2026-03-01",
        3,
        2,
        14400,
    )
    assert answer["total"] == {name: value for name, value in row.items() if name not in {"user", "day"}}


@pytest.mark.usefixtures("jobs")
def test_waits_of_real_records_come_out_with_the_one_that_never_started() -> None:
    total = json.loads(report("waits", *MARCH))["total"]
    assert (total["record_count"], total["started_count"], total["censored_count"]) == (3, 2, 1)
    assert (total["p50_wait_seconds"], total["p90_wait_seconds"], total["max_wait_seconds"]) == (300, None, 1800)


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(("name", "sees"), [("alice", 14400), ("bob", 14400), ("charlie", 0), ("lead", 14400)])
def test_members_get_the_figures_of_their_projects_and_strangers_get_none(
    client: Client, people: dict[str, User], name: str, sees: int
) -> None:
    client.force_login(people[name])
    query = {"from": "2026-03-01", "to": "2026-04-01", "by": "user"}
    answer = client.get("/api/v1/reports/usage", query).json()
    assert answer["total"]["gpu_seconds"] == sees
    assert [row["user"] for row in answer["rows"]] == (["ann"] if sees else [])


@pytest.fixture
def people(jobs: None, lead: User, charlie: User) -> dict[str, User]:
    """The lead, a stranger, and owner and member of the project that the account of the jobs maps to."""
    project = Project.objects.create(code="P-VISION", name="Vision")
    AccountMapping.objects.create(cluster=Cluster.objects.get(), account="vision", project=project, valid_during=(None, None))
    people = {name: User.objects.create_user(name) for name in ("alice", "bob")}
    for name, role in (("alice", "owner"), ("bob", "member")):
        ProjectMember.objects.create(project=project, user=people[name], role=role)
    return people | {"lead": lead, "charlie": charlie}


@pytest.mark.usefixtures("door")
def test_csv_on_stdout_has_rows_only() -> None:
    lines = list(csv.DictReader(io.StringIO(report("usage", *MARCH, "--by", "user", "--format", "csv"), newline="")))
    assert len(lines) == len(HOSTILE)
    assert lines[0]["user"] == "'=1+1"


@pytest.mark.usefixtures("door")
@pytest.mark.parametrize("output", ["json", "csv", "xlsx"])
def test_a_file_gets_the_format_of_its_name_and_stdout_stays_empty(tmp_path: Path, output: str) -> None:
    path = tmp_path / f"march.{output}"
    assert report("usage", *MARCH, "--output", str(path)) == ""
    if output == "json":
        assert json.loads(path.read_text())["report"] == "usage"
    elif output == "csv":
        assert path.read_bytes().startswith(b"record_count,")
    else:
        assert load_workbook(path).sheetnames == ["Rows", "Total", "About"]


@pytest.mark.usefixtures("door")
def test_a_person_at_a_terminal_gets_a_table_that_cannot_move_the_cursor() -> None:
    shown = report("usage", *MARCH, "--by", "user", out=Terminal())
    lines = shown.splitlines()
    assert lines[0].split()[:2] == ["User", "Records"]
    assert "\r" not in shown
    assert "\t" not in shown
    assert lines[len(HOSTILE) + 3].startswith("total")
    assert lines[-1] == "usage, 2026-03-01 up to but not including 2026-04-01, UTC; data to 2026-11-03T12:00:00Z"


@pytest.mark.usefixtures("door")
def test_a_workbook_is_not_thrown_at_a_terminal() -> None:
    with pytest.raises(CommandError, match="--output FILE") as refused:
        report("usage", *MARCH, "--format", "xlsx", out=Terminal())
    assert refused.value.returncode == 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("colour", *MARCH), 2, "NAME: “colour” is no report; choose one of usage, waits, capacity, costs"),
        (("usage", *MARCH, "--by", "colour"), 2, "--by: “colour” is no dimension of usage; choose from cluster, scheduler"),
        (("usage", "--from", "yesterday", "--to", "2026-04-01"), 2, "--from: “yesterday” is no date"),
        (("usage", "--from", "2026-04-01", "--to", "2026-04-01"), 2, "--to: 2026-04-01 is not after"),
        (("usage", *MARCH, "--zone", "Mars"), 2, "--zone: “Mars” is no time zone"),
        (("usage", *MARCH, "--cluster", "beta"), 1, "--cluster: “beta” is no known cluster; known: alpha"),
        (("usage", *MARCH, "--gpu-model", "x"), 1, "--gpu-model: “x” is no known GPU model"),
    ],
)
@pytest.mark.usefixtures("door", "slurm")
def test_what_is_wrong_is_said_in_the_words_of_the_command(words: tuple[str, ...], code: int, says: str) -> None:
    with pytest.raises(CommandError) as refused:
        report(*words)
    assert refused.value.returncode == code
    assert says in str(refused.value)


@pytest.mark.usefixtures("door")
def test_a_file_that_cannot_be_written_fails_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot write the report") as refused:
        report("usage", *MARCH, "--output", str(tmp_path / "absent" / "x.csv"))
    assert refused.value.returncode == 1


def run(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command as a process, without a database: its parameters are wrong or its reader has gone."""
    code = (
        "import django; django.setup(); "
        "from tests.web.reports import report; from accounting.queries import reports; import manage; "
        "reports.run = report; manage.main()"
    )
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=ROOT, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options
    )


def test_bad_usage_exits_with_2_and_one_line_on_stderr() -> None:
    process = run("report", "colour", *MARCH)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert len(err.splitlines()) == 1


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    process = run("report", "usage", *MARCH, "--by", "user", "--format", "csv")
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert (process.returncode, err) == (0, b"")


def test_a_workbook_goes_down_a_pipe() -> None:
    out, err = run("report", "usage", *MARCH, "--format", "xlsx").communicate()
    assert err == b""
    assert load_workbook(io.BytesIO(out)).sheetnames == ["Rows", "Total", "About"]
