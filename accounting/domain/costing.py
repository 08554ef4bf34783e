"""Usage × rates → exact amounts; rounding is left to `money` (definitions.md, "Cost"). Pure."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

SECONDS_PER_HOUR = 3600


def usage_cost(gpu_seconds: Decimal | int, price_per_hour: Decimal) -> Fraction:
    """Price of GPU-seconds at a price per GPU-hour, exact, in the currency of the price."""
    return Fraction(gpu_seconds) * Fraction(price_per_hour) / SECONDS_PER_HOUR


def idle_cost(reported: Decimal | int, allocated: Decimal | int, cost: Decimal) -> Fraction:
    """Capacity cost − usage cost, both at the cost rate: what GPUs that were there and not allocated cost, exact.

    GPU-seconds and cost per GPU-hour. Usage above the inventory (a gap in it) makes no negative idle time: it is 0 then.
    """
    return usage_cost(max(Decimal(0), Decimal(reported) - Decimal(allocated)), cost)
