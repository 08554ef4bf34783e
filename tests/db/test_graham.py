"""A real month of a real cluster: what the reports say equals an independent computation over the trace's own table of jobs."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from accounting.domain.reports import Report, ReportRequest
from accounting.models import UsageRecord
from accounting.queries import reports

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MAY = (date(2021, 5, 1), date(2021, 6, 1))
WHOLE = (date(2021, 4, 1), date(2021, 10, 1))
TABLES = """
    accounting_usagerecord accounting_usageday accounting_userday accounting_queueday accounting_nodeday accounting_clustercoverage
    accounting_dirtyday accounting_intake accounting_rollupzone collectors_rejection collectors_run estate_nodepartition
    estate_nodeinventory estate_nodestate estate_node estate_partition estate_gpumodel estate_cluster
"""
FACTS = "accounting_usagerecord accounting_usageday accounting_userday accounting_queueday accounting_nodeday accounting_clustercoverage"
SIZES = ((0, "0"), (1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (16, "9-16"), (64, "17-64"), (math.inf, "65+"))


@pytest.fixture(scope="module")
def traces(shared: Path) -> Path:
    return shared / "data" / "slurm-drac-graham-2021-05"


def wipe() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES.split())} CASCADE")


def take_in(*paths: Path, kind: str = "sacct") -> None:
    call_command("collect", "import", kind, "--cluster", "graham", *map(str, paths), stdout=io.StringIO(), stderr=io.StringIO())


@pytest.fixture(scope="module")
def graham(traces: Path, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The inventory and the whole dump, taken in by the command, for all tests of this module."""
    with django_db_blocker.unblock():
        wipe()
        take_in(traces / "sinfo_nodes.txt.gz", kind="nodes")
        take_in(traces / "sacct_all.txt.gz")
        yield
        wipe()


@pytest.fixture(scope="module")
def jobs(traces: Path) -> list[dict[str, Any]]:
    """The trace's own table: one row a job."""
    with gzip.open(traces / "jobs.csv.gz", "rt") as lines:
        rows: list[dict[str, Any]] = list(csv.DictReader(lines))
    for row in rows:
        for name in ("submit", "eligible", "start", "end"):
            row[name] = datetime.fromisoformat(row[f"{name}_time"]).replace(tzinfo=UTC)
        row["gpus"] = int(row["gpus"])
    return rows


@pytest.fixture(scope="module")
def attempts(traces: Path) -> list[dict[str, str]]:
    """The dump as any script would read it: no field of it holds a bar."""
    with gzip.open(traces / "sacct_all.txt.gz", "rt") as lines:
        return list(csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE))


def ask(name: str, *by: str, days: tuple[date, date] = MAY) -> Report:
    return reports.run(ReportRequest(name=name, first=days[0], last=days[1], zone=ZoneInfo("UTC"), by=by))


def seconds(start: datetime, end: datetime, first: datetime, last: datetime) -> int:
    return max(0, int((min(end, last) - max(start, first)).total_seconds()))


def noon(on: date) -> datetime:
    return datetime(on.year, on.month, on.day, tzinfo=UTC)


def naive_usage(jobs: list[dict[str, Any]], key: Any, days: tuple[date, date]) -> dict[Any, int]:
    first, last = noon(days[0]), noon(days[1])
    sums: dict[Any, int] = defaultdict(int)
    for job in jobs:
        sums[key(job)] += job["gpus"] * seconds(job["start"], job["end"], first, last)
    return {name: total for name, total in sums.items() if total}


def reported(report: Report, key: str) -> dict[Any, Any]:
    return {row[key]: row["gpu_seconds"] for row in report.rows if row["gpu_seconds"]}


def test_every_record_is_taken_in(graham: None) -> None:
    assert UsageRecord.objects.count() == 92_961


def test_usage_by_user_and_partition_equals_the_trace(graham: None, jobs: list[dict[str, Any]]) -> None:
    for days in (MAY, WHOLE):
        assert reported(ask("usage", "user", days=days), "user") == naive_usage(
            jobs, lambda job: f"u{int(job['user_id']):05}", days
        )
        assert reported(ask("usage", "partition", days=days), "partition") == naive_usage(
            jobs, lambda job: f"p{job['partition_id']}", days
        )


def test_usage_by_day_and_month_equals_the_trace(graham: None, jobs: list[dict[str, Any]]) -> None:
    by_day: dict[date, int] = defaultdict(int)
    for job in jobs:
        on = job["start"].date()
        while job["gpus"] and noon(on) < job["end"]:
            by_day[on] += job["gpus"] * seconds(job["start"], job["end"], noon(on), noon(on + timedelta(days=1)))
            on += timedelta(days=1)
    by_month: dict[str, int] = defaultdict(int)
    for on, total in by_day.items():
        by_month[f"{on:%Y-%m}"] += total
    assert reported(ask("usage", "day", days=WHOLE), "day") == {on: total for on, total in by_day.items() if total}
    assert reported(ask("usage", "month", days=WHOLE), "month") == by_month


