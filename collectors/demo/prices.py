"""Invented prices of a GPU-hour: one change half-way, and a model that nobody has priced. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple


class Price(NamedTuple):
    """Price charged and cost of capacity, per GPU-hour."""

    price: Decimal
    cost: Decimal


# The last one, NVIDIA-L4, has no rate: its usage shows as a rate gap.
AT_START = {
    "h100": Price(Decimal("3.10"), Decimal("2.45")),
    "a100": Price(Decimal("1.85"), Decimal("1.40")),
    "l40s": Price(Decimal("0.95"), Decimal("0.72")),
    "v100": Price(Decimal("0.55"), Decimal("0.48")),
}
HALF_WAY = AT_START | {
    "h100": Price(Decimal("2.75"), Decimal("2.30")),
    "a100": Price(Decimal("1.60"), Decimal("1.28")),
}
