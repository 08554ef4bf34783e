"""What exists now, and what a node was: small look-ups in the dated inventory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Prefetch, QuerySet

from estate.models import Cluster, GpuModel, Node, NodeInventory, NodePartition, NodeState

NO_MODEL = "unknown model"
AWAY = frozenset({"down", "planned_down"})


@dataclass(slots=True, kw_only=True)
class NodeNow:
    """A node at one instant. `gpus` are counts by model name; `condition` is empty when it is up, else since `since`."""

    node_id: int
    cluster: str
    name: str
    gpus: dict[str, int] = field(default_factory=dict)
    cpu_count: int | None = None
    memory_mib: int | None = None
    partitions: list[str] = field(default_factory=list)
    condition: str = ""
    reason: str = ""
    author: str = ""
    since: datetime | None = None

    @property
    def gpu_count(self) -> int:
        return sum(self.gpus.values())


class NodeScope(NamedTuple):
    """Names; empty means all. `text` is a part of a node's name."""

    clusters: Iterable[str] = ()
    partitions: Iterable[str] = ()
    gpu_models: Iterable[str] = ()
    text: str = ""


EVERYWHERE = NodeScope()


def nodes_at(instant: datetime, scope: NodeScope = EVERYWHERE) -> list[NodeNow]:
    """The nodes in the inventory at `instant`, by cluster and name. Three queries, however many nodes."""
    found: dict[int, NodeNow] = {}
    for row in _inventory(instant, scope):
        node = found.setdefault(
            row.node_id,
            NodeNow(
                node_id=row.node_id,
                cluster=row.node.cluster.name,
                name=row.node.name,
                cpu_count=row.cpu_count,
                memory_mib=row.memory_mib,
            ),
        )
        if row.gpu_count:
            node.gpus[row.gpu_model.name if row.gpu_model else NO_MODEL] = row.gpu_count
    _add_partitions(found, instant)
    _add_conditions(found, instant)
    wanted = set(scope.partitions)
    return [node for node in found.values() if not wanted or wanted & set(node.partitions)]


def gpu_nodes_during(start: datetime, end: datetime, scope: NodeScope = EVERYWHERE) -> list[tuple[str, str]]:
    """(cluster, name) of the nodes that had GPUs at some time of `[start, end)`, in order."""
    rows = NodeInventory.objects.filter(valid_during__overlap=DateTimeTZRange(start, end), gpu_count__gt=0)
    if scope.clusters:
        rows = rows.filter(node__cluster__name__in=scope.clusters)
    if scope.gpu_models:
        rows = rows.filter(gpu_model__name__in=scope.gpu_models)
    if scope.partitions:
        inside = NodePartition.objects.filter(
            valid_during__overlap=DateTimeTZRange(start, end), partition__name__in=scope.partitions
        )
        rows = rows.filter(node_id__in=inside.values("node_id"))
    return sorted(set(rows.values_list("node__cluster__name", "node__name")))


def _inventory(instant: datetime, scope: NodeScope) -> QuerySet[NodeInventory]:
    rows = NodeInventory.objects.filter(valid_during__contains=instant).select_related("node__cluster", "gpu_model")
    if scope.clusters:
        rows = rows.filter(node__cluster__name__in=scope.clusters)
    if scope.gpu_models:
        rows = rows.filter(gpu_model__name__in=scope.gpu_models)
    if scope.text:
        rows = rows.filter(node__name__icontains=scope.text)
    return rows.order_by("node__cluster__name", "node__name", "gpu_model__name")


def _add_partitions(found: dict[int, NodeNow], instant: datetime) -> None:
    rows = NodePartition.objects.filter(valid_during__contains=instant).order_by("partition__name")
    for node_id, name in rows.values_list("node_id", "partition__name"):
        if node_id in found:
            found[node_id].partitions.append(name)


def _add_conditions(found: dict[int, NodeNow], instant: datetime) -> None:
    for state in NodeState.objects.filter(valid_during__contains=instant):
        if state.node_id in found:
            node = found[state.node_id]
            node.condition, node.reason, node.since = state.condition, state.reason, state.valid_during.lower
            node.author = state.author


def find_node(cluster: str, name: str) -> Node:
    """One node with its dated inventory, partitions and states, newest first; raises Node.DoesNotExist."""
    if "\0" in cluster + name:  # no text of PostgreSQL holds it, so asking would be an error of the database
        raise Node.DoesNotExist
    newest_first = (
        Prefetch("inventory", NodeInventory.objects.select_related("gpu_model").order_by("-valid_during")),
        Prefetch("memberships", NodePartition.objects.select_related("partition").order_by("-valid_during")),
        Prefetch("states", NodeState.objects.order_by("-valid_during")),
    )
    return Node.objects.select_related("cluster").prefetch_related(*newest_first).get(cluster__name=cluster, name=name)


def models_of(nodes: Iterable[NodeNow]) -> dict[str, int]:
    """GPUs by model over `nodes`."""
    counts: dict[str, int] = {}
    for node in nodes:
        for model, gpus in node.gpus.items():
            counts[model] = counts.get(model, 0) + gpus
    return counts


def clusters() -> list[Cluster]:
    return list(Cluster.objects.all())


def gpu_models() -> list[GpuModel]:
    """All GPU models with their dated rates."""
    return list(GpuModel.objects.prefetch_related("rates"))


def shards_per_gpu(cluster: Cluster) -> int | None:
    """Into how many shards the GPUs of `cluster` are divided now (or were last); None when none are, or not all alike."""
    rows = NodeInventory.objects.filter(node__cluster=cluster, shard_count__gt=0, gpu_count__gt=0)
    current = rows.filter(valid_during__upper_inf=True)
    found = set((current if current.exists() else rows).values_list("shard_count", "gpu_count"))
    ratios = {Fraction(shards, gpus) for shards, gpus in found}
    only = ratios.pop() if len(ratios) == 1 else None
    return only.numerator if only is not None and only.denominator == 1 else None
