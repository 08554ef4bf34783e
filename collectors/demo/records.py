"""Attempts → usage records, and which of them come late. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import NamedTuple
from uuid import UUID

from accounting.domain.records import GpuPart, UsageRecord
from collectors.demo.jobs import Attempt, Job
from collectors.demo.shelves import DAY, ClusterPlan
from estate.domain.gpus import as_decimal

_NONE = Decimal(0)
_EXIT_CODES = {"COMPLETED": "0:0", "FAILED": "1:0", "OUT_OF_MEMORY": "0:125", "CANCELLED": "0:15", "NODE_FAIL": "1:0"}
_PRIORITIES = {"high": 90_000, "normal": 40_000, "low": 5_000}
_POD_REASONS = {"OUT_OF_MEMORY": "OOMKilled", "FAILED": "Error", "PENDING": "Unschedulable", "NODE_FAIL": "NodeLost"}
LATE_WINDOW_SECONDS = 20 * DAY


class Resources(NamedTuple):
    """What so many slots of a shelf hold."""

    gpus: Decimal
    parts: tuple[GpuPart, ...]
    cpus: Decimal
    memory_mib: int


def instant(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _instant(at: int | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


class Scribe:
    """Writes the records of one cluster as they are known at `until`."""

    def __init__(self, plan: ClusterPlan, until: int, rng: Random) -> None:
        self._plan, self._until, self._rng = plan, until, rng
        self._seen_at = instant(until)
        self._is_kubernetes = plan.scheduler == "kubernetes"
        self._hosts = _names_of_hosts(plan)
        self._resources = _resources_of(plan)

    def records(self, attempts: Iterable[Attempt]) -> Iterator[UsageRecord]:
        for attempt in attempts:
            yield self._record(attempt)

    def _record(self, attempt: Attempt) -> UsageRecord:
        job, started, ended = attempt.job, self._launched(attempt), attempt.ended
        gpus, parts, cpus, memory_mib = self._resources(job.shelf_index, job.slots)
        submitted_at = instant(attempt.submit)
        names = self._pod(job) if self._is_kubernetes else (str(job.number), job.display_id, job.workload_id)
        return UsageRecord(
            external_id=names[0],
            display_id=names[1],
            workload_id=names[2],
            workload_kind=job.kind,
            name=job.name,
            user=job.user,
            account=job.account,
            namespace=job.account if self._is_kubernetes else "",
            partition=job.partition,
            qos=job.qos,
            state=attempt.state,
            submitted_at=submitted_at,
            eligible_at=submitted_at if attempt.eligible == attempt.submit else _instant(attempt.eligible),
            started_at=_instant(started),
            ended_at=_instant(ended),
            last_seen_at=self._seen_at if ended is None else None,
            gpus=_NONE if started is None else gpus,
            gpu_parts=() if started is None else parts,
            requested_gpus=gpus,
            requested_gpu_model=self._plan.shelves[job.shelf_index].model if job.number % 3 else None,
            cpus=cpus,
            memory_mib=memory_mib,
            node_count=job.wants_nodes,
            nodes=self._hosts(job.shelf_index, attempt.nodes),
            time_limit_seconds=job.limit_seconds,
            suspended_seconds=_suspended(job, started, ended),
            priority=None if self._is_kubernetes else _PRIORITIES[job.qos] + job.number % 997,
            reason=_POD_REASONS.get(attempt.state, attempt.reason) if self._is_kubernetes else attempt.reason,
            reservation="",
            exit_code=_EXIT_CODES.get(attempt.state, "0:0") if ended is not None else "",
            cancelled_by=_canceller(job) if attempt.state == "CANCELLED" else "",
            comment=job.comment,
        )

    def _launched(self, attempt: Attempt) -> int | None:
        """The daemon needs a moment to launch; the slots are held from before."""
        if attempt.started is None:
            return None
        return min(attempt.started + attempt.job.number % 5, self._until if attempt.ended is None else attempt.ended)

    def _pod(self, job: Job) -> tuple[str, str, str]:
        """uid, name and top controller of a pod; every attempt is a new pod."""
        uid = str(UUID(int=self._rng.getrandbits(128), version=4))
        owner = job.comment if job.kind in {"Deployment", "StatefulSet"} else f"{job.name or 'unnamed'}-{job.workload_id}"
        return uid, f"{job.account}/{owner}-{uid[:5]}"[:512], f"{job.account}/{job.kind}/{owner}"[:255]


def late_ones(records: list[UsageRecord], until: int) -> tuple[list[UsageRecord], list[UsageRecord]]:
    """Two batches: what was known at first, and what came afterwards.

    Of the last weeks some ended records are missing from the first batch and some are still seen running there; a few
    old ones are missing too.
    """
    recent = instant(until - LATE_WINDOW_SECONDS)
    first: list[UsageRecord] = []
    late: list[UsageRecord] = []
    for number, record in enumerate(records):
        is_recent = record.ended_at is not None and record.ended_at > recent
        if (number % 97 == 3 and is_recent) or number % 5003 == 7:
            late.append(record)
        elif number % 89 == 5 and is_recent and record.started_at is not None:
            first.append(_as_seen_running(record))
            late.append(record)
        else:
            first.append(record)
    return first, late


def _as_seen_running(record: UsageRecord) -> UsageRecord:
    if record.started_at is None or record.ended_at is None:
        return record
    half = record.started_at + (record.ended_at - record.started_at) // 2
    return record._replace(
        state="RUNNING",
        ended_at=None,
        last_seen_at=half.replace(microsecond=0),
        suspended_seconds=0,
        exit_code="",
        cancelled_by="",
    )


def _resources_of(plan: ClusterPlan) -> Callable[[int, int], Resources]:
    @lru_cache(maxsize=1000)
    def resources(shelf_index: int, slots: int) -> Resources:
        shelf = plan.shelves[shelf_index]
        gpus = as_decimal(shelf.slot_gpus * slots)
        parts = (GpuPart(shelf.model, gpus),) if gpus else ()
        return Resources(gpus, parts, Decimal(shelf.slot_cpus * slots), shelf.memory_mib * slots // shelf.slots)

    return resources


def _names_of_hosts(plan: ClusterPlan) -> Callable[[int, tuple[int, ...]], tuple[str, ...]]:
    @lru_cache(maxsize=100_000)
    def names(shelf_index: int, nodes: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(plan.shelves[shelf_index].node_name(node) for node in nodes)

    return names


def _suspended(job: Job, started: int | None, ended: int | None) -> int:
    """Part of a stay that ended; never more than half of it (an attempt may have been cut short)."""
    return 0 if started is None or ended is None else min(job.suspended_seconds, (ended - started) // 2)


def _canceller(job: Job) -> str:
    return "root" if job.number % 23 == 0 else job.user
