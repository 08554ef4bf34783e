"""Where a report on records reads from: the smallest daily rollup that can answer exactly, with facts for the days that are to be
rebuilt; else the facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection

from accounting.domain.reports import ReportRequest
from accounting.models import RollupZone
from accounting.queries import lines
from accounting.queries.dimensions import OF_RECORDS, ONLY_IN_FACTS, RECORD_FILTERS, compose
from estate.domain import periods


class Source(NamedTuple):
    """Common table expressions ending in `f` with a column `day`, and their parameters."""

    text: str
    params: dict[str, Any]


class Rollup(NamedTuple):
    """A daily rollup: its table, and the dimensions that only some rollups have."""

    table: str
    columns: str
    dimensions: frozenset[str]


# The smallest first.
ROLLUPS = (
    Rollup("accounting_queueday", "partition, qos, gpu_size", frozenset({"partition", "qos", "gpu_size"})),
    Rollup(
        "accounting_usageday",
        "partition, account, namespace",
        frozenset({"partition", "account", "namespace", "project", "cost_centre"}),
    ),
    Rollup(
        "accounting_userday",
        "account, namespace, user_name",
        frozenset({"account", "namespace", "project", "cost_centre", "user"}),
    ),
)
IN_EVERY_ROLLUP = frozenset({"cluster", "scheduler", "gpu_model", "day", "week", "month"})

_FIGURES = "gpu_model_id, record_count, started_count, gpu_seconds, cpu_seconds, wall_seconds"

FROM_ROLLUP = f"""
f AS (
    SELECT kept.cluster_id, day, {{columns}}, {_FIGURES} FROM {{table}} kept JOIN accounting_usagekey key ON key.id = kept.key_id
    WHERE day >= %(first)s AND day < %(last)s
)"""

FROM_FACTS = """
{lines}, f AS (
    SELECT line.*, cpu_milliseconds / 1000.0 AS cpu_seconds, (%(days)s::date[])[bucket] AS day FROM line
)"""

# A day of a cluster is read from one of the two only.
FROM_BOTH = f"""
{{lines}}, cut AS (
    SELECT line.*, cpu_milliseconds / 1000.0 AS cpu_seconds, (%(days)s::date[])[bucket] AS day FROM line
), f AS (
    SELECT kept.cluster_id, day, {{columns}}, {_FIGURES} FROM {{table}} kept JOIN accounting_usagekey key ON key.id = kept.key_id
    WHERE day >= %(first)s AND day < %(last)s
      AND NOT EXISTS (SELECT FROM accounting_dirtyday dirty WHERE dirty.cluster_id = kept.cluster_id AND dirty.day = kept.day)
    UNION ALL
    SELECT cluster_id, day, {{columns}}, {_FIGURES} FROM cut JOIN accounting_dirtyday dirty USING (cluster_id, day)
)"""

DIRTY = "SELECT min(day), max(day) FROM accounting_dirtyday WHERE day >= %s AND day < %s"


def usage_source(request: ReportRequest) -> Source:
    """`f` with record_count, started_count, gpu_seconds, cpu_seconds and wall_seconds by day, who and GPU model."""
    rollup = _rollup_for(request)
    if rollup is None or request.zone.key != stored_zone():
        return from_facts(request)
    return from_rollup(request, rollup)


def _rollup_for(request: ReportRequest) -> Rollup | None:
    """The smallest rollup that has every dimension that `request` groups or filters by."""
    scope = request.scope
    filtered = {"partition"} if scope.partitions else set()
    if scope.projects or scope.visible_projects is not None:
        filtered.add("project")
    wanted = (set(request.by) | filtered) - IN_EVERY_ROLLUP
    return next((rollup for rollup in ROLLUPS if wanted <= rollup.dimensions), None)


def usage_rows(request: ReportRequest, dimensions: Sequence[str], statement: str) -> list[tuple[Any, ...]]:
    """Rows of a grouped `statement` over {source}: the values of `by` first. Raises ReportError for an unknown dimension."""
    parts = compose(request, OF_RECORDS, dimensions, RECORD_FILTERS)
    source = usage_source(request)
    with connection.cursor() as cursor:
        cursor.execute(parts.into(statement, source=source.text), source.params | parts.params)
        return list(cursor.fetchall())


def stored_zone() -> str:
    """The zone in which the rollups were cut: not the estate's between a change of it and the next rebuild."""
    return RollupZone.objects.values_list("zone", flat=True).first() or settings.ESTATE_ZONE


def dirty_span(first: date, last: date) -> tuple[date, date] | None:
    """First and last (excluded) of the days in `[first, last)` that some cluster is yet to have rebuilt; None when there are none."""
    with connection.cursor() as cursor:
        cursor.execute(DIRTY, [first, last])
        start, end = cursor.fetchone()
    return None if start is None else (start, end + periods.ONE_DAY)


def from_rollup(request: ReportRequest, rollup: Rollup) -> Source:
    asked: dict[str, Any] = {"first": request.first, "last": request.last}
    dirty = dirty_span(request.first, request.last)
    if dirty is None:
        return Source(FROM_ROLLUP.format(table=rollup.table, columns=rollup.columns), asked)
    text = FROM_BOTH.format(lines=lines.usage_lines(), table=rollup.table, columns=rollup.columns)
    return Source(text, asked | _cuts(*dirty, request))


def from_facts(request: ReportRequest) -> Source:
    extra = [ONLY_IN_FACTS[name] for name in request.by if name in ONLY_IN_FACTS]
    return Source(FROM_FACTS.format(lines=lines.usage_lines(extra)), _cuts(request.first, request.last, request))


def _cuts(first: date, last: date, request: ReportRequest) -> dict[str, Any]:
    bounds = periods.midnights(first, last, request.zone)
    return {"days": periods.dates(first, last)} | lines.cut_params(bounds)


def midnights(request: ReportRequest) -> list[datetime]:
    """The bounds of the request's days, one more than there are days."""
    return periods.midnights(request.first, request.last, request.zone)
