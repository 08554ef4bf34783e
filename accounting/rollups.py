"""Rollups, rebuilt from facts alone for dirty days only; never incremented.

One transaction per stretch of neighbouring dirty days of one cluster: take the marks, delete the buckets, build them again.
Days and hours come from `estate.domain.periods`; SQL only finds the bucket of an instant in the given bounds (see `queries.lines`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection, transaction

from accounting.ingest import lock_cluster, mark_dirty
from accounting.models import ClusterCoverage, DirtyDay, NodeHour, RollupZone, UsageDay, UsageHour
from accounting.queries import lines
from estate.domain import periods

DAYS_AT_ONCE = 400

Progress = Callable[[int, int], None]


def rebuild(cluster_id: int | None = None, progress: Progress | None = None) -> int:
    """Rebuild the dirty days of one cluster (None: of all); returns how many. `progress(done, of)` is called as it goes."""
    recut_if_zone_changed()
    marks = DirtyDay.objects.filter(**({} if cluster_id is None else {"cluster_id": cluster_id}))
    total = marks.count()
    done = 0
    for cluster in sorted(set(marks.values_list("cluster_id", flat=True))):
        for first, last in _stretches(cluster):
            done += _rebuild_stretch(cluster, first, last)
            if progress is not None:
                progress(done, total)
    return done


def recut_if_zone_changed() -> bool:
    """When the reporting zone is another than the stored rollups were cut in, drop them and mark every known day dirty."""
    with transaction.atomic(), connection.cursor() as cursor:
        stored = RollupZone.objects.select_for_update().first()
        if stored is not None and stored.zone == settings.ESTATE_ZONE:
            return False
        RollupZone.objects.update_or_create(id=1, defaults={"zone": settings.ESTATE_ZONE})
        if stored is None:
            return False
        for kind in (UsageDay, UsageHour, NodeHour):
            kind.objects.all().delete()
        for coverage in ClusterCoverage.objects.all():
            mark_dirty(cursor, coverage.cluster_id, coverage.first_at, coverage.through_at)
    return True


def _stretches(cluster_id: int) -> list[tuple[date, date]]:
    days = sorted(DirtyDay.objects.filter(cluster_id=cluster_id).values_list("day", flat=True))
    parts = []
    for first, last in periods.runs(days):
        whole = periods.dates(first, last)
        chunks = [whole[at : at + DAYS_AT_ONCE] for at in range(0, len(whole), DAYS_AT_ONCE)]
        parts += [(chunk[0], chunk[-1] + periods.ONE_DAY) for chunk in chunks]
    return parts


def _rebuild_stretch(cluster_id: int, first: date, last: date) -> int:
    """Rebuild the days `[first, last)` of one cluster; returns how many of them were still marked.

    Outside a transaction the hours are built beside the days, on a connection of their own: nobody else writes the cluster's facts or
    rollups meanwhile (its lock is held here), and the marks go only after both are done.
    """
    alone = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        lock_cluster(cursor, cluster_id)
        cursor.execute(TAKE_MARKS, {"cluster": cluster_id, "first": first, "last": last})
        taken = int(cursor.rowcount)
        if taken and alone:
            with ThreadPoolExecutor(1, "rollup") as beside:
                hours = beside.submit(_build_hours_apart, cluster_id, first, last)
                _build_days(cluster_id, first, last)
                hours.result()
        elif taken:
            _build_days(cluster_id, first, last)
            _build_hours(cluster_id, first, last)
    return taken


def _build_days(cluster_id: int, first: date, last: date) -> None:
    zone = ZoneInfo(settings.ESTATE_ZONE)
    params: dict[str, Any] = {"cluster": cluster_id, "days": periods.dates(first, last)}
    params |= lines.cut_params(periods.midnights(first, last, zone))
    UsageDay.objects.filter(cluster=cluster_id, day__gte=first, day__lt=last).delete()
    with connection.cursor() as cursor:
        cursor.execute(BUILD_USAGE_DAYS, params)


def _build_hours_apart(cluster_id: int, first: date, last: date) -> None:
    try:
        with transaction.atomic():
            _build_hours(cluster_id, first, last)
    finally:
        connection.close()


def _build_hours(cluster_id: int, first: date, last: date) -> None:
    zone = ZoneInfo(settings.ESTATE_ZONE)
    hours = [(hour.start, on) for on in periods.dates(first, last) for hour in periods.hours(on, zone)]
    params: dict[str, Any] = {"cluster": cluster_id, "hour_days": [on for _, on in hours]}
    params |= lines.cut_params([*(start for start, _ in hours), periods.midnight(last, zone)])
    for kind in (UsageHour, NodeHour):
        kind.objects.filter(cluster=cluster_id, day__gte=first, day__lt=last).delete()
    with connection.cursor() as cursor:
        for statement in (CUT_HOURS, BUILD_USAGE_HOURS, BUILD_NODE_HOURS, "DROP TABLE hourly"):
            cursor.execute(statement, params)


TAKE_MARKS = "DELETE FROM accounting_dirtyday WHERE cluster_id = %(cluster)s AND day >= %(first)s AND day < %(last)s"

BUILD_USAGE_DAYS = f"""
INSERT INTO accounting_usageday (cluster_id, day, partition, account, namespace, user_name, qos, gpu_model_id, gpu_size,
                                 record_count, started_count, gpu_seconds, cpu_seconds, wall_seconds)
WITH {lines.usage_lines(where="cluster_id = %(cluster)s")}
SELECT cluster_id, (%(days)s::date[])[bucket], partition, account, namespace, user_name, qos, gpu_model_id, gpu_size,
       sum(record_count), sum(started_count), sum(gpu_seconds), sum(cpu_milliseconds) / 1000, sum(wall_seconds)
