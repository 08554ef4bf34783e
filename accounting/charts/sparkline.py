"""A line without axes, for tiles."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 120.0, 26.0


def sparkline(values: Sequence[float | None], title: str) -> SafeString:
    """`values` from left to right between 0 and their maximum; unknown ones are gaps. Empty when fewer than two are known."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return SafeString("")
    highest = max(known) or 1.0
    step = WIDTH / (len(values) - 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for index, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((index * step, 1 + (HEIGHT - 2) * (1 - value / highest)))
    paths = "".join(_run(run) for run in runs if len(run) > 1)
    box = f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none"'
    return SafeString(f'<svg class="spark" {box} role="img" aria-label="{escape(title)}">{paths}</svg>')


def _run(points: list[tuple[float, float]]) -> str:
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    first, last = points[0][0], points[-1][0]
    return f'<path class="area" d="M{line}L{last:.1f} {HEIGHT:g}L{first:.1f} {HEIGHT:g}Z"/><path d="M{line}"/>'
