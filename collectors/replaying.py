"""Lines that were refused, read again after a fix, from their kept text: a run of its own with counts of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from zoneinfo import ZoneInfo

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Length

from accounting.domain.records import Rejected
from accounting.ingest import ingest_blocks, note_intake
from collectors import asking, runs
from collectors.files import InputError
from collectors.models import Rejection, Run, RunStatus
from collectors.slurm.blocks import SacctBlocks
from collectors.slurm.reader import SacctHeaderError

KIND = "replay"


def replayable(run_id: int | None = None) -> QuerySet[Rejection]:
    """Refused lines of which the whole text is kept as it was read, under a known header, and that no replay took in yet."""
    kept = Rejection.objects.exclude(run__header="").filter(replayed_in=None)
    whole = kept.annotate(length=Length("raw")).filter(length__lt=runs.RAW_LENGTH)
    intact = whole.exclude(Q(reason__contains="NUL") | Q(reason__contains="UTF-8"))
    return intact if run_id is None else intact.filter(run_id=run_id)


def open_runs() -> QuerySet[Run]:
    """Runs with refused lines that could be read again, newest first, with their `open_count`."""
    ids = replayable().values("run_id")
    return Run.objects.filter(pk__in=ids).annotate(open_count=Count("rejections", filter=Q(rejections__replayed_in=None)))


def replay(run: Run) -> runs.Outcome:
    """Read the refused lines of `run` again. Raises InputError when none of them can be; DatabaseError leaves all as it was.

    Lines that are taken in now are marked; the reason of the others is brought up to date.
    """
    refused = list(replayable(run.pk).order_by("line_number"))
    if not refused:
        raise InputError(f"run {run.pk} has no refused line whose whole text is kept; read its input again instead")
    with runs.recorded(run.cluster, KIND, run.input_name, run.source) as again:
        reader, at = _reader(run, refused)
        ingest_blocks(run.cluster, reader, observed_at=run.asked_at)
        again.header, again.asked_at = run.header, run.asked_at
        again.line_count, again.accepted_count = reader.line_count, reader.accepted_count
        again.ignored_count, again.rejected_count = reader.ignored_count, reader.rejected_count
        _mark(refused, at, {line.line_number: line for line in reader.rejections}, again)
        _count_less(run)
    return runs.outcome_of(again, list(reader.rejections))


def _reader(run: Run, refused: Sequence[Rejection]) -> tuple[SacctBlocks, list[int]]:
    """A reader of a dump of the refused lines, and the line number of each in it. Lines that did not stand together are kept apart by
    the header, so that none is joined to another."""
    lines, at = [run.header], []
    for before, line in zip([None, *refused], refused, strict=False):
        if before is not None and before.line_number + 1 != line.line_number:
            lines.append(run.header)
        lines.append(line.raw)
        at.append(len(lines))
    live = run.asked_at is not None
    zone = ZoneInfo("UTC") if live else run.cluster.zone_info
    name = asking.cluster_name(run.source) if live and run.source is not None else run.cluster.name
    try:
        return runs.sacct_blocks(_encoded(lines), run.cluster, name, zone, run.asked_at or run.started_at), at
    except SacctHeaderError as exc:
        raise InputError(f"run {run.pk}: {exc}") from exc


def _encoded(lines: Sequence[str]) -> Iterator[bytes]:
    return (line.encode() + b"\n" for line in chain(lines))


def _mark(refused: Sequence[Rejection], at: Sequence[int], still: dict[int, Rejected], again: Run) -> None:
    taken = [line.pk for line, number in zip(refused, at, strict=True) if number not in still]
    Rejection.objects.filter(pk__in=taken).update(replayed_in=again)
    for line, number in zip(refused, at, strict=True):
        if number in still:
            line.reason = still[number].reason[:500]
    Rejection.objects.bulk_update([line for line, number in zip(refused, at, strict=True) if number in still], ["reason"], 500)
    again.message = f"{len(taken):,} of {len(refused):,} lines that run {refused[0].run_id} refused were taken in"


def _count_less(run: Run) -> None:
    """What was taken in no longer counts as refused, if `run` is the newest reading of its input."""
    same = Run.objects.filter(cluster=run.cluster, input_name=run.input_name, status=RunStatus.DONE).exclude(kind=KIND)
    if same.order_by("-started_at", "-pk").values_list("pk", flat=True).first() == run.pk:
        taken = run.rejections.filter(replayed_in__isnull=False).count()
        note_intake(run.cluster, run.input_name, run.rejected_count - taken)
