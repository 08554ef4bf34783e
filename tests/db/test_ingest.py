"""What a load leaves behind: idempotent, independent of order, and marking just the days it touched."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import permutations

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounting import rollups
from accounting.domain.records import GpuPart, UsageRecord
from accounting.ingest import IngestResult, ingest_records
from accounting.models import ClusterCoverage, DirtyDay, UsageDay
from accounting.models import UsageRecord as Fact
from estate.models import Cluster, GpuModel, GpuModelAlias, Partition
from tests.records import at, record, running, waiting

pytestmark = pytest.mark.django_db


def load(cluster: Cluster, *records: UsageRecord) -> IngestResult:
    with transaction.atomic():
        return ingest_records(cluster, records)


def table() -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM accounting_usagerecord ORDER BY cluster_id, external_id, submitted_at")
        return list(cursor.fetchall())


def test_a_record_is_stored_as_it_came(slurm: Cluster) -> None:
    name = "a\tb\\c\nd|e'\"\r{x} 训练-ß-😀 \x1a"
    load(slurm, record("7", name=name, nodes=('we"ird\\node', "gpu,02"), comment="\\N", cpus=Decimal("0.5")))
    fact = Fact.objects.get()
    assert (fact.name, fact.comment, fact.nodes) == (name, "\\N", ['we"ird\\node', "gpu,02"])
    assert (fact.gpus, fact.cpus, fact.started_at, fact.last_seen_at) == (Decimal(2), Decimal("0.5"), at(1), at(3))


def test_the_same_load_again_changes_nothing(slurm: Cluster) -> None:
    records = [record("1"), running("2"), waiting("3")]
    assert load(slurm, *records).changed_count == 3
    before = table()
    rollups.rebuild()
    again = load(slurm, *records)
    assert (again.accepted_count, again.changed_count, again.dirty_day_count) == (3, 0, 0)
    assert table() == before
    assert not DirtyDay.objects.exists()


def test_overlapping_loads_end_the_same_in_any_order(slurm: Cluster) -> None:
    early = [waiting("1"), waiting("2"), running("3", seen=2)]
    middle = [running("1", seen=2.5), waiting("2"), record("3", ended_at=at(2.25))]
    late = [record("1"), record("2", started_at=None, ended_at=at(2), state="CANCELLED", gpus=Decimal(0), gpu_parts=(), nodes=())]
    ends = set()
    for order in permutations((early, middle, late)):
        Fact.objects.all().delete()
        for records in order:
            load(slurm, *records)
        ends.add(tuple(table_without_arrays()))
    assert len(ends) == 1


def table_without_arrays() -> list[tuple[str, ...]]:
    return [tuple(str(value) for value in row) for row in table()]


def test_a_record_that_comes_twice_in_one_load_is_one_and_the_newer_wins(slurm: Cluster) -> None:
    load(slurm, running("1", seen=2), record("1"), waiting("1"))
    assert Fact.objects.get().state == "COMPLETED"


def test_an_id_that_comes_round_again_is_another_record(slurm: Cluster) -> None:
    load(
        slurm,
        record("12728301"),
        record("12728301", submitted_at=at(-80_000), eligible_at=at(-80_000), started_at=at(-79_999), ended_at=at(-79_998)),
    )
    assert Fact.objects.count() == 2


def test_waiting_records_are_as_old_as_their_dump(slurm: Cluster) -> None:
    load(slurm, waiting("1"), running("2", seen=5))
    assert Fact.objects.get(external_id="1").last_seen_at == at(5)
    assert ClusterCoverage.objects.get(cluster=slurm).through_at == at(5)


def test_a_live_source_says_itself_how_new_it_is(slurm: Cluster) -> None:
    with transaction.atomic():
        result = ingest_records(slurm, [waiting("1")], observed_at=at(9))
    assert result.through_at == at(9)
    assert Fact.objects.get().last_seen_at == at(9)


def test_a_correction_seen_later_wins_even_when_it_ends_earlier(slurm: Cluster) -> None:
    for ended, seen in ((30, 40), (3, 50)):
        with transaction.atomic():
            ingest_records(slurm, [record("1", ended_at=at(ended))], observed_at=at(seen))
    assert Fact.objects.get().ended_at == at(3)


def test_only_days_that_are_touched_become_dirty(slurm: Cluster) -> None:
    load(
        slurm,
        record("1", started_at=at(24), ended_at=at(30)),
        record("2", submitted_at=at(-2400), eligible_at=None, started_at=at(-2400), ended_at=at(-2399)),
    )
    days = set(DirtyDay.objects.values_list("day", flat=True))
    assert days == {date(2026, 3, 2), date(2026, 3, 3), date(2025, 11, 22)}


def test_a_record_that_shrinks_dirties_the_days_it_no_longer_holds(slurm: Cluster) -> None:
    with transaction.atomic():
        ingest_records(slurm, [record("1", ended_at=at(72))], observed_at=at(80))
    rollups.rebuild()
    with transaction.atomic():
        ingest_records(slurm, [record("1", ended_at=at(3))], observed_at=at(90))
    assert DirtyDay.objects.count() == 4
    rollups.rebuild()
    assert sum(UsageDay.objects.values_list("gpu_seconds", flat=True)) == 2 * 2 * 3600


def test_ending_at_midnight_does_not_touch_the_next_day(slurm: Cluster) -> None:
    load(slurm, record("1", ended_at=at(16)))
    assert [day.isoformat() for day in DirtyDay.objects.values_list("day", flat=True)] == ["2026-03-02"]


def test_new_partitions_and_models_appear_and_aliases_are_followed(slurm: Cluster) -> None:
    model = GpuModel.objects.create(name="NVIDIA-A100-SXM4-80GB")
    GpuModelAlias.objects.create(alias="a100", gpu_model=model)
    load(slurm, record("1"), record("2", gpu_parts=(GpuPart("H100", Decimal(2)),)), waiting("3", partition="debug,high"))
    assert set(Partition.objects.values_list("name", flat=True)) == {"train", "debug", "high"}
    assert Fact.objects.get(external_id="1").gpu_model_ids == [model.pk]
    assert GpuModel.objects.filter(name="h100").exists()


def test_a_failure_in_the_records_leaves_nothing(slurm: Cluster) -> None:
    def broken() -> object:
        yield record("1")
        raise OSError("the file ended early")

    with pytest.raises(OSError, match="ended early"), transaction.atomic():
        ingest_records(slurm, broken())  # type: ignore[arg-type]
    assert not Fact.objects.exists()
    assert load(slurm, record("1")).changed_count == 1


def test_the_table_refuses_a_record_that_ends_before_it_starts(slurm: Cluster) -> None:
    with pytest.raises(IntegrityError, match="usage_record_ends_after_it_starts"), transaction.atomic():
        ingest_records(slurm, [record("1", started_at=at(3), ended_at=at(1))])


def test_an_empty_load_is_no_error(slurm: Cluster) -> None:
    assert load(slurm) == IngestResult(0, 0, 0, None)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 60), min_size=1, max_size=6), seed=st.randoms(use_true_random=False))
def test_hourly_windows_in_any_order_equal_one_load(slurm: Cluster, cuts: list[int], seed: object) -> None:
    records = [
        record(str(n), submitted_at=at(n % 7), eligible_at=at(n % 7), started_at=at(n % 7 + 1), ended_at=at(n % 11 + 9))
        for n in range(60)
    ]
    Fact.objects.all().delete()
    load(slurm, *records)
    whole = table()
    Fact.objects.all().delete()
    windows = [records[max(0, cut - 15) : cut + 15] for cut in [*cuts, 0, 15, 30, 45, 60]]
    seed.shuffle(windows)  # type: ignore[attr-defined]
    for window in windows:
        load(slurm, *window)
    assert table() == whole
