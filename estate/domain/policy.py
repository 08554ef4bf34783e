"""What a scheduler says of its own rules: reservations, limits, accounts, fair-share, how strictly it enforces them. Pure.

Instants are aware UTC; times that limits allow are in seconds, but `…TRESMins` limits count TRES-minutes, as Slurm does.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple


class Limit(NamedTuple):
    """One limit: `kind` is Slurm's word (`GrpTRES`, `MaxTRESPU`, `MaxWall`, …), `tres` what it counts (empty for jobs and times).

    `amount` is a count, MiB for memory, TRES-minutes for `…TRESMins`, seconds for `…Wall`.
    """

    kind: str
    tres: str
    amount: int


class ConfigFact(NamedTuple):
    """How a scheduler is set up, as far as it says what limits and numbers are worth (slurm.conf(5))."""

    version: str
    enforces: tuple[str, ...]
    tracked_tres: tuple[str, ...]
    gres_types: tuple[str, ...]
    select_type: str
    priority_type: str
    half_life_seconds: int | None
    usage_reset_period: str
    preempt_type: str
    private_data: tuple[str, ...]
    weights: tuple[tuple[str, str], ...]


class PartitionFact(NamedTuple):
    """A partition and whom it lets in; None means no limit, an empty tuple of `allow_…` means everybody."""

    name: str
    state: str
    is_default: bool
    max_time_seconds: int | None
    default_time_seconds: int | None
    max_nodes: int | None
    min_nodes: int
    max_cpus_per_node: int | None
    max_memory_per_node_mib: int | None
    allow_accounts: tuple[str, ...]
    deny_accounts: tuple[str, ...]
    allow_groups: tuple[str, ...]
    allow_qos: tuple[str, ...]
    deny_qos: tuple[str, ...]
    qos: str
    priority_tier: int | None
    priority_job_factor: int | None
    preempt_mode: str
    billing_weights: str


class ReservationFact(NamedTuple):
    """Nodes that are kept for some (or for maintenance) from `starts_at` to `ends_at`."""

    name: str
    starts_at: datetime
    ends_at: datetime
    nodes: tuple[str, ...]
    flags: tuple[str, ...]
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    partition: str = ""
    tres: str = ""

    @property
    def is_maintenance(self) -> bool:
        return "MAINT" in self.flags


class AccountFact(NamedTuple):
    """An account of the scheduler; the root of the tree has no parent."""

    name: str
    parent: str
    description: str = ""
    organisation: str = ""


class AssociationFact(NamedTuple):
    """What one account (`user` empty) or one user in an account may use; `shares` is None for "as the parent"."""

    account: str
    user: str
    partition: str
    shares: int | None
    default_qos: str
    qos: tuple[str, ...]
    priority: int | None
    limits: tuple[Limit, ...]


class QosFact(NamedTuple):
    """A quality of service and its limits."""

    name: str
    priority: int | None
    flags: tuple[str, ...]
    preempts: tuple[str, ...]
    preempt_mode: str
    usage_factor: Decimal | None
    limits: tuple[Limit, ...]


class ShareFact(NamedTuple):
    """Fair-share of an account (`user` empty) or of a user in it; usage decays by the half-life. None where it is not said."""

    account: str
    user: str
    raw_shares: int | None
    norm_shares: Decimal | None
    raw_usage: int | None
    norm_usage: Decimal | None
    effective_usage: Decimal | None
    fair_share: Decimal | None
    level_fs: Decimal | None


class NodeEvent(NamedTuple):
    """A span in which a node was not up, from the scheduler's own history; `ended_at` is None while it lasts."""

    node: str
    condition: str
    state: str
    reason: str
    author: str
    started_at: datetime
    ended_at: datetime | None


class PolicyFacts(NamedTuple):
    """What was asked for, by section. None: not asked, or no answer, so that nothing is known of it; empty: there is none.

    `incomplete` names the sections of which some entries could not be read: what is missing there is not taken for gone.
    """

    config: ConfigFact | None = None
    partitions: tuple[PartitionFact, ...] | None = None
    reservations: tuple[ReservationFact, ...] | None = None
    past_reservations: tuple[ReservationFact, ...] | None = None
    accounts: tuple[AccountFact, ...] | None = None
    associations: tuple[AssociationFact, ...] | None = None
    qos: tuple[QosFact, ...] | None = None
    shares: tuple[ShareFact, ...] | None = None
    events: tuple[NodeEvent, ...] | None = None
    incomplete: frozenset[str] = frozenset()
