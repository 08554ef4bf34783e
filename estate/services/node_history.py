"""The states of nodes between snapshots, rebuilt from evidence: node events and reservations. What a snapshot saw is never touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Q

from estate.domain.node_history import FOREVER, Span, filled
from estate.models import InventorySnapshot, Node, NodeEventRecord, NodeState, Reservation, StateSource

Seen = tuple[datetime, datetime]


@dataclass(slots=True)
class Lifted:
    """Nodes of which the history is being rebuilt, by name, and what it was."""

    cluster_id: int
    node_ids: dict[str, int] = field(default_factory=dict)
    before: set[tuple[int, Span]] = field(default_factory=set)


def lift(cluster_id: int, since: datetime, also: Iterable[str] = ()) -> Lifted:
    """Take away the history of every node of which evidence reaches beyond `since` and of those named in `also`; `lay` puts it back."""
    lifted = Lifted(cluster_id, _nodes_with_evidence(cluster_id, since) | _by_name(cluster_id, also))
    rows = NodeState.objects.filter(source=StateSource.HISTORY, node__in=lifted.node_ids.values())
    lifted.before = {(row.node_id, _span(row)) for row in rows}
    rows.delete()
    return lifted


def lay(lifted: Lifted) -> datetime | None:
    """Build the history of the lifted nodes from the evidence; returns the first instant at which it is another one than before."""
    evidence = _evidence(lifted.cluster_id, lifted.node_ids)
    looks = _looks(lifted.cluster_id, [span.start for spans in evidence.values() for span in spans])
    seen = _seen(evidence)
    after = {(node_id, span) for node_id, spans in evidence.items() for span in filled(seen.get(node_id, []), looks, spans)}
    NodeState.objects.bulk_create([_row(node_id, span) for node_id, span in sorted(after)], batch_size=1000)
    return min((span.start for _, span in lifted.before ^ after), default=None)


def _nodes_with_evidence(cluster_id: int, since: datetime) -> dict[str, int]:
    lasting = Q(events__ended_at__isnull=True) | Q(events__ended_at__gt=since)
    nodes = dict(Node.objects.filter(lasting, cluster_id=cluster_id, events__isnull=False).values_list("name", "id"))
    names: set[str] = set()
    for row in Reservation.objects.filter(cluster_id=cluster_id, valid_during__overlap=DateTimeTZRange(since, None)):
        names.update(row.node_names)
    return nodes | _by_name(cluster_id, names)


def _by_name(cluster_id: int, names: Iterable[str]) -> dict[str, int]:
    wanted = sorted(set(names))
    return dict(Node.objects.filter(cluster_id=cluster_id, name__in=wanted).values_list("name", "id")) if wanted else {}


def _evidence(cluster_id: int, nodes: dict[str, int]) -> dict[int, list[Span]]:
    spans: dict[int, list[Span]] = {}
    if not nodes:
        return spans
    for event in NodeEventRecord.objects.filter(node__in=nodes.values()):
        end = event.ended_at or FOREVER
        if end > event.started_at:
            span = Span(event.started_at, end, event.condition, event.reason, event.author)
            spans.setdefault(event.node_id, []).append(span)
    for row in Reservation.objects.filter(cluster_id=cluster_id, node_names__overlap=sorted(nodes)):
        condition = "planned_down" if row.is_maintenance else "reserved"
        span = Span(row.valid_during.lower, row.valid_during.upper or FOREVER, condition, f"reservation {row.name}"[:255])
        for name in row.node_names:
            if name in nodes:
                spans.setdefault(nodes[name], []).append(span)
    return spans


def _looks(cluster_id: int, starts: Sequence[datetime]) -> list[datetime]:
    """When the cluster was looked at, from the earliest evidence on."""
    if not starts:
        return []
    rows = InventorySnapshot.objects.filter(cluster_id=cluster_id, seen_at__gte=min(starts)).order_by("seen_at")
    return list(rows.values_list("seen_at", flat=True))


def _seen(node_ids: Iterable[int]) -> dict[int, list[Seen]]:
    seen: dict[int, list[Seen]] = {}
    for row in NodeState.objects.filter(source=StateSource.SNAPSHOT, node__in=list(node_ids)).order_by("valid_during"):
        seen.setdefault(row.node_id, []).append((row.valid_during.lower, row.valid_during.upper or FOREVER))
    return seen


def _span(row: NodeState) -> Span:
    return Span(row.valid_during.lower, row.valid_during.upper or FOREVER, row.condition, row.reason, row.author)


def _row(node_id: int, span: Span) -> NodeState:
    during = DateTimeTZRange(span.start, None if span.end == FOREVER else span.end)
    return NodeState(
        node_id=node_id,
        condition=span.condition,
        reason=span.reason,
        author=span.author,
        source=StateSource.HISTORY,
        valid_during=during,
    )
