"""How far to trust a report: what is not attributed, not taken in, not placed, not known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection

from accounting.domain.reconciliation import UNATTRIBUTED
from accounting.domain.reports import ReportRequest
from accounting.queries.usage import usage


class Knowledge(NamedTuple):
    """Of the clusters in scope: the earliest last sighting, the share of the period (up to now) that is known, lines not taken in."""

    data_through: datetime | None
    coverage_ratio: float | None
    rejected_count: int


KNOWLEDGE = """
WITH scoped AS (
    SELECT cluster.id, coverage.through_at, tstzrange(first_at, through_at) * tstzrange(%(start)s, %(end)s) AS known,
           (SELECT coalesce(sum(rejected_count), 0) FROM accounting_intake intake WHERE intake.cluster_id = cluster.id) AS rejected
    FROM estate_cluster cluster LEFT JOIN accounting_clustercoverage coverage ON coverage.cluster_id = cluster.id
    WHERE %(all)s OR cluster.name = ANY(%(clusters)s)
)
SELECT min(through_at), avg(coalesce(extract(epoch FROM upper(known) - lower(known)), 0)), coalesce(sum(rejected), 0)::bigint FROM scoped
"""


def knowledge(request: ReportRequest, now: datetime | None = None) -> Knowledge:
    """What is known of the period of `request`."""
    start = request.period.start
    end = max(start, min(request.period.end, now or datetime.now(UTC)))
    clusters = request.scope.clusters
    with connection.cursor() as cursor:
        cursor.execute(KNOWLEDGE, {"start": start, "end": end, "all": not clusters, "clusters": list(clusters)})
        through, seconds, rejected = cursor.fetchone()
    elapsed = (end - start).total_seconds()
    ratio = None if seconds is None or elapsed <= 0 else min(1.0, float(seconds) / elapsed)
    return Knowledge(through, ratio, rejected)


def unattributed_gpu_seconds(request: ReportRequest) -> int | str:
    """GPU-seconds of the request's scope that no project answers for."""
    rows = usage(replace(request, by=("project",)))
    found = sum((row.gpu_seconds for row in rows if row.dimensions[0] == UNATTRIBUTED), start=0)
    return int(found) if found == int(found) else format(found, "f")
