"""Runs: one input read, handed over and accounted for, all of it or nothing.

A `Run` row is committed first, as running. The facts, the rejected lines, the counts and the watermark then go in with one
transaction, which also holds the run's row: so a run whose row nobody holds any more is one whose process ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.db import DatabaseError, transaction
from django.utils import timezone

from accounting.domain.blocks import RecordBlock, blocks_of
from accounting.domain.records import Rejected
from accounting.ingest import ingest_blocks, ingest_nodes, note_asked, note_intake
from collectors import asking, backfills, files, leases
from collectors.files import InputError, Meter, no_meter
from collectors.inventories import read_inventory
from collectors.models import BackfillChunk, Rejection, Run, RunStatus, Source, SourceFile
from collectors.slurm.blocks import SacctBlocks
from collectors.slurm.command import CommandError, TooMuchError
from collectors.slurm.live import Question
from collectors.slurm.nodes import NodeInventory
from collectors.slurm.reader import SacctHeaderError, Tally
from collectors.slurm.rest.question import RestQuestion
from collectors.windows import Window
from estate.models import Cluster
from estate.queries.inventory import shards_per_gpu
from estate.queries.limits import tracks_gpus

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


class Asked(NamedTuple):
    """A live source that this process holds, and what it is asked.

    With `is_past` neither what waits now nor the watermark is touched; `chunk` is the part of a backfill that is done with it.
    """

    source: Source
    lease: leases.Lease
    window: Window
    is_past: bool = False
    chunk: BackfillChunk | None = None

    @property
    def input_name(self) -> str:
        """Lines of the past that were refused stay counted until that past is read again."""
        name = asking.input_name(self.source)
        return f"{name}, {self.window.first:%Y-%m-%d %H:%M} to {self.window.last:%Y-%m-%d %H:%M}" if self.is_past else name


class TooMuchAskedError(InputError):
    """A source cannot answer for so long a span at once."""


class Counts(NamedTuple):
    """Of one input: accepted + rejected + ignored = lines."""

    line_count: int
    accepted_count: int
    rejected_count: int
    ignored_count: int


class _Dump(NamedTuple):
    """What is read, in blocks, its counts (they grow meanwhile), and the header under which refused lines can be read again."""

    blocks: Iterable[RecordBlock]
    tally: Tally
    header: str


def sacct_blocks(pieces: Iterable[bytes], cluster: Cluster, name: str, zone: ZoneInfo, now: datetime) -> SacctBlocks:
    """The reader of a dump of `cluster`, which the dump calls `name`. Raises SacctHeaderError."""
    shards, tracked = shards_per_gpu(cluster), tracks_gpus(cluster, now)
    return SacctBlocks(pieces, cluster=name, zone=zone, now=now, shards_per_gpu=shards, tracks_gpus=tracked)


def _answer_dump(question: Question | RestQuestion, source: Source, now: datetime) -> _Dump:
    """What a live source answers. Raises CommandError, SacctHeaderError."""
    if isinstance(question, RestQuestion):
        shards, tracked = shards_per_gpu(source.cluster), tracks_gpus(source.cluster, now)
        answer = question.reader(now, shards_per_gpu=shards, tracks_gpus=tracked)
        return _Dump(blocks_of(answer), answer, question.header)
    reader = sacct_blocks(question.lines(), source.cluster, asking.cluster_name(source), ZoneInfo("UTC"), now)
    return _Dump(reader, reader, _clean(reader.header))


class _Sieve:
    """Hands blocks on and takes the rejections off the tally as they come: a bounded number is kept."""

    def __init__(self, dump: _Dump) -> None:
        self._dump = dump
        self.kept: list[Rejected] = []

    def __iter__(self) -> Iterator[RecordBlock]:
        rejections = self._dump.tally.rejections
        for block in self._dump.blocks:
            self._take(rejections)
            yield block
        self._take(rejections)

    def _take(self, rejections: list[Rejected]) -> None:
        self.kept += rejections[: KEPT_REJECTIONS - len(self.kept)]
        rejections.clear()


def import_sacct(cluster: Cluster, path: str, *, meter: Meter = no_meter, held: Held | None = None) -> Outcome:
    """Read one sacct dump into `cluster`. On InputError, LeaseLostError, DatabaseError only the failed run is written."""
    name = files.name_of(path)
    with recorded(cluster, "sacct", name, held.source if held else None) as run, files.pieces_of(path, meter) as pieces:
        kept, through_at = _take_in(run, _dump(cluster, name, pieces, run.started_at), None)
        if held is not None:
            _remember(held, through_at)
    return outcome_of(run, kept)


def ask_sacct(asked: Asked) -> Outcome:
    """Ask a live source for one window. On InputError, LeaseLostError, DatabaseError only the failed run is written.

    The rows, the watermark (the time at which it was asked) and the time of the last long look back go in together.
    """
    source, window, now = asked.source, asked.window, datetime.now(UTC)
    with recorded(source.cluster, source.kind, asked.input_name, source) as run, _commands_explained():
        run.asked_at, run.window_from, run.window_to = now, window.first, window.last
        question = asking.question(source, window.first, window.last, with_waiting=not asked.is_past)
        kept, _ = _take_in(run, _answer_dump(question, source, now), now)
        _forget_older(run, kept)
        if isinstance(question, RestQuestion):
            Source.objects.filter(pk=source.pk).update(token_ends_at=question.token_ends_at)
        run.message = " ".join([*question.messages, run.message]).strip()
        leases.check(asked.lease)
        if asked.chunk is not None:
            backfills.finish(asked.chunk, (datetime.now(UTC) - now).total_seconds(), run.accepted_count)
        elif not asked.is_past:
            _advance(source, window, now)
    return outcome_of(run, kept)


def _take_in(run: Run, dump: _Dump, observed_at: datetime | None) -> tuple[list[Rejected], datetime | None]:
    """Records, counts and refused lines of one dump into the run's transaction; the lines that are kept, and the last sighting."""
    tally, sieve = dump.tally, _Sieve(dump)
    result = ingest_blocks(run.cluster, sieve, observed_at=observed_at)
    note_intake(run.cluster, run.input_name, tally.rejected_count)
    run.header = dump.header
    run.line_count, run.accepted_count = tally.line_count, tally.accepted_count
    run.ignored_count, run.changed_count = tally.ignored_count, result.changed_count
    keep_rejections(run, sieve.kept, tally.rejected_count)
    return sieve.kept, result.through_at


