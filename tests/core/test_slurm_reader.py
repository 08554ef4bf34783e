"""Whole dumps: every line is accounted for, bad lines hurt nobody else."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from accounting.domain.records import UsageRecord
from collectors.slurm.reader import SacctHeaderError, SacctReader, bounded_lines
from tests.core.badlines import HEADER, drill, good_line, line

NOW = datetime(2026, 12, 1, tzinfo=UTC)
HEAD = HEADER.encode() + b"\n"


def read(lines: Iterable[bytes], zone: str = "UTC") -> tuple[SacctReader, list[UsageRecord]]:
    reader = SacctReader(lines, cluster="alpha", zone=ZoneInfo(zone), now=NOW)
    records = list(reader)
    assert reader.accepted_count + reader.rejected_count + reader.ignored_count == reader.line_count
    assert len(records) == reader.accepted_count
    return reader, records


def test_one_hundred_bad_lines_in_ten_thousand_are_rejected_with_number_and_reason_and_the_rest_is_taken_in() -> None:
    lines, broken = drill()
    reader, records = read(lines)
    assert (reader.line_count, len(records), reader.ignored_count) == (10_000, 9_900, 0)
    assert {rejected.line_number for rejected in reader.rejections} == set(broken)
    words = {
        "cut": "columns where the header has", "extra bars": "contains the delimiter", "NUL": "NUL", "bad UTF-8": "UTF-8",
        "bad date": "Submit",
        "bad TRES": "AllocTRES", "future time": "in the future", "negative": "ElapsedRaw", "1 MB long": "bytes", "empty": "empty",
    }  # fmt: skip
    for rejected in reader.rejections:
        assert words[broken[rejected.line_number]] in rejected.reason
        assert len(rejected.raw) <= 2_000
        assert "\0" not in rejected.raw
    assert {record.external_id for record in records} == {str(n) for n in range(2, 10_002)} - {str(n) for n in broken}


def test_mutated_lines_never_raise_and_every_line_is_counted() -> None:
    rng = random.Random(20261201)
    lines = [HEAD]
    for number in range(4_000):
        data = bytearray(good_line(number))
        for _ in range(rng.randint(0, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 3)] = bytes(
                rng.choice(b"|0-9aT:+.,=[]\xff\x00\n \r_") for _ in range(rng.randint(0, 3))
            )
        lines += bytes(data).splitlines(keepends=True)
    reader, _ = read(lines)
    assert reader.accepted_count > 500
    assert reader.rejected_count > 500


def test_a_final_line_end_is_no_line_and_an_empty_line_before_it_is() -> None:
    assert read((HEAD + good_line(1)).split(b"\n"))[0].line_count == 1
    assert read([HEAD, good_line(1), b"\n"])[0].rejected_count == 1


def test_a_header_that_comes_again_is_ignored() -> None:
    reader, _ = read([HEAD, good_line(1), HEAD, good_line(2)])
    assert (reader.accepted_count, reader.ignored_count) == (2, 1)


def test_a_line_that_breaks_inside_a_field_is_joined_and_keeps_its_break() -> None:
    reader, records = read([HEAD, *line(JobName="new\nline", Reason="x\n\ny").splitlines(keepends=True), good_line(2)])
    assert [record.name for record in records] == ["new\nline", "train"]
    assert (reader.line_count, reader.ignored_count) == (5, 3)


@pytest.mark.parametrize("cut_at", [10, 60, 150])
def test_a_cut_line_never_eats_a_good_neighbour(cut_at: int) -> None:
    reader, records = read([HEAD, good_line(1)[:cut_at] + b"\n", good_line(2), good_line(3)[:cut_at] + b"\n", good_line(4)])
    assert [record.external_id for record in records] == ["2", "4"]
    assert [rejected.line_number for rejected in reader.rejections] == [2, 4]


def test_two_cut_lines_that_have_the_right_number_of_columns_together_are_no_record() -> None:
    first, second = good_line(1).split(b"|"), good_line(2).split(b"|")
    reader, records = read([HEAD, b"|".join(first[:20]) + b"\n", b"|".join(second[:8]) + b"\n"])
    assert (records, reader.rejected_count) == ([], 2)


def test_a_header_without_needed_columns_names_them_and_the_command() -> None:
    with pytest.raises(SacctHeaderError, match=r"AllocTRES.*sacct -a -X -D --parsable2"):
        SacctReader([b"JobID|Submit|Start|End|State\n"], cluster="alpha", zone=ZoneInfo("UTC"), now=NOW)


def test_a_header_that_names_a_column_twice_is_refused() -> None:
    with pytest.raises(SacctHeaderError, match="names the column jobid twice"):
        SacctReader([b"JobID|jobid|" + HEADER.encode()], cluster="alpha", zone=ZoneInfo("UTC"), now=NOW)


@pytest.mark.parametrize("lines", [[], [b"\n"], [b"no header at all\n"], [good_line(1)], [b"\x1f\x8b\x00\xff\n"]])
def test_what_is_no_header_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(SacctHeaderError):
        SacctReader(lines, cluster="alpha", zone=ZoneInfo("UTC"), now=NOW)


def test_columns_may_stand_in_any_order_and_few_are_enough() -> None:
    names = ["End", "AllocTRES", "Start", "State", "Submit", "JobID"]
    good = dict(zip(HEADER.split("|"), line().decode().rstrip("\n").split("|"), strict=True))
    _, [record] = read([("|".join(names)).encode(), ("|".join(good[name] for name in names)).encode()])
    assert (record.external_id, record.gpus, record.user, record.requested_gpus) == ("1", Decimal(2), "", None)


def test_a_dump_from_windows_reads_the_same() -> None:
    assert read([HEAD, good_line(5)])[1] == read([HEAD.replace(b"\n", b"\r\n"), good_line(5).replace(b"\n", b"\r\n")])[1]


def test_a_segment_keeps_its_id_where_its_successor_has_another_submit() -> None:
    resizing = line(State="RESIZING", End="2026-03-01T08:30:00")
    _, records = read([HEAD, resizing, line(Submit="2026-03-01T08:30:00", Eligible="2026-03-01T08:30:00")])
    assert sorted((record.external_id, record.started_at and record.started_at.minute) for record in records) == [
        ("1", 10),
        ("1", 30),
    ]


def test_a_segment_gets_its_own_id_where_its_successor_has_the_same_submit() -> None:
    resizing = line(State="RESIZING", End="2026-03-01T08:30:00")
    reader, records = read([HEAD, resizing, line(Start="2026-03-01T08:30:00")])
    assert {record.external_id for record in records} == {"1", "1/1772353800"}
    assert reader.accepted_count == 2


def test_records_are_those_of_the_contract_and_cannot_change() -> None:
    _, [record] = read([HEAD, good_line(1)])
    assert type(record) is UsageRecord
    with pytest.raises(AttributeError):
        record.name = "other"  # type: ignore[misc]  # the test is that this fails


def test_a_line_without_end_is_read_with_flat_memory_and_rejected_once() -> None:
    stream = io.BytesIO(HEAD + b"x" * 5_000_000 + b"\n" + good_line(2))
    lines = list(bounded_lines(stream))
    assert max(map(len, lines)) < 300_000
    reader, records = read(lines)
    assert (reader.line_count, len(records), reader.rejections[0].line_number) == (2, 1, 2)
