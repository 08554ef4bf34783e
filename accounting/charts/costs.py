"""Costs per project over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accounting.charts.capacity import label
from accounting.charts.chart import Chart
from accounting.charts.series import SERIES_TONES, Series
from accounting.domain.reconciliation import IDLE, UNATTRIBUTED

Row = Mapping[str, Any]
OWN_TONES = {IDLE: "idle", UNATTRIBUTED: "unknown"}


def costs_chart(rows: Sequence[Row], of: str, by: str, currency: str) -> Chart:
    """Total cost per month or day, stacked by the six costliest of dimension `of`, the others, unattributed and idle."""
    labels = sorted({row[by] for row in rows})
    totals: dict[str, float] = {}
    cells: dict[tuple[str, Any], float] = {}
    for row in rows:
        name, cost = str(row[of] or ""), float(row["total_cost"] or 0)
        totals[name] = totals.get(name, 0) + cost
        cells[name, row[by]] = cells.get((name, row[by]), 0) + cost
    ranked = sorted((name for name in totals if name not in OWN_TONES), key=lambda name: -totals[name])
    top, others = ranked[: len(SERIES_TONES)], ranked[len(SERIES_TONES) :]
    series = [
        Series(name or "none", tone, [cells.get((name, on), 0.0) for on in labels])
        for name, tone in zip(top, SERIES_TONES, strict=False)
    ]
    if others:
        series.append(Series(f"{len(others)} others", "other", [sum(cells.get((n, on), 0.0) for n in others) for on in labels]))
    for name, tone in OWN_TONES.items():
        if name in totals:
            series.append(Series(name, tone, [cells.get((name, on), 0.0) for on in labels]))
    return Chart(
        key="costs",
        title=f"Cost by {of.replace('_', ' ')}",
        sentence=_finding(totals, ranked, currency),
        kind="bars",
        labels=[label(on) for on in labels],
        series=series,
        unit=currency,
    )


def _finding(totals: Mapping[str, float], ranked: Sequence[str], currency: str) -> str:
    whole = sum(totals.values())
    if not whole:
        return "Nothing was charged in this period."
    idle = totals.get(IDLE, 0.0)
    lead = f"{ranked[0] or 'none'} cost the most, {totals[ranked[0]] / whole:.0%} of {whole:,.0f} {currency}" if ranked else ""
    rest = f"idle GPUs cost {idle / whole:.0%}" if idle else ""
    return "; ".join(part for part in (lead, rest) if part) + "."
