"""How sacct and squeue are asked, and which fields a given sacct has. Pure.

What is asked for was found out from real versions: a window lists jobs cancelled before they were eligible only when states are
named; named states with a start but no end list nothing; jobs that are held, depend on others or begin later are in no window at all and
must be asked for by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from collectors.slurm.columns import COLUMNS, DELIMITERS, REQUIRED

STATES = "BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,RS,RV,S,TO"
# What a site may do without: they show nothing that a figure needs.
OPTIONAL = frozenset({"Cluster", "UID", "Suspended", "Reservation", "Comment", "Restarts", "WCKey", "Container", "SubmitLine"})
FIELD_SEPARATOR = DELIMITERS[0]
LAST_FIELD = "State"
IDS_AT_ONCE = 500
PENDING = ["squeue", "--noheader", "--all", "--states=PENDING", "--Format=JobID:.20,EligibleTime:.24"]


def fields_of(help_text: str) -> frozenset[str]:
    """The fields that `sacct --helpformat` names, in lower case."""
    return frozenset(help_text.lower().split())


def wanted_fields(known: frozenset[str]) -> tuple[list[str], list[str]]:
    """Fields to ask a sacct for that has the `known` ones, and those that we would have liked.

    Of fields that serve for the same the best one that exists is taken. No free text stands last: sacct does not escape line breaks.
    Raises ValueError when it lacks one without which nothing works.
    """
    chosen = {name: next((one for one in ways if one.lower() in known), None) for name, ways in COLUMNS.items()}
    lacking = [name for name, found in chosen.items() if found is None]
    if fatal := [name for name in REQUIRED if name in lacking]:
        raise ValueError(f"this sacct has no {', '.join(fatal)}; Slurm 20.11 or newer is needed")
    fields = dict.fromkeys(found for found in chosen.values() if found)
    return sorted(fields, key=lambda name: name == LAST_FIELD), lacking


def window(fields: Sequence[str], first: datetime, last: datetime, cluster: str = "") -> list[str]:
    """Every attempt of every job that waited, ran or ended in `[first, last)` (aware)."""
    return [*_sacct(fields, cluster), f"--state={STATES}", f"--starttime={_spelled(first)}", f"--endtime={_spelled(last)}"]


def jobs(fields: Sequence[str], ids: Sequence[str], cluster: str = "") -> list[str]:
    """Every attempt of the jobs with these numbers, whenever they were."""
    return [*_sacct(fields, cluster), f"--jobs={','.join(ids)}"]


def pending(cluster: str = "") -> list[str]:
    """What waits, with the time from which it may start."""
    return PENDING + ([f"--clusters={cluster}"] if cluster else [])


def not_yet_eligible(squeue: bytes, now: datetime) -> list[str]:
    """Ids of jobs that no window of sacct lists, from the answer to `pending`: eligible at no known time, or later than `now`."""
    ids: dict[str, None] = {}
    for line in squeue.decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) == 2 and words[0].isdigit() and not (words[1].isdigit() and int(words[1]) <= now.timestamp()):
            ids[words[0]] = None
    return list(ids)


def batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[at : at + IDS_AT_ONCE] for at in range(0, len(ids), IDS_AT_ONCE))


def version_of(text: bytes) -> str:
    """`slurm 22.05.8` or `slurm-wlm 22.05.8` → `22.05.8`."""
    return (text.decode("ascii", "replace").split() or ["unknown"])[-1]


def lacking_words(lacking: Iterable[str]) -> str:
    """A warning about fields that this sacct does not have."""
    names = [name for name in lacking if name not in OPTIONAL]
    return f"this sacct has no field {', '.join(names)}" if names else ""


def _sacct(fields: Sequence[str], cluster: str) -> list[str]:
    base = ["sacct", "--allusers", "--allocations", "--duplicates", "--parsable2", f"--delimiter={FIELD_SEPARATOR}"]
    return [*base, f"--format={','.join(fields)}", *([f"--clusters={cluster}"] if cluster else [])]


def _spelled(at: datetime) -> str:
    """As sacct reads it in the zone UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
