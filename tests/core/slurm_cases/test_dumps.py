"""Cases C1 and C2 on whole dumps: what is joined, counted, refused, and what each attempt is."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from collectors.slurm import sacct
from collectors.slurm.reader import SacctHeaderError, SacctReader
from tests.cases import case
from tests.core.badlines import HEADER, drill, good_line, line

NOW = datetime(2026, 12, 1, tzinfo=UTC)
HEAD = HEADER.encode() + b"\n"
SEPARATED = HEADER.replace("|", "\x1f").encode() + b"\n"


def read(*lines: bytes, zone: str = "UTC") -> SacctReader:
    reader = SacctReader(lines, cluster="alpha", zone=ZoneInfo(zone), now=NOW)
    reader.records = list(reader)  # type: ignore[attr-defined]  # kept beside the counts, for the tests only
    assert reader.accepted_count + reader.rejected_count + reader.ignored_count == reader.line_count
    return reader


def names(reader: SacctReader) -> list[str]:
    return [record.name for record in reader.records]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["a|b", "a,b", 'a"b', "|", "a|b|c|d", "training|фаза"])
@pytest.mark.parametrize("case", [pytest.param(1, id="C1")])
def test_a_bar_in_a_name_is_kept_under_another_delimiter_and_counted_under_its_own(name: str, case: object) -> None:
    separated = "\x1f".join(line().decode().rstrip("\n").split("|")).replace("train", name).encode() + b"\n"
    assert names(read(SEPARATED, separated)) == [name]
    barred = read(HEAD, good_line(1), line(JobName=name), good_line(2))
    assert barred.accepted_count == (3 if "|" not in name else 2)
    assert barred.rejected_count == ("|" in name)


@pytest.mark.parametrize("text", ['srun bash -c "echo x &&\necho y"', "a\n\nb", "\n", "a\nb\nc\nd\ne", "trailing\n"])
@pytest.mark.parametrize("case", [pytest.param(2, id="C2")])
def test_a_line_break_in_a_field_is_joined_and_kept(text: str, case: object) -> None:
    reader = read(HEAD, *line(JobName=text).splitlines(keepends=True), good_line(2))
    assert names(reader) == [text, "train"]


@pytest.mark.parametrize("missing", ["ReqTRES", "Suspended", "Reservation", "Comment", "UID", "Cluster", "Priority"])
@pytest.mark.parametrize("case", [pytest.param(6, id="C6")])
def test_a_field_that_slurm_dropped_is_done_without(missing: str, case: object) -> None:
    at = HEADER.split("|").index(missing)

    def without(text: bytes) -> bytes:
        fields = text.decode().rstrip("\n").split("|")
        return "|".join(fields[:at] + fields[at + 1 :]).encode() + b"\n"

    assert read(without(HEAD), without(line())).accepted_count == 1
    fields, lacking = sacct.wanted_fields(sacct.fields_of(HEADER.replace("|", " ").replace(missing, "")))
    assert missing not in fields
    assert missing in lacking


@case(6)
def test_a_field_that_nothing_works_without_is_named(case: object) -> None:
    with pytest.raises(ValueError, match="AllocTRES"):
        sacct.wanted_fields(sacct.fields_of(HEADER.replace("|", " ").replace("AllocTRES", "")))
    with pytest.raises(SacctHeaderError, match="AllocTRES"):
        read(HEAD.replace(b"AllocTRES", b"Other"), line())


@case(22)
def test_one_bad_line_in_ten_thousand_is_one_line_less(case: object) -> None:
    lines, broken = drill(line_count=10_000, bad_count=1)
    reader = read(*lines)
    assert (reader.accepted_count, [rejected.line_number for rejected in reader.rejections]) == (9_999, list(broken))


@case(26, 71)
def test_every_attempt_of_a_requeued_job_is_a_record_with_its_own_wait(case: object) -> None:
    ends = ["09:04:00", "10:18:00", "12:00:00", "12:35:00", "14:00:00"]
    starts = ["08:00:00", *ends[:-1]]
    attempts = [
        line(State="REQUEUED" if at < 4 else "COMPLETED", **dict.fromkeys(("Submit", "Eligible", "Start"), f"2026-03-01T{start}"),
             End=f"2026-03-01T{ends[at]}", ElapsedRaw="")
        for at, start in enumerate(starts)
    ]  # fmt: skip
    records = read(HEAD, *attempts).records  # type: ignore[attr-defined]
    assert [record.state for record in records] == ["REQUEUED"] * 4 + ["COMPLETED"]
    assert len({(record.external_id, record.submitted_at) for record in records}) == 5
    assert {record.workload_id for record in records} == {"1"}
    minutes = [(record.ended_at - record.started_at).total_seconds() / 60 for record in records]
    assert minutes == [64, 74, 102, 35, 85]


@pytest.mark.parametrize(
    "state", ["REQUEUED", "RESIZING", "PREEMPTED", "NODE_FAIL", "REVOKED", "STOPPED", "OUT_OF_MEMORY", "NEW"]
)
@pytest.mark.parametrize("case", [pytest.param(27, id="C27")])
def test_usage_follows_the_times_whatever_the_state(state: str, case: object) -> None:
    tres = "cpu=8,gres/gpu=8,node=1"
    [record] = read(HEAD, line(State=state, AllocTRES=tres, End="2026-03-01T10:10:00", ElapsedRaw="7200")).records  # type: ignore[attr-defined]
    assert record.gpus * Decimal((record.ended_at - record.started_at).total_seconds()) / 3600 == 16


@case(33)
def test_tasks_of_an_array_are_records_of_one_workload(case: object) -> None:
    tasks = [line(JobID=f"48_{task}", JobIDRaw=str(48 + task)) for task in (0, 1, 2)]
    waiting = line(
        JobID="48_[3-9%2]", JobIDRaw="60", State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned", AllocTRES=""
    )
    records = read(HEAD, *tasks, waiting).records  # type: ignore[attr-defined]
    assert [record.external_id for record in records] == ["48", "49", "50", "60"]
    assert {(record.workload_id, record.workload_kind) for record in records} == {("48", "array")}


@case(9)
def test_components_of_a_heterogeneous_job_keep_their_own_gpus(case: object) -> None:
    first = line(JobID="93+0", JobIDRaw="93", AllocTRES="cpu=8,gres/gpu=8,node=1")
    second = line(JobID="93+1", JobIDRaw="94", AllocTRES="cpu=8,node=1")
    records = read(HEAD, first, second).records  # type: ignore[attr-defined]
    assert [(record.external_id, record.workload_id, record.gpus) for record in records] == [("93", "93", 8), ("94", "93", 0)]


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-11-02T08:00:00", "UTC", 8),
        ("2026-11-02T08:00:00", "Europe/Berlin", 7),
        ("2026-11-02T08:00:00", "America/New_York", 13),
        ("2026-11-02T08:00:00+0100", "America/New_York", 7),
        ("1793606400", "Asia/Kolkata", 8),
    ],
)
@pytest.mark.parametrize("case", [pytest.param(15, id="C15"), pytest.param(61, id="C61")])
def test_times_are_those_of_the_declared_zone_unless_they_say_otherwise(
    text: str, zone: str, expected: int, case: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    times = dict.fromkeys(("Submit", "Eligible", "Start", "End"), text)
    [record] = read(HEAD, line(**times, ElapsedRaw="0"), zone=zone).records  # type: ignore[attr-defined]
    assert record.started_at == datetime(2026, 11, 2, expected, tzinfo=UTC)


@pytest.mark.parametrize("text", ["01:00:00", "1-00:00:00", "00:30:00", "10:00"])
@pytest.mark.parametrize("case", [pytest.param(76, id="C76"), pytest.param(21, id="C21")])
def test_suspended_time_is_shown_apart_in_each_of_its_shapes(text: str, case: object) -> None:
    [record] = read(HEAD, line(Suspended=text)).records  # type: ignore[attr-defined]
    assert record.suspended_seconds == {"01:00:00": 3600, "1-00:00:00": 86_400, "00:30:00": 1800, "10:00": 600}[text]


@pytest.mark.parametrize("nodes", [1, 8])
@pytest.mark.parametrize("case", [pytest.param(57, id="C57")])
def test_parts_of_a_node_are_counted_not_whole_nodes(nodes: int, case: object) -> None:
    parts = [line(JobID=str(at), JobIDRaw=str(at), AllocTRES="cpu=8,gres/gpu=1,node=1") for at in range(1, nodes + 1)]
    assert sum(record.gpus for record in read(HEAD, *parts).records) == nodes  # type: ignore[attr-defined]
