"""What is submitted over the year: groups of jobs that were handed in together. Pure; deterministic in the given Random."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from zoneinfo import ZoneInfo

from collectors.demo.arrivals import Pace, cron_instants
from collectors.demo.draws import weighted
from collectors.demo.jobs import FAR, Job
from collectors.demo.names import NASTY, job_name, service_name
from collectors.demo.people import Crowd
from collectors.demo.shelves import CLUSTERS, DAY, HOUR, Shelf, Stream

Group = list[Job]

MONTH = 30.4375 * DAY
SWEEP_MEAN = 18
SWEEP_STEP_SECONDS = 900
LONGEST_SWEEP = 250
SHORTEST_SECONDS = 15
_LIMITS = tuple(round(hours * HOUR) for hours in (0.25, 0.5, 1, 2, 4, 8, 12, 24, 48, 72, 96, 120, 168, 240))
_OUTCOMES = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")
_UP_TO_OUTCOME = (0.76, 0.87, 0.93, 0.98, 1.0)
_QOS = ("normal", "low", "high")
_UP_TO_QOS = (0.84, 0.96, 1.0)
_RANKS = {"high": 0, "normal": 1, "low": 2}
_HOLDS = ("Dependency", "JobHeldUser", "BeginTime")


class Author:
    """Writes the groups of one cluster."""

    def __init__(self, index: int, start: int, until: int, *, scale: float, rng: Random, crowd: Crowd) -> None:
        plan = CLUSTERS[index]
        self._plan, self._index, self._start, self._until = plan, index, start, until
        self._scale, self._rng, self._crowd = scale, rng, crowd
        self._zone = ZoneInfo(plan.zone)
        self._pace = Pace(start, until, self._zone)

    def groups(self) -> list[Group]:
        """All groups by time of submission, their jobs numbered as the cluster would."""
        groups = [
            group
            for shelf_index, shelf in enumerate(self._plan.shelves)
            for stream in shelf.streams
            for group in self._of_stream(shelf_index, shelf, stream)
        ]
        if self._plan.scheduler == "slurm":
            groups += self._cron()
            groups += self._curiosities()
        groups.sort(key=lambda group: group[0].submit)
        number_jobs(groups, self._plan.first_job)
        return groups

    def _of_stream(self, shelf_index: int, shelf: Shelf, stream: Stream) -> list[Group]:
        wanted = stream.records_a_month * self._scale * (self._until - self._start) / MONTH
        count = max(1, round(wanted / (1 + stream.sweep_share * (SWEEP_MEAN - 1))))
        if stream.shape == "service":
            groups = self._services(shelf_index, shelf, stream)
        else:
            instants = self._pace.draw(self._rng, count)
            sizes = self._rng.choices(tuple(stream.sizes), tuple(stream.sizes.values()), k=count)
            groups = [self._group(shelf_index, stream, at, size) for at, size in zip(instants, sizes, strict=True)]
            _fit_to_load([job for group in groups for job in group], stream, shelf, self._until - self._start, self._scale)
        for group in groups:
            for job in group:
                self._decide(job, stream)
        return groups

    def _group(self, shelf_index: int, stream: Stream, at: int, slots: int) -> Group:
        rng = self._rng
        shelf = self._plan.shelves[shelf_index]
        first = self._job(shelf_index, shelf, stream, at, slots)
        if stream.shape == "gang":
            return self._gang(first, shelf)
        if stream.shape == "notebook":
            first.kind = "Notebook"
        elif rng.random() < stream.sweep_share and slots <= shelf.slots:
            first.kind = "array"
            tasks = min(LONGEST_SWEEP, 2 + int(rng.lognormvariate(2.3, 1.0)))
            return [first, *(self._like(first, rng.lognormvariate(0, 0.3)) for _ in range(tasks - 1))]
        elif slots == 4 and rng.random() < 0.02:
            first.kind = "het"
            return [first, self._like(first, 1.0, slots=1)]
        return [first]

    def _gang(self, first: Job, shelf: Shelf) -> Group:
        """Pods of one job; one pod is never larger than a node."""
        pods = max(1, first.slots // shelf.slots)
        first.kind = "PyTorchJob" if pods > 1 else "Job"
        first.slots, first.wants_nodes = min(first.slots, shelf.slots), 1
        return [first, *(self._like(first, 1.0) for _ in range(pods - 1))]

    def _job(self, shelf_index: int, shelf: Shelf, stream: Stream, at: int, slots: int) -> Job:
        rng = self._rng
        account, user = self._crowd.draw(rng, self._index)
        return Job(
            shelf_index=shelf_index,
            partition=stream.partition,
            kind="job",
            name=job_name(rng),
            user=user,
            account=account,
            qos="normal",
            submit=at,
            eligible=at,
            slots=slots,
            wants_nodes=max(1, slots // shelf.slots),
            run_seconds=int(1000 * rng.lognormvariate(0, stream.sigma)),
            limit_seconds=None,
            outcome="COMPLETED",
            cancel_at=FAR,
        )

    def _like(self, job: Job, factor: float, slots: int | None = None) -> Job:
        return Job(
            shelf_index=job.shelf_index,
            partition=job.partition,
            kind=job.kind,
            name=job.name,
            user=job.user,
            account=job.account,
            qos=job.qos,
            submit=job.submit,
            eligible=job.eligible,
            slots=job.slots if slots is None else slots,
            wants_nodes=1,
            run_seconds=int(job.run_seconds * factor),
            limit_seconds=None,
            outcome="COMPLETED",
            cancel_at=FAR,
        )

    def _services(self, shelf_index: int, shelf: Shelf, stream: Stream) -> list[Group]:
        """Replicas that follow one another until the end: a roll-out replaces the pod every few weeks."""
        rng = self._rng
        free = round(stream.load * self._scale * shelf.slots * shelf.node_count)
        groups: list[Group] = []
        while free > 0:
            slots = min(free, rng.choices(tuple(stream.sizes), tuple(stream.sizes.values()))[0])
            free -= slots
            at = self._start + int(rng.random() * 2 * DAY)
            first = self._job(shelf_index, shelf, stream, at, slots)
            first.kind = rng.choice(("Deployment", "Deployment", "StatefulSet"))
            first.name = service_name(rng)
            first.comment = f"{first.name}-{len(groups)}"
            while at < self._until:
                pod = self._like(first, 1.0)
                pod.comment = first.comment
                pod.submit = pod.eligible = at
                pod.run_seconds = int(DAY * rng.lognormvariate(3.2, stream.sigma))
                groups.append([pod])
                at += pod.run_seconds + 5
        return groups

    def _decide(self, job: Job, stream: Stream) -> None:
        """Limit, quality of service, outcome, patience and holds."""
        rng = self._rng
        job.outcome = weighted(rng, _OUTCOMES, _UP_TO_OUTCOME)
        if stream.longest_seconds is None:
            _decide_pod(job, stream, rng)
            return
        job.qos = weighted(rng, _QOS, _UP_TO_QOS)
        job.rank = _RANKS[job.qos]
        job.limit_seconds = _limit(job.run_seconds * rng.uniform(1.1, 6), stream.longest_seconds)
        if job.outcome == "TIMEOUT":
            job.limit_seconds = _limit(job.run_seconds, stream.longest_seconds)
            job.run_seconds = job.limit_seconds + rng.randrange(1, 30)
        elif job.outcome == "FAILED":
            job.run_seconds = max(SHORTEST_SECONDS, int(job.run_seconds * rng.random()))
        job.run_seconds = min(job.run_seconds, job.limit_seconds + 30)
        luck = rng.random()
        if luck < 0.25:
            job.cancel_at = job.submit + 60 + int(rng.expovariate(1 / (16 * HOUR)))
        elif luck < 0.29 and job.kind == "job":
            job.hold_reason = rng.choice(_HOLDS)
            job.eligible = job.submit + int(rng.lognormvariate(9, 1))
        elif luck < 0.30:
            job.suspended_seconds = int(job.run_seconds * rng.uniform(0.05, 0.3))

    def _cron(self) -> Iterator[Group]:
        """A nightly job at 02:30 by the local clock, on DST days too."""
        shelf_index = 2
        shelf = self._plan.shelves[shelf_index]
        for at in cron_instants(self._start, self._until, self._zone):
            job = self._job(shelf_index, shelf, shelf.streams[0], at, 1)
            job.name, job.account, job.user = "nightly-regression", "benchmarks", "svc.nightly"
            job.limit_seconds, job.run_seconds = HOUR, 900 + self._rng.randrange(600)
            yield [job]

    def _curiosities(self) -> Iterator[Group]:
        """One job of each nasty name, and one that was held all the time, so that no estate is without."""
        shelf_index = 2
        shelf = self._plan.shelves[shelf_index]
        step = (self._until - self._start) // (len(NASTY) + 2)
        for number, name in enumerate(NASTY, start=1):
            job = self._job(shelf_index, shelf, shelf.streams[0], self._start + number * step, 1)
            job.name, job.comment = name, name[:200]
            job.limit_seconds, job.run_seconds = HOUR, 600
            yield [job]
        held = self._job(shelf_index, shelf, shelf.streams[0], self._until - 3 * DAY, 1)
        held.limit_seconds, held.hold_reason, held.eligible = HOUR, "JobHeldAdmin", FAR
        yield [held]


def number_jobs(groups: list[Group], first: int) -> None:
    """Ids in order of submission: tasks of an array show as `first_i`, components of a het job as `first+i`."""
    number = first
    for group in groups:
        mark = {"array": "_", "het": "+"}.get(group[0].kind, "")
        leader = number
        for index, job in enumerate(group):
            job.number = number
            job.handicap_seconds = index * SWEEP_STEP_SECONDS
            job.workload_id = str(leader)
            job.display_id = f"{leader}{mark}{index}" if mark else str(number)
            number += 1


def _fit_to_load(jobs: list[Job], stream: Stream, shelf: Shelf, span: int, scale: float) -> None:
    """Scale run times so that they ask for the stream's share of the shelf, within the partition's limit."""
    wanted = stream.load * scale * shelf.slots * shelf.node_count * span
    longest = min(stream.longest_seconds or 21 * DAY, span)
    sizes = [(job.slots, job.run_seconds) for job in jobs]
    factor = 1.0
    for _ in range(4):
        asked = sum([slots * min(longest, max(SHORTEST_SECONDS, factor * seconds)) for slots, seconds in sizes])
        factor *= wanted / asked
    for job in jobs:
        job.run_seconds = int(min(longest, max(SHORTEST_SECONDS, factor * job.run_seconds)))


def _limit(seconds: float, longest: int) -> int:
    return next((limit for limit in _LIMITS if seconds <= limit <= longest), longest)


def _decide_pod(job: Job, stream: Stream, rng: Random) -> None:
    job.qos = ""
    if job.outcome == "TIMEOUT":
        job.outcome = "COMPLETED"
    if stream.shape == "service":
        job.outcome = "COMPLETED" if rng.random() < 0.9 else "OUT_OF_MEMORY"
        job.rank = 0
    elif stream.shape == "notebook":
        job.outcome = "CANCELLED" if rng.random() < 0.6 else "COMPLETED"
