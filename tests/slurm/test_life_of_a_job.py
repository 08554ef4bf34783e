"""With worker and beat really running: a job is waiting, then running, then in usage, and nobody does anything but submit it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounting.models import UsageRecord
from collectors.models import Source
from estate.models import Cluster, User
from tests.db.test_collect_processes import environment, running
from tests.slurm.conftest import TestBed

__all__ = ["environment"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

INTERVAL_SECONDS = 10
# Two intervals, the beat's 15 s, what a collection takes, and slurmdbd's own delay.
WITHIN_SECONDS = 2 * INTERVAL_SECONDS + 25
CELERY = ("-m", "celery", "-A", "estate.config.celery")


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {WITHIN_SECONDS} s: {what}"
        time.sleep(0.5)


def test_a_job_waits_runs_and_ends_on_the_pages_with_no_action_by_anyone(
    slurm_bed: TestBed, environment: dict[str, str], client: Client, lead: User, settings: object
) -> None:
    lab = Cluster.objects.create(name="lab", scheduler="slurm", zone="UTC")
    Source.objects.create(
        name="lab-sacct", cluster=lab, kind="sacct", slurm_conf=str(slurm_bed.slurm_conf), interval_seconds=INTERVAL_SECONDS
    )
    client.force_login(lead)
    today = timezone.now().date()
    days = f"from={today}&to={today + timedelta(days=1)}&cluster=lab"

    def page(path: str) -> str:
        return client.get(path).content.decode()

    def waiting_now() -> int:
        count: int = client.get(f"/queues/?{days}&partition=interactive").context["waiting_count"]
        return count

    def record() -> UsageRecord | None:
        return UsageRecord.objects.filter(external_id=job_id).first()

    def report(name: str, by: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = client.get(f"/api/v1/reports/{name}?{days}&by={by}").json()["rows"]
        return rows

    job_id = slurm_bed.submit(
        "carol", "--hold", "--job-name=a-life", "--partition=interactive", "--gres=gpu:a100:1", "--wrap=sleep 60"
    )
    worker = (*CELERY, "worker", "--pool", "solo", "--without-gossip", "--without-mingle")
    beat = (*CELERY, "beat", "--scheduler", "estate.config.beat:Pulse", "--pidfile", "")
    try:
        with running(environment, *worker), running(environment, *beat):
            until(lambda: record() is not None, "known as waiting")
            waiting = record()
            assert waiting is not None
            assert (waiting.started_at, waiting.ended_at) == (None, None)
            assert waiting_now() == 1

            slurm_bed.run("scontrol", "release", job_id)
            until(lambda: (found := record()) is not None and found.started_at is not None, "running")
            until(lambda: _used(report("usage", "partition"), "interactive") > 0, "in use")
            assert waiting_now() == 0
            assert "gpu04" in page(f"/utilisation/?{days}")

            slurm_bed.run("scancel", job_id)
            until(lambda: (found := record()) is not None and found.ended_at is not None, "ended")
            ended = record()
            assert ended is not None
            assert ended.started_at is not None
            assert ended.ended_at is not None
            held = (ended.ended_at - ended.started_at).total_seconds()
            until(lambda: _used(report("usage", "user"), "carol") >= held, "all of it in usage")
    finally:
        slurm_bed.run("scancel", "--quiet", job_id)


def _used(rows: list[dict[str, object]], name: str) -> float:
    """GPU-seconds of the row that has `name` as a dimension."""
    return sum(float(str(row["gpu_seconds"])) for row in rows if name in row.values())
