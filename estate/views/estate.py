"""What exists: clusters, partitions, GPU models with their rates, nodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from estate.forms import NodesForm
from estate.models import Node, PartitionRule, Reservation, Scheduler, User
from estate.queries import inventory, limits
from estate.queries.inventory import NodeNow, NodeScope
from estate.views import tables

GIB = 1024


@require_safe
@login_required
def estate(request: HttpRequest) -> HttpResponse:
    form = NodesForm(request.GET)
    if not form.is_valid():
        return render(request, "estate/estate.html", {"title": "Estate", "form": form}, status=422)
    chosen = form.cleaned_data
    scope = NodeScope(chosen["cluster"], chosen["partition"], chosen["gpu_model"], chosen["q"])
    now = timezone.now()
    nodes = inventory.nodes_at(now, scope)
    rows = [_row(node) for node in nodes]
    rules = limits.rules_at(now, chosen["cluster"])
    sees_all = isinstance(request.user, User) and request.user.may_see_everything
    planned = limits.reservations_from(now, scope.clusters)
    context = {
        "title": "Estate",
        "form": form,
        "clusters": _clusters(nodes),
        "partitions": tables.build(PARTITIONS, _partitions(nodes, rules, sees_all), request.GET),
        "models": tables.build(MODELS, _models(nodes), request.GET),
        "reservations": tables.build(RESERVATIONS, _reservations(planned, nodes, now, sees_all), request.GET),
        "nodes": tables.build(NODES, rows, request.GET),
        "node_count": len(nodes),
        "gpu_count": sum(node.gpu_count for node in nodes),
        "sees_all": sees_all,
    }
    return render(request, "estate/estate.html", context)


@require_safe
@login_required
def node(request: HttpRequest, cluster: str, name: str) -> HttpResponse:
    try:
        found = inventory.find_node(cluster, name)
    except Node.DoesNotExist as exc:
        raise Http404 from exc
    now = [one for one in inventory.nodes_at(timezone.now(), NodeScope(clusters=[cluster], text=name)) if one.name == name]
    context = {
        "title": name,
        "node": found,
        "now": now[0] if now else None,
        "state": _state(now[0].condition) if now else "",
        "cluster_query": urlencode({"cluster": cluster}),
    }
    return render(request, "estate/node.html", context)


STATES = {"": "up", "down": "down", "planned_down": "planned down", "reserved": "reserved"}


def _state(condition: str) -> str:
    return STATES.get(condition, condition)


def gpus_text(gpus: dict[str, int]) -> str:
    """`8 × a100, 2 × t4`."""
    return ", ".join(f"{count} × {model}" for model, count in gpus.items())


def _row(node: NodeNow) -> dict[str, Any]:
    return {
        "name": node.name,
        "cluster": node.cluster,
        "condition": _state(node.condition),
        "gpu_count": node.gpu_count,
        "gpus": gpus_text(node.gpus),
        "cpu_count": node.cpu_count,
        "memory_gib": None if node.memory_mib is None else node.memory_mib / GIB,
        "partitions": ", ".join(node.partitions),
        "reason": f"{node.reason} ({node.author})" if node.author and node.reason else node.reason,
        "since": node.since,
    }


def _node_href(row: tables.Row) -> str:
    return reverse("estate-node", args=[row["cluster"], row["name"]])


def _scope_href(**names: str) -> str:
    return f"?{urlencode(names)}"


NODES = tables.TableSpec(
    columns=(
        tables.Column("name", "Node", link=_node_href),
        tables.Column("cluster", "Cluster"),
        tables.Column("condition", "State", "state"),
        tables.Column("gpu_count", "GPUs", "count"),
        tables.Column("gpus", "Models"),
        tables.Column("cpu_count", "CPUs", "count"),
        tables.Column("memory_gib", "Memory, GiB", "count"),
        tables.Column("partitions", "Partitions"),
        tables.Column("reason", "Reason"),
        tables.Column("since", "Since", "when"),
    ),
    caption="Nodes",
    sort="name",
)
PARTITIONS = tables.TableSpec(
    columns=(
        tables.Column("name", "Partition", link=lambda row: _scope_href(cluster=row["cluster"], partition=row["name"])),
        tables.Column("cluster", "Cluster"),
        tables.Column("node_count", "Nodes", "count"),
        tables.Column("gpu_count", "GPUs", "count"),
        tables.Column("up_count", "GPUs up", "count"),
        tables.Column("gpus", "Models"),
        tables.Column("state", "Takes jobs"),
        tables.Column("longest", "Longest run", "duration", help="MaxTime; a dash where there is no limit or none is known"),
        tables.Column("open_to", "Open to"),
    ),
    caption="Partitions",
    sort="-gpu_count",
    name="partitions",
)
RESERVATIONS = tables.TableSpec(
    columns=(
        tables.Column("name", "Reservation"),
        tables.Column("cluster", "Cluster"),
        tables.Column("purpose", "Purpose"),
        tables.Column("when", "When"),
        tables.Column("starts_at", "From", "when"),
        tables.Column("ends_at", "To", "when"),
        tables.Column("node_count", "Nodes", "count"),
        tables.Column("gpu_count", "GPUs", "count"),
        tables.Column("for_whom", "For"),
        tables.Column("nodes", "On"),
    ),
    caption="Reservations and maintenance windows",
    sort="starts_at",
    name="reservations",
)
MODELS = tables.TableSpec(
    columns=(
        tables.Column("name", "GPU model", link=lambda row: _scope_href(gpu_model=row["name"])),
        tables.Column("gpu_count", "GPUs", "count"),
        tables.Column("memory_gib", "Memory, GiB", "count"),
        tables.Column("price", "Price a GPU-hour", "money"),
        tables.Column("cost", "Cost a GPU-hour", "money"),
        tables.Column("since", "Rate since", "when"),
    ),
    caption="GPU models",
    sort="-gpu_count",
    name="models",
)


def _clusters(nodes: list[NodeNow]) -> list[dict[str, Any]]:
    members = {cluster.name: [node for node in nodes if node.cluster == cluster.name] for cluster in inventory.clusters()}
    return [
        {
            "cluster": cluster,
            "node_count": len(members[cluster.name]),
            "gpu_count": sum(node.gpu_count for node in members[cluster.name]),
            "href": _scope_href(cluster=cluster.name),
            "limits_href": reverse("estate-limits", args=[cluster.name]) if cluster.scheduler == Scheduler.SLURM else "",
        }
        for cluster in inventory.clusters()
    ]


def _partitions(nodes: list[NodeNow], rules: Mapping[tuple[str, str], PartitionRule], sees_all: bool) -> list[dict[str, Any]]:
    members: dict[tuple[str, str], list[NodeNow]] = {}
    for node in nodes:
        for name in node.partitions:
            members.setdefault((node.cluster, name), []).append(node)
    return [
        {
            "name": name,
            "cluster": cluster,
            "node_count": len(inside),
            "gpu_count": sum(node.gpu_count for node in inside),
            "up_count": sum(node.gpu_count for node in inside if node.condition not in inventory.AWAY),
            "gpus": gpus_text(inventory.models_of(inside)),
        }
        | _rule(rules.get((cluster, name)), sees_all)
        for (cluster, name), inside in members.items()
    ]


def _rule(rule: PartitionRule | None, sees_all: bool) -> dict[str, Any]:
    """What a partition allows, as words; nothing where it is not known. Accounts are named only to who `sees_all`."""
    if rule is None:
        return {}
    allowed = {"accounts": rule.allow_accounts, "groups": rule.allow_groups, "QOS": rule.allow_qos}
    denied = {"accounts": rule.deny_accounts, "QOS": rule.deny_qos}
    words = [_named(kind, names, sees_all) for kind, names in allowed.items() if names]
    words += ["not " + _named(kind, names, sees_all) for kind, names in denied.items() if names]
    return {
        "state": {"UP": "yes", "DOWN": "queues only", "DRAIN": "no new ones", "INACTIVE": "no"}.get(rule.state, rule.state),
        "longest": rule.max_time_seconds,
        "open_to": "; ".join(words) or "everybody",
    }


def _named(kind: str, names: list[str], sees_all: bool) -> str:
    return f"{kind} {', '.join(names)}" if sees_all or kind == "QOS" else f"some {kind}"


def _reservations(found: list[Reservation], nodes: list[NodeNow], now: datetime, sees_all: bool) -> list[dict[str, Any]]:
    gpus = {(node.cluster, node.name): node.gpu_count for node in nodes}
    return [
        {
            "name": row.name,
            "cluster": row.cluster.name,
            "purpose": "maintenance" if row.is_maintenance else "kept for some",
            "when": "now" if row.valid_during.lower <= now else "planned",
            "starts_at": row.valid_during.lower,
            "ends_at": row.valid_during.upper,
            "node_count": len(row.node_names),
            "gpu_count": sum(gpus.get((row.cluster.name, name), 0) for name in row.node_names),
            "for_whom": ", ".join([*row.accounts, *row.users, *row.groups]) if sees_all else "",
            "nodes": ", ".join(row.node_names),
        }
        for row in found
    ]


def _models(nodes: list[NodeNow]) -> list[dict[str, Any]]:
    """Models that there are now, and the rate of each in force today."""
    counts = inventory.models_of(nodes)
    today = timezone.now().date()
    rows = []
    for model in inventory.gpu_models():
        rate = next((rate for rate in model.rates.all() if today in rate.valid_during), None)
        figures = {"price": rate.price, "cost": rate.cost, "since": rate.valid_during.lower} if rate else {}
        rows.append({"name": model.name, "memory_gib": model.memory_gib, "gpu_count": counts.get(model.name, 0)} | figures)
    return rows
