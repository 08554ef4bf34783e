"""The line in the page head that says how far each cluster's usage is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django import template
from django.utils import timezone

from accounting.queries.freshness import coverage_by_cluster
from estate.domain.periods import first_of_next_month
from estate.domain.units import duration_text
from estate.models import Cluster

register = template.Library()

LATE_AFTER = timedelta(hours=2)
SHOWN = 6


class FreshnessLine(NamedTuple):
    """One cluster: what is said of it, the instant up to which its usage is known, and whether that is late."""

    text: str
    through_at: datetime | None
    late: bool


def freshness_line(cluster: Cluster, through_at: datetime | None, now: datetime) -> FreshnessLine:
    """`Slurm alpha to 14:05 UTC · 3 h late`; the date too when it is not today."""
    name = f"{cluster.get_scheduler_display()} {cluster.name}"
    if through_at is None:
        return FreshnessLine(f"{name}: no usage yet", None, True)
    behind = now - through_at
    instant = through_at.astimezone(UTC)
    shown = f"{instant:%H:%M} UTC" if instant.date() == now.astimezone(UTC).date() else f"{instant:%Y-%m-%d %H:%M} UTC"
    late = behind > LATE_AFTER
    return FreshnessLine(f"{name} to {shown}" + (f" · {_rounded(behind)} late" if late else ""), through_at, late)


def _rounded(behind: timedelta) -> str:
    unit = timedelta(days=1) if behind >= timedelta(days=2) else timedelta(hours=1)
    return duration_text((behind // unit) * unit.total_seconds())


@register.inclusion_tag("components/_freshness.html")
def freshness() -> dict[str, Any]:
    """One line per cluster, the first six; how many more there are."""
    known = coverage_by_cluster()
    now = timezone.now()
    clusters = list(Cluster.objects.all())
    lines = [
        freshness_line(cluster, known[cluster.pk].through_at if cluster.pk in known else None, now)
        for cluster in clusters[:SHOWN]
    ]
    return {"lines": lines, "more": len(clusters) - len(lines)}


class KnownSpan(NamedTuple):
    """Where there is usage: in words, and the address of the last month of it."""

    text: str
    href: str


@register.simple_tag
def known_span() -> KnownSpan | None:
    """From when to when usage is known of any cluster; None before the first import."""
    known = coverage_by_cluster().values()
    if not known:
        return None
    first, through = min(one.first_at for one in known), max(one.through_at for one in known)
    last_month = through.date().replace(day=1)
    href = f"?from={last_month}&to={first_of_next_month(last_month)}"
    return KnownSpan(f"Usage is known from {first.date()} to {through.date()}: show the last month of it", href)
