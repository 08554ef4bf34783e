"""The moving parts of the simulation: a job that waits and runs, and the attempts that it leaves behind. Pure. Times are epoch seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FAR = 1 << 60
GRACE_SECONDS = 60
# Rank 0 is urgent, 1 normal, 2 may be preempted.
HEAD_START_SECONDS = (-4 * 86_400, 0, 43_200)


@dataclass(slots=True, eq=False)
class Job:
    """What one record-to-be asks for. `submit` and `eligible` move on when it is requeued; `wants_nodes` > 1 takes whole nodes."""

    shelf_index: int
    partition: str
    kind: str
    name: str
    user: str
    account: str
    qos: str
    submit: int
    eligible: int
    slots: int
    wants_nodes: int
    run_seconds: int
    limit_seconds: int | None
    outcome: str
    cancel_at: int
    hold_reason: str = ""
    suspended_seconds: int = 0
    comment: str = ""
    number: int = 0
    display_id: str = ""
    workload_id: str = ""
    handicap_seconds: int = 0
    attempt: int = 0
    rank: int = 1
    is_waiting: bool = False
    was_blocked: str = ""

    @property
    def planned_seconds(self) -> int:
        """How long the scheduler must expect it to stay: the limit and the grace in which a job is stopped."""
        return FAR if self.limit_seconds is None else self.limit_seconds + GRACE_SECONDS

    @property
    def key(self) -> tuple[int, int]:
        """Place in the queue: by age, with a head start by rank; a sweep lets others in between its tasks."""
        return (self.eligible + HEAD_START_SECONDS[self.rank] + self.handicap_seconds, self.number)


class Attempt(NamedTuple):
    """One stay (or wait) of a job: what becomes a usage record. `started`/`ended` None: still waiting / still running."""

    job: Job
    attempt: int
    submit: int
    eligible: int | None
    started: int | None
    ended: int | None
    state: str
    nodes: tuple[int, ...]
    reason: str
