"""Numbers in words of three digits, and lengths of time in two units at most. Pure."""

from __future__ import annotations

from decimal import Decimal

Number = int | float | Decimal
MINUTE, HOUR, DAY = 60, 3600, 86_400


def significant(value: Number) -> str:
    """Three significant digits with thousands separated; whole numbers below ten thousand stay whole."""
    number = Decimal(str(value))
    if number == 0:
        return "0"
    decimals = max(0, 2 - number.adjusted())
    rounded = f"{number:,.{decimals}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


def scaled(value: Number) -> str:
    """The same with k, M or G from ten thousand on: 12,345 → 12.3k."""
    number = Decimal(str(value))
    for power, floor, suffix in ((9, 9, "G"), (6, 6, "M"), (3, 4, "k")):
        if number.copy_abs() >= Decimal(10) ** floor:
            return significant(number / Decimal(10) ** power) + suffix
    return significant(number)


def duration_text(seconds: Number) -> str:
    """45 s, 3 min, 1 h 12 min, 2 d 4 h, 40 d."""
    whole = round(float(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < 2 * DAY:
        return _two(whole // HOUR, "h", whole % HOUR // MINUTE, "min")
    if whole < 30 * DAY:
        return _two(whole // DAY, "d", whole % DAY // HOUR, "h")
    return f"{round(whole / DAY):,} d"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"
