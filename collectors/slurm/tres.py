"""Slurm's TRES strings (`billing=16,cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=2000M,node=1`) as quantities. Pure.

GPUs follow definitions.md, "GPUs of a usage record": `gres/gpu` is the total, typed keys are parts of it, a MIG slice counts
its fraction.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from accounting.domain.records import GpuPart
from collectors.slurm.memo import Memo
from estate.domain.gpus import as_decimal, canonical_model, mig_fraction

MIB_PER_UNIT = {
    "K": Fraction(1, 1024),
    "": Fraction(1),
    "M": Fraction(1),
    "G": Fraction(1024),
    "T": Fraction(1024**2),
    "P": Fraction(1024**3),
}
MAX_COUNT = 10_000_000
MAX_MEMORY_MIB = 2**50
_MEMORY = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)([KMGTP]?)", re.ASCII)
_KEY = re.compile(r"[a-z]+(?:/[^=,]+)?", re.IGNORECASE)
GPU, SHARD = "gres/gpu", "gres/shard"
ZERO = Decimal(0)


class Tres(NamedTuple):
    """Quantities of one TRES string. `gpus` is None when they cannot be told (shards without a known number
    per GPU); then no parts."""

    cpus: Decimal | None
    memory_mib: int | None
    node_count: int | None
    gpus: Decimal | None
    gpu_parts: tuple[GpuPart, ...]

    @property
    def gpu_model(self) -> str | None:
        """The one model that is named, None when there is none or more than one."""
        return self.gpu_parts[0].model if len(self.gpu_parts) == 1 else None


NOTHING = Tres(None, None, None, ZERO, ())


def tres_reader(shards_per_gpu: int | None = None, tracks_gpus: bool = True) -> Memo[str, Tres]:
    """A remembered `read_tres` for one cluster.

    `shards_per_gpu` is what one GPU is divided into (`Gres=gpu:4,shard:16` → 4). sacct does not print it: with None, the GPUs
    of a record
    that holds shards are unknown (None), never 0 and never a whole GPU.
    Where GPUs are not tracked (AccountingStorageTRES has no gres/gpu) the GPUs of every record are unknown, unless named.
    """
    if shards_per_gpu is not None and shards_per_gpu < 1:
        raise ValueError("a GPU has at least one shard")
    if tracks_gpus:
        return Memo(lambda text: read_tres(text, shards_per_gpu))
    return Memo(lambda text: _unless_named(read_tres(text, shards_per_gpu)))


def _unless_named(tres: Tres) -> Tres:
    """Of a cluster that does not track GPUs, a string that names none says nothing about them."""
    return tres if tres.gpu_parts else tres._replace(gpus=None)


def read_tres(text: str, shards_per_gpu: int | None = None) -> Tres:
    """Raises ValueError for a string that was cut (`…,node=`), names a key twice, or whose typed GPUs exceed their total."""
    if not text:
        return NOTHING
    amounts = _amounts(text)
    gpus, parts = _gpus(amounts, shards_per_gpu)
    cpu, node = amounts.get("cpu"), amounts.get("node")
    return Tres(
        cpus=None if cpu is None else Decimal(_count("cpu", cpu)),
        memory_mib=None if "mem" not in amounts else memory_mib(amounts["mem"]),
        node_count=None if node is None else _count("node", node),
        gpus=gpus,
        gpu_parts=parts,
    )


def memory_mib(text: str) -> int:
    """Whole MiB of `120G`, `2000M`, `1.50T`; a part of a MiB counts as one. Raises ValueError."""
    found = _MEMORY.fullmatch(text.upper())
    if found is None:
        raise ValueError(f"mem={text[:40]} is no amount of memory")
    mib = Fraction(found[1]) * MIB_PER_UNIT[found[2]]
    if mib > MAX_MEMORY_MIB:
        raise ValueError(f"mem={text[:40]} is more memory than there is")
    return -(-mib.numerator // mib.denominator)


def _amounts(text: str) -> dict[str, str]:
    amounts: dict[str, str] = {}
    for item in text.split(","):
        key, _, amount = item.partition("=")
        if not amount or _KEY.fullmatch(key) is None:
            raise ValueError(f"the TRES string was cut or is damaged at {item[:40]!r}")
        if key in amounts:
            raise ValueError(f"{key[:40]} stands twice in the TRES string")
        if amount[0] == "-":
            raise ValueError(f"{item[:40]} is negative")
        amounts[key] = amount
    return amounts


def _count(key: str, amount: str) -> int:
    if not (amount.isascii() and amount.isdigit()):
        raise ValueError(f"{key[:40]}={amount[:40]} is no whole number")
    if len(amount) > 8 or int(amount) > MAX_COUNT:
        raise ValueError(f"{key[:40]}={amount[:40]} is more than any machine has")
    return int(amount)


def _gpus(amounts: dict[str, str], shards_per_gpu: int | None) -> tuple[Decimal | None, tuple[GpuPart, ...]]:
    counted = _split(amounts, GPU)
    shards = _split(amounts, SHARD)
    if shards and shards_per_gpu is None:
        return None, ()
    parts = [(model, count * _share_of_gpu(model)) for model, count in counted]
    parts += [(model, Fraction(count, shards_per_gpu or 1)) for model, count in shards]
    held = tuple(GpuPart(model and canonical_model(model), _decimal(gpus)) for model, gpus in parts)
    return sum((part.gpus for part in held), ZERO), held


def _split(amounts: dict[str, str], key: str) -> list[tuple[str | None, int]]:
    """Typed counts of a GRES, then what its total has beyond them (type None); counts of 0 are left out."""
    prefix = key + ":"
    typed = [(name[len(prefix) :], _count(name, amount)) for name, amount in amounts.items() if name.startswith(prefix)]
    typed_sum = sum(count for _, count in typed)
    total = _count(key, amounts[key]) if key in amounts else typed_sum
    if typed_sum > total:
        raise ValueError(f"typed {key} add up to {typed_sum}, above their total {total}")
    return [(model, count) for model, count in [*typed, (None, total - typed_sum)] if count]


def _share_of_gpu(model: str | None) -> Fraction:
    return (mig_fraction(model) if model else None) or Fraction(1)


def _decimal(gpus: Fraction) -> Decimal:
    return Decimal(gpus.numerator) if gpus.denominator == 1 else as_decimal(gpus)
