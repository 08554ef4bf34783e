"""A source that asks sacct, with a stand-in for it: windows, watermarks, failures, SSH, commands."""

from __future__ import annotations

import io
import time
from datetime import timedelta
from itertools import pairwise

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounting.models import UsageRecord
from collectors import backfills, collecting, leases, runs, tasks
from collectors.models import BackfillChunk, Rejection, Run, RunStatus, Source
from collectors.windows import Span
from estate.models import Cluster
from tests.db.fake_sacct import FIELDS, FakeSlurm, a_job, fake_slurm

__all__ = ["fake_slurm"]

pytestmark = pytest.mark.django_db

HOUR = 3600


@pytest.fixture
def source(slurm: Cluster, fake_slurm: FakeSlurm) -> Source:
    return Source.objects.create(name="alpha-sacct", cluster=slurm, kind="sacct")


def ago(seconds: float) -> int:
    return int(time.time() - seconds)


def collect(source: Source) -> Run:
    collecting.collect(source.pk, only_due=False)
    run = Run.objects.filter(source=source).first()
    assert run is not None
    source.refresh_from_db()
    return run


def command(*words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("collect", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


# Windows


def test_the_first_look_goes_back_35_days_and_the_next_48_hours_before_it(source: Source, fake_slurm: FakeSlurm) -> None:
    first, second = collect(source), collect(source)

    assert first.window_from == (first.window_to or timezone.now()) - timedelta(days=35)
    assert second.window_from is not None
    assert abs((first.asked_at or timezone.now()) - timedelta(hours=48) - second.window_from) < timedelta(seconds=5)
    assert [len(fake_slurm.windows), source.reread_at] == [2, first.asked_at]


def test_after_a_week_it_looks_back_long_again(source: Source) -> None:
    first = collect(source)
    Source.objects.update(reread_at=timezone.now() - timedelta(days=8))

    again = collect(source)

    assert again.window_from is not None
    assert first.window_from is not None
    assert again.window_from - first.window_from < timedelta(minutes=5)
    assert source.reread_at == again.asked_at


def test_what_is_older_than_the_long_look_after_an_outage_becomes_backfill(source: Source) -> None:
    away = timezone.now() - timedelta(days=60)
    Source.objects.update(watermark_at=away, reread_at=away)

    collect(source)

    chunks = BackfillChunk.objects.order_by("start_at")
    assert chunks[0].start_at == away - timedelta(hours=48)
    assert abs(chunks.last().end_at - (timezone.now() - timedelta(days=35))) < timedelta(minutes=1)  # type: ignore[union-attr]


def test_a_failed_answer_leaves_nothing_and_the_watermark_where_it_was(source: Source, fake_slurm: FakeSlurm) -> None:
    before = collect(source).asked_at
    fake_slurm.plan(jobs=[a_job(1, ago(HOUR))], exit=1, stderr="sacct: error: Problem talking to the database\n")

    run = collect(source)

    assert (run.status, run.accepted_count) == (RunStatus.FAILED, 0)
    assert run.message == "sacct on this host failed (exit 1): sacct: error: Problem talking to the database"
    assert (source.watermark_at, source.failure_count) == (before, 1)
    assert not UsageRecord.objects.exists()


def test_warnings_stay_with_the_run(source: Source, fake_slurm: FakeSlurm) -> None:
    fields = [field for field in FIELDS if field not in {"Priority", "QOS"}]
    fake_slurm.plan(jobs=[a_job(1, ago(HOUR))], fields=fields, stderr="sacct: warning: slow\n", squeue_exit=1)

    run = collect(source)

    assert run.status == RunStatus.DONE
    assert "this sacct has no field QOS, Priority" in run.message
    assert "sacct: warning: slow" in run.message
    assert "jobs that are held or wait for others were not asked for" in run.message


def test_jobs_that_no_window_lists_are_asked_for_by_number(source: Source, fake_slurm: FakeSlurm) -> None:
    fake_slurm.plan(squeue="  7   N/A\n", waiting=[a_job(7, ago(HOUR), Eligible="Unknown")])

    run = collect(source)

    assert any("--jobs=7" in words for words in fake_slurm.calls)
    assert UsageRecord.objects.get().external_id == "7"
    assert (run.line_count, run.accepted_count, run.ignored_count) == (2, 1, 1)


def test_a_job_waits_runs_and_ends_under_one_key(source: Source, fake_slurm: FakeSlurm) -> None:
    submitted = ago(3 * HOUR)
    lives = [
        a_job(1, submitted),
        a_job(1, submitted, start=ago(2 * HOUR), ElapsedRaw=str(2 * HOUR)),
        a_job(1, submitted, start=ago(2 * HOUR), end=ago(HOUR)),
    ]
    states = []
    for life in lives:
        fake_slurm.plan(jobs=[life])
        collect(source)
        found = UsageRecord.objects.get()
        states.append((found.started_at is not None, found.ended_at is not None))

    assert states == [(False, False), (True, False), (True, True)]


def test_a_refused_line_stays_with_the_newest_run_that_met_it(source: Source, fake_slurm: FakeSlurm) -> None:
    fake_slurm.plan(jobs=[a_job(1, ago(HOUR), AllocTRES="cpu=", Start=str(ago(60)), State="RUNNING")])
    collect(source)

    newest = collect(source)

    assert [rejection.run_id for rejection in Rejection.objects.all()] == [newest.pk]


def test_over_ssh_the_same_comes_in(source: Source, fake_slurm: FakeSlurm) -> None:
    Source.objects.update(
        ssh_host="login1", ssh_user="estate", ssh_options="Port=2222\n\nIdentityFile=/k y", slurm_conf="/etc/it's.conf"
    )
    fake_slurm.plan(jobs=[a_job(1, ago(HOUR), JobName="a $(touch /tmp/never) `b`")])

    run = collect(source)

    assert (run.status, run.accepted_count) == (RunStatus.DONE, 1), run.message
    assert UsageRecord.objects.get().name == "a $(touch /tmp/never) `b`"
    seen = fake_slurm.environment
    assert {name: seen[name] for name in ("TZ", "LC_ALL", "SLURM_TIME_FORMAT", "SLURM_CONF")} == {
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "SLURM_TIME_FORMAT": "%s",
        "SLURM_CONF": "/etc/it's.conf",
    }
    assert "IdentityFile=/k y" in (fake_slurm.folder / "ssh.words").read_text().splitlines()


def test_a_source_that_is_configured_wrongly_fails_in_words(source: Source) -> None:
    Source.objects.update(ssh_host="-oProxyCommand=id")

    done = collecting.collect(source.pk, only_due=False)

    assert done.failures == ["source alpha-sacct: '-oProxyCommand=id' is no host name"]


def test_of_two_sources_of_a_cluster_one_asks_at_a_time(source: Source) -> None:
    other = Source.objects.create(name="other", cluster=source.cluster, kind="sacct")
    elsewhere = Source.objects.create(name="x", cluster=Cluster.objects.create(name="beta", scheduler="slurm"), kind="sacct")
    held = leases.acquire(source.pk, only_due=False)
    assert held is not None

    assert leases.acquire(other.pk, only_due=False) is None
    assert leases.acquire(elsewhere.pk, only_due=False) is not None
    leases.release(held, failed=False)
    assert leases.acquire(other.pk, only_due=False) is not None


# The past


def test_the_past_is_read_newest_first_and_ends_like_one_reading(source: Source, fake_slurm: FakeSlurm) -> None:
    fake_slurm.plan(
        jobs=[a_job(n, ago(n * 86_400), start=ago(n * 86_400 - 60), end=ago(n * 86_400 - HOUR)) for n in range(40, 60)]
    )
    now = timezone.now()
    backfills.request(source, Span(now - timedelta(days=60), now - timedelta(days=39)))

    collecting.backfill(source.pk, in_front=True)

    starts = [words[-2] for words in fake_slurm.windows]
    assert starts == sorted(starts, reverse=True)
    assert len(starts) == 4
    progress = backfills.progress_by_source()[source.pk]
    assert (progress.done_count, progress.chunk_count, progress.seconds_left) == (4, 4, 0)
    assert UsageRecord.objects.count() == 20
    source.refresh_from_db()
    assert source.watermark_at is None, "the past says nothing about now"


def test_a_span_that_was_asked_for_is_not_asked_for_twice(source: Source) -> None:
    now = timezone.now()
    week = timedelta(days=7)
    first = backfills.request(source, Span(now - 4 * week, now - 2 * week))
    BackfillChunk.objects.update(done_at=now)

    assert backfills.request(source, Span(now - 4 * week, now - 2 * week)) == 0
    wider = backfills.request(source, Span(now - 5 * week, now - week))
    assert backfills.request(source, Span(now - 5 * week, now - week), again=True) == BackfillChunk.objects.count()

    assert first > 0
    assert wider > 0
    covered = sorted(BackfillChunk.objects.values_list("start_at", "end_at"))
    assert all(one[1] == after[0] for one, after in pairwise(covered))


def test_what_is_due_goes_before_the_past(source: Source, fake_slurm: FakeSlurm) -> None:
    now = timezone.now()
    backfills.request(source, Span(now - timedelta(days=60), now - timedelta(days=39)))

    assert not collecting.backfill(source.pk).is_held, "it is due itself"
    assert backfills.waiting_source_ids() == []
    collect(source)
    assert backfills.waiting_source_ids() == [source.pk]


def test_a_chunk_that_is_too_much_is_halved_and_one_that_fails_is_tried_later(source: Source, fake_slurm: FakeSlurm) -> None:
    now = timezone.now()
    span = Span(now - timedelta(days=40, hours=7), now - timedelta(days=40))
    backfills.request(source, span)
    before = BackfillChunk.objects.count()
    fake_slurm.plan(exit=1, stderr="sacct: error: Too wide of a date range in query\n")
    collecting.backfill(source.pk, in_front=True)
    assert BackfillChunk.objects.count() > before
    assert {chunk.end_at - chunk.start_at < timedelta(hours=2) for chunk in BackfillChunk.objects.all()} == {True}

    BackfillChunk.objects.all().delete()
    backfills.request(source, span)
    fake_slurm.plan(exit=1, stderr="sacct: error: no route\n")
    collecting.backfill(source.pk, in_front=True)
    assert BackfillChunk.objects.count() == before
    assert all(chunk.next_try_at > now and "no route" in chunk.message for chunk in BackfillChunk.objects.all())


def test_a_long_look_back_that_is_too_much_is_read_in_chunks(
    source: Source, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runs.ask_sacct

    def picky(asked: runs.Asked) -> runs.Outcome:
        if asked.window.last - asked.window.first > timedelta(days=8):
            raise runs.TooMuchAskedError("too wide")
        return real(asked)

    monkeypatch.setattr(runs, "ask_sacct", picky)

    run = collect(source)

    assert run.status == RunStatus.DONE
    assert source.reread_at == run.asked_at
    assert BackfillChunk.objects.count() >= 5


def test_a_runner_that_lost_its_lease_marks_no_chunk_done(
    source: Source, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    backfills.request(source, Span(now - timedelta(days=42), now - timedelta(days=40)))
    fake_slurm.plan(jobs=[a_job(1, ago(41 * 86_400), start=ago(41 * 86_400), end=ago(40.5 * 86_400))])
    chunk = backfills.next_chunk(source.pk)
    lease = leases.acquire(source.pk, only_due=False)
    assert chunk is not None
    assert lease is not None
    Source.objects.update(fence=lease.fence + 1)

    with pytest.raises(leases.LeaseLostError):
        collecting._read_chunk(chunk, lease, collecting.Collected(is_held=True))

    assert not BackfillChunk.objects.filter(done_at__isnull=False).exists()
    assert not UsageRecord.objects.exists()


def test_the_beat_rings_for_the_past_with_a_lower_priority(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(tasks.collect, "apply_async", lambda args, **options: sent.append(("live", options["priority"])))
    monkeypatch.setattr(tasks.backfill, "apply_async", lambda args, **options: sent.append(("past", options["priority"])))
    now = timezone.now()
    backfills.request(source, Span(now - timedelta(days=42), now - timedelta(days=40)))

    tasks.collect_due()
    collect(source)
    tasks.collect_due()

    assert sent == [("live", 0), ("past", 9)]


# Runaways


def test_what_runs_by_the_books_but_is_in_no_answer_any_more_is_listed(source: Source, fake_slurm: FakeSlurm) -> None:
    submitted = ago(HOUR)

    def running(number: int, seconds: int) -> dict[str, str]:
        return a_job(number, submitted, start=submitted + 60, ElapsedRaw=str(seconds))

    fake_slurm.plan(jobs=[running(1, 3500), running(2, 3500)])
    collect(source)
    assert command("runaways")[0].count("\n") == 1, "all were seen just now"
    last_seen = UsageRecord.objects.get(external_id="2").last_seen_at
    UsageRecord.objects.update(observed_at=timezone.now() - timedelta(minutes=5))
    fake_slurm.plan(jobs=[running(1, 3560)])

    collect(source)

    rows = [line.split("\t") for line in command("runaways", "--cluster", "alpha")[0].splitlines()]
    assert [row[1] for row in rows] == ["job", "2"]
    assert rows[1][-1] == last_seen.isoformat()
    assert command("runaways", "--cluster", "beta")[0].count("\n") == 1


def test_a_job_that_is_told_of_in_the_same_words_a_moment_later_is_no_runaway(source: Source, fake_slurm: FakeSlurm) -> None:
    submitted = ago(HOUR)
    fake_slurm.plan(jobs=[a_job(1, submitted, start=submitted + 60, ElapsedRaw="3500")])

    collect(source)
    collect(source)

    assert command("runaways")[0].count("\n") == 1


# Commands


def test_a_live_source_is_added_after_it_answered(fake_slurm: FakeSlurm) -> None:
    words = ("--cluster", "alpha", "--kind", "sacct", "--ssh-host", "login1", "--ssh-user", "estate", "--ssh-option", "Port=2222")

    _, said = command("source", "add", "alpha-sacct", *words)

    assert "sacct 22.05.8 on estate@login1 answers" in said
    source = Source.objects.get()
    assert (source.kind, source.ssh_host, source.ssh_options, source.location) == ("sacct", "login1", "Port=2222", "")
    row = command("source", "list")[0].splitlines()[1].split("\t")
    assert row[:4] == ["alpha-sacct", "alpha", "sacct", "sacct on estate@login1"]


def test_a_live_source_that_does_not_answer_is_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(CommandError, match="cannot be started"):
        command("source", "add", "alpha-sacct", "--cluster", "alpha", "--kind", "sacct")
    assert not Cluster.objects.exists()
    command("source", "add", "alpha-sacct", "--cluster", "alpha", "--kind", "sacct", "--no-check")
    assert Source.objects.exists()


def test_a_window_of_a_live_source_is_read_on_command_or_only_counted(source: Source, fake_slurm: FakeSlurm) -> None:
    fake_slurm.plan(jobs=[a_job(1, ago(HOUR))])

    out, _ = command("run", "alpha-sacct", "--dry-run")
    assert out.splitlines()[1] == "alpha-sacct\t1\t1\t0\t0"
    assert not UsageRecord.objects.exists()
    command("run", "alpha-sacct", "--from", "2026-01-01", "--to", "2026-01-08")

    assert fake_slurm.windows[-1][-2:] == ["--starttime=2026-01-01T00:00:00", "--endtime=2026-01-08T00:00:00"]
    source.refresh_from_db()
    assert source.watermark_at is None


def test_a_backfill_is_asked_for_by_command_and_its_progress_listed(source: Source, fake_slurm: FakeSlurm) -> None:
    _, said = command("backfill", "alpha-sacct", "--from", "2025-11-03", "--to", "2025-12-01")
    assert "4 chunks" in said
    assert command("source", "list")[0].splitlines()[1].endswith("\t0/4")

    _, said = command("backfill", "alpha-sacct", "--from", "2025-11-03", "--to", "2025-12-01", "--now")
    assert "--again" in said
    assert command("source", "list")[0].splitlines()[1].endswith("\t4/4")

    with pytest.raises(CommandError, match="nothing lies between"):
        command("backfill", "alpha-sacct", "--from", "2025-12-01", "--to", "2025-11-01")
