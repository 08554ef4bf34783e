"""What is odd in the facts of one cluster: questions whose answers say how far its figures can be trusted."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.db import connection

from accounting.models import ClusterCoverage, Intake
from accounting.queries.freshness import Coverage
from estate.domain.periods import Period, repeated_hours

QUIET_DAYS = 7


class GpuTracking(NamedTuple):
    """Whether GPUs are accounted for: `last_on` is the last day on which any record held one, `started_count` what started after it."""

    has_gpus: bool
    first_on: date | None
    last_on: date | None
    through_on: date | None
    started_count: int

    @property
    def untracked_since(self) -> date | None:
        """The day from which on records start but none holds a GPU although nodes have some; None while they are tracked."""
        if not self.has_gpus or not self.started_count or self.first_on is None or self.through_on is None:
            return None
        since = self.last_on or self.first_on
        return since if self.last_on is None or (self.through_on - since).days >= QUIET_DAYS else None


class Oddities(NamedTuple):
    """Counts of records of one cluster."""

    record_count: int
    unknown_gpus_count: int
    before_eligible_count: int
    ambiguous_count: int


class Refused(NamedTuple):
    """Lines of one input that were not taken in when it was last read."""

    input_name: str
    rejected_count: int


def coverage_of(cluster_id: int) -> Coverage | None:
    """From when to when its usage is known; None without any."""
    found = ClusterCoverage.objects.filter(cluster_id=cluster_id).values_list("first_at", "through_at").first()
    return None if found is None else Coverage(*found)


def refused_inputs(cluster_id: int) -> list[Refused]:
    """Inputs with refused lines, the most first."""
    rows = Intake.objects.filter(cluster_id=cluster_id, rejected_count__gt=0).order_by("-rejected_count", "input_name")
    return [Refused(*row) for row in rows.values_list("input_name", "rejected_count")]


def gpu_tracking(cluster_id: int) -> GpuTracking:
    """Of the rollups by day."""
    return GpuTracking(*_one(GPU_TRACKING, {"cluster": cluster_id}))


def oddities(cluster_id: int, coverage: Coverage, zone: ZoneInfo) -> Oddities:
    """`ambiguous_count` is of records from dumps with a time in the hour that the autumn's change of clocks repeats in `zone`."""
    twice = repeated_hours(Period(coverage.first_at, max(coverage.first_at, coverage.through_at)), zone)
    facts = {
        "cluster": cluster_id,
        "starts": [period.start for period in twice],
        "ends": [period.end for period in twice],
    }
    return Oddities(*_one(ODDITIES, facts), *_one(AMBIGUOUS, facts))


def unplaced_gpu_seconds(cluster_id: int) -> float:
    """GPU time held on no node of the inventory."""
    return float(_one(UNPLACED, {"cluster": cluster_id})[0])


def empty_days(cluster_id: int) -> list[tuple[date, date]]:
    """Stretches of whole days `(first, last)`, both included, between the first and the last day known on which nothing was submitted,
    started or used: the longest first, at most ten."""
    with connection.cursor() as cursor:
        cursor.execute(EMPTY_DAYS, {"cluster": cluster_id})
        return list(cursor.fetchall())


def newest_observation(cluster_id: int) -> datetime | None:
    """When a live source was last asked with any answer."""
    found: datetime | None = _one(NEWEST, {"cluster": cluster_id})[0]
    return found


def _one(statement: str, params: dict[str, Any]) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        row: tuple[Any, ...] = cursor.fetchone()
        return row


GPU_TRACKING = """
WITH by_day AS (
    SELECT day, sum(gpu_seconds) AS gpu_seconds, sum(started_count) AS started
    FROM accounting_usageday WHERE cluster_id = %(cluster)s GROUP BY day
), known AS (
    SELECT min(day) AS first_on, max(day) FILTER (WHERE gpu_seconds > 0) AS last_on, max(day) AS through_on FROM by_day
)
SELECT EXISTS (
           SELECT FROM estate_nodeinventory inventory JOIN estate_node node ON node.id = node_id
           WHERE node.cluster_id = %(cluster)s AND gpu_count > 0),
       first_on, last_on, through_on,
       coalesce((SELECT sum(started) FROM by_day WHERE last_on IS NULL OR day > last_on), 0)::bigint
FROM known
"""

ODDITIES = """
SELECT count(*), count(*) FILTER (WHERE started_at IS NOT NULL AND gpus IS NULL), count(*) FILTER (WHERE started_at < eligible_at)
FROM accounting_usagerecord WHERE cluster_id = %(cluster)s
"""

AMBIGUOUS = """
SELECT count(*) FROM accounting_usagerecord record
WHERE cluster_id = %(cluster)s AND observed_at IS NULL AND EXISTS (
    SELECT FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS twice (since, until)
    WHERE (submitted_at >= since AND submitted_at < until) OR (started_at >= since AND started_at < until)
       OR (ended_at >= since AND ended_at < until))
"""

UNPLACED = "SELECT coalesce(sum(unplaced_gpu_seconds), 0) FROM accounting_nodeday WHERE cluster_id = %(cluster)s"

NEWEST = "SELECT max(observed_at) FROM accounting_usagerecord WHERE cluster_id = %(cluster)s"

EMPTY_DAYS = """
WITH present AS (
    SELECT DISTINCT day FROM accounting_usageday WHERE cluster_id = %(cluster)s
), gap AS (
    SELECT day + 1 AS first, lead(day) OVER (ORDER BY day) - 1 AS last FROM present
)
SELECT first, last FROM gap WHERE last >= first ORDER BY last - first DESC, first LIMIT 10
"""
