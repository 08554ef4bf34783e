"""The writer of what a scheduler enforces: dated rows that a reading confirms, changes or ends.

The same reading twice changes nothing. Each section has its own clock: a reading that is older than the one before is refused, not
mixed in. Call inside a transaction that holds the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from estate.domain.policy import AssociationFact, Limit, PolicyFacts, QosFact, ShareFact
from estate.models import (
    Association,
    Cluster,
    FairShare,
    Node,
    NodeEventRecord,
    Partition,
    PartitionRule,
    PolicyReading,
    Qos,
    SchedulerAccount,
    SchedulerConfig,
    SchedulerLimit,
)
from estate.services import dated, node_history
from estate.services.reservations import write_past_reservations, write_reservations

# Reservations of the past first: those that are in force say more and have the last word.
SECTIONS = ("config", "partitions", "past_reservations", "reservations", "accounts", "associations", "qos", "shares", "events")


class PolicyChange(NamedTuple):
    """How many rows changed by section, which sections were refused as older than what is known, and from when on nodes' past differs."""

    changed_counts: dict[str, int]
    refused: tuple[str, ...]
    history_changed_at: datetime | None

    @property
    def changed_count(self) -> int:
        return sum(self.changed_counts.values())


def apply(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> PolicyChange:
    """Bring the policy of `cluster` up to `facts` as read at `as_of`."""
    given = [section for section in SECTIONS if getattr(facts, section) is not None]
    read_at = dict(PolicyReading.objects.filter(cluster=cluster).values_list("section", "read_at"))
    refused = tuple(section for section in given if section in read_at and read_at[section] > as_of)
    taken = [section for section in given if section not in refused]
    has_evidence = bool({"events", "reservations", "past_reservations"} & set(taken))
    lifted = node_history.lift(cluster.pk, _earliest(facts, as_of), also=_nodes_named(facts)) if has_evidence else None
    counts = {section: WRITERS[section](cluster, facts, as_of) for section in taken}
    for section in taken:
        PolicyReading.objects.update_or_create(cluster=cluster, section=section, defaults={"read_at": as_of})
    changed_at = None if lifted is None else node_history.lay(lifted)
    return PolicyChange(counts, refused, changed_at)


def _earliest(facts: PolicyFacts, as_of: datetime) -> datetime:
    """The first instant that the evidence may speak of."""
    starts = [event.started_at for event in facts.events or ()]
    starts += [each.starts_at for each in (*(facts.reservations or ()), *(facts.past_reservations or ()))]
    return min([as_of, *starts])


def _nodes_named(facts: PolicyFacts) -> set[str]:
    names = {event.node for event in facts.events or ()}
    for each in (*(facts.reservations or ()), *(facts.past_reservations or ())):
        names.update(each.nodes)
    return names


def _write_config(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    if facts.config is None:
        return 0
    values = facts.config._asdict() | {"weights": dict(facts.config.weights)}
    for name in ("enforces", "tracked_tres", "gres_types", "private_data"):
        values[name] = list(values[name])
    rows = SchedulerConfig.objects.filter(cluster=cluster)
    return dated.replace(rows, (), {(): values}, as_of, complete=True, fixed={"cluster": cluster})


def _write_partitions(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    wanted: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for fact in facts.partitions or ():
        partition, _ = Partition.objects.get_or_create(cluster=cluster, name=fact.name)
        values = {name: _plain(value) for name, value in fact._asdict().items() if name != "name"}
        wanted[(partition.pk,)] = values
    rows = PartitionRule.objects.filter(partition__cluster=cluster)
    return dated.replace(rows, ("partition_id",), wanted, as_of, complete="partitions" not in facts.incomplete, fixed={})


def _write_accounts(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    wanted = {
        (fact.name,): {"parent_name": fact.parent, "description": fact.description, "organisation": fact.organisation}
        for fact in facts.accounts or ()
    }
    rows = SchedulerAccount.objects.filter(cluster=cluster)
    complete = "accounts" not in facts.incomplete
    return dated.replace(rows, ("name",), wanted, as_of, complete=complete, fixed={"cluster": cluster})


def _write_associations(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    wanted = {(fact.account, fact.user, fact.partition): _shares(fact) for fact in facts.associations or ()}
    limits = {
        (fact.account, fact.user, fact.partition, "", *limit[:2]): limit
        for fact in facts.associations or ()
        for limit in fact.limits
    }
    complete = "associations" not in facts.incomplete
    rows = Association.objects.filter(cluster=cluster)
    key = ("account", "user_name", "partition_name")
    changed = dated.replace(rows, key, wanted, as_of, complete=complete, fixed={"cluster": cluster})
    return changed + _write_limits(cluster, limits, as_of, complete, of_qos=False)


def _shares(fact: AssociationFact) -> Mapping[str, Any]:
    return {"shares": fact.shares, "default_qos": fact.default_qos, "qos": list(fact.qos), "priority": fact.priority}


def _write_qos(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    wanted = {(fact.name,): _qos_values(fact) for fact in facts.qos or ()}
    limits = {("", "", "", fact.name, *limit[:2]): limit for fact in facts.qos or () for limit in fact.limits}
    complete = "qos" not in facts.incomplete
    changed = dated.replace(
        Qos.objects.filter(cluster=cluster), ("name",), wanted, as_of, complete=complete, fixed={"cluster": cluster}
    )
    return changed + _write_limits(cluster, limits, as_of, complete, of_qos=True)


def _qos_values(fact: QosFact) -> Mapping[str, Any]:
    return {name: _plain(value) for name, value in fact._asdict().items() if name not in {"name", "limits"}}


def _write_limits(cluster: Cluster, limits: Mapping[Any, Limit], as_of: datetime, complete: bool, *, of_qos: bool) -> int:
    rows = SchedulerLimit.objects.filter(cluster=cluster)
    rows = rows.exclude(qos="") if of_qos else rows.filter(qos="")
    key = ("account", "user_name", "partition_name", "qos", "kind", "tres")
    wanted: dict[tuple[Any, ...], Mapping[str, Any]] = {at: {"amount": limit.amount} for at, limit in limits.items()}
    return dated.replace(rows, key, wanted, as_of, complete=complete, fixed={"cluster": cluster})


def _write_shares(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    on = as_of.astimezone(UTC).date()
    rows = [
        FairShare(cluster=cluster, seen_on=on, seen_at=as_of, user_name=fact.user, **_share_values(fact))
        for fact in facts.shares or ()
    ]
    fields = [*ShareFact._fields[2:], "seen_at"]
    FairShare.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["cluster", "seen_on", "account", "user_name"],
        update_fields=fields,
        batch_size=2000,
    )
    return 0


def _share_values(fact: ShareFact) -> dict[str, Any]:
    return {name: value for name, value in fact._asdict().items() if name != "user"}


def _write_events(cluster: Cluster, facts: PolicyFacts, _as_of: datetime) -> int:
    """Events of nodes that the inventory knows; one that goes on is ended by a later reading."""
    nodes = dict(Node.objects.filter(cluster=cluster).values_list("name", "id"))
    wanted = {(nodes[event.node], event.started_at): event for event in facts.events or () if event.node in nodes}
    known = {
        (row.node_id, row.started_at): row
        for row in NodeEventRecord.objects.filter(node__cluster=cluster, started_at__in={started_at for _, started_at in wanted})
    }
    fields = ("condition", "state", "reason", "author", "ended_at")
    rows = [
        NodeEventRecord(node_id=at[0], started_at=at[1], **{name: getattr(event, name) for name in fields})
        for at, event in wanted.items()
    ]
    changed = [row for row in rows if not _is_same_event(row, known.get((row.node_id, row.started_at)), fields)]
    NodeEventRecord.objects.bulk_create(
        changed, update_conflicts=True, unique_fields=["node", "started_at"], update_fields=fields, batch_size=2000
    )
    return len(changed)


def _is_same_event(row: NodeEventRecord, known: NodeEventRecord | None, fields: tuple[str, ...]) -> bool:
    return known is not None and all(getattr(row, name) == getattr(known, name) for name in fields)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


Writer = Callable[[Cluster, PolicyFacts, datetime], int]
WRITERS: dict[str, Writer] = {
    "config": _write_config,
    "partitions": _write_partitions,
    "past_reservations": write_past_reservations,
    "reservations": write_reservations,
    "accounts": _write_accounts,
    "associations": _write_associations,
    "qos": _write_qos,
    "shares": _write_shares,
    "events": _write_events,
}
