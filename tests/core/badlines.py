"""Dumps for tests: good sacct lines, and the same with some of them broken in ten ways."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

HEADER = (
    "Cluster|JobID|JobIDRaw|JobName|User|UID|Account|Partition|QOS|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|"
    "Suspended|ReqTRES|AllocTRES|NNodes|NCPUS|NodeList|Priority|Reservation|Reason|Comment"
)
COLUMNS = HEADER.split("|")
FIRST_SUBMIT = datetime(2026, 3, 1, tzinfo=UTC)
GOOD = {
    "Cluster": "alpha", "JobID": "1", "JobIDRaw": "1", "JobName": "train", "User": "alice", "UID": "26001", "Account": "vision",
    "Partition": "gpu", "QOS": "normal", "State": "COMPLETED", "ExitCode": "0:0", "Submit": "2026-03-01T08:00:00",
    "Eligible": "2026-03-01T08:00:00", "Start": "2026-03-01T08:10:00", "End": "2026-03-01T09:10:00", "ElapsedRaw": "3600",
    "TimelimitRaw": "120", "Suspended": "00:00:00", "ReqTRES": "billing=16,cpu=8,gres/gpu=2,mem=64G,node=1",
    "AllocTRES": "billing=16,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1", "NNodes": "1", "NCPUS": "8", "NodeList": "gpu01",
    "Priority": "1000", "Reservation": "", "Reason": "None", "Comment": "",
}  # fmt: skip


def line(**changed: str) -> bytes:
    """A good line with some columns changed."""
    return ("|".join((GOOD | changed)[name] for name in COLUMNS) + "\n").encode()


def good_line(number: int) -> bytes:
    """The line of job `number`: submitted `number` minutes after 1 March 2026, waits 10 min, runs 1 h on two A100."""
    submit = FIRST_SUBMIT + timedelta(minutes=number)
    start, end = submit + timedelta(minutes=10), submit + timedelta(minutes=70)
    times = {"Submit": submit, "Eligible": submit, "Start": start, "End": end}
    return line(JobID=str(number), JobIDRaw=str(number), **{name: f"{at:%Y-%m-%dT%H:%M:%S}" for name, at in times.items()})


def _with(column: str, text: str) -> Callable[[bytes], bytes]:
    def spoil(good: bytes) -> bytes:
        fields = good.decode().rstrip("\n").split("|")
        fields[COLUMNS.index(column)] = text
        return ("|".join(fields) + "\n").encode()

    return spoil


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda good: good[: len(good) // 2] + b"\n",
    "extra bars": lambda good: good.replace(b"train", b"tr|a|in"),
    "NUL": lambda good: good.replace(b"train", b"tr\0in"),
    "bad UTF-8": lambda good: good.replace(b"train", b"tr\xff\xfein"),
    "bad date": _with("Submit", "2026-02-30T08:00:00"),
    "bad TRES": _with("AllocTRES", "billing=16,cpu=8,gres/gpu=2,mem=64G,node="),
    "future time": _with("End", "2199-01-01T00:00:00"),
    "negative": _with("ElapsedRaw", "-5"),
    "1 MB long": lambda good: good.replace(b"train", b"x" * 1_000_000),
    "empty": lambda good: b"\n",
}


def drill(line_count: int = 10_000, bad_count: int = 100, seed: int = 7) -> tuple[list[bytes], dict[int, str]]:
    """A dump of `line_count` lines after its header, and which of them (by number, the header is 1) is broken in which way."""
    chosen = sorted(random.Random(seed).sample(range(line_count), bad_count))
    ways = list(WAYS)
    broken = {index + 2: ways[turn % len(ways)] for turn, index in enumerate(chosen)}
    lines = [HEADER.encode() + b"\n"]
    for number in range(2, line_count + 2):
        good = good_line(number)
        lines.append(WAYS[broken[number]](good) if number in broken else good)
    return lines, broken
