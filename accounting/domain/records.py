"""The contract between collectors and accounting: what one grant of resources is, whoever granted it. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from estate.domain.gpus import size_bucket
from estate.domain.nodes import GpuPart, NodeFact

__all__ = ["GpuPart", "NodeFact", "Rejected", "UsageRecord"]


class UsageRecord(NamedTuple):
    """One grant of resources for one continuous stay: an attempt of a Slurm job, or a Kubernetes pod.

    Instants are aware UTC. A record is unique in its cluster by (`external_id`, `submitted_at`): job ids come round again.
    `started_at` is None while it waits or if it never started; `ended_at` is None while it waits or runs.
    `last_seen_at` is the last sighting of a record that has not ended; None lets the ingest use the age of the whole import.
    `gpus` is what it held (0 when it never started), None where the cluster does not track GPUs; `gpu_parts` add up to it.
    `environment` is the evidence of a pinned software environment (a container image), empty where there is none; `restart_count`
    how often the scheduler had started the workload again before, None where it does not say.
    """

    external_id: str
    display_id: str
    workload_id: str
    workload_kind: str
    name: str
    user: str
    account: str
    namespace: str
    partition: str
    qos: str
    state: str
    submitted_at: datetime
    eligible_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    last_seen_at: datetime | None
    gpus: Decimal | None
    gpu_parts: tuple[GpuPart, ...]
    requested_gpus: Decimal | None
    requested_gpu_model: str | None
    cpus: Decimal | None
    memory_mib: int | None
    node_count: int | None
    nodes: tuple[str, ...]
    time_limit_seconds: int | None
    suspended_seconds: int
    priority: int | None
    reason: str
    reservation: str
    exit_code: str
    cancelled_by: str
    comment: str
    wckey: str = ""
    environment: str = ""
    restart_count: int | None = None

    @property
    def gpu_size(self) -> str:
        """Bucket by what it held, or by what it asked for while it has not started."""
        size = self.gpus if self.started_at is not None else self.requested_gpus
        return size_bucket(size if size is not None else 0)


class Rejected(NamedTuple):
    """A line that could not be taken in: its number from 1 (the header is line 1), its text, and why (in words that help mend it)."""

    line_number: int
    raw: str
    reason: str
