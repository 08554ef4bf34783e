"""Usage records by the ten thousand: the columns of `UsageRecord` as one frame. Pure.

What repeats is kept once: `holding`, `request` and `node_list` are places in the tuples beside the frame.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import islice
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import polars as pl

from accounting.domain.records import GpuPart, UsageRecord

BLOCK_RECORDS = 25_000

WORDS = (
    "external_id", "display_id", "workload_id", "workload_kind", "name", "user", "account", "namespace", "partition", "qos", "state",
    "reason", "reservation", "exit_code", "cancelled_by", "comment", "wckey", "environment",
)  # fmt: skip
INSTANTS = ("submitted_at", "eligible_at", "started_at", "ended_at", "last_seen_at")
COUNTS = ("memory_mib", "node_count", "time_limit_seconds", "suspended_seconds", "priority", "restart_count")
PLACES = ("holding", "request", "node_list")
INSTANT = pl.Datetime("us", "UTC")

# `cpus` is a decimal as text; `request` is null where it is unknown what was asked for.
SCHEMA: dict[str, Any] = (
    dict.fromkeys(WORDS, pl.String)
    | dict.fromkeys(INSTANTS, INSTANT)
    | {"cpus": pl.String}
    | dict.fromkeys(COUNTS, pl.Int64)
    | dict.fromkeys(PLACES, pl.UInt32)
)


class Holding(NamedTuple):
    """What a record held: its GPUs (None: unknown), by model."""

    gpus: Decimal | None
    gpu_parts: tuple[GpuPart, ...]


class Request(NamedTuple):
    """What a record asked for: its GPUs (None: unknown) and their model, if it named one."""

    gpus: Decimal | None
    gpu_model: str | None


class RecordBlock(NamedTuple):
    """Some thousand usage records: `frame` has the columns of `SCHEMA`, in any order."""

    frame: pl.DataFrame
    holdings: Sequence[Holding]
    requests: Sequence[Request]
    node_lists: Sequence[tuple[str, ...]]


NO_RECORDS = RecordBlock(pl.DataFrame(schema=SCHEMA), (), (), ())

T = TypeVar("T", bound=Hashable)


class Places(Generic[T]):
    """Distinct values in order of their first coming."""

    def __init__(self) -> None:
        self._at: dict[T, int] = {}

    def of(self, value: T) -> int:
        return self._at.setdefault(value, len(self._at))

    @property
    def values(self) -> tuple[T, ...]:
        return tuple(self._at)


def blocks_of(records: Iterable[UsageRecord]) -> Iterator[RecordBlock]:
    """`records` as blocks of at most `BLOCK_RECORDS`."""
    source = iter(records)
    while some := list(islice(source, BLOCK_RECORDS)):
        yield _block(some)


def _block(records: Sequence[UsageRecord]) -> RecordBlock:
    holdings, requests, node_lists = Places[Holding](), Places[Request](), Places[tuple[str, ...]]()
    columns: dict[str, Any] = {name: list(map(attrgetter(name), records)) for name in WORDS + COUNTS}
    columns |= {name: _instants(list(map(attrgetter(name), records))) for name in INSTANTS}
    columns["cpus"] = [None if record.cpus is None else format(record.cpus, "f") for record in records]
    columns["holding"] = [holdings.of(Holding(record.gpus, record.gpu_parts)) for record in records]
    columns["request"] = [
        None if record.requested_gpus is None and record.requested_gpu_model is None
        else requests.of(Request(record.requested_gpus, record.requested_gpu_model))
        for record in records
    ]  # fmt: skip
    columns["node_list"] = [node_lists.of(record.nodes) for record in records]
    return RecordBlock(pl.DataFrame(columns, schema=SCHEMA), holdings.values, requests.values, node_lists.values)


def _instants(moments: Sequence[datetime | None]) -> pl.Series:
    """By way of seconds as floats, which are exact to the microsecond for some centuries, and far faster than moment by moment."""
    seconds = pl.Series([None if moment is None else moment.timestamp() for moment in moments], dtype=pl.Float64)
    return (seconds * 1e6).round().cast(pl.Int64).cast(INSTANT)
