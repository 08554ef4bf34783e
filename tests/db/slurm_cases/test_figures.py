"""Cases C3 to C6: usage, waits, capacity and cost as figures."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from accounting.domain.records import GpuPart
from accounting.models import UsageRecord
from estate.models import Cluster, Node, NodeState, Project, ProjectMember, User
from tests.cases import case
from tests.db.slurm_cases.world import MARCH, MONDAY, ask, column, gpus, inventory, load, rate
from tests.records import at, record, running, waiting

pytestmark = pytest.mark.django_db
PARTS = ("allocated", "reserved_idle", "idle", "planned_down", "down", "unknown")


def parts(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[f"{name}_gpu_seconds"] for name in PARTS}


@pytest.mark.parametrize("models", [{"a100": 2, "v100": 3}, {"a100": 1, "h100": 1, "l40s": 2}])
@pytest.mark.parametrize("case", [pytest.param(40, id="C40")])
def test_several_models_are_split_and_their_sum_is_the_total(slurm: Cluster, models: dict[str, int], case: object) -> None:
    held = tuple(GpuPart(model, Decimal(count)) for model, count in models.items())
    load(slurm, record("1", gpus=Decimal(sum(models.values())), gpu_parts=held))
    report = ask("usage", "gpu_model")
    assert column(report, "gpu_model", "gpu_seconds") == {model: count * 7200 for model, count in models.items()}
    assert report.total["gpu_seconds"] == sum(models.values()) * 7200


@pytest.mark.parametrize("case", [pytest.param(48, id="C48"), pytest.param(83, id="C83")])
def test_without_a_capacity_there_is_no_ratio(slurm: Cluster, case: object) -> None:
    inventory(slurm, {"cpu01": 0})
    load(slurm, record("1", **gpus(21), nodes=("cpu01",)))
    total = ask("capacity", days=MONDAY).total
    assert (total["reported_gpu_seconds"], total["idle_gpu_seconds"], total["occupancy_ratio"]) == (0, 0, None)
    assert total["unplaced_gpu_seconds"] == 21 * 7200


@pytest.mark.parametrize("case", [pytest.param(53, id="C53"), pytest.param(55, id="C55")])
def test_activity_without_samples_is_unknown_beside_a_coverage_of_none(slurm: Cluster, case: object) -> None:
    inventory(slurm, {"gpu01": 8})
    load(slurm, record("1", **gpus(8)))
    total = ask("capacity", days=MONDAY).total
    assert (total["activity_ratio"], total["effective_ratio"], total["activity_coverage_ratio"]) == (None, None, 0)


@case(56)
def test_a_size_is_weighed_by_gpus_and_never_by_cores(slurm: Cluster, case: object) -> None:
    load(slurm, record("1", cpus=Decimal(12), **gpus(1)), record("2", cpus=Decimal(96), **gpus(8)))
    found = column(ask("usage", "gpu_size"), "gpu_size", "gpu_seconds")
    assert found == {"1": 7200, "5-8": 8 * 7200}


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2026-01-31T23:00", "2026-02-01T01:00", {"2026-01": 3600, "2026-02": 3600}),
        ("2026-02-28T12:00", "2026-03-02T12:00", {"2026-02": 43_200, "2026-03": 129_600}),
        ("2026-01-01T00:00", "2026-04-01T00:00", {"2026-01": 31 * 86_400, "2026-02": 28 * 86_400, "2026-03": 31 * 86_400}),
    ],
)
@pytest.mark.parametrize("case", [pytest.param(62, id="C62"), pytest.param(63, id="C63"), pytest.param(80, id="C80")])
def test_months_share_a_job_without_a_gap_or_an_overlap(
    slurm: Cluster, first: str, last: str, expected: dict[str, int], case: object
) -> None:
    start, end = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (first, last))
    load(slurm, record("1", submitted_at=start, eligible_at=start, started_at=start, ended_at=end, **gpus(1)))
    year = (date(2026, 1, 1), date(2027, 1, 1))
    assert column(ask("usage", "month", days=year), "month", "gpu_seconds") == expected
    for month, seconds in expected.items():
        on = date.fromisoformat(f"{month}-01")
        only = (on, (on + timedelta(days=31)).replace(day=1))
        assert ask("usage", days=only).total["gpu_seconds"] == seconds


@pytest.mark.parametrize("length", [0, 1, 3600])
@pytest.mark.parametrize("case", [pytest.param(65, id="C65")])
def test_the_first_second_of_a_month_belongs_to_it(slurm: Cluster, length: int, case: object) -> None:
    first = datetime(2026, 3, 1, tzinfo=UTC)
    load(slurm, record("1", submitted_at=first, eligible_at=first, started_at=first, ended_at=first + timedelta(seconds=length)))
    february, march = (ask("usage", days=days).total for days in ((date(2026, 2, 1), date(2026, 3, 1)), MARCH))
    assert (february["record_count"], february["gpu_seconds"]) == (0, 0)
    assert (march["record_count"], march["started_count"], march["gpu_seconds"]) == (1, 1, 2 * length)


@pytest.mark.parametrize(("times", "expected"), [((0.9, 1), (360, 3600)), ((0, 1), (3600, 3600)), ((168, 168.02), (72, 604_872))])
@pytest.mark.parametrize("case", [pytest.param(68, id="C68")])
def test_a_wait_runs_from_when_it_could_start_and_the_whole_is_shown_beside_it(
    slurm: Cluster, times: tuple[float, float], expected: tuple[int, int], case: object
) -> None:
    load(slurm, record("1", eligible_at=at(times[0]), started_at=at(times[1]), ended_at=at(times[1] + 1)))
    total = ask("waits").total
    assert (total["p50_wait_seconds"], total["p50_submit_to_start_seconds"]) == expected


@case(69)
def test_a_jam_is_seen_while_it_lasts(slurm: Cluster, case: object) -> None:
    load(slurm, *(waiting(str(n)) for n in range(5)), running("9", seen=240, started_at=at(0.1)))
    total = ask("waits").total
    assert (total["censored_count"], total["max_wait_seconds"]) == (5, 240 * 3600)
    assert ask("waits", "day").rows[0]["day"] == date(2026, 3, 2), "booked on the day on which the waiting began"


@pytest.mark.parametrize("waited", [1, 5, 300])
@pytest.mark.parametrize("case", [pytest.param(70, id="C70"), pytest.param(13, id="C13")])
def test_what_was_cancelled_while_it_waited_waited_at_least_that_long(slurm: Cluster, waited: int, case: object) -> None:
    load(slurm, waiting("1", state="CANCELLED", ended_at=at(waited)), record("2", started_at=at(0.5)))
    total = ask("waits").total
    assert (total["record_count"], total["censored_count"]) == (2, 1)
    assert total["max_wait_seconds"] == waited * 3600
    assert ask("usage").total["gpu_seconds"] == 2 * 2.5 * 3600


@pytest.mark.parametrize("by", ["partition", "account", "user", "day"])
@pytest.mark.parametrize("case", [pytest.param(72, id="C72")])
def test_median_waits_by_what_people_ask(slurm: Cluster, by: str, case: object) -> None:
    later = {"submitted_at": at(24), "eligible_at": at(24), "started_at": at(27), "ended_at": at(28)}
    load(slurm, record("1"), record("2", partition="debug", account="nlp", user="bob", **later))
    assert {row["p50_wait_seconds"] for row in ask("waits", by).rows} == {3600, 3 * 3600}


@pytest.mark.parametrize("held", [8, 16, 80])
@pytest.mark.parametrize("case", [pytest.param(74, id="C74")])
def test_more_than_there_is_never_counts_as_more_than_there_is(slurm: Cluster, held: int, case: object) -> None:
    inventory(slurm, {"gpu01": 8})
    load(slurm, *(running(str(n), seen=4, **gpus(8)) for n in range(held // 8)))
    total = ask("capacity", days=MONDAY).total
    assert total["allocated_gpu_seconds"] == 8 * 3 * 3600
    assert total["sharing_gpu_seconds"] == (held - 8) * 3 * 3600
    assert total["occupancy_ratio"] is not None
    assert total["occupancy_ratio"] <= 1  # type: ignore[operator]


@pytest.mark.parametrize("suspended", [0, 1800, 3600])
@pytest.mark.parametrize("case", [pytest.param(75, id="C75"), pytest.param(76, id="C76")])
def test_suspension_takes_cpus_and_no_gpus_and_is_kept(slurm: Cluster, suspended: int, case: object) -> None:
    load(slurm, record("1", suspended_seconds=suspended, cpus=Decimal(16), **gpus(8)))
    total = ask("usage").total
    assert (total["gpu_seconds"], total["cpu_seconds"]) == (16 * 3600, 16 * (7200 - suspended))
    assert UsageRecord.objects.get().suspended_seconds == suspended


@pytest.mark.parametrize("condition", ["reserved", "planned_down", "down"])
@pytest.mark.parametrize("case", [pytest.param(78, id="C78")])
def test_the_parts_of_a_reserved_or_broken_day_add_up(slurm: Cluster, condition: str, case: object) -> None:
    inventory(slurm, {"gpu01": 4, "gpu02": 8})
    node = Node.objects.get(name="gpu01")
    NodeState.objects.create(node=node, condition=condition, valid_during=DateTimeTZRange(at(2), at(8)))
    load(slurm, record("1"), running("2", seen=12, started_at=at(5)))
    for by in ((), ("hour",), ("node",)):
        for row in ask("capacity", *by, days=MONDAY).rows:
            assert sum(parts(row).values()) == row["reported_gpu_seconds"]
            assert min(parts(row).values()) >= 0


@pytest.mark.parametrize("days", [1, 30, 90])
@pytest.mark.parametrize("case", [pytest.param(80, id="C80"), pytest.param(92, id="C92")])
def test_what_still_runs_is_in_the_usage(slurm: Cluster, days: int, case: object) -> None:
    load(slurm, running("1", seen=24 * days, started_at=at(0), **gpus(1)))
    half_year = (date(2026, 1, 1), date(2026, 7, 1))
    assert ask("usage", days=half_year).total["gpu_seconds"] == days * 86_400
    load(slurm, record("1", started_at=at(0), ended_at=at(24 * days), **gpus(1)))
    assert ask("usage", days=half_year).total["gpu_seconds"] == days * 86_400, "what ended adds nothing to what ran"


@case(83)
def test_a_cluster_without_jobs_stays_in_the_denominator(slurm: Cluster, case: object) -> None:
    other = Cluster.objects.create(name="beta", scheduler="slurm", zone="UTC")
    for cluster in (slurm, other):
        inventory(cluster, {f"{cluster.name}01": 2})
    whole = {"submitted_at": at(-8), "eligible_at": at(-8), "started_at": at(-8), "ended_at": at(16)}
    load(slurm, record("1", nodes=("alpha01",), **whole))
    load(other, record("2", nodes=(), **whole, **gpus(0)))
    report = ask("capacity", "cluster", days=MONDAY)
    assert column(report, "cluster", "occupancy_ratio") == {"alpha": 1.0, "beta": 0.0}
    assert report.total["occupancy_ratio"] == 0.5


@pytest.mark.parametrize("silent", [2, 24])
@pytest.mark.parametrize("case", [pytest.param(85, id="C85")])
def test_time_in_which_nothing_was_heard_is_unknown_and_not_idle(slurm: Cluster, silent: int, case: object) -> None:
    inventory(slurm, {"gpu01": 8})
    load(slurm, record("1", started_at=at(-8), submitted_at=at(-8), eligible_at=at(-8), ended_at=at(16 - silent)))
    total = ask("capacity", days=MONDAY).total
    assert total["unknown_gpu_seconds"] == 8 * min(silent, 24) * 3600
    assert total["idle_gpu_seconds"] == 6 * (24 - silent) * 3600


@case(86)
def test_usage_stays_with_its_owner_when_the_user_goes(slurm: Cluster, vision: Project, case: object) -> None:
    load(slurm, record("1", user="gone"))
    before = ask("usage", "project", "user").rows
    ProjectMember.objects.all().delete()
    User.objects.filter(username="alice").delete()
    load(slurm, record("1", user="gone"), running("2", user="gone", seen=2))
    assert before[0]["project"] == "Vision"
    assert [row["project"] for row in ask("usage", "project", "user").rows] == ["Vision"]


@pytest.mark.parametrize(("asked", "held"), [(8, 2), (1, 8), (4, 1)])
@pytest.mark.parametrize("case", [pytest.param(90, id="C90"), pytest.param(41, id="C41")])
def test_what_is_billed_is_what_was_held(slurm: Cluster, asked: int, held: int, case: object) -> None:
    rate("1.00")
    load(slurm, record("1", **gpus(held) | {"requested_gpus": Decimal(asked)}))
    assert ask("costs").total["usage_cost"] == Decimal(2 * held).quantize(Decimal("0.01"))


@pytest.mark.parametrize(
    ("used", "price", "total"), [((3, 20), "60", "1.00"), ((3, 3600), "33.335", "100.00"), ((7, 1), "1", "0.00")]
)
@pytest.mark.parametrize("case", [pytest.param(90, id="C90"), pytest.param(93, id="C93")])
def test_parts_are_rounded_once_and_add_to_the_bill(
    slurm: Cluster, used: tuple[int, int], price: str, total: str, case: object
) -> None:
    """`used`: so many users, so many seconds each."""
    rate(price)
    end = at(1) + timedelta(seconds=used[1])
    load(slurm, *(record(str(n), user=f"u{n}", ended_at=end, **gpus(1)) for n in range(used[0])))
    report = ask("costs", "user")
    assert report.total["usage_cost"] == Decimal(total)
    assert sum(row["usage_cost"] for row in report.rows) == Decimal(total)  # type: ignore[misc]


@pytest.mark.parametrize(("minutes", "price", "cost"), [(50, "100", "83.33"), (20, "3", "1.00"), (1, "7", "0.12")])
@pytest.mark.parametrize("case", [pytest.param(94, id="C94")])
def test_a_bill_carries_the_exact_quantity_that_its_amount_was_made_of(
    slurm: Cluster, minutes: int, price: str, cost: str, case: object
) -> None:
    rate(price)
    load(slurm, record("1", ended_at=at(1) + timedelta(minutes=minutes), **gpus(1)))
    row = ask("costs", "user").rows[0]
    assert row["gpu_seconds"] == minutes * 60, "whole seconds, not rounded hours"
    assert row["usage_cost"] == Decimal(cost) == (Decimal(minutes * 60) * Decimal(price) / 3600).quantize(Decimal("0.01"))
