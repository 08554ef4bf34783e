"""What waits now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Count, OuterRef, Subquery, Sum

from accounting.domain.reports import Scope
from accounting.models import ClusterCoverage, UsageRecord
from accounting.queries.memory import remembered

LOST_AFTER = timedelta(hours=48)


class Waiting(NamedTuple):
    """Records that wait, and the GPUs that they ask for (None when no record says)."""

    record_count: int
    requested_gpus: Decimal | None


@remembered
def waiting_now(scope: Scope) -> dict[tuple[str, str], Waiting]:
    """Waiting records by (cluster, partition) as of each cluster's last sighting; a record for several partitions has their list.

    One that a live source has not told of for two days is lost, not waiting (its end was never written).

    The counts of a queue are no secret of a project: who waits is not in them.
    """
    known = ClusterCoverage.objects.filter(cluster=OuterRef("cluster")).values("through_at")
    rows = UsageRecord.objects.filter(started_at__isnull=True, ended_at__isnull=True)
    rows = rows.exclude(observed_at__isnull=False, last_seen_at__lt=Subquery(known) - LOST_AFTER)
    if scope.clusters:
        rows = rows.filter(cluster__name__in=scope.clusters)
    if scope.partitions:
        rows = rows.filter(partition__in=scope.partitions)
    counted = rows.values_list("cluster__name", "partition").annotate(Count("external_id"), Sum("requested_gpus"))
    return {(cluster, partition): Waiting(count, gpus) for cluster, partition, count, gpus in counted.order_by()}


def with_waiting(rows: list[dict[str, Any]], waiting: Mapping[tuple[str, str], Waiting]) -> list[dict[str, Any]]:
    """Rows by cluster and partition with a `waiting_count`; a record that asks for several partitions waits in each of them."""
    return [row | {"waiting_count": _count(waiting, row["cluster"], row["partition"])} for row in rows]


def _count(waiting: Mapping[tuple[str, str], Waiting], cluster: str, partition: str) -> int:
    return sum(one.record_count for (of, names), one in waiting.items() if of == cluster and _names(partition, names))


def _names(partition: str, names: str) -> bool:
    return partition == names or partition in names.split(",")
