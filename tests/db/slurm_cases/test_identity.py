"""Cases C2: what is the same record, and what a second reading changes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from accounting.domain.reports import Scope
from accounting.ingest import ingest_records
from accounting.models import DirtyDay, UsageRecord
from accounting.queries.waiting import waiting_now, with_waiting
from collectors import collecting, runs, windows
from collectors.models import Run, Source
from estate.models import Cluster
from tests.cases import case
from tests.db.dumps import BROKEN, dump, job, write
from tests.db.slurm_cases.world import ask, load
from tests.records import at, record, running, waiting

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("years", [1, 5, 9])
@pytest.mark.parametrize("case", [pytest.param(24, id="C24"), pytest.param(35, id="C35")])
def test_an_id_that_came_round_again_is_another_record(slurm: Cluster, years: int, case: object) -> None:
    before = timedelta(days=365 * years)
    old = {
        name: at(hours) - before for name, hours in (("submitted_at", 0), ("eligible_at", 0), ("started_at", 1), ("ended_at", 3))
    }
    load(slurm, record("12728301", name="new"), record("12728301", name="old", **old))
    assert set(UsageRecord.objects.values_list("name", flat=True)) == {"new", "old"}


@case(25)
def test_tasks_of_one_array_never_mix_their_facts(slurm: Cluster, case: object) -> None:
    task: dict[str, Any] = {"workload_id": "200", "workload_kind": "array"}
    load(slurm, running("201", display_id="200_1", **task), record("202", display_id="200_2", **task))
    load(slurm, record("201", display_id="200_1", ended_at=at(5), **task))
    facts = {row.display_id: (row.state, row.ended_at) for row in UsageRecord.objects.all()}
    assert facts == {"200_1": ("COMPLETED", at(5)), "200_2": ("COMPLETED", at(3))}


@pytest.mark.parametrize("state", ["REQUEUED", "PREEMPTED", "NODE_FAIL"])
@pytest.mark.parametrize("case", [pytest.param(29, id="C29"), pytest.param(71, id="C71")])
def test_a_requeued_run_stops_and_the_next_attempt_has_its_own_wait(slurm: Cluster, state: str, case: object) -> None:
    load(slurm, running("1", seen=2))
    again = {"submitted_at": at(3), "eligible_at": at(3), "started_at": at(5), "ended_at": at(6)}
    load(slurm, record("1", state=state, ended_at=at(3)), record("1", **again))
    first, second = UsageRecord.objects.order_by("submitted_at")
    assert (first.state, first.ended_at, second.started_at) == (state, at(3), at(5))
    assert {first.workload_id, second.workload_id} == {"1"}
    total = ask("waits").total
    assert (total["record_count"], total["max_wait_seconds"]) == (2, 7200)
    assert ask("usage").total["gpu_seconds"] == 2 * 2 * 3600 + 2 * 3600


@pytest.mark.parametrize("times", [2, 12])
@pytest.mark.parametrize("case", [pytest.param(31, id="C31"), pytest.param(36, id="C36")])
def test_looking_back_again_and_again_changes_nothing(slurm: Cluster, tmp_path: Path, times: int, case: object) -> None:
    path = str(write(tmp_path / "a.psv", job(1), job(2)))
    before = [runs.import_sacct(slurm, path).changed_count for _ in range(times)]
    assert before == [2] + [0] * (times - 1)
    assert UsageRecord.objects.count() == 2


@pytest.mark.parametrize("hours", [0.1, 24, 48, 24 * 34, 24 * 400])
@pytest.mark.parametrize("case", [pytest.param(31, id="C31"), pytest.param(32, id="C32"), pytest.param(36, id="C36")])
def test_a_window_is_bounded_overlaps_the_last_and_is_cut_by_our_clock(hours: float, case: object) -> None:
    now = at(0)
    window = windows.next_window(now, now - timedelta(hours=hours), now - timedelta(hours=1))
    assert window.last == now
    assert window.first <= now - timedelta(hours=48)
    assert window.last - window.first <= windows.LONG_LOOK_BACK
    missed = now - timedelta(hours=hours) - windows.OVERLAP < window.first
    assert (window.gap is not None) == missed, "what lies too far back is read in chunks"


@case(32)
def test_a_record_that_arrives_late_ends_where_it_belongs(slurm: Cluster, case: object) -> None:
    load(slurm, record("2", submitted_at=at(200), eligible_at=at(200), started_at=at(201), ended_at=at(202)))
    load(slurm, record("1", ended_at=at(4)))
    assert ask("usage", "day").rows[0]["gpu_seconds"] == 2 * 3 * 3600


@case(100)
def test_a_late_record_touches_its_days_only(slurm: Cluster, case: object) -> None:
    load(slurm, *(record(str(n), submitted_at=at(24 * n), eligible_at=at(24 * n), started_at=at(24 * n), ended_at=at(24 * n + 1))
                  for n in range(1, 20)))  # fmt: skip
    years_ago = timedelta(days=7 * 365)
    with transaction.atomic():
        late = {name: at(hours) - years_ago for name, hours in (("submitted_at", 0), ("eligible_at", 0), ("started_at", 1))}
        ingest_records(slurm, [record("99", ended_at=at(3) - years_ago, **late)])
    assert set(DirtyDay.objects.values_list("day", flat=True)) == {(at(0) - years_ago).date()}


@pytest.mark.parametrize("bad", [1, 3])
@pytest.mark.parametrize("case", [pytest.param(22, id="C22")])
def test_a_bad_line_is_kept_and_the_rest_comes_in(slurm: Cluster, tmp_path: Path, bad: int, case: object) -> None:
    path = write(tmp_path / "a.psv", job(1), *[BROKEN] * bad, job(2))
    outcome = runs.import_sacct(slurm, str(path))
    assert (outcome.accepted_count, outcome.rejected_count) == (2, bad)
    kept = Run.objects.get().rejections.all()
    assert [row.line_number for row in kept] == list(range(3, 3 + bad))
    assert all(row.raw == BROKEN and row.reason for row in kept)


@case(6)
def test_an_empty_dump_is_no_error_and_twice_in_an_hour_is_none_either(slurm: Cluster, tmp_path: Path, case: object) -> None:
    empty = tmp_path / "a.psv"
    empty.write_text(dump())
    for _ in range(2):
        assert runs.import_sacct(slurm, str(empty)).line_count == 0
    source = Source.objects.create(name="x", cluster=slurm, kind="sacct_files", location=str(tmp_path))
    write(tmp_path / "b.psv", job(1))
    for _ in range(2):
        assert collecting.collect(source.pk, only_due=False).failures == []
    assert UsageRecord.objects.count() == 1


@pytest.mark.parametrize("partition", ["debug,high", "a,b,c"])
@pytest.mark.parametrize("case", [pytest.param(19, id="C19")])
def test_a_job_that_asks_for_several_partitions_waits_in_each_and_is_one(slurm: Cluster, partition: str, case: object) -> None:
    load(slurm, waiting("1", partition=partition), waiting("2", partition="debug"))
    found = waiting_now(Scope())
    assert sum(one.record_count for one in found.values()) == 2
    rows = with_waiting([{"cluster": "alpha", "partition": name} for name in partition.split(",")], found)
    assert [row["waiting_count"] for row in rows] == [1 + (name == "debug") for name in partition.split(",")]
    load(slurm, running("1", partition=partition.rsplit(",", maxsplit=1)[-1]))
    assert sum(one.record_count for one in waiting_now(Scope()).values()) == 1
