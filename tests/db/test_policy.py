"""What a scheduler enforces, as dated rows: confirmed, changed, ended, whatever the order of readings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction

from accounting.ingest import ingest_nodes
from accounting.policy import ingest_policy
from estate.domain.nodes import GpuPart, NodeFact
from estate.domain.policy import (
    AccountFact,
    AssociationFact,
    ConfigFact,
    Limit,
    NodeEvent,
    PolicyFacts,
    QosFact,
    ReservationFact,
    ShareFact,
)
from estate.models import (
    Cluster,
    FairShare,
    NodeState,
    Reservation,
    SchedulerAccount,
    SchedulerConfig,
    SchedulerLimit,
)
from estate.services.policy import PolicyChange

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def hours(count: float) -> datetime:
    return NOON + timedelta(hours=count)


def read(cluster: Cluster, facts: PolicyFacts, at: datetime) -> PolicyChange:
    with transaction.atomic():
        return ingest_policy(cluster, facts, as_of=at)


def look(cluster: Cluster, at: datetime, **states: str) -> None:
    """A snapshot of nodes by name."""
    facts = [
        NodeFact(name, ("train",), (GpuPart("a100", Decimal(8)),), 64, 512_000, state, "" if state == "up" else "seen")
        for name, state in states.items()
    ]
    with transaction.atomic():
        ingest_nodes(cluster, facts, as_of=at)


def states(node: str) -> list[tuple[str, float, float | None, str]]:
    """(condition, from, to in hours after noon, reason) of a node, in order."""
    rows = NodeState.objects.filter(node__name=node).order_by("valid_during")
    return [
        (
            row.condition,
            (row.valid_during.lower - NOON) / timedelta(hours=1),
            (row.valid_during.upper - NOON) / timedelta(hours=1) if row.valid_during.upper else None,
            row.reason,
        )
        for row in rows
    ]


def account(*limits: Limit) -> PolicyFacts:
    return PolicyFacts(
        accounts=(AccountFact("vision", "research"),),
        associations=(AssociationFact("vision", "", "", 30, "normal", ("normal",), None, limits),),
        qos=(QosFact("normal", 10, (), (), "cluster", Decimal("1.000000"), (Limit("MaxTRESPU", "gres/gpu", 8),)),),
    )


def limits() -> list[tuple[str, str, int, bool]]:
    rows = SchedulerLimit.objects.order_by("qos", "kind", "tres", "valid_during")
    return [(row.kind, row.tres, row.amount, row.valid_during.upper is None) for row in rows]


GPUS = Limit("GrpTRES", "gres/gpu", 16)
MINUTES = Limit("GrpTRESMins", "gres/gpu", 600_000)


def test_the_same_reading_twice_changes_nothing(slurm: Cluster) -> None:
    first = read(slurm, account(GPUS, MINUTES), hours(0))
    again = read(slurm, account(GPUS, MINUTES), hours(1))
    assert (first.changed_count, again.changed_count) == (6, 0)
    assert SchedulerLimit.objects.count() == 3


def test_a_limit_that_changed_goes_on_in_a_new_row_and_one_that_is_gone_ends(slurm: Cluster) -> None:
    read(slurm, account(GPUS, MINUTES), hours(0))
    read(slurm, account(GPUS._replace(amount=32)), hours(1))
    assert limits() == [
        ("GrpTRES", "gres/gpu", 16, False),
        ("GrpTRES", "gres/gpu", 32, True),
        ("GrpTRESMins", "gres/gpu", 600_000, False),
        ("MaxTRESPU", "gres/gpu", 8, True),
    ]


def test_an_older_reading_is_refused_by_section(slurm: Cluster) -> None:
    read(slurm, account(GPUS), hours(2))
    before = limits()
    change = read(slurm, account(MINUTES)._replace(shares=()), hours(1))
    assert set(change.refused) == {"accounts", "associations", "qos"}
    assert limits() == before


def test_what_could_not_be_read_is_not_taken_for_gone(slurm: Cluster) -> None:
    read(slurm, account(GPUS), hours(0))
    read(slurm, PolicyFacts(associations=(), incomplete=frozenset({"associations"})), hours(1))
    assert ("GrpTRES", "gres/gpu", 16, True) in limits()
    read(slurm, PolicyFacts(associations=()), hours(2))
    assert ("GrpTRES", "gres/gpu", 16, False) in limits()


def test_a_section_that_was_not_read_stays(slurm: Cluster) -> None:
    read(slurm, account(GPUS), hours(0))
    read(slurm, PolicyFacts(qos=()), hours(1))
    assert SchedulerAccount.objects.filter(valid_during__upper_inf=True).count() == 1


def test_how_the_scheduler_is_set_up_is_dated(slurm: Cluster) -> None:
    config = ConfigFact("22.05.8", ("limits",), ("cpu", "gres/gpu"), ("gpu",), "", "", 604_800, "", "", (), (("Age", "10"),))
    read(slurm, PolicyFacts(config=config), hours(0))
    read(slurm, PolicyFacts(config=config), hours(1))
    read(slurm, PolicyFacts(config=config._replace(enforces=())), hours(2))
    rows = SchedulerConfig.objects.order_by("valid_during")
    assert [(row.enforces, row.valid_during.lower) for row in rows] == [(["limits"], hours(0)), ([], hours(2))]


def test_fair_share_keeps_the_last_of_each_day(slurm: Cluster) -> None:
    share = ShareFact("vision", "alice", 1, Decimal("0.5"), 10, None, None, Decimal("0.25"), None)
    for at, usage in ((hours(0), 10), (hours(1), 20), (hours(24), 5)):
        read(slurm, PolicyFacts(shares=(share._replace(raw_usage=usage),)), at)
    assert list(FairShare.objects.order_by("seen_on").values_list("raw_usage", flat=True)) == [20, 5]


def window(first: float, last: float, *, maintenance: bool = False, nodes: tuple[str, ...] = ("g1",)) -> ReservationFact:
    return ReservationFact("res", hours(first), hours(last), nodes, ("MAINT",) if maintenance else ())


def test_a_reservation_holds_for_its_window_and_ends_when_it_is_given_up(slurm: Cluster) -> None:
    look(slurm, hours(-10), g1="up")
    read(slurm, PolicyFacts(reservations=(window(1, 5),)), hours(0))
    assert states("g1") == [("reserved", 1, 5, "reservation res")]
    read(slurm, PolicyFacts(reservations=()), hours(3))
    assert states("g1") == [("reserved", 1, 3, "reservation res")]


def test_a_reservation_that_is_extended_goes_on_and_one_that_was_only_planned_vanishes(slurm: Cluster) -> None:
    look(slurm, hours(-10), g1="up", g2="up")
    read(slurm, PolicyFacts(reservations=(window(1, 5, maintenance=True),)), hours(0))
    read(slurm, PolicyFacts(reservations=(window(1, 8, maintenance=True, nodes=("g1", "g2")),)), hours(2))
    read(slurm, PolicyFacts(reservations=(window(1, 8, maintenance=True, nodes=("g1", "g2")),)), hours(2.5))
    assert states("g1") == [("planned_down", 1, 2, "reservation res"), ("planned_down", 2, 8, "reservation res")]
    assert states("g2") == [("planned_down", 2, 8, "reservation res")]
    other = ReservationFact("later", hours(20), hours(30), ("g2",), ())
    read(slurm, PolicyFacts(reservations=(window(1, 8, maintenance=True, nodes=("g1", "g2")), other)), hours(3))
    read(slurm, PolicyFacts(reservations=(window(1, 8, maintenance=True, nodes=("g1", "g2")),)), hours(4))
    assert not Reservation.objects.filter(name="later").exists()
    assert states("g2") == [("planned_down", 2, 8, "reservation res")]


def event(first: float, last: float | None, condition: str = "down") -> NodeEvent:
    return NodeEvent("g1", condition, "DOWN*", "Not responding", "root", hours(first), None if last is None else hours(last))


def test_events_fill_the_time_between_snapshots(slurm: Cluster) -> None:
    look(slurm, hours(0), g1="up")
    look(slurm, hours(2), g1="down")
    look(slurm, hours(4), g1="up")
    look(slurm, hours(6), g1="up")
    change = read(slurm, PolicyFacts(events=(event(1, 3), event(5, 5.5))), hours(7))
    assert states("g1") == [("down", 1, 2, "Not responding"), ("down", 2, 4, "seen"), ("down", 5, 5.5, "Not responding")]
    assert change.history_changed_at == hours(1)


def test_an_event_does_not_contradict_what_was_seen(slurm: Cluster) -> None:
    for at in (0, 2, 4):
        look(slurm, hours(at), g1="up")
    read(slurm, PolicyFacts(events=(event(1, None),)), hours(5))
    assert states("g1") == [("down", 1, 2, "Not responding")]


def test_an_open_event_lasts_until_the_node_is_seen_up_again(slurm: Cluster) -> None:
    look(slurm, hours(0), g1="up")
    read(slurm, PolicyFacts(events=(event(1, None),)), hours(1.5))
    assert states("g1") == [("down", 1, None, "Not responding")]
    look(slurm, hours(2), g1="down")
    assert states("g1") == [("down", 1, 2, "Not responding"), ("down", 2, None, "seen")]
    look(slurm, hours(3), g1="up")
    assert states("g1") == [("down", 1, 2, "Not responding"), ("down", 2, 3, "seen")]


def test_readings_in_any_order_tell_the_same_history(slurm: Cluster) -> None:
    look(slurm, hours(0), g1="up")
    read(slurm, PolicyFacts(events=(event(1, None),), reservations=(window(2, 6, maintenance=True),)), hours(3))
    look(slurm, hours(4), g1="planned_down")
    read(slurm, PolicyFacts(events=(event(1, 5),), reservations=(window(2, 6, maintenance=True),)), hours(5))
    look(slurm, hours(7), g1="up")
    told = states("g1")
    assert told == [
        ("down", 1, 2, "Not responding"),
        ("planned_down", 2, 4, "reservation res"),
        ("planned_down", 4, 7, "seen"),
    ]
    NodeState.objects.filter(source="history").delete()
    read(
        slurm, PolicyFacts(events=(event(1, 5),), reservations=(), past_reservations=(window(2, 6, maintenance=True),)), hours(8)
    )
    assert states("g1") == told


def test_an_older_look_does_not_overwrite_a_newer_one(slurm: Cluster) -> None:
    look(slurm, hours(2), g1="up")
    look(slurm, hours(1), g1="down")
    assert states("g1") == []


def test_a_reservation_of_the_past_is_told_by_the_accounting_database_alone(slurm: Cluster) -> None:
    look(slurm, hours(-100), g1="up")
    past = PolicyFacts(past_reservations=(window(-50, -40), window(-5, 40)))
    read(slurm, past, hours(0))
    read(slurm, past, hours(1))
    assert states("g1") == [("reserved", -50, -40, "reservation res")]
