"""A source that asks a real sacct: what comes in, again and again, here and over SSH."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounting.models import UsageRecord
from collectors import collecting
from collectors.models import Run, RunStatus, Source
from collectors.queries.runaways import runaways
from estate.models import Cluster
from tests.slurm.conftest import TestBed

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(db: None) -> Cluster:
    return Cluster.objects.create(name="lab", scheduler="slurm", zone="UTC")


@pytest.fixture
def source(lab: Cluster, slurm_bed: TestBed) -> Source:
    return Source.objects.create(name="lab-sacct", cluster=lab, kind="sacct", slurm_conf=str(slurm_bed.slurm_conf))


def collect(source: Source) -> Run:
    done = collecting.collect(source.pk, only_due=False)
    assert (done.is_held, done.failures) == (True, [])
    run = Run.objects.filter(source=source, kind="sacct").first()
    assert run is not None
    assert run.status == RunStatus.DONE
    return run


def record(job_id: str) -> UsageRecord:
    """The newest record of a job."""
    found = UsageRecord.objects.filter(workload_id=job_id).order_by("-submitted_at").first()
    assert found is not None, job_id
    return found


def test_every_job_that_slurm_accounts_for_comes_in(source: Source, mixed_jobs: dict[str, str], slurm_bed: TestBed) -> None:
    before = timezone.now()
    run = collect(source)

    assert run.rejected_count == 0, list(run.rejections.values_list("raw", "reason"))
    known = set(UsageRecord.objects.values_list("workload_id", flat=True))
    assert {job_id for case, job_id in mixed_jobs.items()} <= known
    source.refresh_from_db()
    assert source.watermark_at == run.asked_at == source.reread_at
    assert run.asked_at is not None
    assert before <= run.asked_at <= timezone.now()
    assert UsageRecord.objects.filter(workload_id=mixed_jobs["requeued"]).count() == 2


@pytest.mark.parametrize("case", ["live-array-held", "live-begin", "live-held-by-admin", "live-never", "live-het"])
def test_a_job_that_waits_is_known_whatever_it_waits_for(case: str, source: Source, mixed_jobs: dict[str, str]) -> None:
    collect(source)

    waiting = record(mixed_jobs[case])
    assert (waiting.started_at, waiting.ended_at) == (None, None)
    assert waiting.last_seen_at == waiting.observed_at


def test_asking_again_changes_nothing_that_has_ended(source: Source, mixed_jobs: dict[str, str]) -> None:
    collect(source)
    collect(source)  # with the inventory, which says what a shard is
    ended = UsageRecord.objects.filter(ended_at__isnull=False).order_by("external_id", "submitted_at")
    before = list(ended.values_list("external_id", "submitted_at", "row_hash", "observed_at"))

    again = collect(source)

    assert list(ended.values_list("external_id", "submitted_at", "row_hash", "observed_at")) == before
    assert again.window_from is not None
    assert again.asked_at is not None
    assert timedelta(hours=47) < again.asked_at - again.window_from < timedelta(hours=49), "the short look back"


def test_what_slurm_still_tells_of_is_no_runaway(source: Source, mixed_jobs: dict[str, str]) -> None:
    collect(source)
    collect(source)

    assert UsageRecord.objects.filter(ended_at__isnull=True).exists()
    assert [(lost.display_id, lost.state) for lost in runaways()] == []


def test_a_cluster_of_another_name_is_refused_line_by_line(source: Source, mixed_jobs: dict[str, str]) -> None:
    Cluster.objects.update(name="elsewhere")

    run = collect(source)

    assert run.accepted_count == 0
    assert "cluster 'lab'" in run.rejections.first().reason  # type: ignore[union-attr]


def test_a_slurmdbd_that_cannot_be_asked_leaves_the_watermark_alone(source: Source, slurm_bed: TestBed, tmp_path: Path) -> None:
    collect(source)
    source.refresh_from_db()
    before = source.watermark_at
    conf = re.sub(r"(?m)^AccountingStoragePort=.*", "AccountingStoragePort=1", slurm_bed.slurm_conf.read_text())
    (tmp_path / "slurm.conf").write_text(conf)
    Source.objects.update(slurm_conf=str(tmp_path / "slurm.conf"))

    done = collecting.collect(source.pk, only_due=False)

    assert len(done.failures) == 1
    assert "sacct on this host failed (exit 1)" in done.failures[0]
    source.refresh_from_db()
    assert (source.watermark_at, source.failure_count) == (before, 1)
    newest = Run.objects.filter(source=source, kind="sacct").first()
    assert newest is not None
    assert (newest.status, newest.message) == (RunStatus.FAILED, done.failures[0])
