"""What a report is asked for and what it answers; the same for the command, the API, the exports and the pages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from estate.domain.periods import Period, span

Value = str | int | Decimal | float | date | datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which part of the estate: names; an empty tuple means all. `visible_projects` are ids that the asker may see, None for all.

    `nodes` narrows the capacity report only.
    """

    clusters: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    gpu_models: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    visible_projects: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """Report `name` over the reporting days from `first` up to but not including `last` in `zone`, one row per combination of `by`."""

    name: str
    first: date
    last: date
    zone: ZoneInfo
    by: tuple[str, ...] = ()
    scope: Scope = field(default_factory=Scope)

    @property
    def period(self) -> Period:
        return span(self.first, self.last, self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Rows (dimensions by name, then figures), their total, and how far to trust them. Unknown figures are None."""

    request: ReportRequest
    rows: list[dict[str, Value]]
    total: dict[str, Value]
    quality: Mapping[str, Any]
    data_through: datetime | None


class ReportError(ValueError):
    """The request cannot be answered; the message says what is wrong and what would be right."""
