"""The past of a live source, in bounded chunks: what was asked for, what is next, how it gets on.

A chunk is done together with its rows, so whatever is killed at whatever moment goes on by itself and ends in the same state.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, Sum
from django.db.models.functions import Now
from django.utils import timezone

from collectors.models import LIVE_KINDS, BackfillChunk, Source
from collectors.windows import Span, halves, weeks

FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=15)


class Progress(NamedTuple):
    """How far a source's backfill is: chunks, the records in those that are done, the span asked for, and what they took together."""

    chunk_count: int
    done_count: int
    record_count: int
    first_at: datetime
    last_at: datetime
    seconds: float
    failing: str

    @property
    def done_ratio(self) -> float:
        return self.done_count / self.chunk_count

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first chunk is done."""
        return self.seconds / self.done_count * (self.chunk_count - self.done_count) if self.done_count else None


def request(source: Source, span: Span, *, again: bool = False) -> int:
    """Ask for `span`, but for what was asked for before (with `again` also that, once more); returns how many chunks are new."""
    with transaction.atomic():
        Source.objects.select_for_update(no_key=True).get(pk=source.pk)
        known = BackfillChunk.objects.filter(source=source, start_at__lt=span.last, end_at__gt=span.first)
        if again:
            known.filter(start_at__gte=span.first, end_at__lte=span.last).delete()
        spans = _holes(span, [Span(*ends) for ends in known.order_by("start_at").values_list("start_at", "end_at")])
        chunks = [BackfillChunk(source=source, start_at=first, end_at=last) for part in spans for first, last in weeks(part)]
        return len(BackfillChunk.objects.bulk_create(chunks))


def next_chunk(source_id: int) -> BackfillChunk | None:
    """The newest span that is still to be read and may be tried now."""
    waiting = BackfillChunk.objects.filter(source_id=source_id, done_at=None, next_try_at__lte=Now())
    return waiting.order_by("-start_at").first()


def waiting_source_ids() -> list[int]:
    """Sources that are switched on, held by nobody, not due themselves, and have something of their past to read."""
    free = Q(lease_until_at__isnull=True) | Q(lease_until_at__lt=Now())
    todo = BackfillChunk.objects.filter(source=OuterRef("pk"), done_at=None, next_try_at__lte=Now())
    sources = Source.objects.filter(free, Exists(todo), enabled=True, kind__in=LIVE_KINDS, next_due_at__gt=Now())
    return list(sources.order_by("pk").values_list("pk", flat=True))


def finish(chunk: BackfillChunk, seconds: float, record_count: int) -> None:
    """Mark a chunk done; call it inside the transaction that brings its rows."""
    done = BackfillChunk.objects.filter(pk=chunk.pk)
    done.update(done_at=Now(), seconds=seconds, record_count=record_count, message="", failure_count=0)


def put_off(chunk: BackfillChunk, message: str, *, too_much: bool) -> None:
    """Try a chunk that failed later; one that asked for too much in two halves, as long as it is longer than two hours."""
    parts = halves(Span(chunk.start_at, chunk.end_at)) if too_much else None
    with transaction.atomic():
        if parts is None:
            later = timezone.now() + min(FIRST_PAUSE * 2**chunk.failure_count, LONGEST_PAUSE)
            failures = chunk.failure_count + 1
            BackfillChunk.objects.filter(pk=chunk.pk).update(failure_count=failures, message=message, next_try_at=later)
            return
        BackfillChunk.objects.filter(pk=chunk.pk).delete()
        BackfillChunk.objects.bulk_create(BackfillChunk(source=chunk.source, start_at=part[0], end_at=part[1]) for part in parts)


def progress_by_source() -> dict[int, Progress]:
    """Progress by source id; sources without a backfill have no entry."""
    done, todo = Q(done_at__isnull=False), Q(done_at=None)
    rows = BackfillChunk.objects.values_list("source_id").annotate(
        chunks=Count("pk"),
        finished=Count("pk", filter=done),
        records=Sum("record_count"),
        first=Min("start_at"),
        last=Max("end_at"),
        took=Sum("seconds", default=0.0),
        failing=Max("message", filter=todo, default=""),
    )
    return {source_id: Progress(*facts) for source_id, *facts in rows.order_by()}


def _holes(span: Span, known: list[Span]) -> list[Span]:
    """What of `span` is in none of the `known` spans, which are in order and do not overlap."""
    holes, at = [], span.first
    for first, last in known:
        if at < first:
            holes.append(Span(at, first))
        at = max(at, last)
    return [*holes, Span(at, span.last)] if at < span.last else holes
