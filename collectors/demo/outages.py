"""When nodes are down, in maintenance or reserved, when one joins or leaves, and when a partition is closed. Pure. Epoch seconds."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from collectors.demo.jobs import FAR
from collectors.demo.shelves import DAY, HOUR, JOINING, LEAVING, ClusterPlan

FAILURES_PER_NODE_YEAR = 1.6
YEAR = 365 * DAY
JAM = ("alpha", "train")
JAM_SECONDS = 2 * DAY
MAINTENANCE_SECONDS = 10 * HOUR
_REASONS = (
    "GPU fell off the bus (Xid 79)",
    "Not responding",
    "ECC errors above threshold",
    "NVLink fault, board replaced",
    "Kernel panic",
    'Disk full: "/scratch"',
    "Power supply, 1 of 2",
)


class Outage(NamedTuple):
    """A span `[start, end)` in which a node takes no work; `end` FAR means that it still lasts."""

    node: tuple[int, int]
    condition: str
    reason: str
    start: int
    end: int


class Closure(NamedTuple):
    """A span in which a partition starts nothing."""

    partition: str
    start: int
    end: int


class Calendar(NamedTuple):
    """What goes wrong on one cluster: outages by node (shelf index, node index), closures, and when nodes join and leave."""

    outages: list[Outage]
    closures: list[Closure]
    joins: dict[tuple[int, int], int]
    leaves: dict[tuple[int, int], int]


def calendar_of(plan: ClusterPlan, start: int, until: int, rng: Random) -> Calendar:
    """Outages of one node never overlap; planned ones come first, failures fill the rest."""
    span = until - start
    joins = _dated(plan, JOINING, start + round(0.45 * span))
    leaves = _dated(plan, LEAVING, start + round(0.65 * span))
    closures = []
    if plan.name == JAM[0]:
        opens = start + round(0.62 * span)
        closures.append(Closure(JAM[1], opens, opens + JAM_SECONDS))
    outages = [*_maintenance(plan, start, until), *_workshop(plan, start, span), *_lasting(plan, until)]
    outages += _failures(plan, start, until, outages, rng)
    return Calendar([each for each in outages if _exists(each, joins, leaves)], closures, joins, leaves)


def _dated(plan: ClusterPlan, which: tuple[str, str, int], at: int) -> dict[tuple[int, int], int]:
    cluster, prefix, index = which
    at -= at % HOUR
    return {(number, index): at for number, shelf in enumerate(plan.shelves) if plan.name == cluster and shelf.prefix == prefix}


def _maintenance(plan: ClusterPlan, start: int, until: int) -> list[Outage]:
    """All nodes at once, about every four months, and once in any shorter span."""
    count = max(1, round((until - start) / (122 * DAY)))
    step = (until - start) // count
    outages = []
    for number in range(count):
        begin = start + number * step + round(0.8 * step)
        begin -= begin % HOUR
        outages += [
            Outage((shelf, node), "planned_down", "Maintenance: firmware and driver", begin, begin + MAINTENANCE_SECONDS)
            for shelf, each in enumerate(plan.shelves)
            for node in range(each.node_count)
        ]
    return outages


def _workshop(plan: ClusterPlan, start: int, span: int) -> list[Outage]:
    if plan.name != "borealis":
        return []
    begin = start + round(0.3 * span)
    return [Outage((1, node), "reserved", "Reserved: spring school", begin, begin + 3 * DAY) for node in (0, 1)]


def _lasting(plan: ClusterPlan, until: int) -> list[Outage]:
    """One node that is down at the end."""
    return [Outage((0, 2), "down", _REASONS[0], until - 30 * HOUR, FAR)] if plan.name == "borealis" else []


def _failures(plan: ClusterPlan, start: int, until: int, taken: list[Outage], rng: Random) -> list[Outage]:
    spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for each in taken:
        spans.setdefault(each.node, []).append((each.start, each.end))
    outages = []
    for shelf, plan_of_shelf in enumerate(plan.shelves):
        for index in range(plan_of_shelf.node_count):
            node = (shelf, index)
            at = start + rng.expovariate(FAILURES_PER_NODE_YEAR / YEAR)
            while at < until - DAY:
                begin = round(at)
                end = begin + round(min(6 * DAY, HOUR * rng.lognormvariate(1.6, 1.0)))
                if all(end + HOUR <= first or begin >= last + HOUR for first, last in spans.get(node, ())) and end < until:
                    outages.append(Outage(node, "down", rng.choice(_REASONS), begin, end))
                at = end + HOUR + rng.expovariate(FAILURES_PER_NODE_YEAR / YEAR)
    return outages


def _exists(outage: Outage, joins: dict[tuple[int, int], int], leaves: dict[tuple[int, int], int]) -> bool:
    return joins.get(outage.node, 0) <= outage.start and outage.end <= leaves.get(outage.node, FAR)
