"""The bytes of an answer: jobs in pieces of any size, errors that fail, warnings that are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.slurm.rest.stream import Answer, AnswerError, message_of

JOBS = [{"job_id": number, "name": "训练", "steps": [{"jobs": [1]}]} for number in range(5)]


def answer(**parts: object) -> bytes:
    return json.dumps({"jobs": JOBS, "errors": [], "warnings": [], "meta": {}} | parts, ensure_ascii=False).encode()


@given(size=st.integers(1, 60), errors_first=st.booleans())
def test_the_jobs_come_out_whole_however_the_bytes_are_cut(size: int, errors_first: bool) -> None:
    parts: dict[str, object] = {"errors": [], "jobs": JOBS} if errors_first else {"jobs": JOBS, "errors": []}
    data = json.dumps(parts, ensure_ascii=False).encode()
    assert list(Answer(data[at : at + size] for at in range(0, len(data), size))) == JOBS


def test_an_error_beside_jobs_fails_the_answer_at_its_end() -> None:
    entry = {"error": "Data parser unable to parse invalid flag", "description": "Unknown flag", "error_number": 9207}
    with pytest.raises(AnswerError, match=r"invalid flag: Unknown flag \(9207\)"):
        list(Answer([answer(errors=[entry])]))


def test_that_nothing_was_found_is_no_error_and_no_warning() -> None:
    """Case 6: an empty window is no error."""
    nothing = {"description": "Nothing found", "error_number": 9003, "error": "Nothing found with query"}
    found = Answer([answer(jobs=[], errors=[nothing], warnings=[{"description": "slurmdb_jobs_get(0x7f) found nothing"}])])
    assert (list(found), found.warnings) == ([], [])


def test_warnings_are_kept_for_the_run() -> None:
    found = Answer([answer(warnings=[{"description": "field x is deprecated", "source": "#/x"}])])
    list(found)
    assert found.warnings == ["field x is deprecated"]


def test_null_errors_of_old_versions_are_none() -> None:
    assert list(Answer([answer(errors=None, warnings=None)])) == JOBS


def test_bytes_that_are_no_utf_8_become_question_marks() -> None:
    assert list(Answer([b'{"jobs": [{"name": "a', b"\xff\xe8", b'b"}]}'])) == [{"name": "a??b"}]


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_an_answer_that_ends_early_is_refused(cut: int) -> None:
    with pytest.raises(AnswerError):
        list(Answer([answer()[:cut]]))


@pytest.mark.parametrize("data", [b"Authentication failure", b"<html>", b"[1, 2", b""])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(AnswerError):
        list(Answer([data]))


def test_memory_stays_flat_over_an_endless_answer() -> None:
    """Jobs are handed on as they come: the first is there long before the end."""

    def endless() -> Iterator[bytes]:
        yield b'{"jobs": ['
        while True:
            yield b'{"job_id": 1},'

    assert list(islice(Answer(endless()), 1000)) == [{"job_id": 1}] * 1000


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"Authentication failure", "Authentication failure"),
        (
            answer(errors=[{"error": "Unable to connect to database", "error_number": 7000}]),
            "Unable to connect to database (7000)",
        ),
        (answer(), ""),
    ],
)
def test_a_refusal_is_told_in_one_line(body: bytes, expected: str) -> None:
    assert message_of(body) == expected
