"""Start estimates kept for later comparison, records that the books lost, and clusters that do not count GPUs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction

from accounting.domain.forecasts import Expectation, Runaway, Sample
from accounting.ingest import ingest_nodes, ingest_records
from accounting.models import RunawayRecord, SchedulerSample, StartEstimate, UsageRecord
from accounting.policy import ForecastResult, ingest_expectations, ingest_policy, ingest_runaways
from estate.domain.nodes import GpuPart, NodeFact
from estate.domain.policy import ConfigFact, PolicyFacts
from estate.models import Cluster
from estate.queries.inventory import shards_per_gpu
from estate.queries.limits import tracks_gpus
from tests.records import at, record, running

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def minutes(count: float) -> datetime:
    return NOON + timedelta(minutes=count)


def expect(expected: float | None, *, submitted: float = -10) -> Expectation:
    at = None if expected is None else minutes(expected)
    return Expectation("7", minutes(submitted), at, "train", "Resources", 100, (("Age", 5),))


def tell(cluster: Cluster, at: float, *told: Expectation) -> ForecastResult:
    with transaction.atomic():
        return ingest_expectations(cluster, told, Sample(3, 2, 900, 7, 8), estimated_at=minutes(at))


def test_an_estimate_is_kept_with_its_time_and_only_when_it_moves(slurm: Cluster) -> None:
    results = [
        tell(slurm, 0, expect(60)),
        tell(slurm, 5, expect(60)),
        tell(slurm, 10, expect(60.5)),
        tell(slurm, 15, expect(90)),
        tell(slurm, 20, expect(None)),
    ]
    assert [result.new_count for result in results] == [1, 0, 0, 1, 0]
    rows = StartEstimate.objects.order_by("estimated_at")
    assert [(row.estimated_at, row.expected_at) for row in rows] == [(minutes(0), minutes(60)), (minutes(15), minutes(90))]
    assert rows[0].priority_parts == {"Age": 5}
    assert list(SchedulerSample.objects.order_by("sampled_at").values_list("estimated_count", flat=True)) == [1, 1, 1, 1, 0]


def test_a_requeued_job_is_another_record_with_estimates_of_its_own(slurm: Cluster) -> None:
    tell(slurm, 0, expect(60))
    assert tell(slurm, 5, expect(60, submitted=1)).new_count == 1


def test_an_older_or_repeated_reading_writes_nothing(slurm: Cluster) -> None:
    tell(slurm, 10, expect(60))
    assert tell(slurm, 10, expect(600)).new_count == 0
    assert tell(slurm, 5, expect(600)).new_count == 0
    assert StartEstimate.objects.count() == SchedulerSample.objects.count() == 1


def test_a_runaway_is_listed_until_it_is_mended(slurm: Cluster) -> None:
    lost = Runaway("42", "RUNNING", minutes(-100), minutes(-90))
    nameless = Runaway("43", "RUNNING", None, None)
    assert ingest_runaways(slurm, [lost, nameless], seen_at=minutes(0)) == 2
    assert ingest_runaways(slurm, [lost, nameless], seen_at=minutes(60)) == 2
    assert ingest_runaways(slurm, [nameless], seen_at=minutes(120)) == 1
    assert ingest_runaways(slurm, [], seen_at=minutes(90)) == 1
    row = RunawayRecord.objects.get(external_id="42")
    assert (row.first_seen_at, row.last_seen_at, row.gone_at) == (minutes(0), minutes(60), minutes(120))
    assert RunawayRecord.objects.get(external_id="43").gone_at is None


def node(name: str, gpus: int, *shards: tuple[str | None, int], model: str | None = "l40s") -> NodeFact:
    return NodeFact(name, ("train",), (GpuPart(model, Decimal(gpus)),) if gpus else (), 64, 512_000, "up", "", shards)


def look(cluster: Cluster, *nodes: NodeFact) -> None:
    with transaction.atomic():
        ingest_nodes(cluster, nodes, as_of=NOON, complete=True)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("g1", 4, ("l40s", 16)), node("g2", 8)], 4),
        ([node("g1", 4, (None, 16))], 4),
        ([node("g1", 4, (None, 16), model=None)], 4),
        ([node("g1", 4, ("l40s", 16)), node("g2", 4, ("l40s", 8))], None),
        ([node("g1", 4, ("l40s", 10))], None),
        ([node("g1", 4)], None),
    ],
)
def test_the_shards_of_a_gpu_come_from_the_inventory(slurm: Cluster, nodes: list[NodeFact], expected: int | None) -> None:
    """C3-52: sacct says how many shards a job holds, and not how many make a GPU."""
    look(slurm, *nodes)
    assert shards_per_gpu(slurm) == expected


@pytest.mark.parametrize(
    ("tracked", "gpus", "expected"),
    [
        (("cpu", "mem"), 8, False),
        (("cpu", "gres/gpu"), 8, True),
        (("gres/gpu:a100",), 8, True),
        (("cpu",), 0, True),
        (None, 8, True),
    ],
)
def test_a_cluster_with_gpus_that_are_not_counted_is_known_by_its_set_up(
    slurm: Cluster, tracked: tuple[str, ...] | None, gpus: int, expected: bool
) -> None:
    """C3-42."""
    look(slurm, node("g1", gpus))
    if tracked is not None:
        config = ConfigFact("22.05", ("limits",), tracked, ("gpu",), "", "", None, "", "", (), ())
        with transaction.atomic():
            ingest_policy(slurm, PolicyFacts(config=config), as_of=NOON)
    assert tracks_gpus(slurm, minutes(1)) is expected


def test_what_was_known_of_the_gpus_of_a_stay_is_not_forgotten_when_it_ends(slurm: Cluster) -> None:
    """C3-42: the books of a cluster that does not count GPUs say nothing of them once a job has ended."""
    silent = record(gpus=None, gpu_parts=())
    for told, seen in ((running("1", seen=2), 2), (silent, 9)):
        with transaction.atomic():
            ingest_records(slurm, [told], observed_at=at(seen))
    fact = UsageRecord.objects.get()
    assert (fact.state, fact.ended_at, fact.gpus) == ("COMPLETED", at(3), Decimal(2))
    assert (fact.gpu_size, len(fact.gpu_model_ids)) == ("2", 1)
    with transaction.atomic():
        ingest_records(slurm, [silent._replace(submitted_at=at(0.5))], observed_at=at(9))
    assert UsageRecord.objects.get(submitted_at=at(0.5)).gpus is None