def import_nodes(cluster: Cluster, name: str, data: bytes, *, as_of: datetime | None, complete: bool) -> Outcome:
    """Read one inventory, of any kind, into `cluster`; lines are its entries. Raises InputError or DatabaseError."""
    with recorded(cluster, "nodes", name, None) as run:
        inventory = _inventory(cluster, name, data)
        result = ingest_nodes(cluster, inventory.nodes, as_of=as_of, complete=complete)
        run.line_count, run.accepted_count = inventory.line_count, inventory.accepted_count
        run.ignored_count, run.changed_count = inventory.ignored_count, result.changed_count
        keep_rejections(run, inventory.rejections, len(inventory.rejections))
        gone = "ended" if complete else "stayed (--complete ends them)"
        run.message += f"{result.absent_count} known nodes are not in it and {gone}." if result.absent_count else ""
    return outcome_of(run, inventory.rejections)


def count_sacct(cluster: Cluster, path: str) -> Counts:
    """Read a dump as `import_sacct` would, and write nothing. Raises InputError."""
    with files.pieces_of(path) as pieces:
        return _counted(_dump(cluster, files.name_of(path), pieces, timezone.now()))


def _counted(dump: _Dump) -> Counts:
    deque(_Sieve(dump), maxlen=0)
    tally = dump.tally
    return Counts(tally.line_count, tally.accepted_count, tally.rejected_count, tally.ignored_count)


def _dump(cluster: Cluster, name: str, pieces: Iterable[bytes], now: datetime) -> _Dump:
    try:
        reader = sacct_blocks(pieces, cluster, cluster.name, cluster.zone_info, now)
        return _Dump(reader, reader, _clean(reader.header))
    except SacctHeaderError as exc:
        raise InputError(f"{name}: {exc}") from exc


