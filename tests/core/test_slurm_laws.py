"""Laws of reading Slurm's texts, and the real traces beside the checkout."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from accounting.domain.records import UsageRecord
from collectors.slurm.hostlist import MAX_NODES, expand
from collectors.slurm.memo import Memo
from collectors.slurm.reader import SacctReader
from collectors.slurm.times import LocalTimes, duration_seconds
from collectors.slurm.tres import read_tres
from tests.core.badlines import HEADER, line

NOW = datetime(2026, 12, 2, tzinfo=UTC)
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kolkata", "America/Sao_Paulo"]
MODELS = ["a100", "h100", "1g.10gb", "a100_3g.20gb", "a30_2g.12gb"]
GRAHAM = "slurm-drac-graham-2021-05"


def read(lines: Iterable[bytes], cluster: str, zone: str = "UTC") -> tuple[SacctReader, list[UsageRecord]]:
    reader = SacctReader(lines, cluster=cluster, zone=ZoneInfo(zone), now=NOW)
    records = list(reader)
    assert reader.accepted_count + reader.rejected_count + reader.ignored_count == reader.line_count
    return reader, records


@given(typed=st.dictionaries(st.sampled_from(MODELS), st.integers(0, 64)), rest=st.integers(0, 64))
def test_the_gpu_parts_of_a_tres_string_add_up_to_its_total(typed: dict[str, int], rest: int) -> None:
    total = sum(typed.values()) + rest
    text = ",".join([*(f"gres/gpu:{model}={count}" for model, count in typed.items()), f"gres/gpu={total}"])
    tres = read_tres(text)
    assert tres.gpus == sum(part.gpus for part in tres.gpu_parts)
    assert tres.gpus <= total
    assert (tres.gpus == total) == all(count == 0 for model, count in typed.items() if "g." in model)


@pytest.mark.parametrize("zone", ZONES)
@given(epoch=st.integers(788_918_400, 2_200_000_000))
def test_a_time_that_sacct_prints_is_read_back_as_one_of_its_readings(zone: str, epoch: int) -> None:
    times = LocalTimes(ZoneInfo(zone))
    first = times.epochs[f"{datetime.fromtimestamp(epoch, ZoneInfo(zone)):%Y-%m-%dT%H:%M:%S}"]
    assert first is not None
    assert epoch in {first, times.second_readings.get(first)}


@pytest.mark.parametrize("zone", ZONES[:3])
@given(
    start=st.integers(0, 4 * 3600), length=st.integers(0, 3 * 3600), waited=st.integers(3 * 3600, 9 * 3600), autumn=st.booleans()
)
def test_a_printed_record_is_read_back_to_the_second_over_a_change_of_clocks(
    zone: str, start: int, length: int, waited: int, autumn: bool
) -> None:
    change = _change_of_clocks(zone, autumn)
    began = change + timedelta(seconds=start - 2 * 3600)
    moments = {"Submit": began - timedelta(seconds=waited), "Start": began, "End": began + timedelta(seconds=length)}
    printed = {name: f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%dT%H:%M:%S}" for name, at in moments.items()}
    _, [record] = read([HEADER.encode(), line(**printed, Eligible=printed["Submit"], ElapsedRaw=str(length))], "alpha", zone)
    assert record.submitted_at == moments["Submit"]
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.ended_at - record.started_at == timedelta(seconds=length)
    # Where both lie in the repeated hour nothing in the record tells the two readings apart; the first is taken.
    assert record.started_at in {began, began - timedelta(minutes=30), began - timedelta(hours=1)}


def _change_of_clocks(zone: str, autumn: bool) -> datetime:
    moment = datetime(2025, 8 if autumn else 1, 15, tzinfo=UTC)
    offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
    while moment.astimezone(ZoneInfo(zone)).utcoffset() == offset:
        moment += timedelta(minutes=30)
    return moment


@given(
    prefix=st.sampled_from(["gpu", "n-", "r1x"]),
    ranges=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), min_size=1, max_size=5, unique=True),
    width=st.integers(1, 4),
)
def test_node_lists_expand_as_clustershell_does(prefix: str, ranges: list[tuple[int, int]], width: int) -> None:
    items = [f"{first:0{width}d}-{first + more:0{width}d}" if more else f"{first:0{width}d}" for first, more in ranges]
    text = f"{prefix}[{','.join(items)}]"
    assert set(expand(text)) == set(NodeSet(text, resolver=RESOLVER_NOGROUP))


def test_node_lists_of_every_shape_expand() -> None:
    assert expand("a1,b[2-3],login") == ("a1", "b2", "b3", "login")
    assert len(expand("r[1-2]n[1-3]")) == 6
    assert len(expand("a[1-60000],b7")) == 60_001
    for bad in (f"a[1-{MAX_NODES + 1}]", "a[1-400]b[1-400]", "a[1", "a b", "a[1-99999999999999999999]", "*"):
        with pytest.raises(ValueError, match="node list"):
            expand(bad)


def test_durations_have_three_shapes() -> None:
    assert [duration_seconds(text) for text in ("1-00:00:01", "100:00:00", "02:03", "02:03.999", "")] == [
        86_401,
        360_000,
        123,
        123,
        0,
    ]


def test_a_memo_asks_once_and_stays_small() -> None:
    asked: list[str] = []

    def read_once(text: str) -> int:
        asked.append(text)
        return len(text)

    memo = Memo(read_once, limit=3)
    assert [memo[text] for text in ("a", "bb", "a", "ccc", "dddd")] == [1, 2, 1, 3, 4]
    assert asked == ["a", "bb", "ccc", "dddd"]
    assert len(memo) <= 3


@pytest.fixture(scope="module")
def graham(shared: Path) -> list[UsageRecord]:
    with gzip.open(shared / "data" / GRAHAM / "sacct_all.txt.gz") as lines:
        reader, records = read(lines, "graham")
    assert (reader.accepted_count, reader.rejections, reader.ignored_count) == (92_961, [], 0)
    return records


def test_the_graham_dump_has_the_gpu_seconds_of_its_source(graham: list[UsageRecord], shared: Path) -> None:
    with gzip.open(shared / "data" / GRAHAM / "jobs.csv.gz", "rt") as rows:
        expected = sum(int(row["elapsed_s"]) * int(row["gpus"]) for row in csv.DictReader(rows))
    held = sum(_gpu_seconds(record) for record in graham)
    assert held == expected > 0
    assert len({(record.external_id, record.submitted_at) for record in graham}) == len(graham)


def _gpu_seconds(record: UsageRecord) -> Decimal:
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.gpus is not None
    return record.gpus * round((record.ended_at - record.started_at).total_seconds())


def test_steps_in_the_graham_dump_are_ignored_and_its_records_are_those_of_the_whole(
    graham: list[UsageRecord], shared: Path
) -> None:
    with gzip.open(shared / "data" / GRAHAM / "sacct_with_steps_2021-05-20.txt.gz") as lines:
        reader, records = read(lines, "graham")
    assert reader.rejections == []
    assert reader.line_count == 27_051
    assert reader.ignored_count > 0
    assert set(records) <= set(graham)


def test_the_graham_cluster_as_of_a_noon_has_its_running_and_waiting_records(shared: Path) -> None:
    with gzip.open(shared / "data" / GRAHAM / "sacct_as_of_2021-05-20T12.txt.gz") as lines:
        reader, records = read(lines, "graham")
    assert reader.rejections == []
    states = Counter(record.state for record in records)
    assert (states["RUNNING"], states["PENDING"]) == (658, 7_315)
    noon = datetime(2021, 5, 20, 12, tzinfo=UTC)
    assert {record.last_seen_at for record in records if record.state == "RUNNING"} == {noon}
    assert all(record.started_at is None and record.gpus == 0 for record in records if record.state == "PENDING")


@pytest.mark.parametrize("version", ["slurm-22.05", "slurm-24.11"])
def test_what_slurm_prints_is_read(shared: Path, version: str) -> None:
    folder = shared / "fixtures" / version
    with (folder / "sacct-governance.psv").open("rb") as lines:
        reader, records = read(lines, "lab")
    # A bar in JobName, Constraints or Comment is not escaped by Slurm; such records cannot be told from damaged ones.
    assert all("columns where the header has" in bad.reason or "of cluster" in bad.reason for bad in reader.rejections)
    assert len(reader.rejections) <= 5
    by_name = {record.name: record for record in records}
    assert by_name["new\nline"].user == "erin"
    assert by_name["ünïcode-训练-🚀"].gpus == 0
    assert by_name["shard"].gpus is None
    assert by_name["cancel_pending"].started_at is None
    assert by_name["cancel_pending"].cancelled_by == "26002"
    assert by_name["live_running"].ended_at is None
    with (folder / "sacct-governance-unit-separator.txt").open("rb") as lines:
        reader, records = read(lines, "lab")
    assert reader.rejections == []
    assert {"a|b|c", "new\nline"} <= {record.name for record in records}


@pytest.mark.parametrize("version", ["slurm-22.05", "slurm-24.11"])
def test_the_segments_of_a_resized_job_do_not_overlap(shared: Path, version: str) -> None:
    with (shared / "fixtures" / version / "sacct-governance.psv").open("rb") as lines:
        _, records = read(lines, "lab")
    first, second = sorted(
        (record for record in records if record.name == "resized"), key=lambda record: record.started_at or NOW
    )
    assert first.state == "RESIZING"
    assert first.ended_at == second.started_at
