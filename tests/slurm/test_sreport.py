"""Our figures against sreport's for the same whole hours, in GPU-seconds and CPU-seconds, every difference with its name.

The differences are those of docs/definitions.md, "Against sreport". Each is worked out from the records of sacct, never from sreport.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from accounting.domain.reports import ReportRequest
from accounting.models import UsageRecord
from accounting.models.usage import ClusterCoverage
from accounting.queries import reports
from collectors import collecting, runs
from collectors.models import Source
from estate.models import Cluster
from tests.slurm import books
from tests.slurm.books import CPU, GPU, Held, Hours, Who
from tests.slurm.conftest import TestBed

UTC_ZONE = ZoneInfo("UTC")
THOUSANDTH = Decimal("0.001")
ATTEMPTS = 3


@dataclass
class World:
    """One moment of the test bed, here and in Slurm's books: nothing started or ended while both were read."""

    bed: TestBed
    hours: Hours
    records: list[Held]
    lab: Cluster

    def report(self, name: str, *by: str) -> list[dict[str, Any]]:
        """Our report over the days that have the hours; Slurm knows nothing of this cluster before them."""
        first, last = self.hours.first.date(), (self.hours.last - timedelta(seconds=1)).date() + timedelta(days=1)
        return reports.run(ReportRequest(name=name, first=first, last=last, zone=UTC_ZONE, by=by)).rows

    def seen(self) -> dict[tuple[str, int], int]:
        """Until when each stored record was seen to hold what it held, in epoch seconds."""
        rows = UsageRecord.objects.values_list("external_id", "submitted_at", "last_seen_at")
        return {(job_id, int(submitted.timestamp())): int(seen.timestamp()) for job_id, submitted, seen in rows}


@dataclass
class Differences:
    """By their names, what sreport counts beyond what we count (negative: less), in seconds of one TRES."""

    named: Mapping[str, Mapping[Who, Decimal]]

    def of(self, who: Who) -> Decimal:
        return sum((amounts.get(who, Decimal(0)) for amounts in self.named.values()), Decimal(0))

    def total(self, *names: str) -> Decimal:
        return sum((amount for name in names or self.named for amount in self.named[name].values()), Decimal(0))


def differences(world: World, tres: str) -> Differences:
    names = (
        "a MIG slice is a whole GPU, a shard is none",
        "runs on to the end of the hour",
        "resized: counted from the first start",
    )
    kinds, running, resized = (defaultdict[Who, Decimal](Decimal) for _ in names)
    seen, end_of_hours = world.seen(), int(world.hours.last.timestamp())
    for record in world.records:
        count = record.gpus if tres == GPU else record.cpus
        until = seen[record.job_id, record.submit]
        if tres == GPU:
            kinds[record.who] += (record.gpus - record.gpus_here) * (until - max(record.start, record.submit))
        if record.end is None and (tres == GPU or record.state != "SUSPENDED"):
            running[record.who] += count * (end_of_hours - until)
        resized[record.who] += count * max(0, record.submit - record.start)
    found = dict(zip(names, (kinds, running, resized), strict=True))
    if tres == CPU:
        shares = books.reservation_shares(world.bed, world.hours, world.records)
        found["idle time of reservations"] = defaultdict(Decimal, {who: Decimal(used) for who, used in shares.items()})
    return Differences(found)


@pytest.fixture
def world(db: None, slurm_bed: TestBed, mixed_jobs: dict[str, str]) -> Iterator[World]:
    """The cluster as it was when it came up (all nodes idle), then collected as it is."""
    lab = Cluster.objects.create(name="lab", scheduler="slurm", zone="UTC")
    nodes = re.sub(r"State=\S+", "State=IDLE", slurm_bed.run("scontrol", "show", "node"))
    runs.import_nodes(lab, "nodes", nodes.encode(), as_of=books.registered_at(slurm_bed), complete=True)
    source = Source.objects.create(name="lab", cluster=lab, kind="sacct", slurm_conf=str(slurm_bed.slurm_conf))
    with override_settings(ESTATE_ZONE="UTC"):
        for _ in range(ATTEMPTS):
            hours = books.hours_of(slurm_bed)
            before = books.unended(books.held(slurm_bed))
            books.roll_up(slurm_bed, hours)
            done = collecting.collect(source.pk, only_due=False)
            assert done.failures == []
            records = books.held(slurm_bed)
            if books.unended(records) == before:
                yield World(slurm_bed, hours, records, lab)
                return
    pytest.fail("jobs of the test bed start and end without a pause; nothing can be compared")


@pytest.mark.parametrize(("tres", "figure"), [(GPU, "gpu_seconds"), (CPU, "cpu_seconds")])
def test_usage_by_account_and_user_is_that_of_sreport(world: World, tres: str, figure: str) -> None:
    slurm = books.utilisation_by_user(world.bed, world.hours)[tres]
    ours = {(row["account"], row["user"]): Decimal(row[figure]) for row in world.report("usage", "account", "user")}
    named = differences(world, tres)

    users = {who: used for who, used in slurm.items() if who[1]}
    assert users.keys() == ours.keys()
    assert {who: rounded(used + named.of(who)) for who, used in ours.items()} == {
        who: rounded(used) for who, used in users.items()
    }
    assert sum(users.values()) > 1000, "something was used"


