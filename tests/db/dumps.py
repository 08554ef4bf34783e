"""Small sacct dumps for tests."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

HEADER = (
    "JobID|JobIDRaw|JobName|User|Account|Partition|QOS|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|"
    "Suspended|ReqTRES|AllocTRES|NNodes|NCPUS|NodeList|Priority|Reservation|Reason"
)


def job(number: int, *, state: str = "COMPLETED", start: str = "2026-03-01T10:05:00", end: str = "2026-03-01T11:05:00") -> str:
    """One job of one hour on two GPUs."""
    tres = "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1"
    return (
        f"{number}|{number}|train|ann|vision|gpu|normal|{state}|0:0|2026-03-01T10:00:00|2026-03-01T10:00:00|{start}|{end}|3600|1440|"
        f"00:00:00|{tres}|{tres}|1|8|g001|100||None"
    )


def step(number: int) -> str:
    """The batch step of a job: no record of its own."""
    columns = job(number).split("|")
    columns[0] = columns[1] = f"{number}.batch"
    return "|".join(columns)


BROKEN = "cut|in|the|mid"


def dump(*lines: str) -> str:
    return "\n".join((HEADER, *lines)) + "\n"


def write(path: Path, *lines: str, age_seconds: float = 60) -> Path:
    """A dump at `path` (gzip when it is called so) that was last changed `age_seconds` ago."""
    data = dump(*lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    changed = time.time() - age_seconds
    os.utime(path, (changed, changed))
    return path
