"""How far the usage of each cluster is known, and how much of the input was not taken in."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import Sum

from accounting.models import ClusterCoverage, Intake


class Coverage(NamedTuple):
    """From the first submission to the last sighting that is known of a cluster."""

    first_at: datetime
    through_at: datetime


def coverage_by_cluster() -> dict[int, Coverage]:
    """Coverage by cluster id; a cluster without any usage has no entry."""
    rows = ClusterCoverage.objects.values_list("cluster_id", "first_at", "through_at")
    return {cluster_id: Coverage(first_at, through_at) for cluster_id, first_at, through_at in rows}


def rejected_by_cluster() -> dict[int, int]:
    """Lines that could not be taken in, by cluster id, as of the newest reading of each input."""
    rows = Intake.objects.values("cluster_id").annotate(count=Sum("rejected_count")).order_by()
    return {row["cluster_id"]: row["count"] for row in rows}
