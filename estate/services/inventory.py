"""Dated inventory: what a node has, where it belongs and how it is, kept as spans that close when an import says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from django.db import models
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from estate.domain.nodes import NodeFact
from estate.models import (
    Cluster,
    InventorySnapshot,
    Node,
    NodeInventory,
    NodePartition,
    NodeState,
    Partition,
    StateSource,
)
from estate.services import node_history
from estate.services.models_of_gpus import ModelIds

Row = TypeVar("Row", NodeInventory, NodePartition, NodeState)


class InventoryChange(NamedTuple):
    """Nodes named, nodes of which something changed, known nodes that were not named; whether this was the cluster's first inventory.

    `history_changed_at` is the first instant at which what lies between snapshots is told otherwise than before.
    """

    node_count: int
    changed_count: int
    absent_count: int
    is_first: bool
    history_changed_at: datetime | None = None


class _Hardware(NamedTuple):
    """GPUs of one model in a node, with the node's CPUs and memory."""

    gpu_count: int
    cpu_count: int | None
    memory_mib: int | None
    shard_count: int = 0

    @classmethod
    def of(cls, row: NodeInventory) -> _Hardware:
        return cls(row.gpu_count, row.cpu_count, row.memory_mib, row.shard_count)


@dataclass
class _Open:
    """The spans of a cluster that have no end yet, by node id."""

    inventory: dict[int, dict[int | None, NodeInventory]] = field(default_factory=dict)
    partitions: dict[int, dict[int, NodePartition]] = field(default_factory=dict)
    states: dict[int, dict[str, NodeState]] = field(default_factory=dict)


@dataclass
class _Plan:
    """Spans to end and to begin at `as_of`."""

    as_of: datetime
    begins_at: datetime | None
    ended: list[NodeInventory | NodePartition | NodeState] = field(default_factory=list)
    begun: list[NodeInventory | NodePartition | NodeState] = field(default_factory=list)
    changed_nodes: set[int] = field(default_factory=set)

    def end(self, row: NodeInventory | NodePartition | NodeState) -> None:
        self.ended.append(row)
        self.changed_nodes.add(row.node_id)

    def begin(self, row: NodeInventory | NodePartition | NodeState) -> None:
        self.begun.append(row)
        self.changed_nodes.add(row.node_id)


def apply(cluster: Cluster, facts: Iterable[NodeFact], as_of: datetime, complete: bool = False) -> InventoryChange:
    """Bring the open spans of `cluster` up to `facts` as they were at `as_of`; call inside a transaction.

    The first inventory of a cluster begins in the open past. A span that began after `as_of` is left alone, and states older than
    the newest look at the cluster are not taken: an old inventory does not overwrite a newer one. With `complete`, nodes that are
    not named end at `as_of`.
    """
    by_name = {fact.name: fact for fact in facts}
    is_first = not NodeInventory.objects.filter(node__cluster=cluster).exists()
    lifted = node_history.lift(cluster.pk, as_of)
    is_late = InventorySnapshot.objects.filter(cluster=cluster, seen_at__gt=as_of).exists()
    if not is_late and any(fact.state is not None for fact in by_name.values()):
        InventorySnapshot.objects.get_or_create(cluster=cluster, seen_at=as_of)
    open_spans = _open_spans(cluster)
    plan = _Plan(as_of, None if is_first else as_of)
    node_ids = _ids(Node, cluster, by_name)
    partition_ids = _ids(Partition, cluster, {name for fact in by_name.values() for name in fact.partitions})
    model_ids = ModelIds()
    for fact in by_name.values():
        node_id = node_ids[fact.name]
        _plan_hardware(plan, node_id, _hardware(fact, model_ids), open_spans.inventory.get(node_id, {}))
        wanted = {partition_ids[name] for name in fact.partitions}
        _plan_partitions(plan, node_id, wanted, open_spans.partitions.get(node_id, {}))
        if not is_late:
            _plan_state(plan, node_id, fact, open_spans.states.get(node_id, {}))
    absent = set(open_spans.inventory) - set(node_ids.values())
    if complete:
        _plan_departures(plan, absent, open_spans)
    _carry_out(plan)
    changed_at = node_history.lay(lifted)
    return InventoryChange(len(by_name), len(plan.changed_nodes), len(absent), is_first, changed_at)


def _hardware(fact: NodeFact, model_ids: ModelIds) -> dict[int | None, _Hardware]:
    """GPUs by model; a node without any is one row of no model."""
    counts: dict[int | None, int] = {}
    for part in fact.gpus:
        key = None if part.model is None else model_ids(part.model)
        counts[key] = counts.get(key, 0) + int(part.gpus)
    shards = {None if model is None else model_ids(model): count for model, count in fact.shards}
    # Shards that are named without a model are of the one model that the node has.
    alone = shards.pop(None, 0) if len(counts) == 1 and None not in counts else 0
    return {
        key: _Hardware(count, fact.cpu_count, fact.memory_mib, shards.get(key, alone))
        for key, count in (counts or {None: 0}).items()
    }


