"""How much was used, by whom, where and on what (report `usage`)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from accounting.domain.reports import ReportRequest, Value
from accounting.queries.sources import usage_rows

DIMENSIONS = [
    "cluster",
    "scheduler",
    "partition",
    "project",
    "cost_centre",
    "account",
    "namespace",
    "user",
    "gpu_model",
    "gpu_size",
    "qos",
    "state",
    "workload",
    "workload_kind",
    "day",
    "week",
    "month",
]


class UsageRow(NamedTuple):
    """Records submitted and started in the period, and the seconds of it that records held; `dimensions` in the order of `by`."""

    dimensions: tuple[Value, ...]
    record_count: int
    started_count: int
    gpu_seconds: Decimal
    cpu_seconds: Decimal
    wall_seconds: int


USAGE = """
WITH {source}
SELECT {selected} sum(record_count)::bigint, sum(started_count)::bigint, sum(gpu_seconds), sum(cpu_seconds), sum(wall_seconds)::bigint
FROM f {joins} WHERE {condition} {grouping}
"""


def usage(request: ReportRequest) -> list[UsageRow]:
    """One row per combination of `by`; raises ReportError for an unknown dimension."""
    return [UsageRow(row[:-5], *_known(row[-5:])) for row in usage_rows(request, DIMENSIONS, USAGE)]


def _known(figures: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sum over no rows is nothing used."""
    return tuple(figure or 0 for figure in figures)
