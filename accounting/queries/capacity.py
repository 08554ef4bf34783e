"""What the GPUs of the estate did (report `capacity`): reported = allocated + reserved idle + idle + planned down + down + unknown.

Reported and the states come from the dated inventory, the allocated part from the daily rollup of nodes (hours from the facts). Outside
the time in which a cluster's usage is known, its GPUs are unknown; the future is not reported at all.
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
from accounting.queries import lines, placement
from accounting.queries.dimensions import NODE_FILTERS, OF_NODES, compose
from accounting.queries.sources import dirty_span, stored_zone
from estate.domain import periods
from estate.models import Cluster

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


# Instants are cut to whole seconds, as in `queries.lines`: so the parts fit together.
CAPACITY = f"""
WITH bucket AS (
    SELECT * FROM unnest(%(bucket_days)s::date[], %(starts)s::timestamptz[], %(sinces)s::bigint[], %(untils)s::bigint[])
                  AS b (day, at, bucket_since, bucket_until)
), span AS MATERIALIZED (
    SELECT node.cluster_id, node_id, gpu_model_id, gpu_count,
           {lines.since("inventory.valid_during")} AS owned_since, {lines.until("inventory.valid_during")} AS owned_until,
           coalesce({lines.epoch("first_at")}, 0) AS known_since, coalesce({lines.epoch("through_at")}, 0) AS known_until
    FROM estate_nodeinventory inventory
    JOIN estate_node node ON node.id = inventory.node_id
    LEFT JOIN accounting_clustercoverage coverage ON coverage.cluster_id = node.cluster_id
    WHERE inventory.gpu_count > 0 AND inventory.valid_during && tstzrange(%(from)s, %(through)s)
), condition AS MATERIALIZED (
    SELECT cluster_id, node_id, gpu_model_id, gpu_count, condition,
           greatest(owned_since, known_since, {lines.since("state.valid_during")}) AS state_since,
           least(owned_until, known_until, {lines.until("state.valid_during")}) AS state_until
    FROM estate_nodestate state JOIN span USING (node_id) WHERE state.valid_during && tstzrange(%(from)s, %(through)s)
), f AS (
    SELECT cluster_id, node_id, gpu_model_id, day, at, gpu_count * (until - since) AS reported,
           gpu_count * (until - since - greatest(0, least(until, known_until) - greatest(since, known_since))) AS unknown,
           0::bigint AS planned_down, 0::bigint AS down, 0::bigint AS reserved, 0::numeric AS allocated, 0::numeric AS sharing,
           0::numeric AS unplaced
    FROM span JOIN bucket ON owned_since < bucket_until AND owned_until > bucket_since
    CROSS JOIN LATERAL (SELECT greatest(owned_since, bucket_since) AS since, least(owned_until, bucket_until) AS until) AS part
    UNION ALL
    SELECT cluster_id, node_id, gpu_model_id, day, at, 0, 0,
           CASE WHEN condition = 'planned_down' THEN seconds ELSE 0 END, CASE WHEN condition = 'down' THEN seconds ELSE 0 END,
           CASE WHEN condition = 'reserved' THEN seconds ELSE 0 END, 0, 0, 0
    FROM condition JOIN bucket ON state_since < bucket_until AND state_until > bucket_since AND state_since < state_until
    CROSS JOIN LATERAL (
        SELECT gpu_count * (least(state_until, bucket_until) - greatest(state_since, bucket_since)) AS seconds
    ) AS part
    UNION ALL
    SELECT cluster_id, node_id, gpu_model_id, held.day, held.at, 0, 0, -planned, -down, -reserved, allocated, sharing, unplaced
    FROM ({{held}}) AS held
)
SELECT {{selected}} sum(reported), sum(allocated), sum(reserved), sum(planned_down), sum(down), sum(unknown),
       sum(sharing), sum(unplaced)
