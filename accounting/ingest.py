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
from accounting.domain.blocks import RecordBlock, blocks_of
from accounting.domain.records import NodeFact, UsageRecord
from accounting.loading import Load, Worker
from accounting.models import ClusterCoverage, Intake
from estate.domain.periods import days_of
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


def ingest_records(cluster: Cluster, records: Iterable[UsageRecord], *, observed_at: datetime | None = None) -> IngestResult:
    """Load `records` of one cluster; see `ingest_blocks`."""
    return ingest_blocks(cluster, blocks_of(records), observed_at=observed_at)


def ingest_blocks(cluster: Cluster, blocks: Iterable[RecordBlock], *, observed_at: datetime | None = None) -> IngestResult:
    """Load the records of one cluster, block by block. Must run inside `transaction.atomic()`.

    `observed_at` is when a live source was asked; None for saved dumps, whose own content says how new they are.
    """
    with connection.cursor() as cursor:
        lock_cluster(cursor, cluster.pk)
        load = Load(cursor, cluster.pk, observed_at)
        worker = Worker(load)
        with worker.running():
            for block in staging.copy_texts(blocks, ModelIds(before_query=worker.drained)):
                worker.put(block)
        load.finish()
        if load.record_count:
            cursor.execute(WIDEN_COVERAGE, {"cluster": cluster.pk, "first": load.first_submitted_at, "through": load.seen_at})
    return IngestResult(load.record_count, load.changed_count, load.dirty_day_count, load.seen_at if load.record_count else None)


def note_intake(cluster: Cluster, input_name: str, rejected_count: int) -> None:
    """Remember how many lines of an input could not be taken in (the newest reading of the same input counts)."""
    Intake.objects.update_or_create(cluster=cluster, input_name=input_name[:1024], defaults={"rejected_count": rejected_count})


def note_asked(cluster: Cluster, asked_at: datetime) -> None:
    """A live source was asked at `asked_at` for all that runs and waits: usage is known to then, even if nothing was told."""
    ClusterCoverage.objects.filter(cluster=cluster, through_at__lt=asked_at).update(through_at=asked_at)


def mark_dirty(cursor: CursorWrapper, cluster_id: int, first: datetime, last: datetime) -> int:
    """Mark the reporting days from that of `first` to that of `last` dirty; returns how many are new."""
    zone = ZoneInfo(settings.ESTATE_ZONE)
    cursor.execute(MARK_DAYS, {"cluster": cluster_id, "days": days_of(first, last, zone)})
    return int(cursor.rowcount)


def lock_cluster(cursor: CursorWrapper, cluster_id: int) -> None:
    """One writer of a cluster's facts and rollups at a time, until the transaction ends."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [CLUSTER_LOCK, cluster_id])


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
        since = [change.history_changed_at] if change.history_changed_at is not None else []
        if change.changed_count and coverage is not None:
            since.append(coverage.first_at if change.is_first else moment)
        if since and coverage is not None and min(since) < coverage.through_at:
            mark_dirty(cursor, cluster.pk, max(min(since), coverage.first_at), coverage.through_at)
    return NodeIngestResult(change.node_count, change.changed_count, change.absent_count)


MARK_DAYS = """
INSERT INTO accounting_dirtyday (cluster_id, day) SELECT %(cluster)s, unnest(%(days)s::date[]) ON CONFLICT DO NOTHING
"""

WIDEN_COVERAGE = """
INSERT INTO accounting_clustercoverage AS known (cluster_id, first_at, through_at) VALUES (%(cluster)s, %(first)s, %(through)s)
ON CONFLICT (cluster_id) DO UPDATE
SET first_at = least(known.first_at, excluded.first_at), through_at = greatest(known.through_at, excluded.through_at)
"""
