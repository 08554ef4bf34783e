"""Takes in what a scheduler says of its rules and of what it expects; the days on which the past of nodes differs are rebuilt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection

from accounting.domain.forecasts import Expectation, Runaway, Sample
from accounting.ingest import lock_cluster, mark_dirty
from accounting.models import ClusterCoverage, RunawayRecord, SchedulerSample, StartEstimate
from estate.domain.policy import PolicyFacts
from estate.models import Cluster
from estate.services import policy
from estate.services.policy import PolicyChange

# The scheduler moves its expectations with every cycle; less than this says nothing new.
LEAST_MOVE = timedelta(minutes=1)
LEAST_MOVE_RATIO = 0.05


def ingest_policy(cluster: Cluster, facts: PolicyFacts, *, as_of: datetime) -> PolicyChange:
    """Bring what `cluster` enforces up to `facts` as read at `as_of`. Must run inside `transaction.atomic()`."""
    with connection.cursor() as cursor:
        lock_cluster(cursor, cluster.pk)
    change = policy.apply(cluster, facts, as_of)
    mark_history(cluster, change.history_changed_at)
    return change


def mark_history(cluster: Cluster, changed_at: datetime | None) -> None:
    """Mark the known days from `changed_at` on, from which the states of nodes are told otherwise."""
    coverage = ClusterCoverage.objects.filter(cluster=cluster).first()
    if changed_at is None or coverage is None or changed_at >= coverage.through_at:
        return
    with connection.cursor() as cursor:
        mark_dirty(cursor, cluster.pk, max(changed_at, coverage.first_at), coverage.through_at)


class ForecastResult(NamedTuple):
    """Jobs that wait, those with an expectation, and rows that were new."""

    waiting_count: int
    expected_count: int
    new_count: int


def ingest_expectations(
    cluster: Cluster, expectations: Iterable[Expectation], sample: Sample | None, *, estimated_at: datetime
) -> ForecastResult:
    """Keep when waiting records are expected to start, where that is news. Must run inside `transaction.atomic()`.

    Of a reading that is not newer than the last one nothing is written.
    """
    waiting = list(expectations)
    expected = [each for each in waiting if each.expected_at is not None]
    result = ForecastResult(len(waiting), len(expected), 0)
    if SchedulerSample.objects.filter(cluster=cluster, sampled_at__gte=estimated_at).exists():
        return result
    last = _last_estimates(cluster, [each.external_id for each in expected])
    rows = [
        _estimate(cluster, each, each.expected_at, estimated_at)
        for each in expected
        if each.expected_at is not None
        and _is_news(each.expected_at, last.get((each.external_id, each.submitted_at)), estimated_at)
    ]
    StartEstimate.objects.bulk_create(rows, ignore_conflicts=True, batch_size=2000)
    context = sample._asdict() if sample is not None else {"pending_count": len(waiting)}
    SchedulerSample.objects.create(cluster=cluster, sampled_at=estimated_at, estimated_count=len(expected), **context)
    return result._replace(new_count=len(rows))


def _last_estimates(cluster: Cluster, ids: list[str]) -> Mapping[tuple[str, datetime], datetime]:
    rows = StartEstimate.objects.filter(cluster=cluster, external_id__in=ids).order_by("estimated_at")
    return {(at[0], at[1]): at[2] for at in rows.values_list("external_id", "submitted_at", "expected_at")}


def _is_news(expected_at: datetime, last: datetime | None, estimated_at: datetime) -> bool:
    if last is None:
        return True
    moved = abs(expected_at - last)
    return moved >= LEAST_MOVE and moved >= abs(expected_at - estimated_at) * LEAST_MOVE_RATIO


def _estimate(cluster: Cluster, each: Expectation, expected_at: datetime, estimated_at: datetime) -> StartEstimate:
    return StartEstimate(
        cluster=cluster,
        external_id=each.external_id,
        submitted_at=each.submitted_at,
        estimated_at=estimated_at,
        expected_at=expected_at,
        partition=each.partition[:512],
        reason=each.reason[:255],
        priority=each.priority,
        priority_parts=dict(each.priority_parts),
    )


def ingest_runaways(cluster: Cluster, runaways: Iterable[Runaway], *, seen_at: datetime) -> int:
    """Keep the list of records that the accounting database wrongly holds for running; returns how many there are now."""
    known = {(row.external_id, row.submitted_at): row for row in RunawayRecord.objects.filter(cluster=cluster)}
    if any(row.last_seen_at > seen_at for row in known.values()):
        return sum(row.gone_at is None for row in known.values())
    found = {(each.external_id, each.submitted_at): each for each in runaways}
    for at, each in found.items():
        row = known.get(at) or RunawayRecord(cluster=cluster, external_id=at[0], submitted_at=at[1], first_seen_at=seen_at)
        row.started_at, row.state, row.last_seen_at, row.gone_at = each.started_at, each.state, seen_at, None
        row.save()
    gone = [row.pk for at, row in known.items() if at not in found and row.gone_at is None]
    RunawayRecord.objects.filter(pk__in=gone).update(gone_at=seen_at)
    return len(found)
