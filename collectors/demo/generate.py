"""The whole invented estate as plain values: the same seed, length and end give the same records, bit for bit. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from random import Random
from typing import NamedTuple

from accounting.domain.records import GpuPart, NodeFact, UsageRecord
from collectors.demo.jobs import FAR, Attempt, Job
from collectors.demo.outages import Calendar, calendar_of
from collectors.demo.people import Crowd
from collectors.demo.records import Scribe, instant, late_ones
from collectors.demo.scheduler import ShelfTimes, Simulation
from collectors.demo.shelves import CLUSTERS, ClusterPlan, Shelf
from collectors.demo.workload import Author

Progress = Callable[[int, int], None]


class Inventory(NamedTuple):
    """The nodes of a cluster from `as_of` on; with `complete`, a node that is not named is gone."""

    as_of: datetime
    facts: tuple[NodeFact, ...]
    complete: bool


class StateSpan(NamedTuple):
    """A node was `condition` over `[start, end)`; None as `end`: it still is."""

    node: str
    condition: str
    reason: str
    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCluster:
    """One cluster: `known` is the first batch, `late` what came afterwards; `records` is the truth that both end in."""

    plan: ClusterPlan
    inventories: tuple[Inventory, ...]
    states: tuple[StateSpan, ...]
    records: tuple[UsageRecord, ...]
    known: tuple[UsageRecord, ...]
    late: tuple[UsageRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoEstate:
    seed: int
    start: datetime
    until: datetime
    clusters: tuple[DemoCluster, ...]

    @property
    def record_count(self) -> int:
        return sum(len(cluster.records) for cluster in self.clusters)


def last_full_hour(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def start_of(until: datetime, months: int) -> datetime:
    """Midnight UTC, `months` calendar months before (from the 29th on: of the 28th)."""
    month = until.year * 12 + until.month - 1 - months
    day = min(until.day, 28)
    return datetime(month // 12, month % 12 + 1, day, tzinfo=UTC)


def generate(
    seed: int, months: int, until: datetime, scale: float = 1.0, *, progress: Progress = lambda _done, _of: None
) -> DemoEstate:
    """An estate of `months` months that ends at `until` (aware). `scale` thins the workload, for tests.

    `progress(done, of)` is called after each shelf of nodes.
    Raises ValueError when `months` is not positive.
    """
    if months < 1:
        raise ValueError(f"{months} months: write 1 or more")
    start = start_of(until, months)
    shelf_count, done = sum(len(plan.shelves) for plan in CLUSTERS), count(1)
    clusters = tuple(
        generate_cluster(plan, seed, start, until, scale, simulated=lambda: progress(next(done), shelf_count))
        for plan in CLUSTERS
    )
    return DemoEstate(seed=seed, start=start, until=until, clusters=clusters)


def _random(seed: int, purpose: str) -> Random:
    """A stream of its own for every purpose, so that a change in one leaves the others alone."""
    return Random(f"{seed}:{purpose}")  # noqa: S311 - invented data, no secret


def generate_cluster(
    plan: ClusterPlan, seed: int, start: datetime, until: datetime, scale: float = 1.0, *, simulated: Callable[[], None]
) -> DemoCluster:
    """One cluster as in the whole estate, of which it depends on nothing else. `simulated` is called after each shelf of nodes."""
    first, last = int(start.timestamp()), int(until.timestamp())
    calendar = calendar_of(plan, first, last, _random(seed, f"{plan.name} outages"))
    crowd = Crowd(_random(seed, "people"))
    author = Author(CLUSTERS.index(plan), first, last, scale=scale, rng=_random(seed, f"{plan.name} work"), crowd=crowd)
    groups = author.groups()
    jobs_of: list[list[Job]] = [[] for _ in plan.shelves]
    for group in groups:
        for job in group:
            jobs_of[job.shelf_index].append(job)
    attempts: list[Attempt] = []
    for shelf_index, (shelf, jobs) in enumerate(zip(plan.shelves, jobs_of, strict=True)):
        times = _times_of(shelf_index, calendar)
        attempts += Simulation(shelf, times, jobs, last, is_kubernetes=plan.scheduler == "kubernetes").run()
        simulated()
    attempts.sort(key=lambda each: (each.submit, each.job.number, each.attempt))
    records = list(Scribe(plan, last, _random(seed, f"{plan.name} uids")).records(attempts))
    known, late = late_ones(records, last)
    return DemoCluster(
        plan=plan,
        inventories=_inventories(plan, calendar, start),
        states=_states(plan, calendar),
        records=tuple(records),
        known=tuple(known),
        late=tuple(late),
    )


def _times_of(shelf_index: int, calendar: Calendar) -> ShelfTimes:
    return ShelfTimes(
        [each for each in calendar.outages if each.node[0] == shelf_index],
        calendar.closures,
        {node: at for (shelf, node), at in calendar.joins.items() if shelf == shelf_index},
        {node: at for (shelf, node), at in calendar.leaves.items() if shelf == shelf_index},
    )


def _inventories(plan: ClusterPlan, calendar: Calendar, start: datetime) -> tuple[Inventory, ...]:
    """The nodes at the start, and once more at every moment at which one joins or leaves."""
    moments = sorted({int(start.timestamp()), *calendar.joins.values(), *calendar.leaves.values()})
    return tuple(Inventory(instant(at), _facts(plan, calendar, at), complete=at in calendar.leaves.values()) for at in moments)


def _facts(plan: ClusterPlan, calendar: Calendar, at: int) -> tuple[NodeFact, ...]:
    return tuple(
        _fact(shelf, node)
        for number, shelf in enumerate(plan.shelves)
        for node in range(shelf.node_count)
        if calendar.joins.get((number, node), 0) <= at < calendar.leaves.get((number, node), FAR)
    )


def _fact(shelf: Shelf, node: int) -> NodeFact:
    gpus = (GpuPart(shelf.model, Decimal(shelf.gpus)),) if shelf.gpus else ()
    cores = shelf.slots * shelf.slot_cpus
    return NodeFact(shelf.node_name(node), shelf.partitions, gpus, cores, shelf.memory_mib, None, "")


def _states(plan: ClusterPlan, calendar: Calendar) -> tuple[StateSpan, ...]:
    return tuple(
        StateSpan(
            plan.shelves[each.node[0]].node_name(each.node[1]),
            each.condition,
            each.reason,
            instant(each.start),
            None if each.end >= FAR else instant(each.end),
        )
        for each in sorted(calendar.outages, key=lambda each: (each.node, each.start))
    )
