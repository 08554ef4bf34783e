"""Doorbells. What is due is decided by rows, so a lost message only waits for the next one."""

from __future__ import annotations

from celery import shared_task

from collectors import collecting

# A ring that nobody heard for a minute is worth nothing: beat rings again every few seconds.
RING_EXPIRES_SECONDS = 60


@shared_task(ignore_result=True)
def collect_due() -> dict[str, int]:
    """Ring for every source that is due."""
    due = collecting.due_source_ids()
    for source_id in due:
        ring(source_id)
    return {"due_count": len(due)}


@shared_task(ignore_result=True)
def collect(source_id: int) -> dict[str, int]:
    """Collect one source if it is still due and nobody else has it."""
    return collecting.collect(source_id).as_counts()


def ring(source_id: int) -> None:
    """Ask a worker to look at one source. Raises kombu.exceptions.OperationalError when the broker cannot be reached."""
    collect.apply_async((source_id,), expires=RING_EXPIRES_SECONDS, retry=False)
