"""Where a report on records reads from: the daily rollup where it can answer exactly, else the facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection

from accounting.domain.reports import ReportRequest
from accounting.models import RollupZone
from accounting.queries import lines
from accounting.queries.dimensions import OF_RECORDS, ONLY_IN_FACTS, RECORD_FILTERS, compose
from estate.domain import periods


class Source(NamedTuple):
    """A common table expression `f` with a column `day`, and its parameters."""

    text: str
    params: dict[str, Any]


FROM_ROLLUP = """
f AS (
    SELECT * FROM accounting_usageday WHERE day >= %(first)s AND day < %(last)s
)"""

FROM_FACTS = """
{lines}, f AS (
    SELECT line.*, cpu_milliseconds / 1000.0 AS cpu_seconds, (%(days)s::date[])[bucket] AS day FROM line
)"""


def usage_source(request: ReportRequest) -> Source:
    """`f` with record_count, started_count, gpu_seconds, cpu_seconds and wall_seconds by day, who and GPU model."""
    if set(request.by) & set(ONLY_IN_FACTS) or request.zone.key != stored_zone():
        return from_facts(request)
    return from_rollup(request)


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


def from_rollup(request: ReportRequest) -> Source:
    return Source(FROM_ROLLUP, {"first": request.first, "last": request.last})


def from_facts(request: ReportRequest) -> Source:
    extra = [ONLY_IN_FACTS[name] for name in request.by if name in ONLY_IN_FACTS]
    text = FROM_FACTS.format(lines=lines.usage_lines(extra))
    return Source(text, {"days": periods.dates(request.first, request.last)} | lines.cut_params(midnights(request)))


def midnights(request: ReportRequest) -> list[datetime]:
    """The bounds of the request's days, one more than there are days."""
    return periods.midnights(request.first, request.last, request.zone)
