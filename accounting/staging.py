"""Usage records as lines of a `COPY`: the one place that knows how the table is spelled on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from accounting.domain.records import GpuPart, UsageRecord

COLUMNS = [
    "external_id",
    "display_id",
    "workload_id",
    "workload_kind",
    "name",
    "user_name",
    "account",
    "namespace",
    "partition",
    "qos",
    "state",
    "reason",
    "reservation",
    "exit_code",
    "cancelled_by",
    "comment",
    "gpu_size",
    "nodes",
    "submitted_at",
    "eligible_at",
    "started_at",
    "ended_at",
    "gpus",
    "gpu_model_ids",
    "gpu_counts",
    "requested_gpus",
    "requested_gpu_model_id",
    "cpus",
    "memory_mib",
    "node_count",
    "time_limit_seconds",
    "suspended_seconds",
    "priority",
    "row_hash",
    "last_seen_at",
]
NULL = "\x1a"
BLOCK_LINES = 10_000

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", NULL: "\\x1A"})


class Block(NamedTuple):
    """Some thousand lines of COPY text, and whether a key comes twice among them."""

    text: str
    repeated: bool


def copy_blocks(records: Iterable[UsageRecord], model_id: Callable[[str], int]) -> Iterator[Block]:
    """Blocks of COPY text for `records`; `model_id` names the row of a GPU model."""
    spell = _speller(model_id)
    lines: list[str] = []
    keys: set[tuple[str, datetime]] = set()
    for record in records:
        lines.append(spell(record))
        keys.add((record.external_id, record.submitted_at))
        if len(lines) == BLOCK_LINES:
            yield Block("".join(lines), len(keys) < len(lines))
            lines.clear()
            keys.clear()
    if lines:
        yield Block("".join(lines), len(keys) < len(lines))


def _speller(model_id: Callable[[str], int]) -> Callable[[UsageRecord], str]:
    """A function from record to line; parts and node lists repeat, so their spelling is remembered."""

    @lru_cache(maxsize=10_000)
    def parts_text(parts: tuple[GpuPart, ...]) -> str:
        ids = ",".join("NULL" if part.model is None else str(model_id(part.model)) for part in parts)
        return f"{{{ids}}}\t{{{','.join(format(part.gpus, 'f') for part in parts)}}}"

    def spell(r: UsageRecord) -> str:
        words = (
            f"{r.external_id}\t{r.display_id}\t{r.workload_id}\t{r.workload_kind}\t{r.name}\t{r.user}\t{r.account}\t{r.namespace}\t"
            f"{r.partition}\t{r.qos}\t{r.state}\t{r.reason}\t{r.reservation}\t{r.exit_code}\t{r.cancelled_by}\t{r.comment}"
        )
        if words.count("\t") != 15 or "\\" in words or "\n" in words or "\r" in words or NULL in words:
            words = _escaped(r)
        requested_model = NULL if r.requested_gpu_model is None else model_id(r.requested_gpu_model)
        submitted = _instant(r.submitted_at)
        eligible = submitted if r.eligible_at is r.submitted_at else _instant(r.eligible_at)
        ended = _instant(r.ended_at)
        line = (
            f"{words}\t{r.gpu_size}\t{_nodes_text(r.nodes)}\t{submitted}\t{eligible}\t{_instant(r.started_at)}\t{ended}\t"
            f"{_quantity(r.gpus)}\t{parts_text(r.gpu_parts)}\t{_quantity(r.requested_gpus)}\t{requested_model}\t"
            f"{_quantity(r.cpus)}\t{_number(r.memory_mib)}\t{_number(r.node_count)}\t"
            f"{_number(r.time_limit_seconds)}\t{r.suspended_seconds}\t{_number(r.priority)}"
        )
        row_hash = int.from_bytes(blake2b(line.encode(), digest_size=8).digest(), "big", signed=True)
        return f"{line}\t{row_hash}\t{_instant(r.last_seen_at) if ended == NULL else ended}\n"

    return spell


def _escaped(r: UsageRecord) -> str:
    texts = (r.external_id, r.display_id, r.workload_id, r.workload_kind, r.name, r.user, r.account, r.namespace, r.partition)
    more = (r.qos, r.state, r.reason, r.reservation, r.exit_code, r.cancelled_by, r.comment)
    return "\t".join(text.translate(_ESCAPES) for text in texts + more)


@lru_cache(maxsize=10_000)
def _day(on: date) -> str:
    return on.isoformat()


@lru_cache(maxsize=90_000)
def _clock(at: time) -> str:
    return f" {at.isoformat()}+00"


def _instant(value: datetime | None) -> str:
    """ISO 8601 in UTC, put together from remembered days and times of day (spelling each anew costs five times as much)."""
    if value is None:
        return NULL
    if value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    return _day(value.date()) + _clock(value.time())


@lru_cache(maxsize=10_000)
def _decimal(value: Decimal) -> str:
    return format(value, "f")


def _number(value: int | None) -> str:
    return NULL if value is None else str(value)


def _quantity(value: Decimal | None) -> str:
    return NULL if value is None else _decimal(value)


@lru_cache(maxsize=10_000)
def _nodes_text(nodes: tuple[str, ...]) -> str:
    """A PostgreSQL array literal, itself escaped for COPY."""
    quoted = (node.replace("\\", "\\\\").replace('"', '\\"') for node in nodes)
    return ("{" + ",".join(f'"{node}"' for node in quoted) + "}").translate(_ESCAPES)