def _inventory(cluster: Cluster, name: str, data: bytes) -> NodeInventory:
    try:
        return read_inventory(data, cluster.name, cluster.zone_info)
    except ValueError as exc:
        raise InputError(f"{name}: {exc}") from exc


def count_live(source: Source, window: Window) -> Counts:
    """Ask as `ask_sacct` would, and write nothing. Raises InputError."""
    now = datetime.now(UTC)
    with _commands_explained():
        question = asking.question(source, window.first, window.last, with_waiting=True)
        return _counted(_answer_dump(question, source, now))


@contextmanager
def _commands_explained() -> Iterator[None]:
    """What goes wrong with a command is what goes wrong with an input."""
    try:
        yield
    except TooMuchError as exc:
        raise TooMuchAskedError(str(exc)) from exc
    except (CommandError, SacctHeaderError) as exc:
        raise InputError(str(exc)) from exc


def note_failure(source: Source, exc: InputError) -> None:
    """A failed run of a source that did not get as far as a file."""
    with suppress(InputError), recorded(source.cluster, "sacct", asking.place(source), source):
        raise exc


def close_stale(cluster: Cluster) -> int:
    """Mark runs of `cluster` failed whose process ended: they are called running, yet no transaction holds their row."""
    with transaction.atomic():
        free = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(cluster=cluster, status=RunStatus.RUNNING)
        stale = Run.objects.filter(pk__in=[run.pk for run in free])
        return stale.update(status=RunStatus.FAILED, finished_at=timezone.now(), message=PROCESS_ENDED)


@contextmanager
def recorded(cluster: Cluster, kind: str, name: str, source: Source | None) -> Iterator[Run]:
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


def keep_rejections(run: Run, rejections: Sequence[Rejected], count: int) -> None:
    """Store the first refused lines of `run`, of `count` in all; the message says so when there were more than are kept."""
    rows = (
        Rejection(run=run, line_number=line.line_number, raw=_raw(line), reason=_clean(line.reason)[:500])
        for line in rejections[:KEPT_REJECTIONS]
    )
    Rejection.objects.bulk_create(rows, batch_size=500)
    run.rejected_count = count
    if count > KEPT_REJECTIONS:
        run.message = f"{count:,} lines were rejected; the first {KEPT_REJECTIONS:,} are kept."


def _raw(line: Rejected) -> str:
    return _clean(line.raw)[:RAW_LENGTH]


def _remember(held: Held, through_at: datetime | None) -> None:
    """The file as it was taken in and the source's watermark, provided that the lease is still ours."""
    leases.check(held.lease)
    facts = {"size_bytes": held.file.size_bytes, "modified_ns": held.file.modified_ns}
    SourceFile.objects.update_or_create(source=held.source, name=held.file.name, defaults=facts)
    source = held.source
    if through_at is not None and (source.watermark_at is None or through_at > source.watermark_at):
        source.watermark_at = through_at
        source.save(update_fields=["watermark_at"])


def _advance(source: Source, window: Window, asked_at: datetime) -> None:
    """The source was asked for all up to `asked_at`; whatever lies too far back to be asked at once becomes part of its backfill."""
    note_asked(source.cluster, asked_at)
    source.watermark_at = asked_at
    if window.is_long:
        source.reread_at = asked_at
    source.save(update_fields=["watermark_at", "reread_at"])
    if window.gap is not None:
        backfills.request(source, window.gap, again=True)


def _forget_older(run: Run, kept: Sequence[Rejected]) -> None:
    """A live source is asked for the same span again and again: a refused line stays with the newest run that met it."""
    older = Rejection.objects.filter(run__source=run.source, replayed_in=None).exclude(run=run)
    older.filter(raw__in={_raw(line) for line in kept}).delete()


def outcome_of(run: Run, kept: list[Rejected]) -> Outcome:
    counts = (run.line_count, run.accepted_count, run.rejected_count, run.ignored_count, run.changed_count)
    return Outcome(run.pk, *counts, tuple(kept[:FIRST_REJECTIONS]), run.message)


def _clean(text: str) -> str:
    """Text that PostgreSQL takes: no NUL, no lone surrogates."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _tail(name: str) -> str:
    """The end of a long path says more than its beginning."""
    return name if len(name) <= 1024 else "…" + name[-1023:]
