"""Runs: one input read, handed over and accounted for, all of it or nothing.

A `Run` row is committed first, as running. The facts, the rejected lines, the counts and the watermark then go in with one
transaction, which also holds the run's row: so a run whose row nobody holds any more is one whose process ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import NamedTuple

from django.db import DatabaseError, transaction
from django.utils import timezone

from accounting.domain.records import Rejected, UsageRecord
from accounting.ingest import ingest_nodes, ingest_records, note_intake
from collectors import files, leases
from collectors.files import InputError, Meter, no_meter
from collectors.inventories import read_inventory
from collectors.models import Rejection, Run, RunStatus, Source, SourceFile
from collectors.slurm.nodes import NodeInventory
from collectors.slurm.reader import SacctHeaderError, SacctReader
from estate.models import Cluster

KEPT_REJECTIONS = 10_000
FIRST_REJECTIONS = 5
RAW_LENGTH = 2000
PROCESS_ENDED = "the process ended before the run did; nothing of it was written"


class Outcome(NamedTuple):
    """What one run did; counts of lines (of nodes, for an inventory), and the first few that were refused."""

    run_id: int
    line_count: int
    accepted_count: int
    rejected_count: int
    ignored_count: int
    changed_count: int
    first_rejections: tuple[Rejected, ...]
    message: str

    def as_counts(self) -> dict[str, int]:
        return {name: value for name, value in self._asdict().items() if name.endswith("_count")}


class Held(NamedTuple):
    """A file of a source that this process holds."""

    source: Source
    lease: leases.Lease
    file: files.Found

    def keep_alive(self, _byte_count: int) -> None:
        self.lease.keep_alive()


class Counts(NamedTuple):
    """Of one input: accepted + rejected + ignored = lines."""

    line_count: int
    accepted_count: int
    rejected_count: int
    ignored_count: int


class _Sieve:
    """Hands records on and takes the rejections off the reader as they come: a bounded number is kept."""

    def __init__(self, reader: SacctReader) -> None:
        self._reader = reader
        self.kept: list[Rejected] = []

    def __iter__(self) -> Iterator[UsageRecord]:
        rejections = self._reader.rejections
        for record in self._reader:
            if rejections:
                self._take(rejections)
            yield record
        self._take(rejections)

    def _take(self, rejections: list[Rejected]) -> None:
        self.kept += rejections[: KEPT_REJECTIONS - len(self.kept)]
        rejections.clear()


def import_sacct(cluster: Cluster, path: str, *, meter: Meter = no_meter, held: Held | None = None) -> Outcome:
    """Read one sacct dump into `cluster`. On InputError, LeaseLostError, DatabaseError only the failed run is written."""
    name = files.name_of(path)
    with _recorded(cluster, "sacct", name, held.source if held else None) as run, files.lines_of(path, meter) as lines:
        reader = _reader(cluster, name, lines, run.started_at)
        sieve = _Sieve(reader)
        result = ingest_records(cluster, sieve)
        note_intake(cluster, name, reader.rejected_count)
        run.line_count, run.accepted_count = reader.line_count, reader.accepted_count
        run.ignored_count, run.changed_count = reader.ignored_count, result.changed_count
        _keep(run, sieve.kept, reader.rejected_count)
        if held is not None:
            _remember(held, result.through_at)
    return _outcome(run, sieve.kept)


def import_nodes(cluster: Cluster, name: str, data: bytes, *, as_of: datetime | None, complete: bool) -> Outcome:
    """Read one inventory, of any kind, into `cluster`; lines are its entries. Raises InputError or DatabaseError."""
    with _recorded(cluster, "nodes", name, None) as run:
        inventory = _inventory(cluster, name, data)
        result = ingest_nodes(cluster, inventory.nodes, as_of=as_of, complete=complete)
        run.line_count, run.accepted_count = inventory.line_count, inventory.accepted_count
        run.ignored_count, run.changed_count = inventory.ignored_count, result.changed_count
        _keep(run, inventory.rejections, len(inventory.rejections))
        gone = "ended" if complete else "stayed (--complete ends them)"
        run.message += f"{result.absent_count} known nodes are not in it and {gone}." if result.absent_count else ""
    return _outcome(run, inventory.rejections)


def count_sacct(cluster: Cluster, path: str) -> Counts:
    """Read a dump as `import_sacct` would, and write nothing. Raises InputError."""
    with files.lines_of(path) as lines:
        reader = _reader(cluster, files.name_of(path), lines, timezone.now())
        deque(_Sieve(reader), maxlen=0)
    return Counts(reader.line_count, reader.accepted_count, reader.rejected_count, reader.ignored_count)


def _reader(cluster: Cluster, name: str, lines: Iterator[bytes], now: datetime) -> SacctReader:
    try:
        return SacctReader(lines, cluster=cluster.name, zone=cluster.zone_info, now=now)
    except SacctHeaderError as exc:
        raise InputError(f"{name}: {exc}") from exc


def _inventory(cluster: Cluster, name: str, data: bytes) -> NodeInventory:
    try:
        return read_inventory(data, cluster.name)
    except ValueError as exc:
        raise InputError(f"{name}: {exc}") from exc


def note_failure(source: Source, exc: InputError) -> None:
    """A failed run of a source that did not get as far as a file."""
    with suppress(InputError), _recorded(source.cluster, "sacct", source.location, source):
        raise exc


def close_stale(cluster: Cluster) -> int:
    """Mark runs of `cluster` failed whose process ended: they are called running, yet no transaction holds their row."""
    with transaction.atomic():
        free = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(cluster=cluster, status=RunStatus.RUNNING)
        stale = Run.objects.filter(pk__in=[run.pk for run in free])
        return stale.update(status=RunStatus.FAILED, finished_at=timezone.now(), message=PROCESS_ENDED)


@contextmanager
def _recorded(cluster: Cluster, kind: str, name: str, source: Source | None) -> Iterator[Run]:
    """A Run row around a piece of work: done together with it, or failed without it."""
    close_stale(cluster)
    run = Run.objects.create(cluster=cluster, kind=kind, input_name=_tail(name), source=source)
    try:
        with transaction.atomic():
            Run.objects.select_for_update(no_key=True).get(pk=run.pk)
            yield run
            run.status, run.finished_at = RunStatus.DONE, timezone.now()
            run.save()
    except BaseException as exc:
        # If the database itself is gone the row stays as it is, and the next run finds it stale.
        with suppress(DatabaseError):
            failed = Run.objects.filter(pk=run.pk)
            failed.update(status=RunStatus.FAILED, finished_at=timezone.now(), message=reason_of(exc))
        raise


def reason_of(exc: BaseException) -> str:
    """Why a run failed, in one line."""
    if isinstance(exc, KeyboardInterrupt):
        return "stopped by hand; nothing of it was written"
    words = _clean(str(exc)).strip().splitlines() or [type(exc).__name__]
    return words[0] if isinstance(exc, InputError | leases.LeaseLostError) else f"{type(exc).__name__}: {words[0]}"


def _keep(run: Run, rejections: Sequence[Rejected], count: int) -> None:
    """Store the first refused lines of `run`, of `count` in all; the message says so when there were more than are kept."""
    rows = (
        Rejection(run=run, line_number=line.line_number, raw=_clean(line.raw)[:RAW_LENGTH], reason=_clean(line.reason)[:500])
        for line in rejections[:KEPT_REJECTIONS]
    )
    Rejection.objects.bulk_create(rows, batch_size=500)
    run.rejected_count = count
    if count > KEPT_REJECTIONS:
        run.message = f"{count:,} lines were rejected; the first {KEPT_REJECTIONS:,} are kept."


def _remember(held: Held, through_at: datetime | None) -> None:
    """The file as it was taken in and the source's watermark, provided that the lease is still ours."""
    leases.check(held.lease)
    facts = {"size_bytes": held.file.size_bytes, "modified_ns": held.file.modified_ns}
    SourceFile.objects.update_or_create(source=held.source, name=held.file.name, defaults=facts)
    source = held.source
    if through_at is not None and (source.watermark_at is None or through_at > source.watermark_at):
        source.watermark_at = through_at
        source.save(update_fields=["watermark_at"])


def _outcome(run: Run, kept: list[Rejected]) -> Outcome:
    counts = (run.line_count, run.accepted_count, run.rejected_count, run.ignored_count, run.changed_count)
    return Outcome(run.pk, *counts, tuple(kept[:FIRST_REJECTIONS]), run.message)


def _clean(text: str) -> str:
    """Text that PostgreSQL takes: no NUL, no lone surrogates."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _tail(name: str) -> str:
    """The end of a long path says more than its beginning."""
    return name if len(name) <= 1024 else "…" + name[-1023:]
