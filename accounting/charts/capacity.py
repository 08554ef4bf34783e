"""The capacity identity as bars and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from accounting.charts.chart import Chart
from accounting.charts.series import Series
from estate.domain.units import HOUR

Row = Mapping[str, Any]


class Part(NamedTuple):
    """One part of the identity: figure in the report, name on the page, tone."""

    key: str
    name: str
    tone: str


PARTS = (
    Part("allocated", "Busy", "busy"),
    Part("reserved_idle", "Reserved, idle", "reserved"),
    Part("free", "Idle", "idle"),
    Part("stranded", "Stranded", "stranded"),
    Part("planned_down", "Planned down", "planned"),
    Part("down", "Down", "down"),
    Part("unknown", "Unknown", "unknown"),
)


def part_seconds(row: Row) -> dict[str, float]:
    """GPU-seconds of each part: they add up to what is reported. Stranded GPUs are taken out of the idle ones."""
    seconds = {part.key: float(row.get(f"{part.key}_gpu_seconds") or 0) for part in PARTS}
    seconds["free"] = max(0.0, float(row.get("idle_gpu_seconds") or 0) - seconds["stranded"])
    return seconds


class Segment(NamedTuple):
    """A piece of a bar: name, tone, share of the whole in per cent."""

    name: str
    tone: str
    percent: float


def segments(row: Row) -> list[Segment]:
    """The bar of one row; empty when nothing is reported."""
    seconds = part_seconds(row)
    whole = sum(seconds.values())
    return [Segment(part.name, part.tone, 100 * seconds[part.key] / whole) for part in PARTS if whole and seconds[part.key]]


def describe(row: Row) -> str:
    """The bar in words."""
    return ", ".join(f"{segment.name.lower()} {segment.percent:.0f} %" for segment in segments(row)) or "nothing is known"


def capacity_chart(rows: Sequence[Row], by: str) -> Chart:
    """GPU-hours of each part per day (or hour, or month: the dimension `by`), stacked, oldest first."""
    ordered = sorted(rows, key=lambda row: row[by])
    parts = [part_seconds(row) for row in ordered]
    series = [Series(part.name, part.tone, [seconds[part.key] / HOUR for seconds in parts]) for part in PARTS]
    return Chart(
        key="capacity",
        title="What the GPUs did",
        sentence=_finding(parts),
        kind="areas",
        labels=[label(row[by]) for row in ordered],
        series=[one for one in series if any(one.values)],
        unit="GPU-hours",
    )


def _finding(parts: Sequence[Mapping[str, float]]) -> str:
    whole = sum(sum(seconds.values()) for seconds in parts)
    if not whole:
        return "No GPU was in the inventory in this period."
    busy, down = (sum(seconds[key] for seconds in parts) / whole for key in ("allocated", "down"))
    idle = sum(seconds["free"] + seconds["stranded"] for seconds in parts) / whole
    return f"GPUs were busy {busy:.0%} of the reported time and idle {idle:.0%}; {down:.1%} was lost to nodes that were down."


def label(value: object) -> str:
    """A date or an hour as it stands on an axis."""
    if isinstance(value, datetime):
        return f"{value:%d %b %H:%M}"
    return f"{value:%d %b}" if isinstance(value, date) else str(value)
