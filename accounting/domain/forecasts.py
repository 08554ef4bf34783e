"""What a scheduler says of the jobs that wait, and of those that it lost track of. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Expectation(NamedTuple):
    """A waiting record, named as in the usage records, and when the scheduler expects it to start (None: it does not say).

    `priority_parts` are what its priority is made of, as the scheduler names them.
    """

    external_id: str
    submitted_at: datetime
    expected_at: datetime | None
    partition: str
    reason: str
    priority: int | None
    priority_parts: tuple[tuple[str, int], ...] = ()


class Sample(NamedTuple):
    """State of the scheduler when it was asked; its last backfill cycle in microseconds, how deep it looked, the queue it saw."""

    pending_count: int | None
    running_count: int | None
    backfill_cycle_microseconds: int | None
    backfill_depth: int | None
    backfill_queue_length: int | None


class Runaway(NamedTuple):
    """A record that the accounting database holds for running, or waiting, and that the scheduler does not know."""

    external_id: str
    state: str
    submitted_at: datetime | None
    started_at: datetime | None
