"""What a scheduler enforces at an instant: its accounts, QOS, partitions, reservations, and what its limits are worth."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Q

from estate.domain.worth import GPU, Setup, Worth, worth_of
from estate.domain.worth import tracks_gpus as counts_gpus
from estate.models import (
    AccountMapping,
    Association,
    Cluster,
    FairShare,
    NodeInventory,
    PartitionRule,
    Qos,
    Reservation,
    SchedulerAccount,
    SchedulerConfig,
    SchedulerLimit,
)

SEPARATOR = " / "


class LimitRow(NamedTuple):
    """A limit in force: of a QOS, else of an account, or of a user in it (perhaps in one partition only)."""

    account: str
    user: str
    partition: str
    qos: str
    kind: str
    tres: str
    amount: int
    since: datetime
    worth: Worth


class AccountRow(NamedTuple):
    """An account in the tree: `path` from below the root. Figures of fair-share are of `seen_at`; None where they are not known."""

    name: str
    path: str
    description: str
    shares: int | None
    norm_shares: Decimal | None
    norm_usage: Decimal | None
    level_fs: Decimal | None
    user_count: int
    seen_at: datetime | None


def config_at(cluster: Cluster, instant: datetime) -> SchedulerConfig | None:
    return SchedulerConfig.objects.filter(cluster=cluster, valid_during__contains=instant).first()


def setup_of(config: SchedulerConfig | None) -> Setup | None:
    return None if config is None else Setup(config.enforces, config.tracked_tres)


def models_in(cluster: Cluster, instant: datetime) -> set[str]:
    """Names of the GPU models that the nodes of `cluster` have at `instant`."""
    rows = NodeInventory.objects.filter(node__cluster=cluster, valid_during__contains=instant, gpu_count__gt=0)
    return {name or "unknown model" for name in rows.values_list("gpu_model__name", flat=True).distinct()}


def accounts_of(cluster: Cluster, projects: Collection[int] | None) -> set[str] | None:
    """Accounts that map to one of `projects` (ids) now or did; None for all of them."""
    if projects is None:
        return None
    return set(AccountMapping.objects.filter(cluster=cluster, project__in=projects).values_list("account", flat=True))


def limits_at(cluster: Cluster, instant: datetime, accounts: Collection[str] | None) -> list[LimitRow]:
    """Limits in force on QOS, and on `accounts` (None: all), with what they are worth."""
    rows = SchedulerLimit.objects.filter(cluster=cluster, valid_during__contains=instant)
    if accounts is not None:
        rows = rows.filter(Q(account__in=accounts) | ~Q(qos=""))
    found = list(rows.order_by("qos", "account", "user_name", "partition_name", "kind", "tres"))
    plain = {_owner(row): row.amount for row in found if row.tres == GPU}
    setup = setup_of(config_at(cluster, instant))
    return [
        LimitRow(
            row.account,
            row.user_name,
            row.partition_name,
            row.qos,
            row.kind,
            row.tres,
            row.amount,
            row.valid_during.lower,
            worth_of(row.tres, setup, plain.get(_owner(row))),
        )
        for row in found
    ]


def _owner(row: SchedulerLimit) -> tuple[str, ...]:
    return row.qos, row.account, row.user_name, row.partition_name, row.kind


def account_rows(cluster: Cluster, instant: datetime, accounts: Collection[str] | None) -> list[AccountRow]:
    """The accounts of `cluster` (None: all) in the order of its tree. Four queries, however many accounts."""
    known = {row.name: row for row in SchedulerAccount.objects.filter(cluster=cluster, valid_during__contains=instant)}
    associations = Association.objects.filter(cluster=cluster, valid_during__contains=instant)
    shares = dict(associations.filter(user_name="", partition_name="").values_list("account", "shares"))
    users: dict[str, set[str]] = {}
    for account, user in associations.exclude(user_name="").values_list("account", "user_name"):
        users.setdefault(account, set()).add(user)
    fair = {row.account: row for row in shares_at(cluster, instant) if not row.user_name}
    wanted = known if accounts is None else [name for name in known if name in accounts]
    rows = [_account_row(known, name, shares.get(name), len(users.get(name, ())), fair.get(name)) for name in wanted]
    return sorted(rows, key=lambda row: row.path)


def _account_row(
    known: dict[str, SchedulerAccount], name: str, shares: int | None, user_count: int, fair: FairShare | None
) -> AccountRow:
    return AccountRow(
        name=name,
        path=SEPARATOR.join(_path(known, name)),
        description=known[name].description,
        shares=shares,
        norm_shares=fair.norm_shares if fair else None,
        norm_usage=fair.norm_usage if fair else None,
        level_fs=fair.level_fs if fair else None,
        user_count=user_count,
        seen_at=fair.seen_at if fair else None,
    )


def _path(known: dict[str, SchedulerAccount], name: str) -> list[str]:
    """Names from below the root; a tree that bites its tail is cut."""
    path = [name]
    while (parent := known[path[0]].parent_name if path[0] in known else "") and parent not in path and parent != "root":
        path.insert(0, parent)
    return path


def shares_at(cluster: Cluster, instant: datetime) -> list[FairShare]:
    """Fair-share of accounts and users as of the last day on which it was told."""
    rows = FairShare.objects.filter(cluster=cluster, seen_at__lte=instant)
    last = rows.order_by("-seen_on").values_list("seen_on", flat=True).first()
    return list(rows.filter(seen_on=last).order_by("account", "user_name")) if last else []


def qos_at(cluster: Cluster, instant: datetime) -> list[Qos]:
    return list(Qos.objects.filter(cluster=cluster, valid_during__contains=instant))


def rules_at(instant: datetime, clusters: Iterable[str] = ()) -> dict[tuple[str, str], PartitionRule]:
    """What partitions allow, by (cluster, partition)."""
    rows = PartitionRule.objects.filter(valid_during__contains=instant).select_related("partition__cluster")
    if clusters:
        rows = rows.filter(partition__cluster__name__in=clusters)
    return {(row.partition.cluster.name, row.partition.name): row for row in rows}


def reservations_from(instant: datetime, clusters: Iterable[str] = ()) -> list[Reservation]:
    """Reservations and maintenance windows that are in force at `instant` or lie ahead, the next one first."""
    rows = Reservation.objects.filter(valid_during__overlap=DateTimeTZRange(instant, None)).select_related("cluster")
    if clusters:
        rows = rows.filter(cluster__name__in=clusters)
    return list(rows.order_by("valid_during"))


def tracks_gpus(cluster: Cluster, instant: datetime) -> bool:
    """Whether records of `cluster` say how many GPUs they held: no, if it is known not to count them although its nodes have some."""
    setup = setup_of(config_at(cluster, instant))
    return setup is None or counts_gpus(setup) or not models_in(cluster, instant)
