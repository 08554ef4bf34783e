"""A job of slurmrestd becomes the record that sacct would have given, whichever data parser wrote it (case 23)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.domain.records import Rejected, UsageRecord
from collectors.slurm.rest.reader import HEADER_LINE, RestReader
from collectors.slurm.rest.versions import DIALECTS, dialect_of, newest_readable, offered_in
from tests.core.slurm_rest.jobs import TERSE, UNSET, VERSIONS, exit_code, live_job, number, state, stored_job, tres

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def read(
    version: str, *stored: object, waiting: tuple[object, ...] = (), shards: int | None = None
) -> tuple[list[UsageRecord], RestReader]:
    reader = RestReader(stored, waiting, dialect=dialect_of(version), cluster="lab", now=NOW, shards_per_gpu=shards)
    return list(reader), reader


def record_of(version: str, **changed: Any) -> UsageRecord:
    records, reader = read(version, stored_job(version, **changed))
    assert reader.rejections == []
    return records[0]


def assert_told(record: UsageRecord, **expected: object) -> None:
    assert {name: getattr(record, name) for name in expected} == expected


def rejection_of(version: str, **changed: Any) -> Rejected:
    records, reader = read(version, stored_job(version, **changed))
    assert records == []
    return reader.rejections[0]


@pytest.mark.parametrize("version", [pytest.param(version, id=f"C23-{version}") for version in VERSIONS])
def test_every_data_parser_tells_the_same_job(version: str) -> None:
    newest = record_of("v0.0.44")
    assert newest.gpus == 2
    assert newest.started_at == datetime(2026, 3, 1, 8, 10, tzinfo=UTC)
    assert record_of(version) == newest._replace(restart_count=0 if version >= "v0.0.42" else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_cancelled_while_it_waited_never_started(version: str) -> None:
    start = None if version == "v0.0.38" else 2**32 - 2
    times = stored_job(version)["time"] | {"start": start, "end": 1_772_352_300, "elapsed": 0}
    record = record_of(
        version, time=times, nodes="None assigned", kill_request_user="alice", tres={"allocated": [], "requested": tres()},
        state={"current": state(version, "CANCELLED"), "reason": "None"}, allocation_nodes=0,
    )  # fmt: skip
    assert_told(record, started_at=None, gpus=0, requested_gpus=2, cancelled_by="alice", node_count=2)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("code", "signal", "expected"),
    [(3, 0, "3:0"), (0, 9, "0:9"), (139, 0, "11:0"), (0, 53, "0:53")],
    ids=["code", "killed", "a shell's 128 + 11", "no output file"],
)
def test_an_exit_code_is_that_of_sacct_or_unknown(version: str, code: int, signal: int, expected: str) -> None:
    failed = record_of(
        version, exit_code=exit_code(version, code, signal), state={"current": state(version, "FAILED"), "reason": "None"}
    )
    assert failed.exit_code == ("" if version in TERSE and code else expected)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("array", "het", "expected"),
    [
        ({"job_id": 48, "task_id": 5, "task": ""}, (0, None), ("48_5", "48", "array")),
        ({"job_id": 95, "task_id": None, "task": "2-19%2"}, (0, None), ("95_[2-19%2]", "95", "array")),
        ({"job_id": 0, "task_id": None, "task": ""}, (54, 1), ("54+1", "54", "het_job")),
        ({"job_id": 0, "task_id": None, "task": ""}, (54, 0), ("54+0", "54", "het_job")),
        ({"job_id": 0, "task_id": None, "task": ""}, (0, None), ("7", "7", "job")),
    ],
    ids=["C33 array task", "array that waits", "C9 het component", "C9 first het component", "job"],
)
def test_tasks_and_components_keep_their_own_id(version: str, array: Any, het: Any, expected: tuple[str, str, str]) -> None:
    array = array | {"task_id": number(version, array["task_id"])}
    record = record_of(version, array=array, het={"job_id": het[0], "job_offset": number(version, het[1])})
    assert (record.external_id, record.display_id, record.workload_id, record.workload_kind) == ("7", *expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["PENDING", "REQUEUED"], "REQUEUED"),
        (["PENDING", "RESIZING"], "RESIZING"),
        (["RUNNING", "COMPLETING"], "COMPLETING"),
        (["OUT_OF_MEMORY"], "OUT_OF_MEMORY"),
        (["SOMETHING_NEW"], "SOMETHING_NEW"),
    ],
)
def test_a_list_of_states_is_the_word_that_sacct_prints(words: list[str], expected: str) -> None:
    for version in VERSIONS[2:]:
        assert record_of(version, state={"current": words, "reason": "None"}).state == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_no_limit_and_no_priority_are_none(version: str) -> None:
    record = record_of(version, time=stored_job(version)["time"] | {"limit": number(version, -1)}, priority=number(version, None))
    assert (record.time_limit_seconds, record.priority) == (None, None)


@pytest.mark.parametrize(
    ("changed", "field", "expected"),
    [
        pytest.param({"account": "", "association": {"account": ""}}, "account", "", id="C23 empty account"),
        pytest.param({"account": ""}, "account", "vision", id="account of the association"),
        pytest.param({"user": "4294967294", "association": None}, "user", "", id="C8 uid that is none"),
        pytest.param({"user": ""}, "user", "alice", id="user of the association"),
        pytest.param({"name": "a|b\x1fc\nd"}, "name", "a|b\x1fc\nd", id="C1 C2 separators in a name"),
        pytest.param({"name": "训练-ß-😀"}, "name", "训练-ß-😀", id="C4"),
        pytest.param({"submit_line": "srun --container-image=nvcr.io/nvidia/pytorch:24.05 x"}, "name", "train", id="submit line"),
        pytest.param({"wckey": {"wckey": "grant-7", "flags": []}}, "wckey", "grant-7", id="WCKey"),
        pytest.param({"time": stored_job("v0.0.44")["time"] | {"suspended": 93_784}}, "suspended_seconds", 93_784, id="suspended"),
        pytest.param({"reservation": {"id": 3, "name": "course"}}, "reservation", "course", id="reservation"),
    ],
)  # fmt: skip
def test_a_value_means(changed: dict[str, Any], field: str, expected: object) -> None:
    assert getattr(record_of("v0.0.44", **changed), field) == expected


def test_0_0_38_writes_nonsense_for_a_reservation_so_it_is_unknown() -> None:
    assert record_of("v0.0.38", reservation={"id": 1, "name": 2_684_455_840}).reservation == ""


@pytest.mark.parametrize(
    ("allocated", "expected"),
    [
        pytest.param([("gres", "gpu:rtx_2080_ti", 1)], Decimal(1), id="C37"),
        pytest.param([("gres", "gpu:a100", 1), ("gres", "gpu", 1)], Decimal(1), id="C38"),
        pytest.param([("gres", "gpu:a100", 2), ("gres", "gpu:v100", 3)], Decimal(5), id="C40"),
        pytest.param([("gres", "shard", 4)], None, id="C52"),
        pytest.param([("energy", "", -2), ("gres", "gpumem", 80), ("license", "solver", 1)], Decimal(0), id="C23 energy -2"),
        pytest.param([("energy", "", 2**64 - 2)], Decimal(0), id="C23 energy as 64 bits"),
    ],
)
def test_gpus_are_counted_as_in_a_tres_string(allocated: list[tuple[str, str, int]], expected: Decimal | None) -> None:
    listed = [{"type": kind, "name": name, "count": count} for kind, name, count in allocated]
    assert record_of("v0.0.44", tres={"allocated": listed, "requested": []}).gpus == expected


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        pytest.param({"cluster": "other"}, "of cluster 'other'", id="another cluster"),
        pytest.param({"time": None}, "Submit", id="no times"),
        pytest.param({"time": {"submission": "yesterday"}}, "no whole number", id="a time in words"),
        pytest.param({"time": 5}, "an object was expected", id="no object"),
        pytest.param({"tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 2},
                                             {"type": "gres", "name": "gpu:a100", "count": 4}]}}, "above their total", id="C39"),
        pytest.param({"tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 2**64 - 2}]}}, "more than any", id="C23 NO_VAL64"),
        pytest.param({"tres": {"allocated": "gpu=1"}}, "no list of TRES", id="TRES as text"),
        pytest.param({"tres": {"allocated": [{"type": "gres", "name": "gpu"}]}}, "no count", id="TRES without a count"),
        pytest.param({"name": "a\0b"}, "NUL", id="NUL"),
        pytest.param({"name": "a\ud800b"}, "surrogates", id="half a surrogate"),
        pytest.param({"name": "x" * 70_000}, "more than the", id="endless name"),
        pytest.param({"name": 7}, "no text", id="a number as a name"),
        pytest.param({"job_id": True}, "no whole number", id="a truth as an id"),
        pytest.param({"job_id": 10**30}, "no job id", id="an endless id"),
        pytest.param({"job_id": float("inf")}, "no whole number", id="an infinite id"),
        pytest.param({"job_id": 0.5}, "no whole number", id="half an id"),
        pytest.param({"state": {"current": []}}, "no state", id="no state"),
        pytest.param({"nodes": "gpu[1-999999999]"}, "more than", id="absurd node list"),
        pytest.param({"time": stored_job("v0.0.44")["time"] | {"end": 1_772_352_001}}, "before Start", id="end before start"),
        pytest.param({"time": stored_job("v0.0.44")["time"] | {"suspended": -1}}, "negative", id="negative"),
        pytest.param({"exit_code": {"return_code": {"set": True, "infinite": True}}}, "no number", id="infinite exit code"),
    ],
)  # fmt: skip
def test_a_job_is_refused_with_its_reason(changed: dict[str, Any], reason: str) -> None:
    assert reason in rejection_of("v0.0.44", **changed).reason


def test_a_refused_job_is_kept_as_a_line_of_sacct_where_it_can_be() -> None:
    line = rejection_of("v0.0.44", nodes="@all").raw
    assert line.split("\x1f")[0] == "7"
    assert line.count("\x1f") == HEADER_LINE.count("\x1f")


@pytest.mark.parametrize("version", [pytest.param(version, id=f"C23-{version}") for version in VERSIONS])
def test_a_held_job_waits_and_guesses_of_the_scheduler_are_no_facts(version: str) -> None:
    [record], reader = read(version, waiting=(live_job(version),))
    assert (record.external_id, record.state, record.reason, record.user) == ("8", "PENDING", "JobHeldUser", "alice")
    assert_told(record, started_at=None, ended_at=None, eligible_at=None, gpus=0)
    assert_told(record, requested_gpus=2, time_limit_seconds=3600, node_count=2)
    assert (reader.line_count, reader.accepted_count) == (1, 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_slurmdbd_has_the_last_word_on_a_job_that_both_show_and_ended_jobs_of_slurmctld_are_ignored(version: str) -> None:
    seen_before = live_job(version, job_id=7)
    ended = live_job(version, job_id=9, job_state=state(version, "COMPLETED"))
    records, reader = read(version, stored_job(version), waiting=(seen_before, ended))
    assert [record.state for record in records] == ["COMPLETED"]
    assert (reader.line_count, reader.accepted_count, reader.ignored_count, reader.rejected_count) == (3, 1, 2, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_running_job_of_slurmctld_has_no_end_though_its_limit_is_shown(version: str) -> None:
    running = live_job(
        version, job_state=state(version, "RUNNING"), nodes="gpu01", tres_alloc_str="cpu=4,gres/gpu=2",
        start_time=live_job(version)["submit_time"],
    )  # fmt: skip
    [record], _ = read(version, waiting=(running,))
    assert_told(record, state="RUNNING", ended_at=None, gpus=2, nodes=("gpu01",))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"array_job_id": 95, "array_task_string": "2-19%2"}, "95_[2-19%2]"),
        ({"array_job_id": 95, "array_task_id": 3}, "95_3"),
        ({"het_job_id": 54, "het_job_offset": 1}, "54+1"),
    ],
)
def test_waiting_tasks_and_components_are_shown_as_sacct_shows_them(changed: dict[str, Any], expected: str) -> None:
    for version in VERSIONS:
        shaped = {name: number(version, value) if isinstance(value, int) else value for name, value in changed.items()}
        [record], _ = read(version, waiting=(live_job(version, **shaped),))
        assert record.display_id == expected


def test_segments_of_a_resized_job_keep_their_plain_ids_where_their_times_differ() -> None:
    version = "v0.0.44"
    times = stored_job(version)["time"]
    first = stored_job(version, state={"current": ["PENDING", "RESIZING"], "reason": ""}, time=times | {"end": 1_772_354_000})
    second = stored_job(version, time=times | {"submission": 1_772_354_000, "start": 1_772_354_000})
    records, _ = read(version, first, second)
    assert sorted((record.external_id, record.state) for record in records) == [("7", "COMPLETED"), ("7", "RESIZING")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["set", "number", "infinite", "x"]), inner),
    max_leaves=6,
)


@given(
    version=st.sampled_from(VERSIONS), changes=st.dictionaries(st.sampled_from(sorted(stored_job("v0.0.44"))), JSON), junk=JSON
)
def test_whatever_the_json_holds_no_job_is_lost_and_nothing_is_raised(version: str, changes: dict[str, Any], junk: Any) -> None:
    _, reader = read(version, stored_job(version, **changes), junk, waiting=(live_job(version, **changes), junk))
    assert reader.accepted_count + reader.rejected_count + reader.ignored_count == reader.line_count == 4
    assert all("\0" not in rejected.raw for rejected in reader.rejections)


def test_the_newest_data_parser_that_both_know_is_taken() -> None:
    document = r'"paths": {"\/slurmdb\/v0.0.40\/jobs\/": {}, "/slurmdb/v0.0.42/jobs/": {}, "/slurmdb/v0.0.99/jobs": "/slurm/v0.0.44/jobs"'
    assert offered_in(document) == {"v0.0.40", "v0.0.42", "v0.0.99"}
    assert newest_readable(offered_in(document)) == "v0.0.42"
    assert newest_readable({"v0.0.36", "v0.0.99"}) is None


def test_every_version_is_read_by_its_own_reader() -> None:
    assert [dialect.version for dialect in reversed(DIALECTS)] == list(VERSIONS)
    assert number("v0.0.44", None) == UNSET
    with pytest.raises(ValueError, match=r"v0\.0\.99"):
        dialect_of("v0.0.99")
