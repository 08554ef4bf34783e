"""The data quality of one cluster: what is known, what is missing, what is odd."""

from __future__ import annotations

from datetime import date, datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import Count, Max

from accounting.queries import cluster_quality
from accounting.queries.cluster_quality import Oddities, Refused
from accounting.queries.freshness import Coverage
from accounting.queries.unseen import Unseen
from collectors.models import Rejection, Source
from collectors.queries.runaways import last_told, runaways
from estate.models import Cluster


class Gap(NamedTuple):
    """A span for which no live source was asked with success."""

    first_at: datetime
    last_at: datetime


class Reason(NamedTuple):
    """Lines refused for one reason, and the newest run that met it."""

    reason: str
    line_count: int
    run_id: int


class Finding(NamedTuple):
    """One check: `level` is good, warn or none (cannot be told); `text` is the finding in words."""

    level: str
    what: str
    text: str


class Quality(NamedTuple):
    cluster: Cluster
    coverage: Coverage | None
    sources: list[Source]
    findings: list[Finding]
    gaps: list[Gap]
    runaways: list[Unseen]
    refused: list[Refused]
    reasons: list[Reason]
    empty_days: list[tuple[date, date]]


def quality_of(cluster: Cluster) -> Quality:
    """All checks of one cluster."""
    coverage = cluster_quality.coverage_of(cluster.pk)
    sources = list(Source.objects.filter(cluster=cluster))
    told = last_told(cluster.name)
    gaps, lost = gaps_of(cluster.pk), runaways(cluster.name)
    refused, empty = cluster_quality.refused_inputs(cluster.pk), cluster_quality.empty_days(cluster.pk)
    findings = [
        _gaps(gaps, is_live=bool(told)),
        _empty(empty),
        _refused(refused),
        _tracking(cluster.pk),
        _runaways(lost, bool(told)),
    ]
    if coverage is not None:
        odd = cluster_quality.oddities(cluster.pk, coverage, cluster.zone_info)
        findings += [_unknown_gpus(odd), _ambiguous(odd, cluster), _skew(odd)]
        findings.append(_unplaced(cluster_quality.unplaced_gpu_seconds(cluster.pk)))
    return Quality(cluster, coverage, sources, findings, gaps, lost, refused, reasons_of(cluster.pk), empty)


def gaps_of(cluster_id: int) -> list[Gap]:
    """Holes between the first and the last time that live sources were asked for; at most fifty."""
    with connection.cursor() as cursor:
        cursor.execute(GAPS, {"cluster": cluster_id})
        return [Gap(*row) for row in cursor.fetchall()]


def reasons_of(cluster_id: int) -> list[Reason]:
    """Why lines that are kept and not taken in yet were refused, the most frequent first; at most twenty."""
    rows = Rejection.objects.filter(run__cluster_id=cluster_id, replayed_in=None).values_list("reason")
    counted = rows.annotate(lines=Count("pk"), newest=Max("run_id")).order_by("-lines", "reason")[:20]
    return [Reason(*row) for row in counted]


def _gaps(gaps: list[Gap], *, is_live: bool) -> Finding:
    if not is_live:
        return Finding("none", "Gaps", "Saved dumps do not say which span they cover")
    if not gaps:
        return Finding("good", "Gaps", "Its live sources were asked for every moment since the first")
    return Finding("warn", "Gaps", f"{len(gaps):,} spans were never asked for; read them with `collect backfill`")


def _empty(days: list[tuple[date, date]]) -> Finding:
    if not days:
        return Finding("good", "Empty days", "Something was submitted or ran on every day")
    count = sum((last - first).days + 1 for first, last in days)
    return Finding(
        "warn", "Empty days", f"On {count:,} days between the first and the last nothing was submitted and nothing ran"
    )


def _refused(refused: list[Refused]) -> Finding:
    if not refused:
        return Finding("good", "Rejected lines", "Every line of every input's newest reading was taken in")
    count = sum(one.rejected_count for one in refused)
    return Finding("warn", "Rejected lines", f"{count:,} lines in {len(refused):,} inputs, as of the newest reading of each")


def _tracking(cluster_id: int) -> Finding:
    tracking = cluster_quality.gpu_tracking(cluster_id)
    if not tracking.has_gpus:
        return Finding("none", "GPUs tracked", "No node with GPUs is in the inventory")
    if tracking.first_on is None:
        return Finding("none", "GPUs tracked", "Nothing is known of its usage yet")
    since = tracking.untracked_since
    if since is None:
        return Finding("good", "GPUs tracked", "Records say which GPUs they hold")
    text = f"GPUs are not tracked since {since:%Y-%m-%d}: {tracking.started_count:,} records started and none holds a GPU, "
    text += "although nodes have some. Its GPU figures are unknown, not 0; add gres/gpu to AccountingStorageTRES"
    return Finding("warn", "GPUs tracked", text)


def _runaways(lost: list[Unseen], is_live: bool) -> Finding:
    if not is_live:
        return Finding("none", "Runaway records", "No live source tells what runs now")
    if not lost:
        return Finding("good", "Runaway records", "All that runs or waits by the books was in the newest answer")
    return Finding(
        "warn",
        "Runaway records",
        f"{len(lost):,} records have not ended but are in no answer any more; usage ends at their last sighting",
    )


def _unknown_gpus(odd: Oddities) -> Finding:
    if not odd.unknown_gpus_count:
        return Finding("good", "GPU counts", "The GPUs of every record that started are known")
    return Finding(
        "warn",
        "GPU counts",
        f"Of {odd.unknown_gpus_count:,} of {odd.record_count:,} records the GPUs cannot be told (shards, or not tracked)",
    )


def _ambiguous(odd: Oddities, cluster: Cluster) -> Finding:
    if not odd.ambiguous_count:
        return Finding("good", "Ambiguous times", f"No record of a dump has a time in an hour that {cluster.zone} repeats")
    text = f"{odd.ambiguous_count:,} records of dumps have a time in an hour that {cluster.zone} repeats; the order of their events decided"
    return Finding("warn", "Ambiguous times", text)


def _skew(odd: Oddities) -> Finding:
    if not odd.before_eligible_count:
        return Finding("good", "Order of events", "No record starts before it was eligible")
    return Finding(
        "warn",
        "Order of events",
        f"{odd.before_eligible_count:,} records start before they were eligible: clocks apart, or changed by hand",
    )


def _unplaced(gpu_seconds: float) -> Finding:
    if not gpu_seconds:
        return Finding("good", "Known nodes", "All GPU time was held on nodes of the inventory")
    return Finding(
        "warn", "Known nodes", f"{gpu_seconds / 3600:,.0f} GPU-hours were held on nodes that the inventory did not have then"
    )


GAPS = """
WITH asked AS (
    SELECT range_agg(tstzrange(window_from, window_to)) AS spans, min(window_from) AS first, max(window_to) AS last
    FROM collectors_run WHERE cluster_id = %(cluster)s AND status = 'done' AND window_from < window_to
)
SELECT lower(gap), upper(gap) FROM asked, unnest(tstzmultirange(tstzrange(first, last)) - spans) AS gap ORDER BY 1 DESC LIMIT 50
"""
