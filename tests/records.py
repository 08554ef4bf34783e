"""Usage records for tests: a small one with everything said, to be varied by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from accounting.domain.records import GpuPart, UsageRecord

START = datetime(2026, 3, 2, 8, tzinfo=UTC)


def at(hours: float) -> datetime:
    """`hours` after the start of the little world of the tests (Monday, 2 March 2026, 08:00 UTC)."""
    return START + timedelta(hours=hours)


def record(external_id: str = "1", **changes: Any) -> UsageRecord:
    """An ended record of two A100s for two hours after an hour of waiting; `changes` say otherwise."""
    fields: dict[str, Any] = {
        "external_id": external_id,
        "display_id": external_id,
        "workload_id": external_id,
        "workload_kind": "job",
        "name": "train",
        "user": "ann",
        "account": "vision",
        "namespace": "",
        "partition": "train",
        "qos": "normal",
        "state": "COMPLETED",
        "submitted_at": at(0),
        "eligible_at": at(0),
        "started_at": at(1),
        "ended_at": at(3),
        "last_seen_at": None,
        "gpus": Decimal(2),
        "gpu_parts": (GpuPart("a100", Decimal(2)),),
        "requested_gpus": Decimal(2),
        "requested_gpu_model": "a100",
        "cpus": Decimal(16),
        "memory_mib": 1024,
        "node_count": 1,
        "nodes": ("gpu01",),
        "time_limit_seconds": 7200,
        "suspended_seconds": 0,
        "priority": 1,
        "reason": "",
        "reservation": "",
        "exit_code": "0:0",
        "cancelled_by": "",
        "comment": "",
    }
    return UsageRecord(**(fields | changes))


def waiting(external_id: str = "1", **changes: Any) -> UsageRecord:
    """A record that waits for two A100s."""
    still: dict[str, Any] = {
        "state": "PENDING",
        "started_at": None,
        "ended_at": None,
        "gpus": Decimal(0),
        "gpu_parts": (),
        "nodes": (),
    }
    return record(external_id, **(still | changes))


def running(external_id: str = "1", seen: float = 2, **changes: Any) -> UsageRecord:
    """A record that runs and was last seen `seen` hours after the start."""
    return record(external_id, **({"state": "RUNNING", "ended_at": None, "last_seen_at": at(seen)} | changes))
