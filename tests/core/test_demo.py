"""The invented estate: the same every time, possible on real nodes, and with every trap in it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.domain.records import UsageRecord
from collectors.demo import people, prices, shelves
from collectors.demo.arrivals import cron_instants
from collectors.demo.generate import DemoCluster, DemoEstate, generate, start_of
from collectors.demo.names import NASTY
from collectors.demo.outages import calendar_of

# The clock goes back on 25 October in Europe and on 1 November in America.
UNTIL = datetime(2026, 11, 10, 14, tzinfo=UTC)
ROUNDING = Decimal("0.000000001")


@pytest.fixture(scope="module")
def estate() -> DemoEstate:
    return generate(1, 1, UNTIL)


def digest(estate: DemoEstate) -> str:
    text = sha256()
    for cluster in estate.clusters:
        for part in (cluster.records, cluster.known, cluster.late, cluster.states, cluster.inventories):
            for each in part:
                text.update(repr(each).encode())
    return text.hexdigest()


def capacity(cluster: DemoCluster) -> dict[str, tuple[Decimal, int]]:
    """GPUs and cores by node, over all inventories."""
    facts = {fact.name: fact for inventory in cluster.inventories for fact in inventory.facts}
    return {name: (sum((part.gpus for part in fact.gpus), Decimal(0)), fact.cpu_count or 0) for name, fact in facts.items()}


def stays(cluster: DemoCluster, until: datetime) -> Iterator[tuple[UsageRecord, datetime, datetime]]:
    for record in cluster.records:
        if record.started_at is not None:
            yield record, record.started_at, record.ended_at or until


def most_held(cluster: DemoCluster, until: datetime) -> dict[str, tuple[Decimal, Decimal]]:
    """The most GPUs and cores that any node held at any instant, by a sweep over starts and ends (ends first)."""
    changes: dict[str, list[tuple[datetime, int, Decimal, Decimal]]] = defaultdict(list)
    for record, start, end in stays(cluster, until):
        gpus, cpus = (record.gpus or Decimal(0)) / len(record.nodes), (record.cpus or Decimal(0)) / len(record.nodes)
        for node in record.nodes:
            changes[node] += [(start, 1, gpus, cpus), (end, 0, -gpus, -cpus)]
    peaks = {}
    for node, moves in changes.items():
        gpus = cpus = peak_gpus = peak_cpus = Decimal(0)
        for _, _, more_gpus, more_cpus in sorted(moves):
            gpus, cpus = gpus + more_gpus, cpus + more_cpus
            peak_gpus, peak_cpus = max(peak_gpus, gpus), max(peak_cpus, cpus)
        peaks[node] = (peak_gpus, peak_cpus)
    return peaks


def check_laws(estate: DemoEstate) -> None:
    for cluster in estate.clusters:
        has = capacity(cluster)
        for node, (gpus, cpus) in most_held(cluster, estate.until).items():
            assert gpus <= has[node][0] + ROUNDING, (cluster.plan.name, node, gpus)
            assert cpus <= has[node][1], (cluster.plan.name, node, cpus)
        keys = Counter((record.external_id, record.submitted_at) for record in cluster.records)
        assert max(keys.values()) == 1
        for record in cluster.records:
            check_record(record, estate)


def check_record(record: UsageRecord, estate: DemoEstate) -> None:
    assert estate.start <= record.submitted_at < estate.until
    assert sum((part.gpus for part in record.gpu_parts), Decimal(0)) == record.gpus
    assert (record.ended_at is None) == (record.state in {"RUNNING", "PENDING"})
    assert (record.last_seen_at == estate.until) == (record.ended_at is None)
    if record.eligible_at is not None:
        assert record.submitted_at <= record.eligible_at
    if record.started_at is None:
        assert record.gpus == 0
        assert record.nodes == ()
        return
    assert record.eligible_at is not None
    assert record.eligible_at <= record.started_at <= (record.ended_at or estate.until) <= estate.until
    assert len(record.nodes) == record.node_count
    stay = ((record.ended_at or estate.until) - record.started_at).total_seconds()
    assert 0 <= record.suspended_seconds <= stay / 2


def test_the_same_seed_and_end_give_the_same_estate_bit_for_bit(estate: DemoEstate) -> None:
    assert digest(generate(1, 1, UNTIL)) == digest(estate)


def test_another_seed_gives_another_estate() -> None:
    assert digest(generate(1, 1, UNTIL, 0.05)) != digest(generate(2, 1, UNTIL, 0.05))


def test_no_node_is_over_allocated_and_every_record_is_possible(estate: DemoEstate) -> None:
    check_laws(estate)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32), hours=st.integers(0, 24 * 365))
def test_any_seed_and_end_give_a_possible_estate(seed: int, hours: int) -> None:
    check_laws(generate(seed, 1, UNTIL + timedelta(hours=hours), 0.15))


def test_nothing_runs_on_a_node_that_is_down_or_in_maintenance_or_not_there(estate: DemoEstate) -> None:
    for cluster in estate.clusters:
        away: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
        for span in cluster.states:
            away[span.node].append((span.start, span.end or estate.until))
        for before, after in pairwise(cluster.inventories):
            names = {fact.name for fact in before.facts}, {fact.name for fact in after.facts}
            for node in names[1] - names[0]:
                away[node].append((estate.start, after.as_of))
            for node in names[0] - names[1]:
                away[node].append((after.as_of, estate.until))
        assert any(away.values())
        for record, start, end in stays(cluster, estate.until):
            for node in record.nodes:
                assert all(end <= first or start >= last for first, last in away[node]), (record, away[node])


def test_node_states_of_one_node_never_overlap() -> None:
    for seed in range(20):
        for cluster in generate(seed, 6, UNTIL, 0.01).clusters:
            spans = defaultdict(list)
            for span in cluster.states:
                spans[span.node].append((span.start, span.end or datetime.max.replace(tzinfo=UTC)))
            for each in spans.values():
                each.sort()
                assert all(before[1] <= after[0] for before, after in pairwise(each))


def test_every_way_to_end_is_there(estate: DemoEstate) -> None:
    states = {record.state for cluster in estate.clusters for record in cluster.records}
    assert states == {
        "COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "PREEMPTED", "NODE_FAIL", "RUNNING", "PENDING",
    }  # fmt: skip


def test_failed_nodes_and_preemption_lead_to_a_second_attempt_under_the_same_id(estate: DemoEstate) -> None:
    for cluster in estate.clusters[:2]:
        attempts = defaultdict(list)
        for record in cluster.records:
            attempts[record.external_id].append(record)
        for state in ("NODE_FAIL", "PREEMPTED"):
            cut = [record for record in cluster.records if record.state == state]
            assert cut
            for record in cut:
                assert any(again.submitted_at == record.ended_at for again in attempts[record.external_id])


def test_a_lost_pod_comes_back_under_a_new_uid(estate: DemoEstate) -> None:
    pods = estate.clusters[2].records
    lost = [pod for pod in pods if pod.state == "NODE_FAIL"]
    assert lost
    for pod in lost:
        again = [other for other in pods if other.workload_id == pod.workload_id and other.submitted_at == pod.ended_at]
        assert again
        assert all(other.external_id != pod.external_id for other in again)


def test_sweeps_het_jobs_held_jobs_and_suspension_are_there(estate: DemoEstate) -> None:
    records = [record for cluster in estate.clusters[:2] for record in cluster.records]
    assert {"job", "array", "het"} == {record.workload_kind for record in records}
    assert all(re.fullmatch(r"\d+_\d+", record.display_id) for record in records if record.workload_kind == "array")
    assert all(re.fullmatch(r"\d+\+[01]", record.display_id) for record in records if record.workload_kind == "het")
    assert any(record.eligible_at and record.eligible_at > record.submitted_at for record in records)
    assert any(record.state == "PENDING" and record.eligible_at is None for record in records)
    assert any(record.suspended_seconds for record in records)
    assert any(record.state == "CANCELLED" and record.started_at is None and record.cancelled_by for record in records)
    reasons = {record.reason for record in records}
    assert {"Resources", "Priority", "Dependency", "JobHeldUser", "JobHeldAdmin", "PartitionDown"} <= reasons


def test_every_name_that_breaks_careless_code_is_there_on_each_slurm_cluster(estate: DemoEstate) -> None:
    for cluster in estate.clusters[:2]:
        assert set(NASTY) <= {record.name for record in cluster.records}


def test_pods_hold_thirds_of_mig_gpus_and_quarters_of_shared_ones(estate: DemoEstate) -> None:
    pods = estate.clusters[2].records
    by_queue = defaultdict(set)
    for pod in pods:
        if pod.started_at:
            by_queue[pod.partition].add(pod.gpus)
    assert Decimal("0.428571428571") in by_queue["notebooks"]
    assert Decimal("0.25") in by_queue["shared-l4"]
    assert {"Job", "PyTorchJob", "Deployment", "StatefulSet", "Notebook"} == {pod.workload_kind for pod in pods}


def test_services_run_for_months() -> None:
    estate = generate(1, 4, UNTIL, 0.2)
    longest = max(end - start for _, start, end in stays(estate.clusters[2], estate.until))
    assert longest > timedelta(days=60)


def test_the_jammed_partition_starts_nothing_for_two_days(estate: DemoEstate) -> None:
    alpha = estate.clusters[0]
    first, last = (int(at.timestamp()) for at in (estate.start, estate.until))
    (jam,) = calendar_of(alpha.plan, first, last, Random(0)).closures
    assert jam.end - jam.start == 2 * 86_400
    starts = [r.started_at.timestamp() for r in alpha.records if r.partition == jam.partition and r.started_at]
    assert not [at for at in starts if jam.start + 5 <= at < jam.end]
    assert [at for at in starts if jam.end <= at < jam.end + 3600]
    submitted = [r for r in alpha.records if r.partition == jam.partition and jam.start <= r.submitted_at.timestamp() < jam.end]
    assert len(submitted) > 20


def test_one_node_joins_one_leaves_and_one_is_down_at_the_end(estate: DemoEstate) -> None:
    alpha, borealis, _ = estate.clusters
    assert [len(each.facts) for each in alpha.inventories] == [40, 41]
    assert [len(each.facts) for each in borealis.inventories] == [38, 37]
    assert borealis.inventories[1].complete
    assert [span.condition for span in borealis.states if span.end is None] == ["down"]
    conditions = {span.condition for span in borealis.states}
    assert conditions == {"down", "planned_down", "reserved"}


def test_late_records_and_corrections_come_in_the_second_batch(estate: DemoEstate) -> None:
    for cluster in estate.clusters:
        known = {(record.external_id, record.submitted_at): record for record in cluster.known}
        late = {(record.external_id, record.submitted_at): record for record in cluster.late}
        assert set(late) - set(known)
        corrected = set(late) & set(known)
        assert corrected
        assert all(known[key].state == "RUNNING" and late[key].ended_at is not None for key in corrected)
        truth = {(record.external_id, record.submitted_at): record for record in cluster.records}
        assert known | late == truth


def test_cron_runs_twice_when_the_clock_goes_back_and_once_when_it_jumps() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    def on(first: datetime, last: datetime) -> list[str]:
        found = cron_instants(int(first.timestamp()), int(last.timestamp()), berlin)
        return [f"{datetime.fromtimestamp(at, UTC):%d %H:%M}" for at in found]

    back = on(datetime(2026, 10, 24, tzinfo=UTC), datetime(2026, 10, 27, tzinfo=UTC))
    assert back == ["24 00:30", "25 00:30", "25 01:30", "26 01:30"]
    forward = on(datetime(2026, 3, 27, 23, tzinfo=UTC), datetime(2026, 3, 30, 12, tzinfo=UTC))
    assert forward == ["28 01:30", "29 01:30", "30 00:30"]


def test_one_account_is_unmapped_and_one_model_has_no_price(estate: DemoEstate) -> None:
    accounts = {record.account for cluster in estate.clusters for record in cluster.records}
    assert accounts - set(people.PROJECTS) == {people.UNMAPPED_ACCOUNT}
    names = {shelves.ALIASES.get(model, model) for model in models(estate)}
    assert names - set(prices.AT_START) == {"NVIDIA-L4"}


def models(estate: DemoEstate) -> set[str]:
    return {part.model for cluster in estate.clusters for r in cluster.records for part in r.gpu_parts if part.model}


def test_the_estate_is_of_a_believable_size() -> None:
    plans = [shelf for plan in shelves.CLUSTERS for shelf in plan.shelves]
    assert 60 <= sum(shelf.node_count for shelf in plans if shelf.gpus) <= 90
    assert 400 <= sum(shelf.node_count * shelf.gpus for shelf in plans) <= 600
    assert len(people.PROJECTS) == 25


def test_training_partitions_are_busy_and_kubernetes_is_less_so() -> None:
    estate = generate(3, 2, UNTIL)

    def occupancy(cluster: DemoCluster, prefix: str) -> float:
        gpus = sum(has[0] for node, has in capacity(cluster).items() if node.startswith(prefix))
        held = sum(
            float(record.gpus or 0) * (end - start).total_seconds()
            for record, start, end in stays(cluster, estate.until)
            if record.nodes[0].startswith(prefix)
        )
        return held / float(gpus) / (estate.until - estate.start).total_seconds()

    alpha, borealis, helios = estate.clusters
    training = [occupancy(alpha, "ag-h"), occupancy(alpha, "ag-a"), occupancy(borealis, "bv-"), occupancy(borealis, "bl-")]
    assert all(0.55 <= each <= 0.85 for each in training), training
    assert occupancy(helios, "") < min(training)


def test_a_year_begins_on_the_same_day_of_the_year_before() -> None:
    assert start_of(datetime(2026, 12, 1, 2, tzinfo=UTC), 12) == datetime(2025, 12, 1, tzinfo=UTC)
    assert start_of(datetime(2026, 3, 31, tzinfo=UTC), 1) == datetime(2026, 2, 28, tzinfo=UTC)
