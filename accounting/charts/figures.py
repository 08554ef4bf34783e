"""Charts as Plotly figures. Colours are not in them: `meta.tone` names one, and the page takes it from the theme in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

from accounting.charts.series import ChartData, Series

PATTERNS = {"idle": "/", "stranded": "x"}


def figure(chart: ChartData) -> dict[str, Any]:
    """`chart` as the JSON that plotly.js draws."""
    trace = TRACES[chart.kind]
    layout = go.Layout(barmode="stack", hovermode="x unified", showlegend=False, yaxis_title_text=chart.unit)
    traces = [trace(chart, series).to_plotly_json() for series in chart.series if any(series.values)]
    return {"data": traces, "layout": layout.to_plotly_json()}


def _bar(chart: ChartData, series: Series) -> go.Bar:
    pattern = {"shape": PATTERNS.get(series.tone, "")}
    return go.Bar(x=chart.labels, y=series.values, name=series.name, meta={"tone": series.tone}, marker_pattern=pattern)


def _area(chart: ChartData, series: Series) -> go.Scatter | go.Bar:
    """One point has no area: a single day is drawn as a bar."""
    if len(chart.labels) == 1:
        return _bar(chart, series)
    return go.Scatter(
        x=chart.labels,
        y=series.values,
        name=series.name,
        meta={"tone": series.tone},
        mode="lines",
        stackgroup="all",
        line={"shape": "hvh", "width": 0},
        fillpattern={"shape": PATTERNS.get(series.tone, "")},
    )


def _line(chart: ChartData, series: Series) -> go.Scatter:
    mode = "lines+markers" if len(chart.labels) < 40 else "lines"
    return go.Scatter(x=chart.labels, y=series.values, name=series.name, meta={"tone": series.tone}, mode=mode, connectgaps=False)


TRACES: dict[str, Callable[[ChartData, Series], Any]] = {"bars": _bar, "areas": _area, "lines": _line}
