"""The reports against plain Python over the same records: facts = rollups = the naive sum, parts = whole."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateRange, DateTimeTZRange
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounting import rollups
from accounting.domain.records import GpuPart, NodeFact, UsageRecord
from accounting.domain.reports import Report, ReportError, ReportRequest, Scope
from accounting.ingest import ingest_nodes, ingest_records
from accounting.models import DirtyDay, NodeDay, QueueDay, Rate, UsageDay, UserDay
from accounting.models import UsageRecord as Fact
from accounting.queries import reports
from estate.models import AccountMapping, Cluster, GpuModel, Node, NodeState, Project
from tests.records import at, record, running, waiting

pytestmark = pytest.mark.django_db
UTC_ZONE = ZoneInfo("UTC")
MARCH = (date(2026, 3, 1), date(2026, 4, 1))


def load(cluster: Cluster, *records: UsageRecord) -> None:
    with transaction.atomic():
        ingest_records(cluster, records)
    rollups.rebuild()


def inventory(cluster: Cluster, **gpus: int) -> None:
    facts = [
        NodeFact(name, ("train", "long"), (GpuPart("a100", Decimal(count)),), 64, 512_000, "up", "")
        for name, count in gpus.items()
    ]
    with transaction.atomic():
        ingest_nodes(cluster, facts, as_of=at(-500))


def ask(name: str, *by: str, days: tuple[date, date] = MARCH, zone: ZoneInfo = UTC_ZONE, **scope: Any) -> Report:
    return reports.run(ReportRequest(name=name, first=days[0], last=days[1], zone=zone, by=by, scope=Scope(**scope)))


def column(report: Report, key: str, figure: str) -> dict[Any, Any]:
    return {row[key]: row[figure] for row in report.rows}


# usage ----------------------------------------------------------------------------------------------------------------


def test_a_job_over_midnight_is_cut_there(slurm: Cluster) -> None:
    load(slurm, record("1", started_at=at(15), ended_at=at(17)))
    assert column(ask("usage", "day"), "day", "gpu_seconds") == {date(2026, 3, 2): 7200, date(2026, 3, 3): 7200}


def test_hours_before_the_period_are_clipped(slurm: Cluster) -> None:
    load(slurm, record("1", started_at=at(15), ended_at=at(17)))
    report = ask("usage", days=(date(2026, 3, 3), date(2026, 3, 4)))
    assert (report.total["gpu_seconds"], report.total["record_count"], report.total["wall_seconds"]) == (7200, 0, 3600)


def test_two_models_are_split_and_counted_once(slurm: Cluster) -> None:
    load(slurm, record("1", gpus=Decimal(5), gpu_parts=(GpuPart("a100", Decimal(2)), GpuPart("v100", Decimal(3)))))
    report = ask("usage", "gpu_model")
    assert column(report, "gpu_model", "gpu_seconds") == {"a100": 14_400, "v100": 21_600}
    assert (report.total["record_count"], report.total["started_count"], report.total["wall_seconds"]) == (1, 1, 7200)


def test_suspension_takes_cpu_time_but_no_gpu_time(slurm: Cluster) -> None:
    load(slurm, record("1", gpus=Decimal(8), gpu_parts=(GpuPart("a100", Decimal(8)),), suspended_seconds=3600))
    total = ask("usage").total
    assert (total["gpu_seconds"], total["cpu_seconds"]) == (16 * 3600, 16 * 3600)


def test_a_running_record_counts_to_its_last_sighting(slurm: Cluster) -> None:
    load(slurm, running("1", seen=2))
    assert ask("usage").total["gpu_seconds"] == 7200


def test_a_record_that_waits_holds_nothing(slurm: Cluster) -> None:
    load(slurm, waiting("1"), running("2", seen=30, gpus=Decimal(0), gpu_parts=(), cpus=None))
    total = ask("usage").total
    assert (total["record_count"], total["started_count"], total["wall_seconds"]) == (2, 1, 29 * 3600)
    assert (total["gpu_seconds"], total["cpu_seconds"]) == (0, 0)


def test_a_mig_slice_is_a_fraction_and_sevenths_add_up(slurm: Cluster) -> None:
    seventh = Decimal("0.142857142857")
    load(slurm, *(record(str(n), gpus=seventh, gpu_parts=(GpuPart("a100", seventh),)) for n in range(7)))
    assert ask("usage").total["gpu_seconds"] == 7200


def test_another_zone_cuts_other_days(slurm: Cluster) -> None:
    load(slurm, record("1", started_at=at(15), ended_at=at(17)))
    kolkata = ask("usage", "day", zone=ZoneInfo("Asia/Kolkata"))
    assert column(kolkata, "day", "gpu_seconds") == {date(2026, 3, 2): 0, date(2026, 3, 3): 14_400}


def test_usage_without_a_mapping_is_unattributed(slurm: Cluster, vision: Project) -> None:
    load(slurm, record("1"), record("2", account="orphan"))
    report = ask("usage", "project")
    assert column(report, "project", "gpu_seconds") == {"Vision": 14_400, "Unattributed": 14_400}
    assert report.quality["unattributed_gpu_seconds"] == 14_400


def test_a_mapping_that_changes_splits_usage_at_midnight(slurm: Cluster) -> None:
    for name, span in (("Old", DateRange(None, date(2026, 3, 3))), ("New", DateRange(date(2026, 3, 3), None))):
        AccountMapping.objects.create(
            cluster=slurm, account="vision", project=Project.objects.create(code=name, name=name), valid_during=span
        )
    load(slurm, record("1", started_at=at(15), ended_at=at(18)))
    assert column(ask("usage", "project"), "project", "gpu_seconds") == {"Old": 7200, "New": 14_400}


def test_a_member_sees_only_what_is_theirs(slurm: Cluster, vision: Project) -> None:
    load(slurm, record("1"), record("2", account="orphan"))
    assert ask("usage", visible_projects=(vision.pk,)).total["gpu_seconds"] == 14_400
    assert ask("usage", "user", visible_projects=()).rows == []


def test_an_unknown_dimension_or_report_is_named(slurm: Cluster) -> None:
    with pytest.raises(ReportError, match="no dimension 'colour'; choose among cluster"):
        ask("usage", "colour")
    with pytest.raises(ReportError, match="no report 'nonsense'"):
        ask("nonsense")


RECORDS = st.lists(
    st.builds(
        lambda n, submit, wait, run, gpus, user, partition, state, cpus: record(
            str(n),
            submitted_at=at(submit / 60),
            eligible_at=at(submit / 60),
            started_at=at((submit + wait) / 60),
            ended_at=at((submit + wait + run) / 60),
            gpus=Decimal(gpus),
            gpu_parts=(GpuPart("a100", Decimal(gpus)),) if gpus else (),
            user=user,
            partition=partition,
            state=state,
            cpus=Decimal(cpus),
        ),
        n=st.integers(1, 10**6),
        submit=st.integers(-5000, 30_000),
        wait=st.integers(0, 3000),
        run=st.integers(0, 6000),
        gpus=st.sampled_from([0, 1, 2, 8]),
        user=st.sampled_from(["ann", "bob"]),
        partition=st.sampled_from(["train", "debug"]),
        state=st.sampled_from(["COMPLETED", "FAILED"]),
        cpus=st.integers(0, 64),
    ),
    max_size=12,
    unique_by=lambda made: made.external_id,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS, zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]))
def test_facts_rollups_and_the_naive_sum_agree(slurm: Cluster, records: list[UsageRecord], zone: str, settings: Any) -> None:
    settings.ESTATE_ZONE = zone
    Fact.objects.all().delete()
    for kind in (UsageDay, UserDay, QueueDay):
        kind.objects.all().delete()
    load(slurm, *records)
    days = (date(2026, 2, 20), date(2026, 4, 2))
    period = ReportRequest(name="usage", first=days[0], last=days[1], zone=ZoneInfo(zone)).period
    naive = sum(
        int(made.gpus or 0) * period.overlap_seconds(made.started_at, made.ended_at)
        for made in records
        if made.started_at and made.ended_at
    )
    for by in (
        (),
        ("day",),
        ("user", "partition"),
        ("user", "account"),
        ("account", "partition"),
        ("project", "day"),
        ("gpu_size", "qos"),
        ("month",),
        ("gpu_model", "week"),
        ("state",),
        ("state", "day"),
        ("workload",),
    ):
        report = ask("usage", *by, days=days, zone=ZoneInfo(zone))
        assert report.total["gpu_seconds"] == naive
        for figure in reports.ADDITIVE_USAGE:
            assert sum(row[figure] for row in report.rows) == report.total[figure]  # type: ignore[misc]
    by_rollup = ask("usage", "day", "user", days=days, zone=ZoneInfo(zone)).rows
    by_facts: dict[tuple[Any, Any], Any] = {}
    for row in ask("usage", "day", "user", "state", days=days, zone=ZoneInfo(zone)).rows:
        key = (row["day"], row["user"])
        by_facts[key] = by_facts.get(key, 0) + row["gpu_seconds"]
    assert {(row["day"], row["user"]): row["gpu_seconds"] for row in by_rollup} == by_facts


def test_capacity_cut_in_another_zone_is_refused_not_shown_wrongly(slurm: Cluster, settings: Any) -> None:
    inventory(slurm, gpu01=8)
    load(slurm, record("1"))
    settings.ESTATE_ZONE = "Asia/Kolkata"
    with pytest.raises(ReportError, match="cut in UTC and are being cut anew"):
        ask("capacity", "day", zone=ZoneInfo("Asia/Kolkata"))
    rollups.rebuild()
    assert ask("capacity", "day", zone=ZoneInfo("Asia/Kolkata")).total["allocated_gpu_seconds"] == 14_400


def test_a_changed_reporting_zone_is_answered_from_facts_until_everything_is_recut(slurm: Cluster, settings: Any) -> None:
    load(slurm, record("1", started_at=at(15), ended_at=at(17)))
    settings.ESTATE_ZONE = "Asia/Kolkata"
    stale = ask("usage", "day", zone=ZoneInfo("Asia/Kolkata"))
    assert column(stale, "day", "gpu_seconds") == {date(2026, 3, 2): 0, date(2026, 3, 3): 14_400}
    assert rollups.rebuild() > 0
    assert set(UsageDay.objects.exclude(gpu_seconds=0).values_list("day", flat=True)) == {date(2026, 3, 3)}


def test_no_rollup_has_one_row_a_record(slurm: Cluster) -> None:
    """A hundred records of one user and one hour are one row of each kind, and one node."""
    inventory(slurm, gpu01=8)
    load(slurm, *(record(str(n)) for n in range(100)))
    assert [kind.objects.count() for kind in (UsageDay, UserDay, QueueDay, NodeDay)] == [1, 1, 1, 1]


@pytest.mark.parametrize("by", [("day",), ("day", "user"), ("day", "account"), ("day", "partition"), ("day", "gpu_size")])
def test_days_that_are_yet_to_be_rebuilt_are_answered_from_facts_and_the_others_as_they_were(
    slurm: Cluster, by: tuple[str, ...]
) -> None:
    load(slurm, record("1", started_at=at(15), ended_at=at(17)))
    with transaction.atomic():
        ingest_records(slurm, [record("2", submitted_at=at(20), eligible_at=at(20), started_at=at(20), ended_at=at(21))])
    assert [day.isoformat() for day in DirtyDay.objects.values_list("day", flat=True)] == ["2026-03-03"]
    UsageDay.objects.filter(day=date(2026, 3, 3)).update(record_count=77)
    before = ask("usage", *by)
    assert column(before, "day", "gpu_seconds") == {date(2026, 3, 2): 7200, date(2026, 3, 3): 14_400}
    rollups.rebuild()
    assert ask("usage", *by).rows == before.rows
    assert ask("usage", *by).total == before.total


# waits ----------------------------------------------------------------------------------------------------------------


def test_wait_runs_from_eligible_and_submit_to_start_from_submission(slurm: Cluster) -> None:
    load(slurm, record("1", eligible_at=at(0.9), started_at=at(1)))
    total = ask("waits").total
    assert (total["p50_wait_seconds"], total["p50_submit_to_start_seconds"]) == (360, 3600)


def test_waits_that_have_not_ended_count_as_at_least_this_long(slurm: Cluster) -> None:
    load(slurm, record("1", started_at=at(1)), waiting("2"), running("3", seen=10, started_at=at(2)))
    total = ask("waits").total
    assert (total["record_count"], total["started_count"], total["censored_count"]) == (3, 2, 1)
    assert (total["p50_wait_seconds"], total["p95_wait_seconds"], total["max_wait_seconds"]) == (7200, None, 36_000)


def test_a_job_cancelled_while_waiting_is_not_dropped(slurm: Cluster) -> None:
    load(slurm, waiting("1", state="CANCELLED", ended_at=at(4)))
    total = ask("waits").total
    assert (total["censored_count"], total["max_wait_seconds"], total["p50_wait_seconds"]) == (1, 4 * 3600, None)


def test_waits_are_booked_on_the_day_of_submission_by_size_asked_for(slurm: Cluster) -> None:
    load(
        slurm,
        waiting("1", requested_gpus=Decimal(8)),
        record("2", submitted_at=at(24), eligible_at=at(24), started_at=at(25), ended_at=at(26)),
    )
    report = ask("waits", "day", "gpu_size")
    assert [(row["day"], row["gpu_size"], row["record_count"]) for row in report.rows] == [
        (date(2026, 3, 2), "5-8", 1),
        (date(2026, 3, 3), "2", 1),
    ]


# capacity -------------------------------------------------------------------------------------------------------------

PARTS = "allocated reserved_idle idle planned_down down unknown".split()  # noqa: SIM905


def assert_identity(report: Report) -> None:
    for row in [*report.rows, report.total]:
        parts: list[Any] = [row[f"{part}_gpu_seconds"] for part in PARTS]
        assert sum(parts) == row["reported_gpu_seconds"]
        assert min(parts) >= 0


def test_a_node_in_two_partitions_is_counted_once_in_the_total(slurm: Cluster) -> None:
    inventory(slurm, gpu01=8)
    load(slurm, record("1"))
    report = ask("capacity", "partition", days=(date(2026, 3, 2), date(2026, 3, 3)))
    assert column(report, "partition", "reported_gpu_seconds") == {"long": 8 * 86_400, "train": 8 * 86_400}
    assert report.total["reported_gpu_seconds"] == 8 * 86_400
    assert_identity(report)


def test_capacity_has_every_day_also_those_without_jobs(slurm: Cluster) -> None:
    inventory(slurm, gpu01=8)
    load(slurm, record("1"), record("2", submitted_at=at(96), eligible_at=at(96), started_at=at(96), ended_at=at(97)))
    report = ask("capacity", "day", days=(date(2026, 3, 2), date(2026, 3, 7)))
    assert column(report, "day", "reported_gpu_seconds") == {date(2026, 3, day): 8 * 86_400 for day in range(2, 7)}
    assert_identity(report)


def test_time_after_the_last_sighting_is_unknown_not_idle(slurm: Cluster) -> None:
    inventory(slurm, gpu01=8)
    load(slurm, record("1"))
    total = ask("capacity", days=(date(2026, 3, 2), date(2026, 3, 3))).total
    assert total["unknown_gpu_seconds"] == 8 * (86_400 - 3 * 3600)
    assert total["occupancy_ratio"] == pytest.approx(4 / 24)


def test_held_beyond_what_the_node_has_is_sharing_and_held_elsewhere_is_unplaced(slurm: Cluster) -> None:
    inventory(slurm, gpu01=2)
    load(slurm, record("1"), record("2"), record("3", nodes=("nowhere",)))
    total = ask("capacity", days=(date(2026, 3, 2), date(2026, 3, 3))).total
    assert (total["allocated_gpu_seconds"], total["sharing_gpu_seconds"], total["unplaced_gpu_seconds"]) == (
        14_400,
        14_400,
        14_400,
    )


def test_gpus_of_a_record_lie_on_its_nodes_in_proportion(slurm: Cluster) -> None:
    inventory(slurm, gpu01=8, gpu02=4)
    load(slurm, record("1", gpus=Decimal(12), gpu_parts=(GpuPart("a100", Decimal(12)),), nodes=("gpu01", "gpu02")))
    report = ask("capacity", "node", days=(date(2026, 3, 2), date(2026, 3, 3)))
    assert column(report, "node", "allocated_gpu_seconds") == {"gpu01": 8 * 7200, "gpu02": 4 * 7200}


@pytest.mark.parametrize(
    ("condition", "figure"), [("down", "down"), ("planned_down", "planned_down"), ("reserved", "reserved_idle")]
)
def test_a_state_counts_where_the_gpus_are_not_held(slurm: Cluster, condition: str, figure: str) -> None:
    inventory(slurm, gpu01=4)
    NodeState.objects.create(node=Node.objects.get(), condition=condition, valid_during=DateTimeTZRange(at(2), at(8)))
    load(slurm, record("1"), running("2", seen=12, started_at=at(11)))
    report = ask("capacity", "hour", days=(date(2026, 3, 2), date(2026, 3, 3)))
    assert report.total[f"{figure}_gpu_seconds"] == 4 * 6 * 3600 - 2 * 3600
    assert_identity(report)
    by_day = ask("capacity", "day", days=(date(2026, 3, 2), date(2026, 3, 3)))
    assert by_day.rows[0][f"{figure}_gpu_seconds"] == report.total[f"{figure}_gpu_seconds"]


def test_a_node_that_joins_counts_from_then_on(slurm: Cluster) -> None:
    inventory(slurm, gpu01=4)
    with transaction.atomic():
        ingest_nodes(slurm, [NodeFact("gpu02", ("train",), (GpuPart("a100", Decimal(4)),), 8, 1, "up", "")], as_of=at(4))
    load(slurm, record("1", ended_at=at(40)))
    assert ask("capacity", "node", days=(date(2026, 3, 2), date(2026, 3, 3))).rows[1]["reported_gpu_seconds"] == 4 * 12 * 3600


def test_the_future_is_not_reported(slurm: Cluster) -> None:
    inventory(slurm, gpu01=1)
    load(slurm, record("1"))
    today = datetime.now(UTC).date()
    total = ask("capacity", days=(today, today + timedelta(days=2))).total
    assert total["reported_gpu_seconds"] < 86_400 + 60  # type: ignore[operator]


def test_capacity_of_days_that_are_yet_to_be_rebuilt_is_that_of_the_facts(slurm: Cluster) -> None:
    inventory(slurm, gpu01=4)
    load(slurm, record("1", started_at=at(15), ended_at=at(17)))
    with transaction.atomic():
        ingest_records(slurm, [record("2", submitted_at=at(20), eligible_at=at(20), started_at=at(20), ended_at=at(21))])
    before = ask("capacity", "day", "partition", days=(date(2026, 3, 2), date(2026, 3, 5)))
    assert column(before, "day", "allocated_gpu_seconds") == {
        date(2026, 3, 2): 7200,
        date(2026, 3, 3): 14_400,
        date(2026, 3, 4): 0,
    }
    assert_identity(before)
    rollups.rebuild()
    assert ask("capacity", "day", "partition", days=(date(2026, 3, 2), date(2026, 3, 5))).rows == before.rows


def test_hours_add_up_to_days_also_where_nodes_are_shared_for_minutes(slurm: Cluster) -> None:
    """Two records share the two GPUs of a node for a quarter of an hour: it is sharing, although the hour as a whole had room."""
    inventory(slurm, gpu01=2)
    load(slurm, record("1", started_at=at(1), ended_at=at(1.5)), record("2", started_at=at(1.25), ended_at=at(1.75)))
    days = (date(2026, 3, 2), date(2026, 3, 3))
    for by in ("hour", "day", "node"):
        total = ask("capacity", by, days=days).total
        assert (total["allocated_gpu_seconds"], total["sharing_gpu_seconds"]) == (2 * 2700, 2 * 900)


# costs ----------------------------------------------------------------------------------------------------------------


def rate(price: str, first: date | None, last: date | None, model: str = "a100") -> None:
    gpu_model = GpuModel.objects.get_or_create(name=model)[0]
    Rate.objects.create(gpu_model=gpu_model, price=Decimal(price), cost=Decimal(price), valid_during=DateRange(first, last))


def test_a_price_change_in_the_middle_of_a_job_splits_it(slurm: Cluster) -> None:
    rate("1.00", None, date(2026, 3, 3))
    rate("2.00", date(2026, 3, 3), None)
    load(slurm, record("1", started_at=at(15), ended_at=at(17)))
    assert ask("costs", "user").rows[0]["usage_cost"] == Decimal("6.00")


def test_parts_of_a_bill_add_to_its_total(slurm: Cluster) -> None:
    rate("33.335", None, None)
    for number in range(3):
        load(
            slurm,
            record(str(number), user=f"u{number}", gpus=Decimal(1), gpu_parts=(GpuPart("a100", Decimal(1)),), ended_at=at(2)),
        )
    report = ask("costs", "user")
    amounts = [row["usage_cost"] for row in report.rows]
    assert sum(amounts) == report.total["usage_cost"] == Decimal("100.00") + Decimal("0.00")  # type: ignore[arg-type]
    assert sorted(amounts) == [Decimal("33.33"), Decimal("33.33"), Decimal("33.34")]  # type: ignore[type-var]


def test_idle_capacity_has_a_row_of_its_own_and_the_bill_reconciles(slurm: Cluster, vision: Project) -> None:
    rate("1.00", None, None)
    inventory(slurm, gpu01=4)
    load(slurm, record("1"), record("2", account="orphan", started_at=at(3), ended_at=at(5)))
    report = ask("costs", "project")
    rows = {row["project"]: row["total_cost"] for row in report.rows}
    assert rows == {"Vision": Decimal("4.00"), "Unattributed": Decimal("4.00"), "Idle": Decimal("12.00")}
    assert report.total["total_cost"] == Decimal("20.00")


def test_a_member_is_not_shown_idle_costs(slurm: Cluster, vision: Project) -> None:
    rate("1.00", None, None)
    inventory(slurm, gpu01=4)
    load(slurm, record("1"))
    assert [row["project"] for row in ask("costs", "project", visible_projects=(vision.pk,)).rows] == ["Vision"]


def test_usage_without_a_rate_has_an_unknown_cost_and_is_said_so(slurm: Cluster) -> None:
    load(slurm, record("1"))
    report = ask("costs", "user")
    assert report.rows[0]["usage_cost"] is None
    assert report.quality["unpriced_gpu_seconds"] == 14_400
