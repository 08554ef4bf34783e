"""A small scheduler: first come first served by rank, with backfill around one reservation, on one shelf of equal nodes. Pure.

Waits come out of contention: no node is ever given more slots than it has. Backfill follows EASY (Lifka 1995): the first job that
does not fit is promised the nodes that come free first; a later job may use those only if its limit ends before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from collectors.demo.jobs import FAR, Attempt, Job
from collectors.demo.outages import Closure, Outage
from collectors.demo.shelves import Shelf

Event: TypeAlias = "tuple[int, int, int, int, Job | Stay | Outage | int]"

SCAN_DEPTH = 20
SUBMITTED, ENDED, CANCELLED, DOWN, UP, WAKE = range(6)
# Ends are handled before starts of the same second, so that intervals are half-open.
_ORDER = {ENDED: 0, UP: 0, WAKE: 0, DOWN: 1, CANCELLED: 2, SUBMITTED: 3}


class Stay(NamedTuple):
    """A job on its nodes since `started`."""

    job: Job
    nodes: tuple[int, ...]
    started: int
    expected_end: int


@dataclass(slots=True)
class _Pass:
    """What one pass over the queue found out; good until something comes free."""

    closed: set[str]
    hopeless: set[tuple[int, int | None]]
    head: Job | None = None
    reserved: frozenset[int] | None = None
    shadow: int = FAR


class ShelfTimes(NamedTuple):
    """Outages (node index only), and the instants before which a node is not there or after which it is gone."""

    outages: list[Outage]
    closures: list[Closure]
    joins: dict[int, int]
    leaves: dict[int, int]


class Simulation:
    """One shelf from its first submission until `until`. Call `run` once."""

    def __init__(self, shelf: Shelf, times: ShelfTimes, jobs: Iterable[Job], until: int, *, is_kubernetes: bool) -> None:
        node_count, slots = shelf.node_count, shelf.slots
        self._slots, self._until, self._is_kubernetes = slots, until, is_kubernetes
        self._free = [slots] * node_count
        self._most_free = slots
        self._usable = [index not in times.joins for index in range(node_count)]
        self._stays: list[dict[int, Stay]] = [{} for _ in range(node_count)]
        # By node: when the last of its stays is expected to end (0: it is empty), and when its next planned outage begins.
        self._busy_until = [0] * node_count
        self._clear_until = [FAR] * node_count
        self._running: dict[int, Stay] = {}
        self._queue: list[tuple[tuple[int, int], Job]] = []
        self._closures = times.closures
        self._windows = _planned_windows(node_count, times)
        for index in range(node_count):
            self._look_ahead(index, 0)
        self._attempts: list[Attempt] = []
        self._sequence = 0
        self._events: list[Event] = []
        self._fill_events(times, jobs)
        self._not_yet: dict[int, Job] = {}
        self._new: list[Job] = []
        self._has_freed = True
        self._pass = _Pass(set(), set())

    def run(self) -> list[Attempt]:
        """Every attempt that began to wait before the end, in the order in which they were settled."""
        events = self._events
        while events and events[0][0] < self._until:
            now = events[0][0]
            while events and events[0][0] == now:
                _, _, _, kind, what = heappop(events)
                self._handle(now, kind, what)
            if self._queue:
                self._schedule(now)
        self._settle_the_rest()
        return self._attempts

    def _fill_events(self, times: ShelfTimes, jobs: Iterable[Job]) -> None:
        events = self._events
        events += [self._event(job.submit, SUBMITTED, job) for job in jobs]
        for outage in times.outages:
            events += [self._event(outage.start, DOWN, outage), self._event(outage.end, UP, outage.node[1])]
        events += [self._event(at, UP, node) for node, at in times.joins.items()]
        for closure in times.closures:
            events += [self._event(closure.start, WAKE, 0), self._event(closure.end, WAKE, 0)]
        heapify(events)

    def _push(self, at: int, kind: int, what: Job | Stay | Outage | int) -> None:
        heappush(self._events, self._event(at, kind, what))

    def _event(self, at: int, kind: int, what: Job | Stay | Outage | int) -> Event:
        self._sequence += 1
        return (at, _ORDER[kind], self._sequence, kind, what)

    def _handle(self, now: int, kind: int, what: Job | Stay | Outage | int) -> None:
        if isinstance(what, Job):
            if kind == CANCELLED:
                self._cancel(now, what)
            elif now == what.submit or what.number in self._not_yet:
                self._submit(now, what)
        elif isinstance(what, Stay):
            if self._running.get(what.job.number) is what:
                self._end(now, what, what.job.outcome, "")
        elif isinstance(what, Outage):
            self._take_down(now, what)
        else:
            self._has_freed = True
            if kind == UP:
                self._usable[what] = True
                self._look_ahead(what, now)

    def _submit(self, now: int, job: Job) -> None:
        """Into the queue, or among those that are not eligible yet."""
        job.is_waiting = True
        if job.cancel_at < self._until and job.submit == now:
            self._push(max(now, job.cancel_at), CANCELLED, job)
        if job.eligible > now:
            self._not_yet[job.number] = job
            if job.eligible < self._until:
                self._push(job.eligible, SUBMITTED, job)
            return
        self._not_yet.pop(job.number, None)
        insort(self._queue, (job.key, job))
        self._new.append(job)

    def _cancel(self, now: int, job: Job) -> None:
        if not job.is_waiting or now < job.submit:
            return
        job.is_waiting = False
        if self._leave_queue(job):
            self._has_freed = True
        self._not_yet.pop(job.number, None)
        self._note(job, "CANCELLED", job.hold_reason or job.was_blocked or "Priority", started=None, ended=now)

    def _leave_queue(self, job: Job) -> bool:
        at = bisect_left(self._queue, (job.key,))
        was_there = at < len(self._queue) and self._queue[at][1] is job
        if was_there:
            del self._queue[at]
        return was_there

    def _take_down(self, now: int, outage: Outage) -> None:
        node = outage.node[1]
        self._usable[node] = False
        for stay in list(self._stays[node].values()):
            fault = outage.condition == "down"
            self._end(now, stay, "NODE_FAIL" if fault else "PREEMPTED", "NodeDown" if fault else "Evicted")
            self._requeue(now, stay.job)

    def _requeue(self, now: int, job: Job) -> None:
        job.submit = job.eligible = now
        job.attempt += 1
        job.cancel_at = FAR
        job.was_blocked = job.hold_reason = ""
        self._push(now, SUBMITTED, job)

    def _end(self, now: int, stay: Stay, state: str, reason: str) -> None:
        job = stay.job
        self._has_freed = True
        del self._running[job.number]
        for node in stay.nodes:
            others = self._stays[node]
            del others[job.number]
            self._free[node] += job.slots if len(stay.nodes) == 1 else self._slots
            self._most_free = max(self._most_free, self._free[node])
            if stay.expected_end == self._busy_until[node]:
                self._busy_until[node] = max([other.expected_end for other in others.values()], default=0)
        self._note(job, state, reason or job.was_blocked, started=stay.started, ended=now, nodes=stay.nodes)

    def _note(
        self, job: Job, state: str, reason: str, *, started: int | None, ended: int | None, nodes: tuple[int, ...] = ()
    ) -> None:
        eligible = job.eligible if job.eligible < FAR else None
        self._attempts.append(Attempt(job, job.attempt, job.submit, eligible, started, ended, state, nodes, reason))

    def _schedule(self, now: int) -> None:
        """What fits starts; the first job that does not gets the reservation. While nothing came free, only new jobs are tried."""
        if self._has_freed:
            self._has_freed = False
            self._pass = _Pass({each.partition for each in self._closures if each.start <= now < each.end}, set())
            candidates = [job for _, job in self._queue[:SCAN_DEPTH]]
        else:
            candidates = sorted(self._new, key=_key) if len(self._new) > 1 else self._new
        hopeless = self._pass.hopeless
        started: dict[int, Job] = {}
        for job in candidates:
            # A job as large as one that just failed, and as long, fails too; an urgent one may still push others out.
            if job.is_waiting and ((job.slots, job.limit_seconds) not in hopeless or not job.rank) and self._try(job, now):
                started[job.number] = job
        for job in self._new:
            job.was_blocked = job.was_blocked or ("" if job.number in started else "Priority")
        self._new.clear()
        for job in started.values():
            self._leave_queue(job)

    def _try(self, job: Job, now: int) -> bool:
        """Start `job` if it may and can; else note why not."""
        state = self._pass
        if job.partition in state.closed:
            job.was_blocked = "PartitionDown"
            return False
        nodes = self._place(job, now)
        if nodes is None and job.rank == 0 and not self._is_kubernetes:
            nodes = self._preempt(job, now)
        if nodes is not None:
            self._start(now, job, nodes)
            return True
        state.hopeless.add((job.slots, job.limit_seconds))
        job.was_blocked = "Priority" if state.head else "Resources"
        state.head = state.head or job
        return False

    def _place(self, job: Job, now: int) -> tuple[int, ...] | None:
        """Nodes for `job` that leave the reservation whole, or None."""
        need = job.slots if job.wants_nodes == 1 else self._slots
        if self._most_free < need:
            return None
        state = self._pass
        if state.head is not None and state.reserved is None:
            state.reserved, state.shadow = self._reserve(state.head, now)
        seconds = job.planned_seconds
        taboo = state.reserved if state.reserved and now + seconds > state.shadow else ()
        if job.wants_nodes == 1:
            return self._fullest(need, _clear_end(now, seconds), taboo)
        if self._free.count(need) < job.wants_nodes:
            return None
        end = _clear_end(now, seconds)
        empty = [node for node, free in enumerate(self._free) if free >= need and node not in taboo and self._takes(node, end)]
        return tuple(empty[: job.wants_nodes]) if len(empty) >= job.wants_nodes else None

    def _fullest(self, need: int, end: int, taboo: Collection[int]) -> tuple[int, ...] | None:
        """The node that has least to spare."""
        for _, node in sorted([(free, node) for node, free in enumerate(self._free) if free >= need]):
            if node not in taboo and self._takes(node, end):
                return (node,)
        return None

    def _takes(self, node: int, end: int) -> bool:
        """Whether the node works, and a job that needs it clear until `end` keeps out of its next planned outage."""
        return self._usable[node] and end <= self._clear_until[node]

    def _look_ahead(self, node: int, now: int) -> None:
        """Find the node's next planned outage; called whenever one is over. A pod never starts on a node that will leave."""
        windows = self._windows[node]
        while windows and windows[0][1] <= now:
            windows.popleft()
        start, end = windows[0] if windows else (FAR, 0)
        self._clear_until[node] = 0 if self._is_kubernetes and end >= FAR else start

    def _reserve(self, job: Job, now: int) -> tuple[frozenset[int], int]:
        """The nodes that come free first, and when, going by limits."""
        seconds = job.planned_seconds
        frees = sorted([(self._free_at(node, now, seconds), node) for node, usable in enumerate(self._usable) if usable])
        chosen = frees[: job.wants_nodes]
        if len(chosen) < job.wants_nodes:
            return frozenset(), FAR
        return frozenset(node for _, node in chosen), chosen[-1][0]

    def _free_at(self, node: int, now: int, seconds: int) -> int:
        """When `node` is empty for so long, going by limits and planned outages."""
        at = self._busy_until[node] or now
        if at + seconds <= self._clear_until[node] or seconds >= FAR:
            return at
        for start, end in self._windows[node]:
            if at < end and at + seconds > start:
                at = end
        return at

    def _preempt(self, job: Job, now: int) -> tuple[int, ...] | None:
        """Room for an urgent job of one node by stopping jobs of low rank on it; they go back into the queue."""
        if job.wants_nodes > 1:
            return None
        end = _clear_end(now, job.planned_seconds)
        for node, stays in enumerate(self._stays):
            victims = [stay for stay in stays.values() if stay.job.rank == 2 and stay.started < now and len(stay.nodes) == 1]
            room = self._free[node] + sum(stay.job.slots for stay in victims)
            if not victims or room < job.slots or not self._takes(node, end):
                continue
            while self._free[node] < job.slots:
                victim = victims.pop()
                self._end(now, victim, "PREEMPTED", "Preempted")
                self._requeue(now, victim.job)
            return (node,)
        return None

    def _start(self, now: int, job: Job, nodes: tuple[int, ...]) -> None:
        job.is_waiting = False
        stay = Stay(job, nodes, now, now + job.planned_seconds)
        self._running[job.number] = stay
        for node in nodes:
            self._stays[node][job.number] = stay
            self._free[node] -= job.slots if len(nodes) == 1 else self._slots
            self._busy_until[node] = max(self._busy_until[node], stay.expected_end)
        self._most_free = max(self._free)
        self._push(now + job.run_seconds, ENDED, stay)

    def _settle_the_rest(self) -> None:
        """What still runs or waits at the end."""
        for stay in self._running.values():
            self._note(stay.job, "RUNNING", stay.job.was_blocked, started=stay.started, ended=None, nodes=stay.nodes)
        waiting = [job for _, job in self._queue] + list(self._not_yet.values())
        for job in waiting:
            if job.eligible >= self._until:
                job.eligible = FAR
            reason = job.hold_reason if job.eligible == FAR else job.was_blocked
            self._note(job, "PENDING", reason or "Priority", started=None, ended=None)


def _key(job: Job) -> tuple[int, int]:
    return job.key


def _clear_end(now: int, seconds: int) -> int:
    """Until when a job needs its nodes clear of planned outages; a pod, which tells no end, only now: it is evicted instead."""
    return now + 1 if seconds >= FAR else now + seconds


def _planned_windows(node_count: int, times: ShelfTimes) -> list[deque[tuple[int, int]]]:
    """By node, the spans known beforehand: maintenance, reservations, departure."""
    windows: list[deque[tuple[int, int]]] = [deque() for _ in range(node_count)]
    for outage in sorted(times.outages, key=lambda each: each.start):
        if outage.condition != "down":
            windows[outage.node[1]].append((outage.start, outage.end))
    for node, at in times.leaves.items():
        windows[node].append((at, FAR))
    return windows
