"""What two real versions printed: slurmrestd's JSON gives the records of sacct's text, but for what the API does not tell.

Not told by any version: who cancelled by number (it has the name). By 0.0.38 (22.05): an exit code other than 0 (only the signal), the
name of a reservation, the submit line and the container. By versions before 0.0.42: how often a job was started again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from accounting.domain.records import UsageRecord
from collectors.slurm.reader import SacctReader
from collectors.slurm.rest.reader import RestReader
from collectors.slurm.rest.stream import Answer
from collectors.slurm.rest.versions import dialect_of

NOW = datetime(2026, 12, 1, tzinfo=UTC)
VERSION = {"22.05": "v0.0.38", "24.11": "v0.0.42"}
Key = tuple[str, datetime]


def keyed(records: Iterable[UsageRecord]) -> dict[Key, UsageRecord]:
    return {(record.external_id, record.submitted_at): record for record in records}


def by_text(folder: Path) -> tuple[dict[Key, UsageRecord], dict[str, str]]:
    """Records of the dump, and the name of each uid in it."""
    data = (folder / "sacct-governance-unit-separator.txt").read_bytes()
    reader = SacctReader(data.splitlines(keepends=True), cluster="lab", zone=ZoneInfo("UTC"), now=NOW)
    records = keyed(reader)
    assert reader.rejections == []
    header, *lines = (line.split("\x1f") for line in data.decode().splitlines())
    user, uid = header.index("User"), header.index("UID")
    return records, {line[uid]: line[user] for line in lines if len(line) == len(header)} | {"0": "root"}


def by_json(folder: Path, release: str, name: str) -> dict[Key, UsageRecord]:
    reader = RestReader(Answer([(folder / name).read_bytes()]), dialect=dialect_of(VERSION[release]), cluster="lab", now=NOW)
    records = keyed(reader)
    assert reader.rejections == []
    return records


def as_told(record: UsageRecord, release: str, names: dict[str, str]) -> UsageRecord:
    """A record of sacct's text without what the API does not tell."""
    changes: dict[str, Any] = {"cancelled_by": names.get(record.cancelled_by, record.cancelled_by)}
    if release == "22.05":
        is_told = record.exit_code.startswith("0:") and (record.exit_code != "0:0" or record.state in TOLD)
        changes |= {"exit_code": record.exit_code if is_told else "", "reservation": ""}
    return record._replace(**changes)


TOLD = {"COMPLETED", "PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING"}
# The dump of the fixtures was not asked for these columns.
NOT_ASKED = ("environment", "wckey", "restart_count")


@pytest.mark.parametrize("release", ["22.05", "24.11"])
@pytest.mark.parametrize("name", ["sacct.json", "restd-slurmdb-job.json"])
def test_json_and_text_give_identical_records(shared: Path, release: str, name: str) -> None:
    folder = shared / "fixtures" / f"slurm-{release}"
    text, names = by_text(folder)
    told = by_json(folder, release, name)
    assert len(told) == (14 if name == "sacct.json" else 2)
    for key, record in told.items():
        expected = as_told(text[key], release, names)
        if record.state == "RUNNING":  # the two were asked some seconds apart
            expected = expected._replace(last_seen_at=record.last_seen_at)
        assert record._replace(**{field: getattr(expected, field) for field in NOT_ASKED}) == expected


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_the_job_that_slurmctld_shows_is_the_one_of_slurmdbd(shared: Path, release: str) -> None:
    folder = shared / "fixtures" / f"slurm-{release}"
    live = Answer([(folder / "restd-slurm-job.json").read_bytes()])
    [record] = RestReader((), live, dialect=dialect_of(VERSION[release]), cluster="lab", now=NOW)
    stored = by_text(folder)[0][record.external_id, record.submitted_at]
    assert record.state == "RUNNING"
    # slurmctld does not say since when it was last seen: that is the time at which it was asked.
    assert record._replace(last_seen_at=stored.last_seen_at, restart_count=None) == stored


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_an_answer_without_matches_is_empty_and_no_error(shared: Path, release: str) -> None:
    """Case 6, with `errors` (22.05) and without."""
    assert list(Answer([(shared / "fixtures" / f"slurm-{release}" / "sacct-empty.json").read_bytes()])) == []


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_earlier_attempts_are_missing_where_slurmrestd_is_asked_without_a_window(shared: Path, release: str) -> None:
    """Why every question has one: the list without it has a requeued job once, the job by itself has all its attempts."""
    folder = shared / "fixtures" / f"slurm-{release}"
    ids = json.loads((folder / "restd-slurmdb-job-ids.json").read_text())
    assert ids.count(2) == 1
    assert sorted(record.state for record in by_json(folder, release, "restd-slurmdb-job.json").values()) == [
        "COMPLETED",
        "NODE_FAIL",
    ]
