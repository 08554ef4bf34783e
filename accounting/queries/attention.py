"""What needs somebody's attention: at most seven lines, the worst first."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from accounting.domain.reconciliation import UNATTRIBUTED
from accounting.models import Rate
from accounting.queries.freshness import coverage_by_cluster, rejected_by_cluster
from estate.domain.units import HOUR
from estate.models import Cluster, GpuModel
from estate.queries.inventory import NodeNow, models_of

LATE_AFTER = timedelta(hours=2)
DOWN_FOR = timedelta(days=1)
MOST_LINES = 7


class Finding(NamedTuple):
    """A line: how bad (`bad` or `warn`), what is the matter, the route that shows it and the parameters to set there."""

    level: str
    text: str
    route: str
    parameters: tuple[tuple[str, str], ...] = ()


def findings(nodes: list[NodeNow], unattributed_gpu_seconds: float, now: datetime) -> list[Finding]:
    """The lines for an estate with `nodes` at `now` and so much usage that no project answers for."""
    lines = [*_late_clusters(now), *_long_down(nodes, now), *_unattributed(unattributed_gpu_seconds)]
    lines += [*_without_rate(nodes, now), *_rejected()]
    return sorted(lines, key=lambda line: line.level != "bad")[:MOST_LINES]


def _late_clusters(now: datetime) -> list[Finding]:
    known = coverage_by_cluster()
    lines = []
    for cluster in Cluster.objects.all():
        coverage = known.get(cluster.pk)
        if coverage is None:
            lines.append(Finding("warn", f"Nothing is known yet of the usage of {cluster.name}", "collectors"))
        elif now - coverage.through_at > LATE_AFTER:
            lines.append(Finding("warn", f"Usage of {cluster.name} ends {_long(now - coverage.through_at)} ago", "collectors"))
    return lines


def _long(length: timedelta) -> str:
    return f"{length.days:,} days" if length.days > 1 else f"{length.total_seconds() // 3600:.0f} hours"


def _long_down(nodes: list[NodeNow], now: datetime) -> list[Finding]:
    down = [node for node in nodes if node.condition == "down" and (node.since is None or now - node.since > DOWN_FOR)]
    if not down:
        return []
    gpus = sum(node.gpu_count for node in down)
    names = ", ".join(node.name for node in down[:3]) + (f" and {len(down) - 3} more" if len(down) > 3 else "")
    return [Finding("bad", f"Down for over a day: {names} ({gpus:,} GPUs)", "estate", (("sort", "condition"),))]


def _unattributed(gpu_seconds: float) -> list[Finding]:
    if not gpu_seconds:
        return []
    text = f"{gpu_seconds / HOUR:,.0f} GPU-hours belong to no project: map their accounts"
    return [Finding("warn", text, "costs", (("project", UNATTRIBUTED), ("of", "account")))]


def _without_rate(nodes: list[NodeNow], now: datetime) -> list[Finding]:
    priced = set(Rate.objects.filter(valid_during__contains=now.date()).values_list("gpu_model__name", flat=True))
    known = set(GpuModel.objects.values_list("name", flat=True))
    missing = sorted(model for model in models_of(nodes) if model in known and model not in priced)
    return [Finding("warn", f"No rate is in force today for {', '.join(missing)}", "estate")] if missing else []


def _rejected() -> list[Finding]:
    count = sum(rejected_by_cluster().values())
    return [Finding("warn", f"{count:,} lines of the input could not be taken in", "collectors")] if count else []
