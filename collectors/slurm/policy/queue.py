"""What the scheduler expects of the jobs that wait: `squeue --start`, `sprio`, with `sdiag` as context; and fair-share (`sshare`). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from accounting.domain.forecasts import Expectation, Sample
from collectors.slurm.policy.text import (
    Entry,
    PolicyTextError,
    Reading,
    instant,
    needed,
    ratio,
    read,
    table,
    text_of,
    whole,
    word,
)
from estate.domain.policy import ShareFact

QUEUE_FIELDS = ("JobID", "Display", "Submit", "Start", "State", "Priority", "Partition", "Reason")
QUEUE_FORMAT = "%A|%i|%V|%S|%T|%Q|%P|%r"
PRIORITY_FIELDS = (
    "JobID",
    "Partition",
    "Priority",
    "Age",
    "Association",
    "FairShare",
    "JobSize",
    "PartitionFactor",
    "QOS",
    "Nice",
)
PRIORITY_FORMAT = "%i|%r|%Y|%A|%B|%F|%J|%P|%Q|%N"
FACTORS = ("Age", "Association", "FairShare", "JobSize", "PartitionFactor", "QOS", "Nice")
SHARE_COMMAND = "sshare -a -l -P"
SHARE_COLUMNS = ("Account", "User", "RawShares", "RawUsage", "EffectvUsage")
_DIAGNOSIS = re.compile(r"^\s*(Jobs pending|Jobs running|Last depth cycle|Last queue length|Last cycle):\s+(\d+)", re.MULTILINE)
_OUTPUT_AT = re.compile(r"^sdiag output at .*\((\d+)\)", re.MULTILINE)
BACKFILL = "Backfilling stats"


class Priority(NamedTuple):
    """What a waiting job's priority is made of."""

    job_id: str
    partition: str
    priority: int
    factors: tuple[tuple[str, int], ...]


class Diagnosis(NamedTuple):
    """What `sdiag` said, and when."""

    at: datetime
    sample: Sample


def read_queue(data: bytes, zone: ZoneInfo, priorities: Iterable[Priority] = ()) -> Reading[Expectation]:
    """Lines of `squeue -a -h --start -o QUEUE_FORMAT`, with what their priorities are made of; jobs that do not wait are ignored.

    The waiting tasks of an array are one job, under the id of the array.
    """
    parts = {(each.job_id, each.partition): each.factors for each in priorities}
    return read(_lines(data, QUEUE_FIELDS), lambda fields: _expectation(fields, zone, parts))


def read_priorities(data: bytes) -> Reading[Priority]:
    """Lines of `sprio -h -o PRIORITY_FORMAT`."""
    return read(_lines(data, PRIORITY_FIELDS), _priority)


def read_shares(data: bytes) -> Reading[ShareFact]:
    """`sshare -a -l -P`, whose accounts are indented by their depth. Raises PolicyTextError."""
    return read(table(data, needs=SHARE_COLUMNS, free="", command=SHARE_COMMAND), _share)


def read_diagnosis(data: bytes) -> Diagnosis:
    """`sdiag`. Raises PolicyTextError when it is none."""
    text = text_of(data) or ""
    at = _OUTPUT_AT.search(text)
    if at is None:
        raise PolicyTextError("the text is no output of sdiag")
    main, _, backfill = text.partition(BACKFILL)
    overall = {key: int(value) for key, value in reversed(_DIAGNOSIS.findall(main))}
    filled = {key: int(value) for key, value in reversed(_DIAGNOSIS.findall(backfill))}
    sample = Sample(
        pending_count=overall.get("Jobs pending"),
        running_count=overall.get("Jobs running"),
        backfill_cycle_microseconds=filled.get("Last cycle"),
        backfill_depth=filled.get("Last depth cycle"),
        backfill_queue_length=filled.get("Last queue length"),
    )
    return Diagnosis(datetime.fromtimestamp(int(at[1]), UTC), sample)


def _lines(data: bytes, columns: tuple[str, ...]) -> Iterator[Entry]:
    """Lines between bars without a header; further bars belong to the last column."""
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if not raw.strip():
            continue
        text = text_of(raw)
        cells = text.split("|", len(columns) - 1) if text is not None else []
        if len(cells) == len(columns):
            yield Entry(number, raw, dict(zip(columns, (cell.strip() for cell in cells), strict=True)))
        else:
            yield Entry(number, raw, f"{len(cells)} columns instead of {len(columns)}, or no valid UTF-8")


def _expectation(
    fields: Mapping[str, str], zone: ZoneInfo, parts: Mapping[tuple[str, str], tuple[tuple[str, int], ...]]
) -> Expectation | None:
    if fields["State"] != "PENDING":
        return None
    submitted = instant("SubmitTime", fields["Submit"], zone)
    if submitted is None:
        raise ValueError("the job has no time of submission")
    return Expectation(
        external_id=needed(fields, "JobID"),
        submitted_at=submitted,
        expected_at=instant("StartTime", fields["Start"], zone),
        priority=whole("Priority", fields["Priority"]),
        partition=fields["Partition"],
        reason=word(fields["Reason"]),
        priority_parts=parts.get((fields["JobID"], fields["Partition"]), ()),
    )


def _priority(fields: Mapping[str, str]) -> Priority:
    return Priority(
        needed(fields, "JobID"),
        fields["Partition"],
        whole("Priority", fields["Priority"]) or 0,
        tuple((name, _signed(name, fields[name])) for name in FACTORS),
    )


def _signed(name: str, text: str) -> int:
    return -(whole(name, text[1:]) or 0) if text.startswith("-") else whole(name, text) or 0


def _share(fields: Mapping[str, str]) -> ShareFact:
    account = fields["Account"].strip()
    if not account:
        raise ValueError("Account is missing")
    shares = fields["RawShares"]
    return ShareFact(
        account=account,
        user=fields["User"].strip(),
        raw_shares=None if shares == "parent" else whole("RawShares", shares),
        norm_shares=ratio("NormShares", fields.get("NormShares", "")),
        raw_usage=whole("RawUsage", fields["RawUsage"]),
        norm_usage=ratio("NormUsage", fields.get("NormUsage", "")),
        effective_usage=ratio("EffectvUsage", fields["EffectvUsage"]),
        fair_share=ratio("FairShare", fields.get("FairShare", "")),
        level_fs=ratio("LevelFS", fields.get("LevelFS", "")),
    )
