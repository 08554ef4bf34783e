"""Collecting a configured source: take its lease, read what is new, say when it is due next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import Q
from django.db.models.functions import Now

from accounting import rollups
from collectors import backfills, files, leases, runs, surveys, windows
from collectors.files import Found, InputError
from collectors.models import LIVE_KINDS, BackfillChunk, Source, SourceKind

Window = tuple[datetime | None, datetime | None]
BACKFILL_SECONDS = 300.0


@dataclass
class Collected:
    """What a collection did. `is_held` is False when somebody else holds the source or it was not due."""

    is_held: bool
    outcomes: list[runs.Outcome] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    day_count: int = 0

    def as_counts(self) -> dict[str, int]:
        totals = {
            name: sum(outcome.as_counts()[name] for outcome in self.outcomes)
            for name in ("line_count", "accepted_count", "rejected_count", "changed_count")
        }
        return {"file_count": len(self.outcomes), "failed_count": len(self.failures), "day_count": self.day_count, **totals}


def due_source_ids() -> list[int]:
    """Sources that are switched on, due, and held by nobody, the longest due first."""
    free = Q(lease_until_at__isnull=True) | Q(lease_until_at__lt=Now())
    due = Source.objects.filter(free, enabled=True, next_due_at__lte=Now())
    return list(due.order_by("next_due_at", "pk").values_list("pk", flat=True))


def make_due(source: Source) -> None:
    """ "Run now": due from this moment, whatever it had been waiting for."""
    Source.objects.filter(pk=source.pk).update(next_due_at=Now())


def collect(
    source_id: int,
    *,
    only_due: bool = True,
    modified: Window | None = None,
    progress: rollups.Progress | None = None,
) -> Collected:
    """Read the new dumps of a source, or with `modified` = [from, to) all that were changed in that window, read before or not.

    A live source is asked for what is new since it was last asked, or for just that window.
    One broken file does not hold up the others; the source then counts as failed and is tried again later and later.
    """
    lease = leases.acquire(source_id, only_due=only_due)
    if lease is None:
        return Collected(is_held=False)
    failed = True
    try:
        with leases.kept(lease):
            done = _collect_held(lease, modified, progress)
        failed = bool(done.failures)
    finally:
        leases.release(lease, failed=failed)
    return done


def pending(source: Source, modified: Window | None = None) -> list[Found]:
    """Dumps of a folder source to read now, in order of name. Raises InputError when the folder cannot be read."""
    found = files.scan(source.location, time.time_ns())
    if modified is not None:
        return [file for file in found if _is_within(file, modified)]
    known = {file.name: (file.size_bytes, file.modified_ns) for file in source.files.all()}
    return [file for file in found if known.get(file.name) != (file.size_bytes, file.modified_ns)]


def preview(source: Source, modified: Window | None = None) -> Iterator[tuple[str, runs.Counts]]:
    """What a collection would read, input by input: name and counts of lines, accepted, rejected, ignored. Writes nothing."""
    if source.kind in LIVE_KINDS:
        yield source.name, runs.count_live(source, window_of(source, modified))
        return
    for file in pending(source, modified):
        yield file.name, runs.count_sacct(source.cluster, str(file.path))


def _collect_held(lease: leases.Lease, modified: Window | None, progress: rollups.Progress | None) -> Collected:
    source = Source.objects.select_related("cluster").get(pk=lease.source_id)
    done = Collected(is_held=True)
    if source.kind in LIVE_KINDS:
        _ask(source, lease, modified, done)
        if source.kind == SourceKind.SACCT and not done.failures and modified is None:
            _survey(source, lease, done)
    else:
        _read_files(source, lease, modified, done)
    done.day_count = rollups.rebuild(source.cluster_id, _alive(lease, progress))
    return done


def _survey(source: Source, lease: leases.Lease, done: Collected) -> None:
    """Nodes and rules of the cluster, when they are due; after the records, of which a host that is away already told."""
    try:
        done.outcomes += surveys.survey(source, lease)
    except InputError as exc:
        done.failures.append(str(exc))


def _read_files(source: Source, lease: leases.Lease, modified: Window | None, done: Collected) -> None:
    try:
        todo = pending(source, modified)
    except InputError as exc:
        runs.note_failure(source, exc)
        done.failures.append(str(exc))
        return
    for file in todo:
        held = runs.Held(source, lease, file)
        try:
            done.outcomes.append(runs.import_sacct(source.cluster, str(file.path), meter=held.keep_alive, held=held))
        except InputError as exc:
            done.failures.append(str(exc))


def _ask(source: Source, lease: leases.Lease, asked: Window | None, done: Collected) -> None:
    window: windows.Window | None = window_of(source, asked)
    while window is not None:
        try:
            done.outcomes.append(runs.ask_sacct(runs.Asked(source, lease, window, is_past=asked is not None)))
        except runs.TooMuchAskedError as exc:
            window = windows.narrow(window) if asked is None else None
            if window is None:
                done.failures.append(str(exc))
        except InputError as exc:
            done.failures.append(str(exc))
            return
        else:
            return


def window_of(source: Source, asked: Window | None) -> windows.Window:
    """What a live source is asked for now: what is new, or the given window (open ends: 48 hours before its end, and now)."""
    now = datetime.now(UTC)
    if asked is None:
        return windows.next_window(now, source.watermark_at, source.reread_at)
    last = asked[1] or now
    return windows.Window(asked[0] or last - windows.OVERLAP, last, is_long=False, gap=None)


def backfill(source_id: int, *, in_front: bool = False, progress: Callable[[], object] | None = None) -> Collected:
    """Read chunks of a source's past, newest first, until none is left, a while has passed, or a source is due (`in_front`: only the
    first of these counts). Each is read with the source held; what is due in between goes first."""
    done = Collected(is_held=False)
    deadline = time.monotonic() + BACKFILL_SECONDS
    while in_front or (time.monotonic() < deadline and not due_source_ids()):
        chunk = backfills.next_chunk(source_id)
        lease = leases.acquire(source_id, only_due=False) if chunk is not None else None
        if chunk is None or lease is None:
            break
        done.is_held = True
        try:
            with leases.kept(lease):
                _read_chunk(chunk, lease, done)
        finally:
            leases.give_back(lease)
        if progress is not None:
            progress()
    return done


def _read_chunk(chunk: BackfillChunk, lease: leases.Lease, done: Collected) -> None:
    source = Source.objects.select_related("cluster").get(pk=lease.source_id)
    window = windows.Window(chunk.start_at, chunk.end_at, is_long=False, gap=None)
    try:
        done.outcomes.append(runs.ask_sacct(runs.Asked(source, lease, window, is_past=True, chunk=chunk)))
    except InputError as exc:
        backfills.put_off(chunk, str(exc), too_much=isinstance(exc, runs.TooMuchAskedError))
        done.failures.append(str(exc))
    done.day_count += rollups.rebuild(source.cluster_id, _alive(lease, None))


def _alive(lease: leases.Lease, progress: rollups.Progress | None) -> rollups.Progress:
    """`progress`, and the lease kept alive by it."""

    def show(done: int, of: int) -> None:
        lease.keep_alive()
        if progress is not None:
            progress(done, of)

    return show


def _is_within(file: Found, window: Window) -> bool:
    first, last = window
    at = datetime.fromtimestamp(file.modified_ns / 1e9, UTC)
    return (first is None or at >= first) and (last is None or at < last)
