"""Rollups, rebuilt from facts alone for dirty days only; never incremented.

One transaction per stretch of neighbouring dirty days of one cluster: take the marks, delete the buckets, build them again.
Days come from `estate.domain.periods`; SQL only finds the bucket of an instant in the given bounds (see `queries.lines`).
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
from accounting.models import ClusterCoverage, DirtyDay, NodeDay, QueueDay, RollupZone, UsageDay, UserDay
from accounting.models.rollups import UsageOfDay
from accounting.queries import lines, placement
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
        for kind in (UsageDay, UserDay, QueueDay, NodeDay):
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

    Outside a transaction the nodes are built beside the usage, on a connection of their own: nobody else writes the cluster's facts or
    rollups meanwhile (its lock is held here), and the marks go only after both are done.
    """
    alone = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        lock_cluster(cursor, cluster_id)
        cursor.execute(TAKE_MARKS, {"cluster": cluster_id, "first": first, "last": last})
        taken = int(cursor.rowcount)
        if taken and alone:
            with ThreadPoolExecutor(1, "rollup") as beside:
                nodes = beside.submit(_build_nodes_apart, cluster_id, first, last)
                _build_usage(cluster_id, first, last)
                nodes.result()
        elif taken:
            _build_usage(cluster_id, first, last)
            _build_nodes(cluster_id, first, last)
    return taken


def _build_usage(cluster_id: int, first: date, last: date) -> None:
    params = _params(cluster_id, first, last)
    with connection.cursor() as cursor:
        cursor.execute(PLANNING)
        cursor.execute(CUT_USAGE, params)
        for kind, names in USAGE_KINDS:
            cursor.execute(DROP_DAYS.format(table=kind._meta.db_table), params)
            spelled = ", ".join(name if name in names else "''" for name in NAMES)
            cursor.execute(NEW_KEYS.format(names=spelled), params)
            cursor.execute(BUILD_USAGE.format(table=kind._meta.db_table, names=spelled), params)
        cursor.execute("DROP TABLE usage_cut")


def _build_nodes_apart(cluster_id: int, first: date, last: date) -> None:
    try:
        with transaction.atomic():
            _build_nodes(cluster_id, first, last)
    finally:
        connection.close()


def _build_nodes(cluster_id: int, first: date, last: date) -> None:
    params = _params(cluster_id, first, last)
    with connection.cursor() as cursor:
        cursor.execute(PLANNING)
        cursor.execute(DROP_DAYS.format(table=NodeDay._meta.db_table), params)
        cursor.execute(BUILD_NODES, params)


def _params(cluster_id: int, first: date, last: date) -> dict[str, Any]:
    bounds = periods.midnights(first, last, ZoneInfo(settings.ESTATE_ZONE))
    return {"cluster": cluster_id, "clusters": [cluster_id], "days": periods.dates(first, last)} | lines.cut_params(bounds)


DROP_DAYS = "DELETE FROM {table} WHERE cluster_id = %(cluster)s AND day = ANY(%(days)s::date[])"
TAKE_MARKS = "DELETE FROM accounting_dirtyday WHERE cluster_id = %(cluster)s AND day >= %(first)s AND day < %(last)s"

# How many groups there will be cannot be foreseen; hashing them costs a fifth of sorting them by their names.
PLANNING = "SET LOCAL enable_sort = off; SET LOCAL jit = off"

NAMES = ("partition", "account", "namespace", "user_name", "qos", "gpu_size")
USAGE_KINDS: tuple[tuple[type[UsageOfDay], frozenset[str]], ...] = (
    (UsageDay, frozenset({"partition", "account", "namespace"})),
    (UserDay, frozenset({"account", "namespace", "user_name"})),
    (QueueDay, frozenset({"partition", "qos", "gpu_size"})),
)

CUT_USAGE = f"""
CREATE TEMPORARY TABLE usage_cut ON COMMIT DROP AS
WITH {lines.usage_lines(where="cluster_id = %(cluster)s")}
SELECT bucket, partition, account, namespace, user_name, qos, gpu_size, gpu_model_id, sum(record_count) AS record_count,
       sum(started_count) AS started_count, sum(gpu_seconds) AS gpu_seconds, sum(cpu_milliseconds)::bigint AS cpu_milliseconds,
       sum(wall_seconds)::bigint AS wall_seconds
FROM line GROUP BY bucket, partition, account, namespace, user_name, qos, gpu_size, gpu_model_id
"""

NEW_KEYS = f"""
INSERT INTO accounting_usagekey (cluster_id, {", ".join(NAMES)})
SELECT %(cluster)s, {{names}} FROM usage_cut
EXCEPT SELECT cluster_id, {", ".join(NAMES)} FROM accounting_usagekey WHERE cluster_id = %(cluster)s
"""

# In the order of the primary key: it grows at its end, or in one place.
BUILD_USAGE = f"""
INSERT INTO {{table}} (day, cluster_id, key_id, gpu_model_id, record_count, started_count, gpu_seconds, cpu_seconds, wall_seconds)
SELECT (%(days)s::date[])[bucket], %(cluster)s, key_id, model_id, sum(record_count), sum(started_count), sum(gpu_seconds),
       sum(cpu_milliseconds) / 1000, sum(wall_seconds)
FROM (
    SELECT cut.*, key.id AS key_id, coalesce(gpu_model_id, 0) AS model_id
    FROM (SELECT bucket, gpu_model_id, record_count, started_count, gpu_seconds, cpu_milliseconds, wall_seconds, {{names}}
          FROM usage_cut) AS cut (bucket, gpu_model_id, record_count, started_count, gpu_seconds, cpu_milliseconds, wall_seconds,
                                  {", ".join(NAMES)})
    JOIN accounting_usagekey key USING ({", ".join(NAMES)}) WHERE key.cluster_id = %(cluster)s
) AS keyed
GROUP BY bucket, key_id, model_id ORDER BY bucket, key_id, model_id
"""

BUILD_NODES = f"""
INSERT INTO accounting_nodeday (cluster_id, day, node_id, gpu_model_id, allocated_gpu_seconds, sharing_gpu_seconds, unplaced_gpu_seconds,
                                planned_allocated_gpu_seconds, down_allocated_gpu_seconds, reserved_allocated_gpu_seconds)
SELECT cluster_id, (%(days)s::date[])[bucket], node_id, gpu_model_id, allocated, sharing, unplaced, planned, down, reserved
FROM ({placement.HELD}) AS held
"""
