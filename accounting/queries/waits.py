"""How long requests waited (report `waits`): records submitted in the period, with those that have not started as "at least this long"."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from django.db import connection

from accounting.domain.quantiles import WaitSummary, median_of, summary_of
from accounting.domain.reports import ReportRequest, Value
from accounting.queries.dimensions import OF_RECORDS, RECORD_FILTERS, compose
from accounting.queries.lines import cut_params, epoch
from accounting.queries.sources import midnights
from estate.domain import periods

DIMENSIONS = [
    "cluster",
    "scheduler",
    "partition",
    "project",
    "account",
    "namespace",
    "user",
    "gpu_model",
    "gpu_size",
    "qos",
    "day",
    "week",
    "month",
]


class WaitRow(NamedTuple):
    """Waits of one group in whole seconds; quantiles by Kaplan–Meier when some are censored."""

    dimensions: tuple[Value, ...]
    waits: WaitSummary
    p50_submit_to_start_seconds: int | None


class _Waits(NamedTuple):
    """All waits of a group, rising: from eligible and from submission, of those that started and of those that have not."""

    started: list[int]
    censored: list[int]
    submit_to_start: list[int]
    submit_censored: list[int]


# wait = start − eligible (eligible = submission unless the source says otherwise); censored ones count to their last sighting.
WAITS = f"""
WITH fact AS (
    SELECT cluster_id, partition, account, namespace, user_name, qos, gpu_size, started_at IS NOT NULL AS started,
           coalesce(gpu_model_ids[1], requested_gpu_model_id) AS gpu_model_id, submitted_at,
           {epoch("submitted_at")} AS submitted, {epoch("coalesce(eligible_at, submitted_at)")} AS eligible,
           {epoch("coalesce(started_at, last_seen_at)")} AS reached
    FROM accounting_usagerecord
    WHERE submitted_at >= %(start)s AND submitted_at < %(end)s OFFSET 0
), f AS (
    SELECT *, (%(days)s::date[])[width_bucket(submitted_at, %(instants)s::timestamptz[])] AS day,
           greatest(0, reached - eligible) AS wait, greatest(0, reached - submitted) AS from_submission
    FROM fact
)
SELECT {{selected}}
       coalesce(array_agg(wait) FILTER (WHERE started), '{{{{}}}}'),
       coalesce(array_agg(wait) FILTER (WHERE NOT started), '{{{{}}}}'),
       coalesce(array_agg(from_submission) FILTER (WHERE started), '{{{{}}}}'),
       coalesce(array_agg(from_submission) FILTER (WHERE NOT started), '{{{{}}}}')
FROM f {{joins}} WHERE {{condition}} {{grouping}}
"""


def waits(request: ReportRequest) -> tuple[list[WaitRow], WaitRow]:
    """One row per combination of `by`, and the one over all; raises ReportError for an unknown dimension."""
    parts = compose(request, OF_RECORDS, DIMENSIONS, RECORD_FILTERS)
    params = {"days": periods.dates(request.first, request.last)} | cut_params(midnights(request))
    with connection.cursor() as cursor:
        cursor.execute(parts.into(WAITS), params | parts.params)
        groups = [(row[:-4], _Waits(*map(sorted, row[-4:]))) for row in cursor.fetchall()]
    everything = _Waits(*(_chained(group[number] for _, group in groups) for number in range(4)))
    return [_row(dimensions, group) for dimensions, group in groups], _row((), everything)


def _row(dimensions: tuple[Value, ...], group: _Waits) -> WaitRow:
    median = median_of(group.submit_to_start, group.submit_censored)
    return WaitRow(dimensions, summary_of(group.started, group.censored), median)


def _chained(lists: Iterable[list[int]]) -> list[int]:
    """All waits, rising (the lists are runs already, which the sort only merges)."""
    return sorted(chain.from_iterable(lists))
