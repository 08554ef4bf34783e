"""The one door to every report: `run(request)`, for the command, the API, the exports and the pages alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from django.conf import settings

from accounting.domain import money
from accounting.domain.quantiles import WaitSummary
from accounting.domain.reports import Report, ReportError, ReportRequest, Value
from accounting.queries import capacity as capacities
from accounting.queries import costs as costings
from accounting.queries import quality
from accounting.queries import usage as usages
from accounting.queries import waits as waitings
from accounting.queries.dimensions import ordered

Figures = dict[str, Value]
Answer = tuple[list[Figures], Figures]

ADDITIVE_USAGE = ("record_count", "started_count", "gpu_seconds", "cpu_seconds", "wall_seconds")
MICRO = Decimal("0.000001")


def run(request: ReportRequest, *, judged: bool = True) -> Report:
    """Answer `request`; raises ReportError for an unknown report or dimension, or an empty or reversed period.

    Not `judged`, it does not say how much is unattributed: a page that asks for several reports judges one of them.
    """
    if request.name not in REPORTS:
        raise ReportError(f"there is no report {request.name!r}; choose among {', '.join(REPORTS)}")
    if request.first >= request.last:
        raise ReportError(f"the period from {request.first} to {request.last} is empty; `to` is the first day that is left out")
    rows, total = REPORTS[request.name](request)
    unpriced = _unpriced(request, total)
    known = quality.knowledge(request)
    notes: Figures = {"coverage_ratio": known.coverage_ratio, "rejected_count": known.rejected_count}
    notes |= {"unattributed_gpu_seconds": quality.unattributed_gpu_seconds(request)} if judged else {}
    return Report(
        request=request,
        rows=ordered(request, rows),
        total=total,
        quality=notes | unpriced,
        data_through=known.data_through,
    )


def _unpriced(request: ReportRequest, total: Figures) -> Figures:
    return {"unpriced_gpu_seconds": total.pop("unpriced_gpu_seconds")} if request.name == "costs" else {}


def plain(value: Decimal | int) -> Decimal | int:
    """Whole where whole, else to the microsecond."""
    if isinstance(value, int):
        return value
    near = value.quantize(MICRO)
    return int(near) if near == near.to_integral_value() else near.normalize()


def _named(request: ReportRequest, dimensions: tuple[Value, ...], figures: Mapping[str, Value]) -> Figures:
    return {**dict(zip(request.by, dimensions, strict=True)), **figures}


def _usage(request: ReportRequest) -> Answer:
    found = usages.usage(request)
    figures = [{name: plain(getattr(row, name)) for name in ADDITIVE_USAGE} for row in found]
    total = {name: plain(sum((getattr(row, name) for row in found), start=0)) for name in ADDITIVE_USAGE}
    return [_named(request, row.dimensions, values) for row, values in zip(found, figures, strict=True)], dict(total)


def _waits(request: ReportRequest) -> Answer:
    rows, total = waitings.waits(request)
    return [_named(request, row.dimensions, _wait_figures(row)) for row in rows], _wait_figures(total)


def _wait_figures(row: waitings.WaitRow) -> Figures:
    waits: WaitSummary = row.waits
    return {
        "record_count": waits.record_count,
        "started_count": waits.started_count,
        "censored_count": waits.censored_count,
        "p50_wait_seconds": waits.p50,
        "p90_wait_seconds": waits.p90,
        "p95_wait_seconds": waits.p95,
        "p99_wait_seconds": waits.p99,
        "max_wait_seconds": waits.max,
        "mean_wait_seconds": waits.mean,
        "p50_submit_to_start_seconds": row.p50_submit_to_start_seconds,
    }


def _capacity(request: ReportRequest) -> Answer:
    rows = capacities.capacity(request)
    # By partition a node counts in each of its partitions, so only then the total is a question of its own.
    whole = capacities.capacity(replace(request, by=())) if "partition" in request.by else rows
    total = capacities.added(whole)
    return [_named(request, row.dimensions, _capacity_figures(row)) for row in rows], _capacity_figures(total)


def _capacity_figures(row: capacities.CapacityRow) -> Figures:
    available = row.reported - row.planned_down - row.unknown
    return {
        "reported_gpu_seconds": plain(row.reported),
        "allocated_gpu_seconds": plain(row.allocated),
        "reserved_idle_gpu_seconds": plain(row.reserved_idle),
        "idle_gpu_seconds": plain(row.idle),
        "stranded_gpu_seconds": None,
        "planned_down_gpu_seconds": plain(row.planned_down),
        "down_gpu_seconds": plain(row.down),
        "unknown_gpu_seconds": plain(row.unknown),
        "sharing_gpu_seconds": plain(row.sharing),
        "unplaced_gpu_seconds": plain(row.unplaced),
        "occupancy_ratio": float(row.allocated / available) if available > 0 else None,
        "activity_ratio": None,
        "activity_coverage_ratio": 0.0 if row.allocated > 0 else None,
        "effective_ratio": None,
        "contended_occupancy_ratio": None,
    }


def _costs(request: ReportRequest) -> Answer:
    rows = costings.costs(request)
    figures = [_named(request, row.dimensions, _cost_figures(row)) for row in rows]
    for values in figures:
        values.pop("unpriced_gpu_seconds")
    zero = money_zero()
    priced = [row for row in rows if row.total_cost is not None]
    total = costings.CostRow(
        (),
        sum((row.gpu_seconds for row in rows), start=Decimal(0)),
        _sum((row.usage_cost for row in priced), zero) if priced else None,
        _sum((row.idle_cost for row in priced), zero) if priced else None,
        _sum((row.total_cost for row in priced), zero) if priced else None,
        sum((row.unpriced_gpu_seconds for row in rows), start=Decimal(0)),
    )
    return figures, _cost_figures(total)


def _cost_figures(row: costings.CostRow) -> Figures:
    nothing = None if row.total_cost is None else money_zero()
    return {
        "gpu_seconds": plain(row.gpu_seconds),
        "usage_cost": row.usage_cost,
        "idle_cost": row.idle_cost,
        "shared_cost": nothing,
        "adjustment": nothing,
        "total_cost": row.total_cost,
        "currency": settings.ESTATE_CURRENCY,
        "unpriced_gpu_seconds": plain(row.unpriced_gpu_seconds),
    }


def money_zero() -> Decimal:
    """Nothing, with the currency's decimal places."""
    return money.from_minor_units(0, settings.ESTATE_CURRENCY)


def _sum(amounts: Iterable[Decimal | None], zero: Decimal) -> Decimal:
    return sum((amount for amount in amounts if amount is not None), start=zero)


REPORTS: dict[str, Callable[[ReportRequest], Answer]] = {"usage": _usage, "waits": _waits, "capacity": _capacity, "costs": _costs}
