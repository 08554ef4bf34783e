"""Reservations as dated rows: each holds for its own window, cut where it was changed or given up early."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from estate.domain.policy import PolicyFacts, ReservationFact
from estate.models import Cluster, Reservation
from estate.services import dated


def write_reservations(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    """Those in force or planned at `as_of`; one that is no longer told ends then. Returns how many changed."""
    rows = Reservation.objects.filter(cluster=cluster)
    left = {row.pk: row for row in rows.filter(valid_during__overlap=DateTimeTZRange(as_of, None))}
    ended: list[Reservation] = []
    begun: list[Reservation] = []
    for fact in facts.reservations or ():
        same_name = [row for row in left.values() if row.name == fact.name and _overlaps(row, fact)]
        for row in same_name:
            del left[row.pk]
        if len(same_name) == 1 and _goes_on(same_name[0], fact):
            continue
        before = [row for row in same_name if row.valid_during.lower < as_of]
        ended += same_name
        begun.append(_row(cluster, fact, as_of if before else fact.starts_at))
    if "reservations" not in facts.incomplete:
        ended += left.values()
    dated.end(rows, ended, as_of)
    Reservation.objects.bulk_create([row for row in begun if not row.valid_during.isempty], batch_size=1000)
    return len(ended) + len(begun)


def write_past_reservations(cluster: Cluster, facts: PolicyFacts, as_of: datetime) -> int:
    """Those of which only the accounting database tells: over by `as_of`, and overlapping none of the same name that is known."""
    changed = 0
    for fact in sorted(facts.past_reservations or (), key=lambda each: (each.name, each.starts_at)):
        during = DateTimeTZRange(fact.starts_at, fact.ends_at)
        known = Reservation.objects.filter(cluster=cluster, name=fact.name, valid_during__overlap=during)
        if fact.ends_at <= as_of and not known.exists():
            _row(cluster, fact, fact.starts_at).save()
            changed += 1
    return changed


def _overlaps(row: Reservation, fact: ReservationFact) -> bool:
    return bool(row.valid_during.lower < fact.ends_at and row.valid_during.upper > fact.starts_at)


def _goes_on(row: Reservation, fact: ReservationFact) -> bool:
    """Whether `row` is this reservation, unchanged, from its start or since it was changed last."""
    is_same_window = row.valid_during.upper == fact.ends_at and row.valid_during.lower >= fact.starts_at
    return is_same_window and all(getattr(row, name) == value for name, value in _values(fact).items())


def _row(cluster: Cluster, fact: ReservationFact, since: datetime) -> Reservation:
    return Reservation(cluster=cluster, name=fact.name, valid_during=DateTimeTZRange(since, fact.ends_at), **_values(fact))


def _values(fact: ReservationFact) -> Mapping[str, Any]:
    return {
        "node_names": list(fact.nodes),
        "flags": list(fact.flags),
        "accounts": list(fact.accounts),
        "users": list(fact.users),
        "groups": list(fact.groups),
        "partition_name": fact.partition,
        "tres": fact.tres,
        "is_maintenance": fact.is_maintenance,
    }
