"""A chart ready for the page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.safestring import SafeString

from accounting.charts.figures import figure
from accounting.charts.series import ChartData
from accounting.charts.svg import drawing


@dataclass(frozen=True, kw_only=True)
class Chart(ChartData):
    """Chart data with the sentence that states the finding, as SVG, as a Plotly figure and as a table of the same values."""

    sentence: str

    @property
    def script_id(self) -> str:
        return f"figure-{self.key}"

    @property
    def has_data(self) -> bool:
        return any(value for series in self.series for value in series.values)

    @cached_property
    def svg(self) -> SafeString:
        """The whole chart without any script."""
        return drawing(self)

    @cached_property
    def figure(self) -> dict[str, Any]:
        """The same chart for Plotly."""
        return figure(self)

    @property
    def table_rows(self) -> list[tuple[str, list[float | None]]]:
        """Label and the values of all series: what "Show data" shows."""
        return [(label, [series.values[index] for series in self.series]) for index, label in enumerate(self.labels)]
