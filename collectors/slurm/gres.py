"""What a node has (`Gres=gpu:a100:8(S:0-1),shard:16`) and what state it is in (`IDLE+DRAIN`, `mixed-`). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from accounting.domain.records import GpuPart
from estate.domain.gpus import as_decimal, canonical_model, mig_fraction

MAX_GPUS_PER_NODE = 10_000
NO_GRES = frozenset({"", "(null)", "N/A", "none"})
_SOCKETS = re.compile(r"\([^)]*\)")
_SHARD = re.compile(r"shard(?::(?P<model>[^:,()]+))?:(?P<count>\d{1,9})", re.ASCII)
_GPU = re.compile(r"gpu(?::(?P<model>[^:,()]+))?(?::no_consume)?:(?P<count>\d{1,9})", re.ASCII)
_STATE_PART = re.compile(r"[A-Z][A-Z_]*")

# slurm.conf(5), sinfo(1) "NODE STATE CODES". A suffix stands for a flag; those that leave a node usable or power it down on
# demand
# (~ # ! % @ ^ -) change nothing here.
SUFFIX_FLAGS = {"*": "NOT_RESPONDING", "$": "MAINT"}
SUFFIXES = "*~#!%$@^-+"
PLANNED_DOWN = frozenset({"MAINT", "MAINTENANCE"})
BROKEN = frozenset(
    {
        "DOWN",
        "FAIL",
        "FAILING",
        "FAILG",
        "FAILED",
        "NOT_RESPONDING",
        "NO_RESPOND",
        "ERROR",
        "ERR",
        "INVAL",
        "INVALID_REG",
        "INVALID",
    }
)
DRAINED = frozenset({"DRAIN", "DRAINED", "DRAINING", "DRNG"})
RESERVED = frozenset({"RESERVED", "RESV"})
UNKNOWN = frozenset({"UNKNOWN", "UNK", "UNK_STATE"})
ABSENT = frozenset({"FUTURE", "FUTR"})
_MAINTENANCE = re.compile(r"\bmaint", re.IGNORECASE)


def gpus_of_node(gres: str) -> tuple[GpuPart, ...]:
    """GPUs by model of a node's Gres; MIG slices count their fraction, so that a card cut in seven counts 1. Raises ValueError.

    Shards and MPS are ways to share GPUs that the same string counts already; they are left out.
    """
    if gres in NO_GRES:
        return ()
    held: dict[str | None, Fraction] = {}
    for item in _SOCKETS.sub("", gres).split(","):
        if item.partition(":")[0] != "gpu":
            continue
        model, gpus = _gpu_item(item)
        held[model] = held.get(model, Fraction(0)) + gpus
    return tuple(GpuPart(model, _decimal(gpus)) for model, gpus in held.items() if gpus)


def shards_of_node(gres: str) -> tuple[tuple[str | None, int], ...]:
    """Shards by model of a node's Gres (`gpu:l40s:4,shard:l40s:16`); model None where it is not named. Raises ValueError."""
    counts: dict[str | None, int] = {}
    for item in _SOCKETS.sub("", gres).split(",") if gres not in NO_GRES else ():
        if item.partition(":")[0] != "shard":
            continue
        found = _SHARD.fullmatch(item)
        if found is None:
            raise ValueError(f"Gres: {item[:60]!r} is no count of shards (expected shard:MODEL:COUNT; was the column cut?)")
        model = found["model"] and canonical_model(found["model"])
        counts[model] = counts.get(model, 0) + int(found["count"])
    return tuple(counts.items())


def gpu_counts_of(details: Iterable[str]) -> list[tuple[str | None, int]]:
    """Counts by GPU type that a job holds by its gres detail, one text a node (`gpu:h100:1(IDX:0)`, `gpu:a100_3g.20gb:2(IDX:1,3)`).

    It is what a live source has of the GPUs of a job on a cluster that does not track them; a MIG slice counts 1 here, as in TRES.
    Raises ValueError.
    """
    counts: dict[str | None, int] = {}
    for detail in details:
        for item in _SOCKETS.sub("", detail).split(",") if detail not in NO_GRES else ():
            if item.partition(":")[0] != "gpu":
                continue
            found = _GPU.fullmatch(item)
            if found is None:
                raise ValueError(f"gres detail: {item[:60]!r} is no count of GPUs")
            counts[found["model"]] = counts.get(found["model"], 0) + int(found["count"])
    return [(model, count) for model, count in counts.items() if count]


def _gpu_item(item: str) -> tuple[str | None, Fraction]:
    found = _GPU.fullmatch(item)
    if found is None:
        raise ValueError(f"Gres: {item[:60]!r} is no count of GPUs (expected gpu:MODEL:COUNT; was the column cut?)")
    count = int(found["count"])
    if count > MAX_GPUS_PER_NODE:
        raise ValueError(f"Gres: {item[:60]!r} is more than a node can have")
    model = found["model"]
    if model is None or model == "no_consume":
        return None, Fraction(count)
    return canonical_model(model), count * (mig_fraction(model) or Fraction(1))


def _decimal(gpus: Fraction) -> Decimal:
    return Decimal(gpus.numerator) if gpus.denominator == 1 else as_decimal(gpus)


def state_words(text: str) -> frozenset[str]:
    """Base state and flags of `IDLE+DRAIN`, `DOWN*+DRAIN`, `mixed-`, in capitals. Raises ValueError when it is no state."""
    words: set[str] = set()
    for part in text.strip().upper().split("+"):
        word = part.rstrip(SUFFIXES)
        if not word and not part:
            continue
        if _STATE_PART.fullmatch(word) is None:
            raise ValueError(f"State: {text[:60]!r} is no node state")
        words.add(word)
        words.update(SUFFIX_FLAGS[mark] for mark in part[len(word) :] if mark in SUFFIX_FLAGS)
    return frozenset(words)


def node_state(words: frozenset[str], reason: str) -> str | None:
    """`up`, `down`, `planned_down`, `reserved`, None when it is not known (definitions.md, "Capacity and utilisation").

    A node that is only drained, for a reason that speaks of maintenance, is planned down; any other drain is taken for a fault.
    A draining
    node is down as well: what its last jobs still hold is told by their records.
    """
    if words & PLANNED_DOWN:
        return "planned_down"
    if words & BROKEN:
        return "down"
    if words & DRAINED:
        return "planned_down" if _MAINTENANCE.search(reason) else "down"
    if words & RESERVED:
        return "reserved"
    return None if not words or words & UNKNOWN else "up"
