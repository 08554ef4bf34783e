"""What usage and idle capacity cost (report `costs`): GPU-seconds × the rate in force on the day, idle apart, exact until the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from django.conf import settings

from accounting.domain import money
from accounting.domain.costing import SECONDS_PER_HOUR, idle_cost
from accounting.domain.reconciliation import IDLE
from accounting.domain.reports import ReportRequest, Value
from accounting.models import Rate
from accounting.queries.capacity import capacity
from accounting.queries.sources import usage_rows

DIMENSIONS = ["cluster", "project", "cost_centre", "account", "user", "gpu_model", "day", "week", "month"]
_OF_CAPACITY = frozenset({"cluster", "gpu_model", "day", "week", "month"})


@dataclass(frozen=True, slots=True)
class CostLine:
    """One group: GPU-seconds used, exact cost of use and of idle capacity; GPU-seconds of models that have no rate on their day."""

    dimensions: tuple[Value, ...]
    gpu_seconds: Decimal
    usage_cost: Fraction
    idle_cost: Fraction
    unpriced_gpu_seconds: Decimal


class CostRow(NamedTuple):
    """A group's amounts in minor units' precision; None where nothing of it has a rate. The parts add to the total in rows and columns."""

    dimensions: tuple[Value, ...]
    gpu_seconds: Decimal
    usage_cost: Decimal | None
    idle_cost: Decimal | None
    total_cost: Decimal | None
    unpriced_gpu_seconds: Decimal


COSTS = """
WITH {source}
SELECT {selected} sum(gpu_seconds), coalesce(sum(gpu_seconds * rate.price), 0),
       coalesce(sum(gpu_seconds) FILTER (WHERE rate.price IS NULL), 0)
FROM f {joins}
LEFT JOIN accounting_rate rate ON rate.gpu_model_id = f.gpu_model_id AND rate.valid_during @> f.day
WHERE f.gpu_seconds > 0 AND {condition} {grouping}
"""


def costs(request: ReportRequest) -> list[CostRow]:
    """One row per combination of `by`; idle capacity is in rows of its own named `Idle` where `by` says who.

    Idle is shown only to who sees the whole estate, and not under a project or partition filter: it has no project.
    """
    lines = _usage_lines(request)
    scope = request.scope
    if scope.visible_projects is None and not scope.projects and not scope.partitions:
        lines = _merged([*lines, *_idle_lines(request)])
    return _rounded(lines)


def _usage_lines(request: ReportRequest) -> list[CostLine]:
    return [
        CostLine(row[:-3], row[-3], Fraction(row[-2]) / SECONDS_PER_HOUR, Fraction(), row[-1])
        for row in usage_rows(request, DIMENSIONS, COSTS)
        if row[-3] is not None
    ]


def _idle_lines(request: ReportRequest) -> list[CostLine]:
    """Idle capacity priced by the day: reported less allocated, at the model's cost rate of that day."""
    if request.zone.key != settings.ESTATE_ZONE:
        return []
    rates = _CostRates()
    by = tuple(name for name in request.by if name in _OF_CAPACITY)
    fine = replace(request, by=(*by, *(name for name in ("gpu_model", "day") if name not in by)))
    found = []
    for row in capacity(fine):
        at = dict(zip(fine.by, row.dimensions, strict=True))
        cost = rates.on(at["gpu_model"], at["day"])
        known = row.reported - row.unknown
        if cost is not None and known > row.allocated:
            labels = tuple(at.get(name, IDLE) for name in request.by)
            found.append(CostLine(labels, Decimal(0), Fraction(), idle_cost(known, row.allocated, cost), Decimal(0)))
    return found


class _CostRates:
    """Cost of a GPU-hour of a model on a day, from all rates read at once."""

    def __init__(self) -> None:
        self._spans: dict[str, list[Rate]] = {}
        for rate in Rate.objects.select_related("gpu_model"):
            self._spans.setdefault(rate.gpu_model.name, []).append(rate)

    def on(self, model: Value, day: Value) -> Decimal | None:
        return next((rate.cost for rate in self._spans.get(str(model), []) if day in rate.valid_during), None)


def _merged(lines: Iterable[CostLine]) -> list[CostLine]:
    groups: dict[tuple[Value, ...], CostLine] = {}
    for line in lines:
        old = groups.get(line.dimensions)
        groups[line.dimensions] = line if old is None else _added(old, line)
    return list(groups.values())


def _added(one: CostLine, other: CostLine) -> CostLine:
    return CostLine(
        one.dimensions,
        one.gpu_seconds + other.gpu_seconds,
        one.usage_cost + other.usage_cost,
        one.idle_cost + other.idle_cost,
        one.unpriced_gpu_seconds + other.unpriced_gpu_seconds,
    )


def _rounded(lines: list[CostLine]) -> list[CostRow]:
    """Each column rounded so that its parts add to its rounded total; a row's total is the sum of its rounded parts.

    In the order of the dimensions, so that of equal remainders always the same is rounded up.
    """
    lines = sorted(lines, key=lambda line: [(value is None, str(value)) for value in line.dimensions])
    used = money.rounded({number: line.usage_cost for number, line in enumerate(lines)}, settings.ESTATE_CURRENCY)
    idle = money.rounded({number: line.idle_cost for number, line in enumerate(lines)}, settings.ESTATE_CURRENCY)
    return [_row(line, used[number], idle[number]) for number, line in enumerate(lines)]


def _row(line: CostLine, used: Decimal, idle: Decimal) -> CostRow:
    if line.unpriced_gpu_seconds and line.unpriced_gpu_seconds == line.gpu_seconds and not line.idle_cost:
        return CostRow(line.dimensions, line.gpu_seconds, None, None, None, line.unpriced_gpu_seconds)
    return CostRow(line.dimensions, line.gpu_seconds, used, idle, used + idle, line.unpriced_gpu_seconds)