def test_usage_by_gpu_model_equals_the_dump(graham: None, attempts: list[dict[str, str]]) -> None:
    sums: dict[str, int] = defaultdict(int)
    for row in attempts:
        for word in row["AllocTRES"].split(","):
            name, _, count = word.partition("=")
            if name.startswith("gres/gpu:"):
                start, end = (datetime.fromisoformat(row[field]).replace(tzinfo=UTC) for field in ("Start", "End"))
                sums[name.removeprefix("gres/gpu:")] += int(count) * seconds(start, end, noon(MAY[0]), noon(MAY[1]))
    assert reported(ask("usage", "gpu_model"), "gpu_model") == sums


@pytest.mark.parametrize(
    "by", ["user", "partition", "gpu_model", "gpu_size", "day", "week", "month", "account", "state", "workload_kind", "qos"]
)
def test_sums_over_any_dimension_equal_the_total(graham: None, by: str) -> None:
    report = ask("usage", by)
    plain = ask("usage").total
    assert report.total == plain
    for figure in reports.ADDITIVE_USAGE:
        assert sum(row[figure] for row in report.rows) == plain[figure]  # type: ignore[misc]


def nearest_rank(waits: list[int], percent: int) -> int:
    return sorted(waits)[math.ceil(percent * len(waits) / 100) - 1]


@pytest.mark.parametrize("by", ["partition", "gpu_size"])
def test_waits_equal_the_dump_to_the_second(graham: None, attempts: list[dict[str, str]], by: str) -> None:
    groups: dict[str, list[int]] = defaultdict(list)
    for row in attempts:
        submit, eligible, start = (
            datetime.fromisoformat(row[field]).replace(tzinfo=UTC) for field in ("Submit", "Eligible", "Start")
        )
        if noon(MAY[0]) <= submit < noon(MAY[1]):
            gpus = sum(int(word.split("=")[1]) for word in row["AllocTRES"].split(",") if word.startswith("gres/gpu="))
            size = next(name for most, name in SIZES if gpus <= most)
            groups[row["Partition"] if by == "partition" else size].append(int((start - eligible).total_seconds()))
    rows = {row[by]: row for row in ask("waits", by).rows}
    assert rows.keys() == groups.keys()
    for name, waits in groups.items():
        figures = rows[name]
        assert (figures["record_count"], figures["max_wait_seconds"]) == (len(waits), max(waits))
        for percent in (50, 90, 95, 99):
            assert figures[f"p{percent}_wait_seconds"] == nearest_rank(waits, percent)


def test_capacity_is_448_gpus_and_the_sum_of_its_parts_every_day(graham: None) -> None:
    report = ask("capacity", "day")
    assert len(report.rows) == 31
    for row in report.rows:
        parts: list[Any] = [
            row[f"{name}_gpu_seconds"] for name in ("allocated", "reserved_idle", "idle", "planned_down", "down", "unknown")
        ]
        assert row["reported_gpu_seconds"] == 448 * 86_400 == sum(parts)
        assert min(parts) >= 0
    usage = ask("usage").total["gpu_seconds"]
    assert (report.total["allocated_gpu_seconds"], report.total["sharing_gpu_seconds"]) == (usage, 0)


DIGESTS = """
SELECT (SELECT md5(string_agg(fact::text, '' ORDER BY submitted_at, external_id)) FROM accounting_usagerecord fact),
       (SELECT md5(string_agg(line, '' ORDER BY line)) FROM (SELECT (to_jsonb(row) - 'id')::text AS line FROM accounting_usageday row) d),
       (SELECT md5(string_agg(line, '' ORDER BY line)) FROM (SELECT (to_jsonb(row) - 'id')::text AS line FROM accounting_nodeday row) h)
"""


def digests() -> object:
    """Of every fact and of the rollups, whatever order they lie in."""
    with connection.cursor() as cursor:
        cursor.execute(DIGESTS)
        return cursor.fetchone()


def test_a_dump_of_the_middle_then_the_whole_ends_like_the_whole_alone(graham: None, traces: Path) -> None:
    alone = digests()
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(FACTS.split())}")
    take_in(traces / "sacct_as_of_2021-05-20T12.txt.gz")
    assert ask("waits", days=WHOLE).total["censored_count"] == 7315
    take_in(traces / "sacct_all.txt.gz")
    assert digests() == alone
    take_in(traces / "sacct_as_of_2021-05-20T12.txt.gz")
    assert digests() == alone


def test_steps_change_no_figure(graham: None, traces: Path) -> None:
    before = digests()
    take_in(traces / "sacct_with_steps_2021-05-20.txt.gz")
    assert digests() == before
