"""GPU quantities and names: size buckets, model names, fractions of a GPU. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

SIZE_BUCKETS = ("0", "<1", "1", "2", "3-4", "5-8", "9-16", "17-64", "65+")
_UPPER_BOUNDS = (
    (Decimal(1), "1"),
    (Decimal(2), "2"),
    (Decimal(4), "3-4"),
    (Decimal(8), "5-8"),
    (Decimal(16), "9-16"),
    (Decimal(64), "17-64"),
)

COMPUTE_SLICES = 7
COMPUTE_SLICES_BY_FAMILY = {"a30": 4}
_MIG_PROFILE = re.compile(r"(?:^|[_\-.:])(?P<slices>\d+)g\.(?P<memory>\d+)gb", re.IGNORECASE)
PLACES = Decimal("0.000000000001")


@lru_cache(maxsize=1000)
def size_bucket(gpus: Decimal | int) -> str:
    """Bucket of `gpu_size` (interface.md) for a number of GPUs; a fraction between whole sizes belongs to the next one up."""
    if gpus <= 0:
        return "0"
    if gpus < 1:
        return "<1"
    return next((label for bound, label in _UPPER_BOUNDS if gpus <= bound), "65+")


def canonical_model(name: str) -> str:
    """One spelling per model: `gpu:A100`, ` a100 ` and `a100` are the same row. Vendor product names keep their own spelling."""
    cleaned = name.strip()
    if cleaned.lower().startswith("gpu:"):
        cleaned = cleaned[4:]
    return cleaned if cleaned.upper() == cleaned and "-" in cleaned else cleaned.lower()


def mig_fraction(profile: str) -> Fraction | None:
    """Share of one GPU that a MIG profile such as `a100_3g.20gb` or `1g.10gb` holds; None when `profile` is no MIG type.

    Compute slices of the profile over those of the model: 7 on A100/H100/H200/B200, 4 on A30 (definitions.md).
    """
    found = _MIG_PROFILE.search(profile)
    if found is None:
        return None
    family = re.split(r"[_\-.:]", profile.lower(), maxsplit=1)[0]
    return Fraction(int(found["slices"]), COMPUTE_SLICES_BY_FAMILY.get(family, COMPUTE_SLICES))


def as_decimal(quantity: Fraction) -> Decimal:
    """A fraction of GPUs as it is stored: 12 places, so that seven sevenths differ from one GPU by less than a microsecond a day."""
    return (Decimal(quantity.numerator) / Decimal(quantity.denominator)).quantize(PLACES)