FROM f {{joins}} WHERE {{condition}} {{grouping}}
"""

HELD_BY_DAY = """
    SELECT cluster_id, node_id, gpu_model_id, day, at, planned_allocated_gpu_seconds AS planned, down_allocated_gpu_seconds AS down,
           reserved_allocated_gpu_seconds AS reserved, allocated_gpu_seconds AS allocated, sharing_gpu_seconds AS sharing,
           unplaced_gpu_seconds AS unplaced
    FROM accounting_nodeday held LEFT JOIN bucket USING (day) WHERE day >= %(first)s AND day < %(last)s
"""
HELD_ON_CLEAN_DAYS = f"""
    {HELD_BY_DAY} AND NOT EXISTS (
        SELECT FROM accounting_dirtyday dirty WHERE dirty.cluster_id = held.cluster_id AND dirty.day = held.day)
    UNION ALL
    SELECT cluster_id, node_id, gpu_model_id, day, bucket.at, planned, down, reserved, allocated, sharing, unplaced
    FROM (SELECT *, (%(days)s::date[])[bucket] AS day FROM ({placement.HELD}) AS live) AS live
    JOIN accounting_dirtyday dirty USING (cluster_id, day) LEFT JOIN bucket USING (day)
"""
HELD_BY_HOUR = f"""
    SELECT cluster_id, node_id, gpu_model_id, (%(days)s::date[])[bucket] AS day, (%(instants)s::timestamptz[])[bucket] AS at,
           planned, down, reserved, allocated, sharing, unplaced
    FROM ({placement.HELD}) AS live
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
            f"the stored days are cut in {stored_zone()} and are being cut anew; ask again when `doctor` is content"
        )
    parts = compose(request, OF_NODES, DIMENSIONS, NODE_FILTERS)
    buckets = _buckets(request, now or datetime.now(UTC))
    if not buckets:
        return []
    held, params = _held(request, buckets)
    with connection.cursor() as cursor:
        cursor.execute(parts.into(CAPACITY, held=held), _params(buckets, request) | params | parts.params)
        return [CapacityRow(row[:-8], *(figure or Decimal(0) for figure in row[-8:])) for row in cursor.fetchall()]


def _held(request: ReportRequest, buckets: Sequence[_Bucket]) -> tuple[str, dict[str, Any]]:
    """SQL of what nodes held, and its parameters: hours from facts, days from the rollup but where they are yet to be rebuilt."""
    if "hour" in request.by:
        bounds = [*(bucket.start for bucket in buckets), buckets[-1].end]
        return HELD_BY_HOUR, {"days": [bucket.day for bucket in buckets]} | _placement_params(request, bounds)
    dirty = dirty_span(request.first, request.last)
    if dirty is None:
        return HELD_BY_DAY, {}
    bounds = periods.midnights(*dirty, request.zone)
    return HELD_ON_CLEAN_DAYS, {"days": periods.dates(*dirty)} | _placement_params(request, bounds)


def _placement_params(request: ReportRequest, bounds: Sequence[datetime]) -> dict[str, Any]:
    clusters = Cluster.objects.values_list("id", flat=True)
    wanted = clusters.filter(name__in=request.scope.clusters) if request.scope.clusters else clusters
    return {"clusters": list(wanted)} | lines.cut_params(bounds)


def added(rows: Sequence[CapacityRow]) -> CapacityRow:
    """The sum of rows that have no GPU in common."""
    figures = zip(*(row.figures for row in rows), strict=True) if rows else [(Decimal(0),)] * 8
    return CapacityRow((), *(sum(column, start=Decimal(0)) for column in figures))


def _params(buckets: Sequence[_Bucket], request: ReportRequest) -> dict[str, Any]:
    return {
        "bucket_days": [bucket.day for bucket in buckets],
        "starts": [bucket.start for bucket in buckets],
        "sinces": [int(bucket.start.timestamp()) for bucket in buckets],
        "untils": [int(bucket.end.timestamp()) for bucket in buckets],
        "from": buckets[0].start,
        "through": buckets[-1].end,
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
