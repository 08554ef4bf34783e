"""Sources of the kind slurmrestd: configured by command, collected, watched for the end of their token."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core import checks
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone

from accounting.models import UsageRecord
from collectors import collecting
from collectors.models import Run, RunStatus, Source
from estate.models import Cluster
from tests.core.slurm_rest.jobs import live_job, stored_job
from tests.core.slurm_rest.stub import Reply, Stub
from tests.core.slurm_rest.test_access import jwt

pytestmark = pytest.mark.django_db
VERSION = "v0.0.44"


class Slurm:
    """What a slurmrestd of straw has."""

    def __init__(self) -> None:
        self.stored: list[object] = []
        self.waiting: list[object] = []
        self.errors: list[object] = []
        self.warnings: list[object] = []
        self.live_status = 200

    def reply(self, path: str, _count: int) -> Reply:
        if path == "/openapi/v3":
            return 200, f'{{"/slurmdb/{VERSION}/jobs/": 0}}'.encode()
        if path.startswith("/slurm/"):
            return self.live_status, json.dumps({"jobs": self.waiting}).encode()
        return 200, json.dumps({"jobs": self.stored, "errors": self.errors, "warnings": self.warnings}).encode()


@pytest.fixture
def slurm_there() -> Slurm:
    return Slurm()


@pytest.fixture
def address(slurm_there: Slurm) -> Iterator[str]:
    stub = Stub()
    stub.replies = slurm_there.reply
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), stub.handler()) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "jwt"
    path.write_text(jwt({"exp": int((timezone.now() + timedelta(days=30)).timestamp())}))
    return path


@pytest.fixture
def source(address: str, token: Path) -> Source:
    lab = Cluster.objects.create(name="lab", scheduler="slurm", zone="UTC")
    return Source.objects.create(name="rest", cluster=lab, kind="slurmrestd", location=address, token_reference=f"file:{token}")


def add(name: str, *options: str) -> None:
    call_command("collect", "source", "add", name, "--cluster", "lab", "--kind", "slurmrestd", *options)


def test_a_source_is_added_by_command_once_it_answers(address: str, token: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add("rest", "--location", address, "--token", f"file:{token}", "--rest-user", "root", "--time-limit", "60")

    source = Source.objects.get(name="rest")
    assert (source.kind, source.location, source.rest_user, source.time_limit_seconds) == ("slurmrestd", address, "root", 60)
    said = capsys.readouterr().err
    assert f"answers with data parser {VERSION}; the token ends 20" in said
    assert token.read_text() not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--token", "env:NO_SUCH_TOKEN"), "write the address of slurmrestd"),
        (("--location", "https://a:b@x", "--token", "env:NO_SUCH_TOKEN"), "leave user and password out"),
        (("--location", "https://x.example.org"), "name the token by env:NAME or file:/absolute/path"),
        (("--location", "https://x.example.org", "--token", jwt({"exp": 1})), "name the token by env:NAME"),
        (("--location", "https://x.example.org", "--token", "env:NO_SUCH_TOKEN"), "NO_SUCH_TOKEN is not set"),
    ],
    ids=["no address", "password in the address", "no token", "the token itself", "token not there"],
)
def test_a_source_that_cannot_work_is_refused(options: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words) as refused:
        add("rest", *options)
    assert not Source.objects.exists()
    assert jwt({"exp": 1}) not in str(refused.value)


@pytest.mark.parametrize("missing", ["location", "token_reference"])
def test_the_table_refuses_a_source_without_address_or_token(source: Source, missing: str) -> None:
    setattr(source, missing, "")
    with pytest.raises(IntegrityError, match="source_of_slurmrestd_has_an_address_and_a_token"):
        source.save()


def collect(source: Source) -> Run:
    collecting.collect(source.pk, only_due=False)
    source.refresh_from_db()
    return Run.objects.filter(source=source).latest("pk")


def test_jobs_come_in_with_those_that_wait_and_every_job_is_counted(source: Source, slurm_there: Slurm) -> None:
    slurm_there.stored = [stored_job(VERSION), stored_job(VERSION, job_id=9, name=7), stored_job(VERSION, job_id=10)]
    slurm_there.waiting = [live_job(VERSION), live_job(VERSION, job_id=11, cluster="other"), live_job(VERSION, job_id=10)]
    slurm_there.waiting[2]["submit_time"] = {"set": True, "infinite": False, "number": 1_772_352_000}  # type: ignore[index]

    run = collect(source)

    assert run.status == RunStatus.DONE
    assert (run.kind, run.line_count, run.accepted_count, run.rejected_count, run.ignored_count) == ("slurmrestd", 5, 3, 1, 1)
    assert "no text" in run.rejections.get().reason
    assert set(UsageRecord.objects.values_list("external_id", "state")) == {
        ("7", "COMPLETED"),
        ("10", "COMPLETED"),
        ("8", "PENDING"),
    }
    assert source.watermark_at == run.asked_at
    assert source.token_ends_at is not None


def test_warnings_and_a_silent_slurmctld_are_told_and_the_records_still_come_in(source: Source, slurm_there: Slurm) -> None:
    slurm_there.stored, slurm_there.live_status = [stored_job(VERSION)], 500
    slurm_there.warnings = [{"description": "field x is deprecated"}]

    run = collect(source)

    assert (run.status, run.accepted_count) == (RunStatus.DONE, 1)
    assert "slurmrestd warns: field x is deprecated" in run.message
    assert "jobs that are held or wait for others were not asked for" in run.message


def test_an_error_beside_jobs_writes_nothing_and_leaves_the_watermark(source: Source, slurm_there: Slurm) -> None:
    slurm_there.stored = [stored_job(VERSION)]
    slurm_there.errors = [{"error": "Unable to connect to database", "error_number": 7000}]

    run = collect(source)

    assert (run.status, source.watermark_at, UsageRecord.objects.count()) == (RunStatus.FAILED, None, 0)
    assert "Unable to connect to database (7000)" in run.message


def test_a_window_that_is_too_much_is_narrowed(source: Source, slurm_there: Slurm) -> None:
    slurm_there.errors = [{"error": "Query is too wide of a date range", "error_number": 7001}]

    run = collect(source)

    assert "too wide of a date range" in run.message
    assert Run.objects.filter(source=source, status=RunStatus.FAILED).count() == 2, "asked again, for less"


def warned() -> list[str]:
    return [message.msg for message in checks.run_checks(databases=["default"]) if (message.id or "").startswith("collectors.")]


@pytest.mark.parametrize(
    ("left", "words"), [(timedelta(days=30), None), (timedelta(hours=30), "ends"), (timedelta(hours=-1), "ended")]
)
def test_doctor_tells_of_a_token_that_ends_soon(source: Source, token: Path, left: timedelta, words: str | None) -> None:
    token.write_text(jwt({"exp": int((timezone.now() + left).timestamp())}))
    found = warned()
    assert len(found) == (words is not None)
    assert all(f"source rest: the token in file:{token} {words} 20" in message for message in found)


def test_doctor_tells_of_a_token_that_is_not_there(source: Source, token: Path) -> None:
    token.unlink()
    assert warned() == [f"source rest: {token}: no such file or directory"]


def test_the_page_shows_when_the_token_ends_and_never_the_token(source: Source, token: Path, as_lead: Client) -> None:
    Source.objects.update(token_ends_at=datetime(2031, 5, 6, 7, 8, tzinfo=UTC))
    page = as_lead.get("/collectors/").content.decode()
    assert f"token in file:{token} ends" in page
    assert "2031" in page
    assert token.read_text() not in page
