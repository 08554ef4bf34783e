"""Axes. Pure."""

from __future__ import annotations

import math


def ticks(highest: float, wanted: int = 4) -> list[float]:
    """Round numbers from 0 to the first one at or above `highest`, about `wanted` steps apart."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / wanted
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= rough * 0.999999)
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]


def tick_label(value: float) -> str:
    """1,500 → 1.5k; 2000000 → 2M."""
    for bound, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            return f"{value / (1e3 if suffix == 'k' else bound):.3g}{suffix}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def shown_indices(count: int, room: int) -> list[int]:
    """Which of `count` labels to write so that at most `room` stand on the axis, evenly."""
    step = max(1, math.ceil(count / max(1, room)))
    return list(range(0, count, step))
