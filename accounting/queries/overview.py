"""What the first page says: key figures with their trend, and one row per partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.utils import timezone

from accounting.domain.reports import Report, ReportRequest
from accounting.queries.asking import ask, number, quotient, total_of
from accounting.queries.waiting import Waiting, waiting_now, with_waiting
from estate.queries.inventory import AWAY, NodeNow, NodeScope, nodes_at

TREND_DAYS = 30
Row = Mapping[str, Any]
Days = tuple[date, date]


class Kpi(NamedTuple):
    """A key figure: value of kind `kind`, what stands behind it, change to the period before (a difference or a ratio), 30-day trend."""

    label: str
    value: Any
    kind: str
    note: str
    change: float | None
    change_kind: str
    trend: list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The period and scope of the page (`base`), the days it is compared with, and today."""

    base: ReportRequest
    before: Days
    today: date

    @property
    def complete_end(self) -> date:
        """End (excluded) of the days of the period that are over; its first day when none is."""
        return max(self.base.first, min(self.base.last, self.today))

    @property
    def trend(self) -> Days:
        """The last thirty days that are over at the end of the period."""
        end = min(self.base.last, self.today)
        return end - timedelta(days=TREND_DAYS), end

    @property
    def daily(self) -> Days:
        """Days that cover the period, the one before and the trend, up to today: of the days ahead there is nothing to ask."""
        end = max(self.base.last, self.trend[1])
        return min(self.before[0], self.trend[0]), min(end, self.today + timedelta(days=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Key figures, partitions (rows of the capacity report with waits beside), the nodes now, usage without a project."""

    kpis: list[Kpi]
    partitions: list[dict[str, Any]]
    nodes: list[NodeNow]
    unattributed_gpu_seconds: float

    @property
    def is_known(self) -> bool:
        """Whether anything is known of any partition in the period."""
        return any(row["reported_gpu_seconds"] != row["unknown_gpu_seconds"] for row in self.partitions)


def overview(asked: Asked) -> Overview:
    """Six reports, two small look-ups: none of them grows with the page."""
    capacity = ask(asked.base, "capacity", "cluster", "partition", judged=True)
    capacity_days = ask(asked.base, "capacity", "day", days=asked.daily)
    waits = ask(asked.base, "waits", "cluster", "partition")
    waits_before = ask(asked.base, "waits", days=asked.before)
    waits_days = ask(asked.base, "waits", "day", days=asked.trend)
    costs = ask(asked.base, "costs", "day", days=asked.daily)
    waiting = waiting_now(asked.base.scope)
    scope = asked.base.scope
    nodes = nodes_at(timezone.now(), NodeScope(scope.clusters, scope.partitions, scope.gpu_models))
    kpis = [
        _gpus_up(nodes, capacity_days.rows, asked),
        *_utilisation(capacity, capacity_days.rows, asked),
        *_waits(waits.total, waits_before.total, waits_days.rows, asked),
        _waiting(waiting),
        _cost(costs.rows, asked),
    ]
    return Overview(
        kpis=kpis,
        partitions=with_waiting(_partitions(capacity.rows, waits.rows), waiting),
        nodes=nodes,
        unattributed_gpu_seconds=float(capacity.quality.get("unattributed_gpu_seconds") or 0),
    )


def _between(rows: list[dict[str, Any]], days: Days) -> list[dict[str, Any]]:
    return [row for row in rows if days[0] <= row["day"] < days[1]]


def _trend(rows: list[dict[str, Any]], asked: Asked, figure: str) -> list[float | None]:
    by_day = {row["day"]: number(row.get(figure)) for row in rows}
    first = asked.trend[0]
    return [by_day.get(first + timedelta(days=offset)) for offset in range(TREND_DAYS)]


def _gpus_up(nodes: list[NodeNow], days: list[dict[str, Any]], asked: Asked) -> Kpi:
    total = sum(node.gpu_count for node in nodes)
    up = sum(node.gpu_count for node in nodes if node.condition not in AWAY)
    with_up = [{"day": row["day"], "up": _up_gpus(row)} for row in days]
    return Kpi(
        "GPUs up now",
        up if nodes else None,
        "count",
        f"of {total:,}" if nodes else "",
        None,
        "",
        _trend(with_up, asked, "up"),
    )


def _up_gpus(row: Row) -> float | None:
    reported = row.get("reported_gpu_seconds")
    if reported is None:
        return None
    away = sum(row.get(f"{part}_gpu_seconds") or 0 for part in ("down", "planned_down", "unknown"))
    return float(reported - away) or None


def _utilisation(capacity: Report, days: list[dict[str, Any]], asked: Asked) -> list[Kpi]:
    total = capacity.total
    before = _occupancy(_between(days, asked.before))
    occupancy, activity = number(total.get("occupancy_ratio")), number(total.get("activity_ratio"))
    change = occupancy - before if occupancy is not None and before is not None else None
    coverage = number(total.get("activity_coverage_ratio")) or 0
    return [
        Kpi("Occupancy", occupancy, "ratio", "", change, "points", _trend(days, asked, "occupancy_ratio")),
        Kpi("Activity", activity, "ratio", f"coverage {coverage:.0%}", None, "", _trend(days, asked, "activity_ratio")),
    ]


def _occupancy(rows: list[dict[str, Any]]) -> float | None:
    allocated, reported, planned, unknown = (
        total_of(rows, f"{part}_gpu_seconds") for part in ("allocated", "reported", "planned_down", "unknown")
    )
    return None if reported is None else quotient(allocated, reported - (planned or 0) - (unknown or 0))


def _waits(total: Row, before: Row, days: list[dict[str, Any]], asked: Asked) -> list[Kpi]:
    kpis = []
    for label, figure in (("Median wait", "p50_wait_seconds"), ("p95 wait", "p95_wait_seconds")):
        change = _relative(total.get(figure), before.get(figure))
        kpis.append(Kpi(label, total.get(figure), "duration", "", change, "relative", _trend(days, asked, figure)))
    return kpis


def _relative(now: Any, before: Any) -> float | None:
    share = quotient(now, before)
    return None if share is None else share - 1


def _waiting(waiting: Mapping[tuple[str, str], Waiting]) -> Kpi:
    gpus = sum((row.requested_gpus for row in waiting.values() if row.requested_gpus is not None), Decimal(0))
    requests = sum(row.record_count for row in waiting.values())
    return Kpi("GPUs waited for now", gpus, "count", f"in {requests:,} records", None, "", [])


def _cost(days: list[dict[str, Any]], asked: Asked) -> Kpi:
    """Compared over the days that are over: half a day is not cheaper than a whole one."""
    first, end = asked.base.first, asked.complete_end
    now = total_of(_between(days, (first, asked.base.last)), "total_cost")
    complete = total_of(_between(days, (first, end)), "total_cost")
    before = total_of(_between(days, (first - (end - first), first)), "total_cost")
    return Kpi("Cost", now, "money", "", _relative(complete, before), "relative", _trend(days, asked, "total_cost"))


def _partitions(capacity: list[dict[str, Any]], waits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    p90 = {(row["cluster"], row["partition"]): row["p90_wait_seconds"] for row in waits}
    rows = [row | {"p90_wait_seconds": p90.get((row["cluster"], row["partition"]))} for row in capacity]
    return sorted(rows, key=lambda row: -(row.get("reported_gpu_seconds") or 0))
