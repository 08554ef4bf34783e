"""What the Collectors page shows: sources with their last runs, and the quality of what came in by cluster."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from accounting.queries.freshness import Coverage, coverage_by_cluster, rejected_by_cluster
from collectors.asking import place
from collectors.backfills import Progress, progress_by_source
from collectors.models import Run, RunStatus, Source
from collectors.queries.runaways import runaway_counts
from estate.models import Cluster


class SourceRow(NamedTuple):
    """One source. `state` is ok, running, late, failing or off; `problem` says why it is not ok; `where` is what it reads."""

    source: Source
    where: str
    state: str
    problem: str
    last_good_run: Run | None
    through_at: datetime | None
    lag_seconds: float | None
    backfill: Progress | None


class QualityRow(NamedTuple):
    """One cluster: lines that its inputs had and that were not taken in, records that got lost, runs that did not end well."""

    cluster: str
    rejected_count: int
    runaway_count: int
    failed_count: int
    running_count: int
    first_at: datetime | None
    through_at: datetime | None


def source_rows(now: datetime) -> list[SourceRow]:
    """Every source in order of name; `lag_seconds` is how old its cluster's newest fact is at `now`."""
    newest = Run.objects.filter(source=OuterRef("pk")).order_by("-started_at", "-pk").values("pk")
    sources = list(
        Source.objects.select_related("cluster").annotate(
            last_run_id=Subquery(newest[:1]), last_good_id=Subquery(newest.filter(status=RunStatus.DONE)[:1])
        )
    )
    wanted = {run_id for source in sources for run_id in (source.last_run_id, source.last_good_id)}
    runs = Run.objects.in_bulk([run_id for run_id in wanted if run_id is not None])
    coverage, past = coverage_by_cluster(), progress_by_source()
    return [
        _source_row(
            source, runs.get(source.last_run_id), runs.get(source.last_good_id), coverage.get(source.cluster_id), now
        )._replace(backfill=past.get(source.pk))
        for source in sources
    ]


def quality_rows() -> list[QualityRow]:
    """Every cluster that had a run, in order of name."""
    rejected, coverage, lost = rejected_by_cluster(), coverage_by_cluster(), runaway_counts()
    clusters = Cluster.objects.filter(runs__isnull=False).annotate(
        failed=Count("runs", filter=Q(runs__status=RunStatus.FAILED)),
        running=Count("runs", filter=Q(runs__status=RunStatus.RUNNING)),
    )
    return [
        QualityRow(
            cluster.name,
            rejected.get(cluster.pk, 0),
            lost.get(cluster.pk, 0),
            cluster.failed,
            cluster.running,
            *coverage.get(cluster.pk, (None, None)),
        )
        for cluster in clusters.order_by("name")
    ]


def recent_runs() -> QuerySet[Run]:
    """Runs of all clusters, newest first."""
    return Run.objects.select_related("cluster", "source")


def _source_row(source: Source, last: Run | None, good: Run | None, coverage: Coverage | None, now: datetime) -> SourceRow:
    state, problem = _state(source, last, now)
    if coverage is None:
        return SourceRow(source, place(source), state, problem, good, None, None, None)
    lag = (now - coverage.through_at).total_seconds()
    return SourceRow(source, place(source), state, problem, good, coverage.through_at, lag, None)


def _state(source: Source, last: Run | None, now: datetime) -> tuple[str, str]:
    if not source.enabled:
        return "off", "switched off"
    if source.lease_until_at is not None and source.lease_until_at > now:
        return "running", ""
    if source.failure_count:
        why = last.message if last is not None and last.status == RunStatus.FAILED else "the last collection failed"
        return "failing", f"{source.failure_count} in a row: {why}"
    # Beat rings four times a minute: one that waits longer than this was not heard.
    if now - source.next_due_at > timedelta(minutes=2):
        return "late", "due, but not collected: are the worker and the scheduler running? (`manage.py up worker`, `up scheduler`)"
    return "ok", ""
