"""Doorbells. What is due is decided by rows, so a lost message only waits for the next one."""

from __future__ import annotations

from celery import shared_task

from collectors import backfills, collecting

# A ring that nobody heard for a minute is worth nothing: beat rings again every few seconds.
RING_EXPIRES_SECONDS = 60
# With the broker a smaller number goes first: what is due now before what was long ago.
LIVE, PAST = 0, 9


@shared_task(ignore_result=True)
def collect_due() -> dict[str, int]:
    """Ring for every source that is due, and for those with something of their past to read."""
    due, past = collecting.due_source_ids(), backfills.waiting_source_ids()
    for source_id in due:
        ring(source_id)
    for source_id in past:
        ring_for_past(source_id)
    return {"due_count": len(due), "backfill_count": len(past)}


@shared_task(ignore_result=True)
def collect(source_id: int) -> dict[str, int]:
    """Collect one source if it is still due and nobody else has it."""
    return collecting.collect(source_id).as_counts()


@shared_task(ignore_result=True)
def backfill(source_id: int) -> dict[str, int]:
    """Read some of a source's past, if nothing is due and nobody else has it."""
    return collecting.backfill(source_id).as_counts()


def ring(source_id: int) -> None:
    """Ask a worker to look at one source. Raises kombu.exceptions.OperationalError when the broker cannot be reached."""
    collect.apply_async((source_id,), expires=RING_EXPIRES_SECONDS, retry=False, priority=LIVE)


def ring_for_past(source_id: int) -> None:
    """Ask a worker to read the past of one source. Raises kombu.exceptions.OperationalError when the broker cannot be reached."""
    backfill.apply_async((source_id,), expires=RING_EXPIRES_SECONDS, retry=False, priority=PAST)
