"""Configured sources: `collect source`, `collect run`, leases and fences, failures and crashes."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounting import ingest
from accounting.domain.blocks import RecordBlock
from accounting.ingest import IngestResult
from accounting.models import Intake, UsageRecord
from collectors import collecting, leases, runs, tasks
from collectors.models import Rejection, Run, RunStatus, Source, SourceFile
from estate.models import Cluster
from tests.db.dumps import BROKEN, job, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "dumps"
    path.mkdir()
    return path


@pytest.fixture
def source(slurm: Cluster, folder: Path) -> Source:
    return Source.objects.create(name="nightly", cluster=slurm, kind="sacct_files", location=str(folder), interval_seconds=60)


def command(*words: str) -> tuple[str, str]:
    """What the command wrote on stdout and on stderr."""
    out, err = io.StringIO(), io.StringIO()
    call_command("collect", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def seconds_to_go(source: Source) -> float:
    source.refresh_from_db()
    return (source.next_due_at - timezone.now()).total_seconds()


# Configuring


def test_a_source_is_added_with_its_cluster_and_listed(folder: Path) -> None:
    words = (
        "--cluster",
        "beta",
        "--zone",
        "Europe/Berlin",
        "--kind",
        "sacct_files",
        "--location",
        str(folder),
        "--interval",
        "60",
    )
    command("source", "add", "nightly", *words)

    out, _ = command("source", "list")

    assert Cluster.objects.get(name="beta").zone == "Europe/Berlin"
    header, row = (line.split("\t") for line in out.splitlines())
    assert dict(zip(header, row, strict=True)) | {"next_due_at": ""} == {
        "name": "nightly",
        "cluster": "beta",
        "kind": "sacct_files",
        "location": str(folder),
        "interval_seconds": "60",
        "enabled": "True",
        "next_due_at": "",
        "failure_count": "0",
        "backfill": "",
    }


def test_adding_the_same_source_again_is_fine_and_another_of_its_name_is_not(folder: Path) -> None:
    words = ("source", "add", "nightly", "--cluster", "beta", "--location", str(folder))
    command(*words)
    command(*words)

    with pytest.raises(CommandError, match="exists with other settings"):
        command(*words, "--interval", "600")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no such file or directory; create it"):
        command("source", "add", "nightly", "--cluster", "beta", "--location", str(tmp_path / "missing"))


def test_an_interval_below_ten_seconds_is_bad_usage(folder: Path) -> None:
    with pytest.raises(CommandError, match="from 10 on"):
        command("source", "add", "nightly", "--cluster", "beta", "--location", str(folder), "--interval", "5")


def test_an_unknown_source_is_told_with_those_that_exist(source: Source) -> None:
    with pytest.raises(CommandError, match=r"there is no source nigthly \(known: nightly\)"):
        command("run", "nigthly")


# Which files


def test_new_dumps_are_read_in_order_of_name_and_only_once(source: Source, folder: Path) -> None:
    for name in ("b.psv", "a.gz", "c.txt"):
        write(folder / name, job(ord(name[0])))

    first, second = collecting.collect(source.pk, only_due=False), collecting.collect(source.pk, only_due=False)

    assert [Path(run.input_name).name for run in Run.objects.order_by("pk")] == ["a.gz", "b.psv", "c.txt"]
    assert first.as_counts()["accepted_count"] == 3
    assert second.outcomes == []
    source.refresh_from_db()
    assert source.watermark_at is not None


def test_a_dump_that_was_changed_is_read_again(source: Source, folder: Path) -> None:
    write(folder / "a.txt", job(1))
    collecting.collect(source.pk, only_due=False)
    write(folder / "a.txt", job(1), job(2))

    assert collecting.collect(source.pk, only_due=False).as_counts()["changed_count"] == 1
    assert SourceFile.objects.count() == 1


@pytest.mark.parametrize("name", [".hidden.txt", "a.txt.part", "a.csv", "notes.md"])
def test_other_files_are_left_alone(name: str, source: Source, folder: Path) -> None:
    (folder / name).write_text("x")
    (folder / "folder.txt").mkdir()
    write(folder / "a.txt", job(1))

    assert [file.name for file in collecting.pending(source)] == ["a.txt"]


def test_a_dump_that_is_still_being_written_waits(source: Source, folder: Path) -> None:
    write(folder / "a.txt", job(1), age_seconds=0)
    write(folder / "b.txt", job(2), age_seconds=3)

    assert [file.name for file in collecting.pending(source)] == ["b.txt"]


def test_a_window_reads_again_what_was_changed_in_it(source: Source, folder: Path) -> None:
    write(folder / "old.txt", job(1), age_seconds=7200)
    write(folder / "new.txt", job(2), age_seconds=60)
    command("run", "nightly")
    since = (timezone.now() - timedelta(hours=1)).isoformat()

    _, said = command("run", "nightly", "--from", since)
    _, before = command("run", "nightly", "--to", since)

    assert "lines 1 = accepted 1 +" in said
    assert [Path(run.input_name).name for run in Run.objects.order_by("-pk")[:2]] == ["old.txt", "new.txt"]
    assert "lines 1 = accepted 1 +" in before


def test_a_dry_run_counts_and_writes_nothing(source: Source, folder: Path) -> None:
    write(folder / "a.txt", job(1), BROKEN)

    out, _ = command("run", "nightly", "--dry-run")

    assert out.splitlines() == ["file\tlines\taccepted\trejected\tignored", "a.txt\t2\t1\t1\t0"]
    assert not Run.objects.exists()
    assert not UsageRecord.objects.exists()


# When


def test_after_a_good_run_the_source_is_due_after_its_interval(source: Source) -> None:
    assert collecting.collect(source.pk).is_held

    assert 55 < seconds_to_go(source) <= 60
    assert not collecting.collect(source.pk).is_held, "it is not due"


def test_a_source_that_fails_waits_longer_and_longer_and_recovers(source: Source, folder: Path) -> None:
    folder.rmdir()
    waits = []
    for _ in range(6):
        collecting.collect(source.pk, only_due=False)
        waits.append(round(seconds_to_go(source) / 60))

    assert waits == [2, 4, 8, 15, 15, 15]
    assert source.failure_count == 6
    failed = Run.objects.filter(source=source).first()
    assert failed is not None
    assert (failed.status, failed.message) == (
        RunStatus.FAILED,
        f"folder {folder}: no such file or directory; create it, or correct the source's location",
    )

    folder.mkdir()
    collecting.collect(source.pk, only_due=False)
    assert seconds_to_go(source) <= 60
    assert source.failure_count == 0


def test_a_broken_dump_does_not_hold_up_the_others_and_is_tried_again(source: Source, folder: Path) -> None:
    (folder / "a.gz").write_bytes(b"no gzip")
    write(folder / "b.txt", job(1))
    past = timezone.now().timestamp() - 60
    os.utime(folder / "a.gz", (past, past))

    done = collecting.collect(source.pk, only_due=False)

    assert [len(done.outcomes), len(done.failures)] == [1, 1]
    assert UsageRecord.objects.count() == 1
    assert [file.name for file in collecting.pending(source)] == ["a.gz"]


def test_a_run_now_during_a_run_stays_in_force(source: Source) -> None:
    lease = leases.acquire(source.pk, only_due=False)
    assert lease is not None
    collecting.make_due(source)

    leases.release(lease, failed=False)

    assert seconds_to_go(source) <= 0


def test_the_beat_rings_for_what_is_due_free_and_switched_on(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    now, facts = timezone.now(), {"cluster": source.cluster, "kind": "sacct_files", "location": "/x"}
    Source.objects.create(name="off", enabled=False, **facts)
    Source.objects.create(name="later", next_due_at=now + timedelta(hours=1), **facts)
    Source.objects.create(name="held", lease_until_at=now + timedelta(hours=1), **facts)
    crashed = Source.objects.create(name="crashed", lease_until_at=now - timedelta(hours=1), **facts)
    rung: list[int] = []
    monkeypatch.setattr(tasks, "ring", rung.append)

    assert tasks.collect_due() == {"due_count": 2, "backfill_count": 0}
    assert sorted(rung) == sorted([source.pk, crashed.pk])


# Fences


def test_a_runner_that_was_overtaken_writes_nothing(source: Source, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "a.txt", job(1))

    def slow_ingest(cluster: Cluster, blocks: Iterator[RecordBlock], **_: object) -> IngestResult:
        result = ingest.ingest_blocks(cluster, blocks)
        Source.objects.update(fence=source.fence + 2)
        return result

    monkeypatch.setattr(runs, "ingest_blocks", slow_ingest)
    with pytest.raises(leases.LeaseLostError):
        collecting.collect(source.pk, only_due=False)

    assert not UsageRecord.objects.exists()
    assert not SourceFile.objects.exists()
    run = Run.objects.get()
    assert (run.status, run.message) == (RunStatus.FAILED, leases.LOST)


def test_the_release_of_an_overtaken_runner_changes_nothing(source: Source) -> None:
    old = leases.acquire(source.pk, only_due=False)
    assert old is not None
    Source.objects.update(lease_until_at=timezone.now() - timedelta(seconds=1))
    new = leases.acquire(source.pk, only_due=False)
    assert new is not None

    leases.release(old, failed=True)

    source.refresh_from_db()
    assert source.lease_until_at is not None
    assert source.fence == new.fence == old.fence + 1
    assert source.failure_count == 0


@pytest.mark.django_db(transaction=True)
def test_of_two_runners_that_race_for_a_lease_one_gets_it(source: Source) -> None:
    gate = threading.Barrier(2)
    got: list[leases.Lease | None] = []

    def race() -> None:
        gate.wait()
        try:
            got.append(leases.acquire(source.pk, only_due=True))
        finally:
            connection.close()

    runners = [threading.Thread(target=race) for _ in range(2)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()

    assert sorted(lease is None for lease in got) == [False, True]


@pytest.mark.django_db(transaction=True)
def test_a_lease_is_renewed_while_bytes_come_and_its_loss_is_noticed(source: Source) -> None:
    lease = leases.acquire(source.pk, only_due=False)
    assert lease is not None
    Source.objects.update(lease_until_at=timezone.now())
    lease.keep_alive()
    source.refresh_from_db()
    assert source.lease_until_at is not None
    assert source.lease_until_at <= timezone.now(), "it was renewed a moment ago already"

    lease.renewed -= leases.RENEW_SECONDS
    lease.keep_alive()
    source.refresh_from_db()
    assert (source.lease_until_at - timezone.now()).total_seconds() > leases.LEASE_SECONDS - 5

    Source.objects.update(fence=lease.fence + 1)
    with pytest.raises(leases.LeaseLostError):
        leases.renew(lease)


# Crashes


def test_what_goes_wrong_in_the_middle_leaves_nothing_half(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.txt", job(1), BROKEN)

    def explode(*_args: object) -> None:
        raise RuntimeError("out of luck\nsecond line")

    monkeypatch.setattr(runs, "keep_rejections", explode)
    with pytest.raises(RuntimeError):
        runs.import_sacct(slurm, str(path))

    for kind in (UsageRecord, Rejection, Intake):
        assert not kind.objects.exists()
    run = Run.objects.get()
    assert (run.status, run.message) == (RunStatus.FAILED, "RuntimeError: out of luck")
    assert run.finished_at is not None


def test_ctrl_c_marks_the_run(slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_args: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "ingest_blocks", stop)
    with pytest.raises(KeyboardInterrupt):
        runs.import_sacct(slurm, str(write(tmp_path / "a.txt", job(1))))

    assert Run.objects.get().message == "stopped by hand; nothing of it was written"


def test_a_run_whose_process_ended_is_closed_by_the_next_one(slurm: Cluster, tmp_path: Path) -> None:
    crashed = Run.objects.create(cluster=slurm, kind="sacct", input_name="old.txt")
    elsewhere = Run.objects.create(cluster=Cluster.objects.create(name="beta", scheduler="slurm"), kind="sacct", input_name="x")

    runs.import_sacct(slurm, str(write(tmp_path / "a.txt", job(1))))

    crashed.refresh_from_db()
    elsewhere.refresh_from_db()
    assert (crashed.status, crashed.message) == (RunStatus.FAILED, runs.PROCESS_ENDED)
    assert elsewhere.status == RunStatus.RUNNING


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_still_at_work_is_not_taken_for_crashed(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(write(tmp_path / "a.txt", job(1)))
    working, may_end = threading.Event(), threading.Event()

    def slow_ingest(cluster: Cluster, blocks: Iterator[RecordBlock], **_: object) -> IngestResult:
        working.set()
        may_end.wait(10)
        return ingest.ingest_blocks(cluster, blocks)

    def work() -> None:
        try:
            runs.import_sacct(slurm, path)
        finally:
            connection.close()

    monkeypatch.setattr(runs, "ingest_blocks", slow_ingest)
    worker = threading.Thread(target=work)
    worker.start()
    assert working.wait(10)
    closed = runs.close_stale(slurm)
    may_end.set()
    worker.join()

    assert closed == 0
    assert Run.objects.get().status == RunStatus.DONE
