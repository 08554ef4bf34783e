"""Rollups, rebuilt from facts alone for dirty days only; never incremented.

One transaction per stretch of neighbouring dirty days of one cluster: take the marks, delete the buckets, build them again.
Days and hours come from `estate.domain.periods`; SQL only finds the bucket of an instant in the given bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from accounting.ingest import lock_cluster, mark_dirty
from accounting.models import ClusterCoverage, DirtyDay, NodeHour, RollupZone, UsageDay, UsageHour
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
    """Rebuild the days `[first, last)` of one cluster; returns how many of them were still marked."""
    with transaction.atomic(), connection.cursor() as cursor:
        lock_cluster(cursor, cluster_id)
        stretch = {"cluster": cluster_id, "first": first, "last": last}
        cursor.execute(TAKE_MARKS, stretch)
        taken = cursor.rowcount
        if taken:
            _build(cursor, stretch | _bounds(first, last))
    return int(taken)


def _bounds(first: date, last: date) -> dict[str, object]:
    """Midnights and hours of the stretch as arrays, one longer than the days and hours that they bound."""
    zone = ZoneInfo(settings.ESTATE_ZONE)
    days = periods.dates(first, last)
    hours = [(hour.start, on) for on in days for hour in periods.hours(on, zone)]
    end = periods.midnight(last, zone)
    return {
        "days": days,
        "midnights": [*(periods.midnight(on, zone) for on in days), end],
        "hours": [*(start for start, _ in hours), end],
        "hour_days": [on for _, on in hours],
        "start": periods.midnight(first, zone),
        "end": end,
    }


def _build(cursor: CursorWrapper, bounds: dict[str, object]) -> None:
    for statement in (
        "DELETE FROM accounting_usageday WHERE cluster_id = %(cluster)s AND day >= %(first)s AND day < %(last)s",
        BUILD_USAGE_DAYS,
        "DELETE FROM accounting_usagehour WHERE cluster_id = %(cluster)s AND day >= %(first)s AND day < %(last)s",
        BUILD_USAGE_HOURS,
        "DELETE FROM accounting_nodehour WHERE cluster_id = %(cluster)s AND day >= %(first)s AND day < %(last)s",
        BUILD_NODE_HOURS,
    ):
        cursor.execute(statement, bounds)


TAKE_MARKS = "DELETE FROM accounting_dirtyday WHERE cluster_id = %(cluster)s AND day >= %(first)s AND day < %(last)s"

# The buckets of `bounds` that [since, until) meets: bucket i is [bounds[i], bounds[i + 1]).
_BUCKETS = """generate_series(
    greatest(1, width_bucket(since, %({bounds})s::timestamptz[])),
    least(cardinality(%({bounds})s::timestamptz[]) - 1,
          width_bucket(until - interval '1 microsecond', %({bounds})s::timestamptz[])))"""

_OVERLAP = """extract(epoch FROM least({until}, (%({bounds})s::timestamptz[])[bucket + 1])
                         - greatest(since, (%({bounds})s::timestamptz[])[bucket]))"""

# Seconds: what overlaps the day. CPU time stops while suspended, taken off the end of the stay; GPUs stay held.
BUILD_USAGE_DAYS = f"""
INSERT INTO accounting_usageday (cluster_id, day, partition, account, namespace, user_name, qos, gpu_model_id, gpu_size,
                                 record_count, started_count, gpu_seconds, cpu_seconds, wall_seconds)
WITH record AS MATERIALIZED (
    SELECT partition, account, namespace, user_name, qos, gpu_size, gpu_model_ids, gpu_counts, requested_gpu_model_id,
           coalesce(cpus, 0) AS cpus, submitted_at, started_at AS since, last_seen_at AS until, suspended_seconds
    FROM accounting_usagerecord
    WHERE cluster_id = %(cluster)s AND submitted_at < %(end)s AND last_seen_at >= %(start)s
), held AS (
    SELECT partition, account, namespace, user_name, qos, gpu_size, gpu_model_ids, gpu_counts, bucket, cpus,
           {_OVERLAP.format(bounds="midnights", until="until")} AS wall,
           greatest(0, {_OVERLAP.format(bounds="midnights", until="until - suspended_seconds * interval '1 second'")}) AS cpu_wall
    FROM record CROSS JOIN LATERAL {_BUCKETS.format(bounds="midnights")} AS bucket
    WHERE since < %(end)s AND until > %(start)s
), line AS (
    SELECT bucket, partition, account, namespace, user_name, qos, part.model_id, gpu_size, 0 AS record_count, 0 AS started_count,
           coalesce(part.gpus, 0) * wall AS gpu_seconds,
           CASE WHEN coalesce(part.number, 1) = 1 THEN cpus * cpu_wall ELSE 0 END AS cpu_seconds,
           CASE WHEN coalesce(part.number, 1) = 1 THEN wall ELSE 0 END AS wall_seconds
    FROM held LEFT JOIN LATERAL unnest(gpu_model_ids, gpu_counts) WITH ORDINALITY AS part (model_id, gpus, number) ON true
    UNION ALL
    SELECT width_bucket(submitted_at, %(midnights)s::timestamptz[]), partition, account, namespace, user_name, qos,
           coalesce(gpu_model_ids[1], requested_gpu_model_id), gpu_size, 1, 0, 0, 0, 0
    FROM record WHERE submitted_at >= %(start)s
    UNION ALL
    SELECT width_bucket(since, %(midnights)s::timestamptz[]), partition, account, namespace, user_name, qos,
           coalesce(gpu_model_ids[1], requested_gpu_model_id), gpu_size, 0, 1, 0, 0, 0
    FROM record WHERE since >= %(start)s AND since < %(end)s
)
SELECT %(cluster)s, (%(days)s::date[])[bucket], partition, account, namespace, user_name, qos, model_id, gpu_size,
       sum(record_count), sum(started_count), sum(gpu_seconds), sum(cpu_seconds), sum(wall_seconds)