def _plan_hardware(
    plan: _Plan, node_id: int, wanted: Mapping[int | None, _Hardware], known: Mapping[int | None, NodeInventory]
) -> None:
    if any(_is_newer(row, plan.as_of) for row in known.values()):
        return
    for model_id, row in known.items():
        if wanted.get(model_id) != _Hardware.of(row):
            plan.end(row)
    for model_id, hardware in wanted.items():
        old = known.get(model_id)
        if old is None or hardware != _Hardware.of(old):
            span = DateTimeTZRange(plan.as_of if known else plan.begins_at, None)
            plan.begin(NodeInventory(node_id=node_id, gpu_model_id=model_id, valid_during=span, **hardware._asdict()))


def _plan_partitions(plan: _Plan, node_id: int, wanted: set[int], known: Mapping[int, NodePartition]) -> None:
    if any(_is_newer(row, plan.as_of) for row in known.values()):
        return
    for partition_id, row in known.items():
        if partition_id not in wanted:
            plan.end(row)
    span = DateTimeTZRange(plan.as_of if known else plan.begins_at, None)
    for partition_id in sorted(wanted - set(known)):
        plan.begin(NodePartition(node_id=node_id, partition_id=partition_id, valid_during=span))


def _plan_state(plan: _Plan, node_id: int, fact: NodeFact, known: Mapping[str, NodeState]) -> None:
    if fact.state is None or any(_is_newer(row, plan.as_of) for row in known.values()):
        return
    for row in known.values():
        if row.condition == fact.state and row.reason == fact.reason[:255]:
            return
        plan.end(row)
    if fact.state != "up":
        span = DateTimeTZRange(plan.as_of, None)
        state = NodeState(node_id=node_id, condition=fact.state, reason=fact.reason[:255], valid_during=span)
        state.author, state.reason_at = fact.author[:255], fact.reason_at
        plan.begin(state)


def _plan_departures(plan: _Plan, absent: Iterable[int], spans: _Open) -> None:
    groups: tuple[Mapping[int, Mapping[Any, NodeInventory | NodePartition | NodeState]], ...]
    groups = (spans.inventory, spans.partitions, spans.states)
    for node_id in absent:
        for group in groups:
            for row in group.get(node_id, {}).values():
                if not _is_newer(row, plan.as_of):
                    plan.end(row)


def _is_newer(row: NodeInventory | NodePartition | NodeState, as_of: datetime) -> bool:
    return row.valid_during.lower is not None and row.valid_during.lower > as_of


def _carry_out(plan: _Plan) -> None:
    """End before beginning: the exclusion constraints watch. A span that would last no time is removed."""
    for kind in (NodeInventory, NodePartition, NodeState):
        ended: list[Any] = [row for row in plan.ended if isinstance(row, kind)]
        begun: list[Any] = [row for row in plan.begun if isinstance(row, kind)]
        empty = [row.pk for row in ended if row.valid_during.lower == plan.as_of]
        kind._default_manager.filter(pk__in=empty).delete()
        for row in ended:
            row.valid_during = DateTimeTZRange(row.valid_during.lower, plan.as_of)
        kind._default_manager.bulk_update([row for row in ended if row.pk not in set(empty)], ["valid_during"], batch_size=1000)
        kind._default_manager.bulk_create(begun, batch_size=2000)


def _ids(kind: type[Any], cluster: Cluster, names: Iterable[str]) -> dict[str, int]:
    """Ids by name, with rows made for names that are new."""
    wanted = sorted(set(names))
    kind._default_manager.bulk_create(
        [kind(cluster=cluster, name=name) for name in wanted], ignore_conflicts=True, batch_size=2000
    )
    return dict(kind._default_manager.filter(cluster=cluster, name__in=wanted).values_list("name", "id"))


def _open_spans(cluster: Cluster) -> _Open:
    spans = _Open()
    for row in _open(NodeInventory, cluster):
        spans.inventory.setdefault(row.node_id, {})[row.gpu_model_id] = row
    for membership in _open(NodePartition, cluster):
        spans.partitions.setdefault(membership.node_id, {})[membership.partition_id] = membership
    for state in _open(NodeState, cluster).filter(source=StateSource.SNAPSHOT):
        spans.states.setdefault(state.node_id, {})[state.condition] = state
    return spans


def _open(kind: type[Row], cluster: Cluster) -> models.QuerySet[Row]:
    return kind._default_manager.filter(node__cluster=cluster, valid_during__upper_inf=True)
