"""The only writer of usage records: COPY → staging → upsert → dirty days, in the caller's transaction.

A record that has ended beats one that runs, a running one a waiting one, a later sighting an earlier one: so overlapping inputs in any
order end in the same table. One load per cluster at a time (advisory lock), hence no deadlocks between loads.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

from accounting import staging
from accounting.domain.records import NodeFact, UsageRecord
from accounting.models import ClusterCoverage, Intake
from accounting.partitions import ensure_months
from estate.domain.periods import ONE_DAY, dates, local_date, midnight
from estate.models import Cluster
from estate.services import inventory
from estate.services.models_of_gpus import ModelIds

CLUSTER_LOCK = 7_110_002


class IngestResult(NamedTuple):
    """What a load did: records taken in, rows of them that changed the table, reporting days marked dirty, and the last sighting."""

    accepted_count: int
    changed_count: int
    dirty_day_count: int
    through_at: datetime | None


class _Bounds(NamedTuple):
    """What a staged load covers."""

    record_count: int
    first_submitted_at: datetime
    last_submitted_at: datetime
    seen_at: datetime


def ingest_records(cluster: Cluster, records: Iterable[UsageRecord], *, observed_at: datetime | None = None) -> IngestResult:
    """Load `records` of one cluster. Must run inside `transaction.atomic()`.

    `observed_at` is when a live source was asked; None for saved dumps, whose own content says how new they are.
    """
    with connection.cursor() as cursor:
        lock_cluster(cursor, cluster.pk)
        _stage(cursor, records)
        bounds = _bounds(cursor, observed_at)
        if bounds is None:
            return IngestResult(0, 0, 0, None)
        _settle_waiting(cursor, bounds.seen_at)
        ensure_months(bounds.first_submitted_at, bounds.last_submitted_at)
        changed = _collect_changes(cursor, cluster.pk, observed_at, bounds)
        dirty = 0
        if changed:
            cursor.execute(UPSERT)
            cursor.execute(NEW_PARTITIONS, {"cluster": cluster.pk})
            dirty = _mark_changes_dirty(cursor, cluster.pk)
        cursor.execute(WIDEN_COVERAGE, {"cluster": cluster.pk, "first": bounds.first_submitted_at, "through": bounds.seen_at})
        cursor.execute("DROP TABLE staging, changed")
    return IngestResult(bounds.record_count, changed, dirty, bounds.seen_at)


def note_intake(cluster: Cluster, input_name: str, rejected_count: int) -> None:
    """Remember how many lines of an input could not be taken in (the newest reading of the same input counts)."""
    Intake.objects.update_or_create(cluster=cluster, input_name=input_name[:1024], defaults={"rejected_count": rejected_count})


def mark_dirty(cursor: CursorWrapper, cluster_id: int, first: datetime, last: datetime) -> int:
    """Mark the reporting days of `[first, last)` dirty, as far as usage is known; returns how many days are new."""
    zone = ZoneInfo(settings.ESTATE_ZONE)
    days = dates(local_date(first, zone), local_date(last, zone) + ONE_DAY)
    cursor.execute(MARK_DAYS, {"cluster": cluster_id, "days": days})
    return int(cursor.rowcount)


def lock_cluster(cursor: CursorWrapper, cluster_id: int) -> None:
    """One writer of a cluster's facts and rollups at a time, until the transaction ends."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [CLUSTER_LOCK, cluster_id])


def _stage(cursor: CursorWrapper, records: Iterable[UsageRecord]) -> None:
    """One COPY a block, so that a GPU model met for the first time can be stored between two of them."""
    cursor.execute(CREATE_STAGING)
    for block in staging.copy_blocks(records, ModelIds()):
        with cursor.copy(COPY_STAGING) as copy:
            copy.write(block)


def _bounds(cursor: CursorWrapper, observed_at: datetime | None) -> _Bounds | None:
    cursor.execute(STAGED_BOUNDS)
    count, first, last, seen = cursor.fetchone()
    return _Bounds(count, first, last, observed_at or seen) if count else None


def _settle_waiting(cursor: CursorWrapper, seen_at: datetime) -> None:
    cursor.execute(SETTLE_WAITING, {"seen": seen_at})


def _collect_changes(cursor: CursorWrapper, cluster_id: int, observed_at: datetime | None, bounds: _Bounds) -> int:
    span = {"first": bounds.first_submitted_at, "last": bounds.last_submitted_at}
    cursor.execute(COLLECT_CHANGES, {"cluster": cluster_id, "observed": observed_at, **span})
    return int(cursor.rowcount)


def _mark_changes_dirty(cursor: CursorWrapper, cluster_id: int) -> int:
    zone = ZoneInfo(settings.ESTATE_ZONE)
    cursor.execute(CHANGED_SPAN)
    first, last = cursor.fetchone()
    days = dates(local_date(first, zone), local_date(last, zone) + ONE_DAY)
    midnights = [midnight(on, zone) for on in days]
    cursor.execute(MARK_CHANGES, {"cluster": cluster_id, "days": days, "midnights": midnights})
    return int(cursor.rowcount)


class NodeIngestResult(NamedTuple):
    """What an inventory did: nodes in it, nodes of which something changed, known nodes that it does not name."""

    node_count: int
    changed_count: int
    absent_count: int


