"""Charts as inline SVG, complete without a script. Colours are classes of the style sheet, so both themes fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString

from accounting.charts.scale import shown_indices, tick_label, ticks
from accounting.charts.series import ChartData, Series

WIDTH, HEIGHT = 960, 240
LEFT, RIGHT, TOP, BOTTOM = 48, 4, 8, 22
LABEL_WIDTH = 78
HATCHED = {"idle": 5, "stranded": 3}


class _Frame(NamedTuple):
    """Where things lie: the highest value of the axis and the number of labels."""

    highest: float
    labels: int

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / self.highest)

    @property
    def slot(self) -> float:
        return (WIDTH - LEFT - RIGHT) / max(1, self.labels)

    def middle(self, index: int) -> float:
        return LEFT + self.slot * (index + 0.5)


def drawing(chart: ChartData) -> SafeString:
    """`chart` as one SVG element."""
    marks = ticks(_highest(chart))
    frame = _Frame(marks[-1], len(chart.labels))
    draw = {"bars": _bars, "areas": _areas, "lines": _lines}[chart.kind]
    parts = [
        f'<svg class="chart-svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title)}">',
        *(_hatch(chart.key, series.tone) for series in chart.series if series.tone in HATCHED),
        *_axes(chart, frame, marks),
        *draw(chart, frame),
        "</svg>",
    ]
    return SafeString("".join(parts))


def _highest(chart: ChartData) -> float:
    if chart.kind == "lines":
        return max((value for series in chart.series for value in series.values if value is not None), default=0)
    return max((sum(series.values[index] or 0 for series in chart.series) for index in range(len(chart.labels))), default=0)


def _hatch(key: str, tone: str) -> str:
    gap = HATCHED[tone]
    size = f'width="{gap}" height="{gap}"'
    return (
        f'<defs><pattern id="{key}-{tone}" {size} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect class="hatch-ground" {size}/><line class="hatch-ink" x1="0" y1="0" x2="0" y2="{gap}"/></pattern></defs>'
    )


def _paint(chart: ChartData, series: Series) -> str:
    return f'fill="url(#{chart.key}-{series.tone})"' if series.tone in HATCHED else f'class="fill-{series.tone}"'


def _axes(chart: ChartData, frame: _Frame, marks: Sequence[float]) -> Iterator[str]:
    for mark in marks:
        y = frame.y(mark)
        yield f'<line class="{"gridline" if mark else "axis"}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick_label(mark)}</text>'
    for index in shown_indices(frame.labels, (WIDTH - LEFT) // LABEL_WIDTH):
        text = escape(chart.labels[index])
        yield f'<text x="{frame.middle(index):.1f}" y="{HEIGHT - 6}" text-anchor="middle">{text}</text>'


def _bars(chart: ChartData, frame: _Frame) -> Iterator[str]:
    width = min(48.0, frame.slot * 0.8)
    floors = [0.0] * frame.labels
    for series in chart.series:
        path = []
        for index, value in enumerate(series.values):
            if not value:
                continue
            top, bottom = frame.y(floors[index] + value), frame.y(floors[index])
            floors[index] += value
            path.append(f"M{frame.middle(index) - width / 2:.1f} {top:.1f}h{width:.1f}v{bottom - top:.1f}h-{width:.1f}z")
        yield f'<path {_paint(chart, series)} d="{"".join(path)}"><title>{escape(series.name)}</title></path>'


def _areas(chart: ChartData, frame: _Frame) -> Iterator[str]:
    floors = [0.0] * frame.labels
    for series in chart.series:
        tops = [floor + (value or 0) for floor, value in zip(floors, series.values, strict=True)]
        if any(series.values):
            upper = " ".join(f"{x:.1f},{frame.y(value):.1f}" for x, value in _edge(frame, tops))
            lower = " ".join(f"{x:.1f},{frame.y(value):.1f}" for x, value in reversed(_edge(frame, floors)))
            yield f'<polygon {_paint(chart, series)} points="{upper} {lower}"><title>{escape(series.name)}</title></polygon>'
        floors = tops


def _edge(frame: _Frame, values: Sequence[float]) -> list[tuple[float, float]]:
    """The outline as steps: a day is as high as it is from its beginning to its end."""
    return [(LEFT + frame.slot * (index + side), value) for index, value in enumerate(values) for side in (0, 1)]


def _lines(chart: ChartData, frame: _Frame) -> Iterator[str]:
    for series in chart.series:
        path, pen = [], "M"
        for index, value in enumerate(series.values):
            if value is None:
                pen = "M"
                continue
            path.append(f"{pen}{frame.middle(index):.1f} {frame.y(value):.1f}")
            pen = "L"
        yield f'<path class="line-{series.tone}" d="{"".join(path)}"><title>{escape(series.name)}</title></path>'
