"""What an inventory says of a node. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple


class GpuPart(NamedTuple):
    """GPUs of one model; `model` is None when the source does not say which."""

    model: str | None
    gpus: Decimal


class NodeFact(NamedTuple):
    """What an inventory says of one node at one moment.

    `gpus` are whole GPUs by model; `state` is one of `up`, `down`, `planned_down`, `reserved`, None when the source does not
    say; `reason` is the operator's or scheduler's word for it, set by `author` at `reason_at`. `shards` are the parts into which
    GPUs of a model are divided to be shared (model None: of whichever model the node has).
    """

    name: str
    partitions: tuple[str, ...]
    gpus: tuple[GpuPart, ...]
    cpu_count: int | None
    memory_mib: int | None
    state: str | None
    reason: str
    shards: tuple[tuple[str | None, int], ...] = ()
    author: str = ""
    reason_at: datetime | None = None
