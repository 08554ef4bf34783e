"""What went wrong elsewhere when sacct was read (cases C1 to C4), and what is right."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from accounting.domain.records import GpuPart, Rejected, UsageRecord
from collectors.slurm.reader import SacctReader
from tests.cases import case
from tests.core.badlines import HEADER, line

NOW = datetime(2026, 12, 1, tzinfo=UTC)
THREE_SEVENTHS = Decimal("0.428571428571")


def reader_of(*lines: bytes, zone: str = "UTC", shards: int | None = None) -> tuple[list[UsageRecord], SacctReader]:
    source = [HEADER.encode() + b"\n", *lines]
    reader = SacctReader(source, cluster="alpha", zone=ZoneInfo(zone), now=NOW, shards_per_gpu=shards)
    return list(reader), reader


def record_of(zone: str = "UTC", **changed: str) -> UsageRecord:
    records, reader = reader_of(line(**changed), zone=zone)
    assert reader.rejections == []
    return records[0]


def rejection_of(**changed: str) -> Rejected:
    records, reader = reader_of(line(**changed))
    assert records == []
    return reader.rejections[0]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({"JobName": "训练-ß-😀"}, {"name": "训练-ß-😀"}, id="C4-multibyte"),
        pytest.param({"Account": "ß" * 300}, {"account": "ß" * 255}, id="C4-cut by characters"),
        pytest.param({"State": "CANCELLED by 501"}, {"state": "CANCELLED", "cancelled_by": "501"}, id="C7"),
        pytest.param({"State": "CANCELLED+"}, {"state": "CANCELLED", "cancelled_by": ""}, id="C7-cut"),
        pytest.param({"User": "", "UID": "4294967294"}, {"user": ""}, id="C8"),
        pytest.param({"User": "", "UID": "26001"}, {"user": "26001"}, id="C8-uid only"),
        pytest.param(
            {"JobID": "93+1", "JobIDRaw": "94"}, {"external_id": "94", "workload_id": "93", "workload_kind": "het_job"}, id="C9"
        ),
        pytest.param(
            {"State": "CANCELLED by 5", "Start": "None", "NodeList": "None assigned", "AllocTRES": ""},
            {"started_at": None, "ended_at": datetime(2026, 3, 1, 9, 10, tzinfo=UTC), "gpus": 0, "requested_gpus": 2, "nodes": ()},
            id="C13",
        ),
        pytest.param(
            {"State": "CANCELLED by 5", "Start": "2026-03-01T09:10:00", "NodeList": "None assigned", "ElapsedRaw": "0"},
            {"started_at": None, "gpus": 0, "gpu_parts": (), "requested_gpus": 2},
            id="C14",
        ),
        pytest.param({"Start": "2026-03-01T09:10:00+0100"}, {"started_at": datetime(2026, 3, 1, 8, 10, tzinfo=UTC)}, id="C15"),
        pytest.param({"Start": "1772352600"}, {"started_at": datetime(2026, 3, 1, 8, 10, tzinfo=UTC)}, id="C15-epoch"),
        pytest.param({"Partition": "debug,high"}, {"partition": "debug,high"}, id="C19"),
        pytest.param({"Suspended": "1-02:03:04"}, {"suspended_seconds": 93_784}, id="C21-days"),
        pytest.param({"Suspended": "02:03.250"}, {"suspended_seconds": 123}, id="C21-minutes"),
        pytest.param(
            {"JobID": "48_5", "JobIDRaw": "51"}, {"display_id": "48_5", "workload_id": "48", "workload_kind": "array"}, id="C33"
        ),
        pytest.param({"State": "REQUEUED"}, {"state": "REQUEUED", "gpus": 2}, id="C27"),
        pytest.param({"State": "NEW_STATE"}, {"state": "NEW_STATE", "gpus": 2}, id="C27-unknown word"),
        pytest.param({"AllocTRES": "gres/gpu:rtx_2080_ti=1"}, {"gpu_parts": (GpuPart("rtx_2080_ti", Decimal(1)),)}, id="C37"),
        pytest.param({"AllocTRES": "gres/gpu:a100=1,gres/gpu=1"}, {"gpus": 1}, id="C38"),
        pytest.param({"AllocTRES": "gres/gpu=4,gres/gpu:a100=4"}, {"gpus": 4}, id="C39"),
        pytest.param({"AllocTRES": "gres/gpu:a100=2,gres/gpu:v100=3"}, {"gpus": 5}, id="C40"),
        pytest.param({"AllocTRES": "gres/gpu=5,gres/gpu:a100=2,gres/gpu:v100=3"}, {"gpus": 5}, id="C40-with total"),
        pytest.param({"AllocTRES": "gres/gpu=5,gres/gpu:a100=2"}, {"gpu_parts": (("a100", 2), (None, 3))}, id="C40-rest untyped"),
        pytest.param({"AllocTRES": "cpu=4,mem=1G,node=1"}, {"gpus": 0, "gpu_parts": ()}, id="C41-none"),
        pytest.param(
            {"AllocTRES": "gres/gpu=3,gres/gpu:a100=1,gres/gpu:a100_3g.20gb=2"},
            {"gpus": 1 + 2 * THREE_SEVENTHS + Decimal("0.000000000001")},
            id="C45",
        ),
        pytest.param({"AllocTRES": "cpu=1,gres/shard=4"}, {"gpus": None, "gpu_parts": ()}, id="C52-shards unknown"),
        pytest.param({"AllocTRES": "cpu=1,gres/gpu=1,gres/gpumem=80G,gres/gpuutil=50"}, {"gpus": 1}, id="gpumem is no GPU"),
        pytest.param({"AllocTRES": "cpu=4,mem=1.50T"}, {"memory_mib": 1_572_864, "cpus": 4}, id="memory in T"),
        pytest.param({"AllocTRES": "", "NCPUS": "12"}, {"memory_mib": None, "cpus": 12}, id="CPUs from NCPUS"),
        pytest.param({"TimelimitRaw": "UNLIMITED"}, {"time_limit_seconds": None}, id="no limit"),
        pytest.param({"TimelimitRaw": "Partition_Limit"}, {"time_limit_seconds": None}, id="partition's limit"),
        pytest.param({"TimelimitRaw": "1-00:00:00"}, {"time_limit_seconds": 86_400}, id="limit as a duration"),
        pytest.param({"Eligible": "2027-06-01T00:00:00"}, {"eligible_at": datetime(2027, 6, 1, tzinfo=UTC)}, id="eligible later"),
        pytest.param({"Eligible": "Unknown"}, {"eligible_at": None}, id="held"),
        pytest.param({"ElapsedRaw": "5"}, {"started_at": datetime(2026, 3, 1, 8, 10, tzinfo=UTC)}, id="elapsed contradicts"),
        pytest.param({"Submit": "2026-03-01T08:30:00"}, {"started_at": datetime(2026, 3, 1, 8, 30, tzinfo=UTC)}, id="resized"),
        pytest.param({"NodeList": "gpu[01-02,07]"}, {"nodes": ("gpu01", "gpu02", "gpu07")}, id="nodes"),
        pytest.param(
            {"State": "RUNNING", "End": "Unknown", "ElapsedRaw": "600", "Suspended": "00:01:00"},
            {"ended_at": None, "last_seen_at": datetime(2026, 3, 1, 8, 21, tzinfo=UTC)},
            id="running",
        ),
        pytest.param(
            {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "NodeList": "None assigned", "AllocTRES": "", "ElapsedRaw": "0",
             "JobID": "95_[2-19%2]", "JobIDRaw": "95"},
            {"started_at": None, "ended_at": None, "last_seen_at": None, "external_id": "95", "display_id": "95_[2-19%2]", "gpus": 0},
            id="pending array",
        ),
        pytest.param({"Cluster": "ALPHA"}, {"gpus": 2}, id="cluster in another case"),
    ],
)  # fmt: skip
def test_a_line_means(changed: dict[str, str], expected: dict[str, Any]) -> None:
    record = record_of(**changed)
    assert {name: getattr(record, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        pytest.param({"JobName": "a|b"}, "28 columns where the header has 27", id="C1"),
        pytest.param({"Account": "dept-bioinformatics+"}, "--parsable2", id="C10"),
        pytest.param({"Start": "now+1hour"}, "Start", id="C17"),
        pytest.param({"AllocTRES": "gres/gpu=2,gres/gpu:a100=4"}, "above their total", id="C39"),
        pytest.param({"AllocTRES": "cpu=4,mem=1G,node="}, "cut", id="cut TRES"),
        pytest.param({"AllocTRES": "cpu=4,gres/gpu=1,gres/gpu=2"}, "twice", id="key twice"),
        pytest.param({"AllocTRES": "cpu=4,gres/gpu=99999999"}, "more than any machine", id="absurd"),
        pytest.param({"AllocTRES": "cpu=-4"}, "negative", id="negative TRES"),
        pytest.param({"Submit": "Unknown"}, "Submit", id="no submit"),
        pytest.param({"Submit": "1994-01-01T00:00:00"}, "before 1995", id="old"),
        pytest.param({"Start": "2026-12-09T00:00:00", "End": "Unknown"}, "in the future", id="future"),
        pytest.param({"End": "2026-03-01T08:05:00"}, "before Start", id="end before start"),
        pytest.param({"Start": "None", "End": "2026-03-01T06:00:00"}, "before Submit", id="end before submit"),
        pytest.param({"End": "Unknown", "ElapsedRaw": "99999999999"}, "into the future", id="elapsed in the future"),
        pytest.param({"Start": "2026-03-01T24:00:00"}, "Start", id="hour 24"),
        pytest.param({"Start": "2026-03-01T08:10:0٣"}, "Start", id="digits of another script"),
        pytest.param({"NNodes": "-1"}, "NNodes: '-1' is negative", id="negative nodes"),
        pytest.param({"Priority": "high"}, "Priority", id="no number"),
        pytest.param({"NodeList": "gpu[1-999999999]"}, "more than", id="absurd node list"),
        pytest.param({"NodeList": "@all"}, "NodeList", id="node group"),
        pytest.param({"State": ""}, "State", id="no state"),
        pytest.param({"JobID": "x1"}, "JobID", id="no id"),
        pytest.param({"JobID": "7", "JobIDRaw": "8"}, "does not belong", id="ids disagree"),
        pytest.param({"Cluster": "beta"}, "of cluster 'beta'", id="mixed dump"),
    ],
)
def test_a_line_is_refused_with_its_reason(changed: dict[str, str], reason: str) -> None:
    assert reason in rejection_of(**changed).reason


@case(8)
def test_steps_are_ignored_even_without_user_and_with_broken_fields(case: object) -> None:
    steps = [
        line(JobID=f"7.{step}", JobIDRaw=f"7.{step}", User="", Start="?")
        for step in ("batch", "extern", "0", "interactive", "0+1")
    ]
    records, reader = reader_of(*steps, line(JobID="48_5.batch", JobIDRaw="51.batch"))
    assert (records, reader.ignored_count, reader.rejections) == ([], 6, [])


@case(5)
def test_trailing_bars_of_sacct_p_change_nothing(case: object) -> None:
    with_bars = [HEADER.encode() + b"|\n", line().rstrip(b"\n") + b"|\n"]
    reader = SacctReader(with_bars, cluster="alpha", zone=ZoneInfo("UTC"), now=NOW)
    assert list(reader) == [record_of()]


@case(24, 35)
def test_the_same_id_in_other_years_is_another_record(case: object) -> None:
    old = {
        "Submit": "2017-03-01T08:00:00",
        "Eligible": "2017-03-01T08:00:00",
        "Start": "2017-03-01T08:10:00",
        "End": "2017-03-01T09:10:00",
    }
    records, _ = reader_of(line(**old), line())
    assert len({(record.external_id, record.submitted_at) for record in records}) == 2


@case(52)
def test_a_shard_is_its_part_of_a_gpu_where_the_parts_are_known(case: object) -> None:
    [record], _ = reader_of(line(AllocTRES="cpu=1,gres/shard=1"), shards=4)
    assert record.gpus == Decimal("0.25")


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "expected"),
    [
        pytest.param("02:30:00", "02:10:00", "2400", ((0, 30), (1, 10)), id="C58-order"),
        pytest.param("02:10:00", "02:30:00", "1200", ((0, 10), (0, 30)), id="C58-both first"),
        pytest.param("02:10:00", "02:30:00", "4800", ((0, 10), (1, 30)), id="C58-elapsed settles"),
        pytest.param("02:10:00", "03:10:00", "7200", ((0, 10), (2, 10)), id="C58-start first"),
        pytest.param("02:10:00", "03:10:00", "3600", ((1, 10), (2, 10)), id="C58-start second"),
    ],
)
def test_the_repeated_hour_is_settled_by_the_records_own_events(start: str, end: str, elapsed: str, expected: Any) -> None:
    before = {"Submit": "2025-10-26T01:00:00", "Eligible": "2025-10-26T01:00:00"}
    day = "2025-10-26T"
    record = record_of("Europe/Berlin", **before, Start=day + start, End=day + end, ElapsedRaw=elapsed)
    at = [(moment.hour, moment.minute) for moment in (record.started_at, record.ended_at) if moment]
    assert tuple(at) == expected


@case(58)
def test_a_time_in_the_skipped_hour_is_read_and_does_not_end_before_it_starts(case: object) -> None:
    day = "2025-03-30T"
    times = {"Submit": day + "01:00:00", "Eligible": day + "01:00:00", "Start": day + "02:30:00", "End": day + "03:10:00"}
    record = record_of("Europe/Berlin", **times, ElapsedRaw="2400")
    assert (record.started_at, record.ended_at) == (
        datetime(2025, 3, 30, 0, 30, tzinfo=UTC),
        datetime(2025, 3, 30, 1, 10, tzinfo=UTC),
    )


@case(65)
def test_a_record_of_no_length_at_midnight_of_the_first_is_kept(case: object) -> None:
    at = "2025-11-01T00:00:00"
    record = record_of(Submit=at, Eligible=at, Start=at, End=at, ElapsedRaw="0")
    assert record.started_at == record.ended_at == datetime(2025, 11, 1, tzinfo=UTC)