def ingest_nodes(
    cluster: Cluster, facts: Iterable[NodeFact], *, as_of: datetime | None, complete: bool = False
) -> NodeIngestResult:
    """Bring the dated inventory of `cluster` up to `facts` as they were at `as_of`. Must run inside `transaction.atomic()`.

    None as `as_of` means now; a cluster without any inventory gets it with an open beginning. With `complete`, nodes that are not
    named end. Days of usage on which the inventory changed are rebuilt.
    """
    with connection.cursor() as cursor:
        lock_cluster(cursor, cluster.pk)
        moment = as_of or datetime.now(UTC)
        change = inventory.apply(cluster, facts, moment, complete)
        coverage = ClusterCoverage.objects.filter(cluster=cluster).first()
        if change.changed_count and coverage is not None:
            since = coverage.first_at if change.is_first else moment
            if since < coverage.through_at:
                mark_dirty(cursor, cluster.pk, since, coverage.through_at)
    return NodeIngestResult(change.node_count, change.changed_count, change.absent_count)


_NAMES = ", ".join(staging.COLUMNS)

CREATE_STAGING = f"""
CREATE TEMPORARY TABLE staging ON COMMIT DROP AS SELECT {_NAMES} FROM accounting_usagerecord WHERE false
"""

COPY_STAGING = f"COPY staging ({_NAMES}) FROM STDIN (FORMAT text, NULL '{staging.NULL}')"

STAGED_BOUNDS = """
SELECT count(*), min(submitted_at), max(submitted_at), greatest(max(last_seen_at), max(submitted_at)) FROM staging
"""

# A waiting record has no time of its own that says when it was seen: it is as new as the whole input.
SETTLE_WAITING = "UPDATE staging SET last_seen_at = greatest(%(seen)s, submitted_at) WHERE last_seen_at IS NULL"

COLLECT_CHANGES = """
CREATE TEMPORARY TABLE changed ON COMMIT DROP AS
SELECT DISTINCT ON (s.submitted_at, s.external_id)
       %(cluster)s::bigint AS cluster_id, %(observed)s::timestamptz AS observed_at, s.*,
       u.started_at AS old_started_at, u.last_seen_at AS old_last_seen_at
FROM staging s
LEFT JOIN accounting_usagerecord u
       ON u.cluster_id = %(cluster)s AND u.external_id = s.external_id AND u.submitted_at = s.submitted_at
      AND u.submitted_at BETWEEN %(first)s AND %(last)s
WHERE u.external_id IS NULL
   OR ((s.row_hash <> u.row_hash OR s.last_seen_at <> u.last_seen_at)
       AND (s.ended_at IS NOT NULL, coalesce(%(observed)s::timestamptz, '-infinity'), s.last_seen_at, s.row_hash)
         > (u.ended_at IS NOT NULL, coalesce(u.observed_at, '-infinity'), u.last_seen_at, u.row_hash))
ORDER BY s.submitted_at, s.external_id, s.ended_at IS NOT NULL DESC, s.last_seen_at DESC, s.row_hash DESC
"""

_KEY = {"external_id", "submitted_at"}
UPSERT = f"""
INSERT INTO accounting_usagerecord (cluster_id, observed_at, {_NAMES})
SELECT cluster_id, observed_at, {_NAMES} FROM changed
ON CONFLICT (cluster_id, external_id, submitted_at) DO UPDATE SET
    observed_at = excluded.observed_at,
    {", ".join(f"{name} = excluded.{name}" for name in staging.COLUMNS if name not in _KEY)}
"""

NEW_PARTITIONS = """
INSERT INTO estate_partition (cluster_id, name)
SELECT DISTINCT %(cluster)s::bigint, left(name, 128)
FROM (SELECT DISTINCT partition FROM changed) c, unnest(string_to_array(c.partition, ',')) AS name
WHERE name <> '' ORDER BY 2
ON CONFLICT DO NOTHING
"""

CHANGED_SPAN = """
SELECT least(min(submitted_at), min(started_at), min(old_started_at)),
       greatest(max(submitted_at), max(last_seen_at), max(old_last_seen_at))
FROM changed
"""

# A record touches the day it was submitted on, and every day on which it holds or held something.
MARK_CHANGES = """
INSERT INTO accounting_dirtyday (cluster_id, day)
SELECT DISTINCT %(cluster)s::bigint, (%(days)s::date[])[bucket]
FROM changed
CROSS JOIN LATERAL (
    VALUES (submitted_at, submitted_at), (started_at, last_seen_at), (old_started_at, old_last_seen_at)
) AS held (since, until)
CROSS JOIN LATERAL generate_series(
    width_bucket(since, %(midnights)s::timestamptz[]),
    width_bucket(greatest(since, until - interval '1 microsecond'), %(midnights)s::timestamptz[])) AS bucket
WHERE since IS NOT NULL
ON CONFLICT DO NOTHING
"""

MARK_DAYS = """
INSERT INTO accounting_dirtyday (cluster_id, day) SELECT %(cluster)s, unnest(%(days)s::date[]) ON CONFLICT DO NOTHING
"""

WIDEN_COVERAGE = """
INSERT INTO accounting_clustercoverage AS known (cluster_id, first_at, through_at) VALUES (%(cluster)s, %(first)s, %(through)s)
ON CONFLICT (cluster_id) DO UPDATE
SET first_at = least(known.first_at, excluded.first_at), through_at = greatest(known.through_at, excluded.through_at)
"""
