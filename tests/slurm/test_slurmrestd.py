"""A source that asks a real slurmrestd: the records of sacct, what waits, and no word of the token."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from accounting.models import UsageRecord
from collectors import asking, collecting
from collectors.models import Run, RunStatus, Source
from collectors.slurm.rest.client import Slurmrestd
from estate.models import Cluster
from tests.slurm.conftest import TestBed

pytestmark = pytest.mark.django_db
COMPARED = (
    "display_id", "workload_id", "workload_kind", "name", "user_name", "account", "partition", "qos", "state", "eligible_at", "started_at",
    "ended_at", "gpu_model_ids", "gpu_counts", "gpus", "requested_gpus", "cpus", "memory_mib", "node_count", "nodes", "time_limit_seconds",
    "priority", "reason", "comment", "exit_code", "cancelled_by", "reservation", "wckey", "environment", "suspended_seconds",
)  # fmt: skip
# What data parser 0.0.38 (22.05) does not tell, and no version (who cancelled: the API has the name, sacct the uid).
NOT_TOLD = {"cancelled_by"}
NOT_TOLD_BY_OLDEST = NOT_TOLD | {"exit_code", "reservation", "environment"}


@pytest.fixture
def token(slurm_bed: TestBed, tmp_path: Path) -> Path:
    path = tmp_path / "jwt"
    path.write_text(slurm_bed.run("scontrol", "token", "username=root", "lifespan=3600"))
    return path


@pytest.fixture
def source(db: None, slurm_bed: TestBed, token: Path) -> Source:
    lab = Cluster.objects.create(name="lab", scheduler="slurm", zone="UTC")
    return Source.objects.create(
        name="lab-rest",
        cluster=lab,
        kind="slurmrestd",
        location=slurm_bed.rest,
        token_reference=f"file:{token}",
        rest_user="root",
    )


def collect(source: Source) -> Run:
    done = collecting.collect(source.pk, only_due=False)
    assert (done.is_held, done.failures) == (True, [])
    return Run.objects.filter(source=source, kind=source.kind).latest("pk")


def kept() -> dict[tuple[str, datetime], dict[str, Any]]:
    rows = UsageRecord.objects.values("external_id", "submitted_at", *COMPARED)
    return {(row.pop("external_id"), row.pop("submitted_at")): row for row in rows}


def test_slurmrestd_and_sacct_give_the_same_records(source: Source, slurm_bed: TestBed, mixed_jobs: dict[str, str]) -> None:
    """sacct is asked before and after: what a job that waits or is suspended goes on to be meanwhile is no difference."""
    sacct = Source.objects.create(name="lab-sacct", cluster=source.cluster, kind="sacct", slurm_conf=str(slurm_bed.slurm_conf))
    before, by_rest, after = (told_by(asked) for asked in (sacct, source, sacct))
    with Slurmrestd(asking.access_of(source)) as rest:
        not_told = NOT_TOLD_BY_OLDEST if rest.version() == "v0.0.38" else NOT_TOLD

    assert by_rest.keys() == before.keys() == after.keys()
    found = {key: differences(by_rest[key], before[key]) & differences(by_rest[key], after[key]) for key in after}
    # One that is suspended is so for longer at each question, and one that waits gains in priority.
    changing = {"SUSPENDED": {"suspended_seconds"}, "PENDING": {"priority"}}
    surplus = {key: names - not_told - changing.get(after[key]["state"], set()) for key, names in found.items()}
    assert {key: names for key, names in surplus.items() if names} == {}
    told = [names for key, names in found.items() if after[key]["state"] == "COMPLETED"]
    assert all(names <= not_told - {"exit_code", "cancelled_by"} for names in told), "of a job that ended well all is told"


def told_by(source: Source) -> dict[tuple[str, datetime], dict[str, Any]]:
    """What one source alone makes of the cluster."""
    UsageRecord.objects.all().delete()
    run = collect(source)
    assert (run.status, run.rejected_count) == (RunStatus.DONE, 0), list(run.rejections.values_list("raw", "reason"))
    return kept()


def differences(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {name for name, value in one.items() if other[name] != value}


def test_every_attempt_of_a_requeued_job_comes_in(source: Source, mixed_jobs: dict[str, str]) -> None:
    collect(source)
    attempts = UsageRecord.objects.filter(workload_id=mixed_jobs["node-fail-requeued"]).order_by("submitted_at")
    assert [attempt.state for attempt in attempts] == ["NODE_FAIL", "COMPLETED"]


@pytest.mark.parametrize("case", ["live-array-held", "live-begin", "live-held-by-admin", "live-never", "live-het"])
def test_a_job_that_waits_is_known_whatever_it_waits_for(case: str, source: Source, mixed_jobs: dict[str, str]) -> None:
    collect(source)
    waiting = UsageRecord.objects.filter(workload_id=mixed_jobs[case]).first()
    assert waiting is not None
    assert (waiting.started_at, waiting.ended_at) == (None, None)


def test_times_are_whole_though_the_window_cuts_the_job(source: Source, mixed_jobs: dict[str, str]) -> None:
    """slurmdbd would cut them at the window, had it not been told otherwise."""
    collect(source)
    record = UsageRecord.objects.get(workload_id=mixed_jobs["timeout"])
    assert record.started_at is not None
    middle = record.started_at + timedelta(seconds=10)
    UsageRecord.objects.all().delete()

    done = collecting.collect(source.pk, only_due=False, modified=(middle, middle + timedelta(seconds=5)))

    assert done.failures == []
    again = UsageRecord.objects.get(workload_id=mixed_jobs["timeout"])
    assert (again.started_at, again.ended_at) == (record.started_at, record.ended_at)


def test_an_empty_window_is_no_error(source: Source, slurm_bed: TestBed) -> None:
    """Case 6."""
    long_ago = datetime.fromisoformat("2020-01-01T00:00:00+00:00")
    done = collecting.collect(source.pk, only_due=False, modified=(long_ago, long_ago + timedelta(days=1)))
    assert done.failures == []


def test_a_token_that_is_not_good_fails_the_run_and_shows_nowhere(source: Source, token: Path) -> None:
    token.write_text("aaaa.bbbb.cccc")

    done = collecting.collect(source.pk, only_due=False)

    assert len(done.failures) == 1
    assert f"is the token in file:{token} still valid" in done.failures[0]
    assert "aaaa" not in str(list(Run.objects.values_list("message", "input_name")))
    source.refresh_from_db()
    assert source.watermark_at is None
