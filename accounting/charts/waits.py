"""Waits over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accounting.charts.capacity import label
from accounting.charts.chart import Chart
from accounting.charts.series import Series
from estate.domain.units import HOUR, duration_text

Row = Mapping[str, Any]
QUANTILES = (
    ("p50_wait_seconds", "Median", "series-1"),
    ("p90_wait_seconds", "p90", "series-2"),
    ("p95_wait_seconds", "p95", "series-4"),
)
UNITS = (("seconds", 1), ("minutes", 60))


def waits_chart(rows: Sequence[Row], by: str) -> Chart:
    """Median, p90 and p95 wait per day or month of submission, oldest first, in the unit that suits the longest."""
    ordered = sorted(rows, key=lambda row: row[by])
    unit, unit_seconds = _unit(ordered)
    series = [Series(name, tone, [_in(unit_seconds, row.get(key)) for row in ordered]) for key, name, tone in QUANTILES]
    return Chart(
        key="waits",
        title="How long requests waited",
        sentence=_finding(ordered, by),
        kind="lines",
        labels=[label(row[by]) for row in ordered],
        series=series,
        unit=unit,
    )


def _unit(rows: Sequence[Row]) -> tuple[str, int]:
    """Name and seconds of the unit in which the longest wait that is drawn reads well."""
    longest = max((row.get(key) or 0 for row in rows for key, _, _ in QUANTILES), default=0)
    return next((unit for unit in UNITS if longest < 120 * unit[1]), ("hours", HOUR))


def _in(unit_seconds: int, seconds: Any) -> float | None:
    return None if seconds is None else float(seconds) / unit_seconds


def _finding(rows: Sequence[Row], by: str) -> str:
    known = [row for row in rows if row.get("p95_wait_seconds") is not None]
    if not rows:
        return "Nothing was submitted in this period."
    if not known:
        return "So many of the requests still wait or gave up that the wait of one in twenty cannot be told yet."
    worst = max(known, key=lambda row: row["p95_wait_seconds"])
    wait = duration_text(worst["p95_wait_seconds"])
    return f"The worst {by} was {label(worst[by])}: one in twenty of what was submitted then waited {wait} or longer."
