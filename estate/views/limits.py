"""What a Slurm cluster enforces: its accounts with their shares, QOS, limits, and what those are worth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from estate.domain.units import duration_text
from estate.domain.worth import warnings_of
from estate.models import Cluster, User
from estate.permissions import visible_projects
from estate.queries import limits
from estate.queries.limits import AccountRow, LimitRow
from estate.views import tables

MIB_PER_GIB = 1024
SLASH = " / "
# What people call the units in which Slurm counts.
MEASURES = {"mem": "GiB of memory", "cpu": "CPUs", "node": "nodes", "billing": "billing units", "energy": "joules"}
KINDS = {
    "GrpTRES": "in use at once",
    "GrpTRESMins": "used up over time",
    "GrpTRESRunMins": "committed by running jobs",
    "MaxTRES": "for one job",
    "MaxTRESPerNode": "for one job on a node",
    "MaxTRESMins": "used up by one job",
    "MaxTRESPU": "in use at once by one user",
    "MaxTRESPA": "in use at once by one account",
    "MaxTRESRunMinsPU": "committed by one user's running jobs",
    "MaxTRESRunMinsPA": "committed by one account's running jobs",
    "MinTRES": "at least, for one job",
    "GrpJobs": "running at once",
    "GrpSubmit": "running or waiting at once",
    "MaxJobs": "running at once by one user",
    "MaxSubmit": "running or waiting at once by one user",
    "MaxJobsPU": "running at once by one user",
    "MaxSubmitPU": "running or waiting at once by one user",
    "MaxJobsPA": "running at once by one account",
    "MaxSubmitPA": "running or waiting at once by one account",
    "GrpJobsAccrue": "gaining age priority at once",
    "MaxJobsAccrue": "gaining age priority at once by one user",
    "GrpWall": "of wall time used up over time",
    "MaxWall": "for one job",
}


@require_safe
@login_required
def cluster_limits(request: HttpRequest, cluster: str) -> HttpResponse:
    found = get_object_or_404(Cluster, name=cluster, scheduler="slurm")
    assert isinstance(request.user, User)  # noqa: S101 - login_required has seen to it
    now = timezone.now()
    accounts = limits.accounts_of(found, visible_projects(request.user))
    rules = limits.limits_at(found, now, accounts)
    tree = limits.account_rows(found, now, accounts)
    return render(request, "estate/limits.html", _context(request, found, now, rules, tree) | {"sees_all": accounts is None})


def _context(
    request: HttpRequest, cluster: Cluster, now: datetime, rules: Sequence[LimitRow], tree: Sequence[AccountRow]
) -> dict[str, Any]:
    config = limits.config_at(cluster, now)
    setup = limits.setup_of(config)
    by_qos = _texts_by(rules, "qos")
    by_account = _texts_by([rule for rule in rules if not rule.user], "account")
    return {
        "title": f"Limits of {cluster.name}",
        "cluster": cluster,
        "cluster_query": urlencode({"cluster": cluster.name}),
        "config": config,
        "gaps": [] if setup is None else warnings_of(setup, limits.models_in(cluster, now)),
        "shares_at": max((row.seen_at for row in tree if row.seen_at), default=None),
        "accounts": tables.build(
            ACCOUNTS, [row._asdict() | {"limits": by_account.get(row.name, "")} for row in tree], request.GET
        ),
        "limits": tables.build(LIMITS, [_limit(rule) for rule in rules], request.GET),
        "qos": tables.build(QOS, [_qos(row, by_qos) for row in limits.qos_at(cluster, now)], request.GET),
    }


def _texts_by(rules: Sequence[LimitRow], owner: str) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for rule in rules:
        if getattr(rule, owner):
            texts.setdefault(getattr(rule, owner), []).append(
                f"{amount_text(rule.kind, rule.tres, rule.amount)} {KINDS[rule.kind]}"
            )
    return {name: "; ".join(found) for name, found in texts.items()}


def _limit(rule: LimitRow) -> dict[str, Any]:
    owner = rule.qos or SLASH.join(part for part in (rule.account, rule.user, rule.partition) if part)
    return {
        "owner": owner,
        "of": "QOS" if rule.qos else "user" if rule.user else "account",
        "limit": f"{amount_text(rule.kind, rule.tres, rule.amount)} {KINDS[rule.kind]}",
        "amount": rule.amount,
        "slurm": f"{rule.kind}={rule.tres}={rule.amount}" if rule.tres else f"{rule.kind}={rule.amount}",
        "since": rule.since,
        "worth": rule.worth.level,
        "why": rule.worth.why,
    }


def amount_text(kind: str, tres: str, amount: int) -> str:
    """`16 GPUs`, `600,000 GPU-minutes`, `30 min`."""
    if kind.endswith("Wall"):
        return duration_text(amount)
    if not tres:
        return f"{amount:,} jobs"
    value = f"{amount / MIB_PER_GIB:,.0f}" if tres == "mem" else f"{amount:,}"
    minutes = "Mins" in kind
    name = _tres_name(tres)
    return f"{value} {name}-minutes" if minutes else f"{value} {name}{'s' if name == 'GPU' and amount != 1 else ''}"


def _tres_name(tres: str) -> str:
    if tres == "gres/gpu":
        return "GPU"
    if tres.startswith("gres/gpu:"):
        return f"GPU {tres.removeprefix('gres/gpu:')}"
    return MEASURES.get(tres, tres)


def _qos(row: Any, limits_by_name: dict[str, str]) -> dict[str, Any]:
    return {
        "name": row.name,
        "priority": row.priority,
        "usage_factor": row.usage_factor,
        "preempts": ", ".join(row.preempts),
        "flags": ", ".join(row.flags),
        "limits": limits_by_name.get(row.name, ""),
    }


ACCOUNTS = tables.TableSpec(
    columns=(
        tables.Column("path", "Account"),
        tables.Column("description", "Description"),
        tables.Column("user_count", "Users", "count"),
        tables.Column("shares", "Shares", "count", help="Shares among the accounts of the same parent"),
        tables.Column(
            "norm_shares", "Share of its parent", "ratio", help="Shares over those of all siblings (NormShares of sshare)"
        ),
        tables.Column(
            "norm_usage", "Decayed usage", "ratio", help="Share of the cluster's usage, decayed by the half-life (NormUsage)"
        ),
        tables.Column(
            "level_fs", "Level", "count", help="Share over usage among its siblings (LevelFS): above 1 is under-served"
        ),
        tables.Column("limits", "Limits"),
    ),
    caption="Accounts",
    sort="path",
    name="accounts",
)
LIMITS = tables.TableSpec(
    columns=(
        tables.Column("owner", "Of"),
        tables.Column("of", "Kind"),
        tables.Column("limit", "Limit", order="amount"),
        tables.Column("worth", "Worth", "worth"),
        tables.Column("slurm", "In Slurm's words"),
        tables.Column("since", "Known since", "when"),
        tables.Column("why", "Why"),
    ),
    caption="Limits",
    sort="owner",
    name="limits",
)
QOS = tables.TableSpec(
    columns=(
        tables.Column("name", "QOS"),
        tables.Column("priority", "Priority", "count"),
        tables.Column("usage_factor", "Usage factor", "count", help="Usage of its jobs counts this many times"),
        tables.Column("preempts", "May preempt"),
        tables.Column("flags", "Flags"),
        tables.Column("limits", "Limits"),
    ),
    caption="QOS",
    sort="-priority",
    name="qos",
)
