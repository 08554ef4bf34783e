"""A stand-in for Slurm's commands and for ssh, as executables on the PATH: for what a real cluster does not do on demand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from collectors import surveys

# What each call does: notes its words and environment, then answers as the test laid down.
SCRIPT = """#!{python}
import calendar, json, os, pathlib, sys, time
folder = pathlib.Path({folder!r})
name = pathlib.Path(sys.argv[0]).name
words = sys.argv[1:]
with (folder / "calls.jsonl").open("a") as calls:
    print(json.dumps([name, *words]), file=calls)
(folder / "environment.json").write_text(json.dumps(dict(os.environ)))
plan = json.loads((folder / "plan.json").read_text())
def is_there(job, words):
    ends = [word.partition("=")[2] for word in words if word.startswith(("--starttime", "--endtime"))]
    first, last = (calendar.timegm(time.strptime(end, "%Y-%m-%dT%H:%M:%S")) for end in ends)
    return int(job["Submit"]) < last and int(job["End"]) >= first
if name == "squeue":
    sys.stdout.write(plan["squeue"])
    sys.exit(plan["squeue_exit"])
if "--version" in words:
    print("slurm 22.05.8")
elif "--helpformat" in words:
    print(" ".join(plan["fields"]))
else:
    time.sleep(plan["seconds"])
    fields = next(word for word in words if word.startswith("--format=")).removeprefix("--format=").split(",")
    jobs = plan["jobs"] if not any(word.startswith("--jobs") for word in words) else plan["waiting"]
    if plan["cut"]:
        jobs = [job for job in jobs if is_there(job, words)]
    print("\\x1f".join(fields))
    for job in jobs:
        print("\\x1f".join(job.get(field, "") for field in fields))
    sys.stderr.write(plan["stderr"])
    sys.exit(plan["exit"])
"""

# ssh hands its last word to a shell of the other host: so does this.
SSH = """#!/bin/sh
for last in "$@"; do :; done
printf '%s\\n' "$@" > "{folder}/ssh.words"
exec env -i PATH="$PATH" sh -c "$last"
"""

FIELDS = [
    *("Account", "AllocCPUS", "AllocNodes", "AllocTRES", "Cluster", "Comment", "Container", "Elapsed", "ElapsedRaw", "Eligible"),
    *("End", "ExitCode", "JobID", "JobIDRaw", "JobName", "NCPUS", "NNodes", "NodeList", "Partition", "Priority", "QOS", "Reason"),
    *(
        "ReqTRES",
        "Reservation",
        "Start",
        "State",
        "SubmitLine",
        "Submit",
        "Suspended",
        "Timelimit",
        "TimelimitRaw",
        "UID",
        "User",
    ),
    "WCKey",
]

TRES = "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1"


def a_job(number: int, submit: int, *, start: int | None = None, end: int | None = None, **fields: str) -> dict[str, str]:
    """A job of cluster alpha by field; times are epoch seconds."""
    state = "PENDING" if start is None else "RUNNING" if end is None else "COMPLETED"
    facts = {"JobID": str(number), "JobIDRaw": str(number), "Cluster": "alpha", "JobName": "train", "User": "ann", "State": state}
    facts |= {"Account": "vision", "Partition": "gpu", "Submit": str(submit), "Eligible": str(submit), "ReqTRES": TRES}
    facts |= {"Start": str(start or "Unknown"), "End": str(end or "Unknown"), "NodeList": "g001" if start else "None assigned"}
    facts |= {"AllocTRES": TRES if start else "", "ExitCode": "0:0", "NNodes": "1", "NCPUS": "8"}
    if start is not None and end is not None:
        facts["ElapsedRaw"] = str(end - start)
    return facts | fields


class FakeSlurm:
    """The folder of the stand-ins; `plan` changes what they do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, object] = {"fields": FIELDS, "jobs": [], "waiting": [], "squeue": "", "squeue_exit": 0, "exit": 0}
        self.facts |= {"stderr": "", "seconds": 0.0, "cut": False}
        self.plan()

    def plan(self, **facts: object) -> None:
        self.facts |= facts
        (self.folder / "plan.json").write_text(json.dumps(self.facts))

    @property
    def calls(self) -> list[list[str]]:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def windows(self) -> list[list[str]]:
        """The words of the calls for a window of records."""
        return [words for words in self.calls if any(word.startswith("--starttime") for word in words)]

    @property
    def environment(self) -> dict[str, str]:
        return dict(json.loads((self.folder / "environment.json").read_text()))


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """sacct, squeue and ssh that stand first on the PATH; nothing but records is asked for."""
    monkeypatch.setattr(surveys, "survey", lambda *_: [])
    fake = FakeSlurm(made_in(tmp_path / "bin"))
    monkeypatch.setenv("PATH", f"{fake.folder}:{os.environ['PATH']}")
    return fake


def made_in(folder: Path) -> Path:
    """The stand-ins as executables in a new `folder`."""
    folder.mkdir()
    for name in ("sacct", "squeue"):
        _executable(folder / name, SCRIPT.format(python=os.path.realpath("/proc/self/exe"), folder=str(folder)))
    _executable(folder / "ssh", SSH.format(folder=folder))
    return folder


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