@pytest.mark.parametrize("tres", [GPU, CPU])
def test_an_account_is_the_sum_of_its_users_and_accounts(world: World, tres: str) -> None:
    """But for CPUs of a reservation that nobody used: sreport books them on the accounts themselves. GPUs have no such rows."""
    slurm = books.utilisation_by_user(world.bed, world.hours)[tres]
    above = books.account_tree(world.bed)
    shares = books.reservation_shares(world.bed, world.hours, world.records) if tres == CPU else Counter[Who]()
    for account, used in ((account, used) for (account, user), used in slurm.items() if not user):
        users = sum(amount for (name, user), amount in slurm.items() if name == account and user)
        below = sum(slurm.get((child, ""), 0) for child, parent in above.items() if parent == account)
        assert used == users + below + shares[account, ""], account


def test_the_differences_really_occur(world: World) -> None:
    """Else the comparison would prove less than it says."""
    gpus = differences(world, GPU)
    assert any(amount > 0 for amount in gpus.named["a MIG slice is a whole GPU, a shard is none"].values())
    assert any(amount < 0 for amount in gpus.named["a MIG slice is a whole GPU, a shard is none"].values())
    assert any(record.suspended for record in world.records), "CPU time of a suspended job is taken off"


def test_our_parts_of_capacity_map_onto_the_clusters_utilisation(world: World) -> None:
    slurm = books.cluster_utilisation(world.bed, world.hours)
    ours = parts(world)
    usage = differences(world, GPU)
    coverage = ClusterCoverage.objects.get(cluster=world.lab)
    known_from, known_to = (moment.replace(microsecond=0) for moment in (coverage.first_at, coverage.through_at))
    before = seconds(known_from - books.registered_at(world.bed))
    after = max(Decimal(0), seconds(world.hours.last - known_to))
    known = seconds(min(known_to, world.hours.last) - known_from)
    slices, down_now = mig_slices(world.bed), down_gpus(world.bed)

    # Our GPUs × the known time; Slurm counts a MIG slice as a GPU, from the registration of the cluster to the end of the hour.
    gpus = (ours["reported"] - ours["unknown"]) / known
    assert rounded(gpus) == rounded(slurm_gpus(world.bed) - slices * (1 - books.MIG_SHARE))
    assert near(slurm["reported"], slurm_gpus(world.bed) * (before + known + after))

    # What was held in a reservation is missing from sreport's cluster report.
    in_reservation = sum(record.gpus * ((record.end or 0) - record.start) for record in world.records if record.reservation)
    assert near(slurm["allocated"], ours["allocated"] + usage.total() - in_reservation)

    # Down: the same spans, on to the end of the hour; GPUs under MAINT are idle to Slurm, for a reservation holds CPUs only.
    assert near(slurm["down"], ours["down"] + down_now * after)
    assert slurm["planned_down"] == 0
    assert ours["planned_down"] > 0
    assert slurm["planned"] == 0, "CPUs only"

    # And idle is the rest, here and there.
    assert slurm["idle"] == slurm["reported"] - slurm["allocated"] - slurm["down"] - slurm["planned_down"] - slurm["planned"]
    held_back = ours["reserved_idle"] + ours["planned_down"]
    rest = slurm_gpus(world.bed) * (before + after) + (slurm_gpus(world.bed) - gpus) * known
    booked = usage.total() - in_reservation + down_now * after
    assert near(slurm["idle"], ours["idle"] + held_back + rest - booked)


def parts(world: World) -> dict[str, Decimal]:
    """Our capacity over the hours, GPU-seconds by part."""
    rows = [row for row in world.report("capacity", "hour") if world.hours.first <= row["hour"] < world.hours.last]
    names = ("reported", "allocated", "reserved_idle", "idle", "planned_down", "down", "unknown")
    return {name: sum((Decimal(row[f"{name}_gpu_seconds"]) for row in rows), Decimal(0)) for name in names}


def slurm_gpus(bed: TestBed) -> int:
    return sum(int(count) for count in re.findall(r"CfgTRES=\S*gres/gpu=(\d+)", bed.run("scontrol", "show", "node")))


def mig_slices(bed: TestBed) -> int:
    return sum(int(count) for count in re.findall(r"CfgTRES=\S*gres/gpu:1g\.10gb=(\d+)", bed.run("scontrol", "show", "node")))


def down_gpus(bed: TestBed) -> int:
    """GPUs of nodes that are drained or down now."""
    nodes = bed.run("scontrol", "-o", "show", "node").splitlines()
    away = [node for node in nodes if re.search(r"State=\S*(DRAIN|DOWN)", node) and "MAINT" not in node]
    return sum(int(count) for node in away for count in re.findall(r"CfgTRES=\S*gres/gpu=(\d+)", node))


def seconds(length: timedelta) -> Decimal:
    return Decimal(length // timedelta(microseconds=1)) / 1_000_000


def rounded(amount: Decimal | int) -> Decimal:
    return Decimal(amount).quantize(THOUSANDTH)


def near(slurms: int, ours: Decimal) -> bool:
    """To the second: an hour under way ends for us in the middle of one."""
    return abs(slurms - ours) <= 1