FROM line GROUP BY bucket, partition, account, namespace, user_name, qos, model_id, gpu_size
"""

_GPU_RECORDS = """
    SELECT external_id, submitted_at, partition, started_at AS since, last_seen_at AS until, nodes, part.model_id, part.gpus, part.number
    FROM accounting_usagerecord
    CROSS JOIN LATERAL unnest(gpu_model_ids, gpu_counts) WITH ORDINALITY AS part (model_id, gpus, number)
    WHERE cluster_id = %(cluster)s AND accounting_usagerecord.gpus > 0 AND started_at < %(end)s AND last_seen_at > %(start)s AND last_seen_at > started_at
"""

BUILD_USAGE_HOURS = f"""
INSERT INTO accounting_usagehour (cluster_id, day, hour_at, partition, gpu_model_id, gpu_seconds)
WITH held AS ({_GPU_RECORDS})
SELECT %(cluster)s, (%(hour_days)s::date[])[bucket], (%(hours)s::timestamptz[])[bucket], partition, model_id,
       sum(gpus * {_OVERLAP.format(bounds="hours", until="until")})
FROM held CROSS JOIN LATERAL {_BUCKETS.format(bounds="hours")} AS bucket
GROUP BY bucket, partition, model_id
"""

# A record's GPUs lie on its nodes in proportion to the GPUs of that model that each node has (sacct does not say more); where the
# inventory knows none of them, the time is unplaced. Held GPUs count before planned down, down and reserved, in that order.
BUILD_NODE_HOURS = f"""
INSERT INTO accounting_nodehour (cluster_id, node_id, gpu_model_id, day, hour_at, allocated_gpu_seconds, sharing_gpu_seconds,
                                 unplaced_gpu_seconds, planned_allocated_gpu_seconds, down_allocated_gpu_seconds,
                                 reserved_allocated_gpu_seconds)
WITH held AS ({_GPU_RECORDS}), spread AS (
    SELECT since, until, held.gpus, node.id AS node_id, coalesce(inventory.gpu_model_id, model_id) AS model_id,
           inventory.gpu_count, sum(inventory.gpu_count) OVER stay AS stay_gpu_count, row_number() OVER stay AS place
    FROM held
    LEFT JOIN LATERAL unnest(nodes) AS host (name) ON true
    LEFT JOIN estate_node node ON node.cluster_id = %(cluster)s AND node.name = host.name
    LEFT JOIN estate_nodeinventory inventory
           ON inventory.node_id = node.id AND inventory.valid_during @> since AND inventory.gpu_count > 0
          AND (model_id IS NULL OR inventory.gpu_model_id = model_id)
    WINDOW stay AS (PARTITION BY external_id, submitted_at, number)
), placed AS (
    SELECT since, until, node_id, model_id, gpus * gpu_count / stay_gpu_count AS gpus FROM spread WHERE gpu_count IS NOT NULL
    UNION ALL
    SELECT since, until, NULL, model_id, gpus FROM spread WHERE stay_gpu_count IS NULL AND place = 1
), hourly AS (
    SELECT bucket, node_id, model_id, sum(gpus * {_OVERLAP.format(bounds="hours", until="until")}) AS held
    FROM placed CROSS JOIN LATERAL {_BUCKETS.format(bounds="hours")} AS bucket
    GROUP BY bucket, node_id, model_id
), spanned AS (
    SELECT hourly.*, tstzrange((%(hours)s::timestamptz[])[bucket], (%(hours)s::timestamptz[])[bucket + 1]) AS hour FROM hourly
), capped AS (
    SELECT spanned.*, least(held, reported) AS allocated, reported, planned, down, reserved
    FROM spanned CROSS JOIN LATERAL (
        SELECT coalesce(sum(gpu_count * extract(epoch FROM upper(valid_during * hour) - lower(valid_during * hour))), 0) AS reported
        FROM estate_nodeinventory
        WHERE node_id = spanned.node_id AND gpu_model_id = spanned.model_id AND valid_during && hour
    ) AS capacity CROSS JOIN LATERAL (
        SELECT coalesce(sum(seconds) FILTER (WHERE condition = 'planned_down'), 0) AS planned,
               coalesce(sum(seconds) FILTER (WHERE condition = 'down'), 0) AS down,
               coalesce(sum(seconds) FILTER (WHERE condition = 'reserved'), 0) AS reserved
        FROM (
            SELECT condition, gpu_count * extract(epoch FROM upper(common) - lower(common)) AS seconds
            FROM estate_nodestate state
            JOIN estate_nodeinventory inventory ON inventory.node_id = state.node_id AND inventory.gpu_model_id = spanned.model_id
            CROSS JOIN LATERAL (SELECT state.valid_during * inventory.valid_during * hour AS common) AS cut
            WHERE state.node_id = spanned.node_id AND NOT isempty(common)
        ) AS span
    ) AS states
), parted AS (
    SELECT *, least(planned, reported - allocated) AS planned_left,
           least(down, reported - allocated - least(planned, reported - allocated)) AS down_left
    FROM capped
)
SELECT %(cluster)s, node_id, model_id, (%(hour_days)s::date[])[bucket], lower(hour),
       allocated,
       CASE WHEN node_id IS NULL THEN 0 ELSE held - allocated END,
       CASE WHEN node_id IS NULL THEN held ELSE 0 END,
       planned - planned_left,
       down - down_left,
       reserved - least(reserved, reported - allocated - planned_left - down_left)
FROM parted
"""