FROM line GROUP BY bucket, cluster_id, partition, account, namespace, user_name, qos, gpu_model_id, gpu_size
"""

# A record's GPUs lie on its nodes in proportion to the GPUs of that model that each node has (sacct does not say more); where the
# inventory knows none of them, the time is unplaced.
CUT_HOURS = f"""
CREATE TEMPORARY TABLE hourly ON COMMIT DROP AS
WITH stay AS ({lines.GPU_STAYS}), spread AS (
    SELECT stay.*, node.id AS node_id, coalesce(inventory.gpu_model_id, model_id) AS placed_model_id, inventory.gpu_count,
           sum(inventory.gpu_count) OVER whole AS whole_count, row_number() OVER whole AS place
    FROM stay
    LEFT JOIN LATERAL unnest(nodes) AS host (name) ON true
    LEFT JOIN estate_node node ON node.cluster_id = stay.cluster_id AND node.name = host.name
    LEFT JOIN estate_nodeinventory inventory
           ON inventory.node_id = node.id AND inventory.valid_during @> started_at AND inventory.gpu_count > 0
          AND (model_id IS NULL OR inventory.gpu_model_id = model_id)
    WINDOW whole AS (PARTITION BY external_id, submitted_at, number)
), placed AS (
    SELECT since, until, partition, node_id, placed_model_id AS model_id,
           CASE WHEN gpu_count = whole_count THEN gpus ELSE gpus * gpu_count / whole_count END AS gpus
    FROM spread WHERE gpu_count IS NOT NULL
    UNION ALL
    SELECT since, until, partition, NULL, model_id, gpus FROM spread WHERE whole_count IS NULL AND place = 1
)
SELECT bucket, partition, node_id, model_id, sum(gpus * ({lines.overlap()})) AS held
FROM placed CROSS JOIN LATERAL {lines.buckets()} AS bucket
GROUP BY bucket, partition, node_id, model_id
"""

BUILD_USAGE_HOURS = """
INSERT INTO accounting_usagehour (cluster_id, day, hour_at, partition, gpu_model_id, gpu_seconds)
SELECT %(cluster)s, (%(hour_days)s::date[])[bucket], to_timestamp((%(cuts)s::bigint[])[bucket]), partition, model_id, sum(held)
FROM hourly GROUP BY bucket, partition, model_id
"""

# Held GPUs count before planned down, down and reserved, in that order: a GPU-second is in one part of the identity only.
BUILD_NODE_HOURS = f"""
INSERT INTO accounting_nodehour (cluster_id, node_id, gpu_model_id, day, hour_at, allocated_gpu_seconds, sharing_gpu_seconds,
                                 unplaced_gpu_seconds, planned_allocated_gpu_seconds, down_allocated_gpu_seconds,
                                 reserved_allocated_gpu_seconds)
WITH node_hour AS (
    SELECT bucket, node_id, model_id, sum(held) AS held,
           (%(cuts)s::bigint[])[bucket] AS since, (%(cuts)s::bigint[])[bucket + 1] AS until
    FROM hourly GROUP BY bucket, node_id, model_id
), owned AS MATERIALIZED (
    SELECT node_id, gpu_model_id AS model_id, gpu_count,
           {lines.since("inventory.valid_during")} AS owned_since, {lines.until("inventory.valid_during")} AS owned_until
    FROM estate_nodeinventory inventory JOIN estate_node node ON node.id = node_id
    WHERE node.cluster_id = %(cluster)s AND gpu_count > 0
), condition AS MATERIALIZED (
    SELECT node_id, model_id, condition, gpu_count,
           greatest(owned_since, {lines.since("state.valid_during")}) AS state_since,
           least(owned_until, {lines.until("state.valid_during")}) AS state_until
    FROM estate_nodestate state JOIN owned USING (node_id)
), capacity AS (
    SELECT bucket, node_id, model_id, sum(gpu_count * greatest(0, least(until, owned_until) - greatest(since, owned_since))) AS reported
    FROM node_hour JOIN owned USING (node_id, model_id)
    WHERE owned_since < until AND owned_until > since
    GROUP BY bucket, node_id, model_id
), state AS (
    SELECT bucket, node_id, model_id,
           sum(seconds) FILTER (WHERE condition = 'planned_down') AS planned,
           sum(seconds) FILTER (WHERE condition = 'down') AS down,
           sum(seconds) FILTER (WHERE condition = 'reserved') AS reserved
    FROM node_hour JOIN condition USING (node_id, model_id)
    CROSS JOIN LATERAL (SELECT gpu_count * (least(until, state_until) - greatest(since, state_since)) AS seconds) AS gpu_time
    WHERE state_since < until AND state_until > since AND state_since < state_until
    GROUP BY bucket, node_id, model_id
), capped AS (
    SELECT node_hour.*, least(held, coalesce(reported, 0)) AS allocated, greatest(0, coalesce(reported, 0) - held) AS spare,
           coalesce(planned, 0) AS planned, coalesce(down, 0) AS down, coalesce(reserved, 0) AS reserved
    FROM node_hour
    LEFT JOIN capacity USING (bucket, node_id, model_id)
    LEFT JOIN state USING (bucket, node_id, model_id)
)
SELECT %(cluster)s, node_id, model_id, (%(hour_days)s::date[])[bucket], to_timestamp(since), allocated,
       CASE WHEN node_id IS NULL THEN 0 ELSE held - allocated END,
       CASE WHEN node_id IS NULL THEN held ELSE 0 END,
       greatest(0, planned - spare),
       greatest(0, down - greatest(0, spare - planned)),
       greatest(0, reserved - greatest(0, spare - planned - down))
FROM capped
"""
