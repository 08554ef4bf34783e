"""What the GPUs of the estate did (report `capacity`): reported = allocated + reserved idle + idle + planned down + down + unknown.

Reported and the states come from the dated inventory, the allocated part from the hourly rollup of nodes. Outside the time in which a
cluster's usage is known, its GPUs are unknown; the future is not reported at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection

from accounting.domain.reports import ReportError, ReportRequest, Value
from accounting.queries.dimensions import NODE_FILTERS, OF_NODES, compose
from accounting.queries.sources import stored_zone
from estate.domain import periods

DIMENSIONS = ["cluster", "scheduler", "partition", "pool", "gpu_model", "node", "day", "week", "hour", "month"]
MOST_BUCKETS = 20_000


class CapacityRow(NamedTuple):
    """GPU-seconds of one group; the parts add up to `reported`, and `sharing` is what was held beyond it."""

    dimensions: tuple[Value, ...]
    reported: Decimal
    allocated: Decimal
    reserved_idle: Decimal
    planned_down: Decimal
    down: Decimal
    unknown: Decimal
    sharing: Decimal
    unplaced: Decimal

    @property
    def figures(self) -> tuple[Decimal, ...]:
        """All GPU-seconds in the order of the fields."""
        return self[1:]

    @property
    def idle(self) -> Decimal:
        return self.reported - self.allocated - self.reserved_idle - self.planned_down - self.down - self.unknown


_SECONDS = "extract(epoch FROM upper({0}) - lower({0}))"

CAPACITY = f"""
WITH bucket AS (
    SELECT day, at, tstzrange(at, until) AS span
    FROM unnest(%(days)s::date[], %(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS b (day, at, until)
), owned AS (
    SELECT node.cluster_id, inventory.node_id, inventory.gpu_model_id, inventory.gpu_count, day, at,
           inventory.valid_during * bucket.span AS span,
           coalesce(tstzrange(coverage.first_at, coverage.through_at), 'empty') AS known
    FROM estate_nodeinventory inventory
    JOIN estate_node node ON node.id = inventory.node_id
    LEFT JOIN accounting_clustercoverage coverage ON coverage.cluster_id = node.cluster_id
    JOIN bucket ON inventory.valid_during && bucket.span
    WHERE inventory.gpu_count > 0
), f AS (
    SELECT cluster_id, node_id, gpu_model_id, day, at,
           gpu_count * {_SECONDS.format("span")} AS reported,
           gpu_count * ({_SECONDS.format("span")} - coalesce({_SECONDS.format("(span * known)")}, 0)) AS unknown,
           0::numeric AS planned_down, 0::numeric AS down, 0::numeric AS reserved, 0::numeric AS allocated, 0::numeric AS sharing,
           0::numeric AS unplaced
    FROM owned
    UNION ALL
    SELECT cluster_id, owned.node_id, gpu_model_id, day, at, 0, 0,
           CASE WHEN condition = 'planned_down' THEN seconds ELSE 0 END, CASE WHEN condition = 'down' THEN seconds ELSE 0 END,
           CASE WHEN condition = 'reserved' THEN seconds ELSE 0 END, 0, 0, 0
    FROM owned JOIN estate_nodestate state ON state.node_id = owned.node_id AND state.valid_during && owned.span
    CROSS JOIN LATERAL (
        SELECT gpu_count * coalesce({_SECONDS.format("(state.valid_during * span * known)")}, 0) AS seconds
    ) AS gpu_time
    UNION ALL
    SELECT cluster_id, node_id, gpu_model_id, held.day, coalesce(bucket.at, held.at), 0, 0, -planned, -down, -reserved,
           allocated, sharing, unplaced
    FROM ({{held}}) AS held LEFT JOIN bucket ON bucket.day = held.day AND {{on_days}}
)
SELECT {{selected}} sum(reported), sum(allocated), sum(reserved), sum(planned_down), sum(down), sum(unknown),
       sum(sharing), sum(unplaced)
FROM f {{joins}} WHERE {{condition}} {{grouping}}
"""


# Days are summed before anything is joined to them: a node has a row an hour, and is in several partitions.
HELD_BY_DAY = """
    SELECT cluster_id, node_id, gpu_model_id, day, min(hour_at) AS at, sum(planned_allocated_gpu_seconds) AS planned,
           sum(down_allocated_gpu_seconds) AS down, sum(reserved_allocated_gpu_seconds) AS reserved,
           sum(allocated_gpu_seconds) AS allocated, sum(sharing_gpu_seconds) AS sharing, sum(unplaced_gpu_seconds) AS unplaced
    FROM accounting_nodehour WHERE day >= %(first)s AND day < %(last)s GROUP BY cluster_id, node_id, gpu_model_id, day
"""
HELD_BY_HOUR = """
    SELECT cluster_id, node_id, gpu_model_id, day, hour_at AS at, planned_allocated_gpu_seconds AS planned,
           down_allocated_gpu_seconds AS down, reserved_allocated_gpu_seconds AS reserved, allocated_gpu_seconds AS allocated,
           sharing_gpu_seconds AS sharing, unplaced_gpu_seconds AS unplaced
    FROM accounting_nodehour WHERE day >= %(first)s AND day < %(last)s
"""


class _Bucket(NamedTuple):
    """A span of one reporting day (or of several: then `day` is the first)."""

    day: date
    start: datetime
    end: datetime


def capacity(request: ReportRequest, now: datetime | None = None) -> list[CapacityRow]:
    """One row per combination of `by`. By partition, a node counts in each of its partitions: such rows may add to more than the total.

    Raises ReportError for an unknown dimension, another zone than the estate's, or more than 20,000 hours.
    """
    if request.zone.key != settings.ESTATE_ZONE:
        raise ReportError(f"capacity is kept in the reporting zone; leave out the zone or use {settings.ESTATE_ZONE}")
    if request.zone.key != stored_zone():
        raise ReportError(
            f"the stored hours are cut in {stored_zone()} and are being cut anew; ask again when `doctor` is content"
        )
    parts = compose(request, OF_NODES, DIMENSIONS, NODE_FILTERS)
    buckets = _buckets(request, now or datetime.now(UTC))
    held = {"held": HELD_BY_HOUR, "on_days": "false"} if "hour" in request.by else {"held": HELD_BY_DAY, "on_days": "true"}
    text = parts.into(CAPACITY, **held)
    with connection.cursor() as cursor:
        cursor.execute(text, _params(buckets, request) | parts.params)
        return [CapacityRow(row[:-8], *(figure or Decimal(0) for figure in row[-8:])) for row in cursor.fetchall()]


def added(rows: Sequence[CapacityRow]) -> CapacityRow:
    """The sum of rows that have no GPU in common."""
    figures = zip(*(row.figures for row in rows), strict=True) if rows else [(Decimal(0),)] * 8
    return CapacityRow((), *(sum(column, start=Decimal(0)) for column in figures))


def _params(buckets: Sequence[_Bucket], request: ReportRequest) -> dict[str, Any]:
    return {
        "days": [bucket.day for bucket in buckets],
        "starts": [bucket.start for bucket in buckets],
        "ends": [bucket.end for bucket in buckets],
        "first": request.first,
        "last": request.last,
    }


def _buckets(request: ReportRequest, now: datetime) -> list[_Bucket]:
    """As coarse as the dimensions allow: hours, days, or one bucket; what lies after `now` is cut off."""
    spans = [_Bucket(on, period.start, min(period.end, now)) for on, period in _spans(request) if period.start < now]
    if len(spans) > MOST_BUCKETS:
        raise ReportError(f"{len(spans)} hours are too many for one answer; ask for at most {MOST_BUCKETS}, or by day")
    return spans


def _spans(request: ReportRequest) -> list[tuple[date, periods.Period]]:
    days = periods.dates(request.first, request.last)
    if "hour" in request.by:
        return [(on, hour) for on in days for hour in periods.hours(on, request.zone)]
    if {"day", "week", "partition", "pool"} & set(request.by) or request.scope.partitions:
        return [(on, periods.day(on, request.zone)) for on in days]
    starts = [on for on in days if on == request.first or on.day == 1] if "month" in request.by else [request.first]
    return [(on, periods.span(on, end, request.zone)) for on, end in pairwise([*starts, request.last])]
