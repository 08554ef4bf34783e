"""What a chart shows, before it is drawn: one value per label and series, in the unit of the screen; None is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["bars", "areas", "lines"]
SERIES_TONES = tuple(f"series-{number}" for number in range(1, 7))


class Series(NamedTuple):
    """One series: its name, tone (a colour of the style sheet by name) and a value per label."""

    name: str
    tone: str
    values: list[float | None]


@dataclass(frozen=True, kw_only=True)
class ChartData:
    """Series over labels. `bars` and `areas` are stacked; `lines` stand beside each other. `key` is unique on the page."""

    key: str
    title: str
    kind: Kind
    labels: list[str]
    series: list[Series]
    unit: str
