"""The header of a sacct dump: which columns it has, and where. Pure."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

# In the order in which the row reader takes them; each with the columns that serve as well, best first.
COLUMNS: dict[str, tuple[str, ...]] = {
    "JobID": ("JobID", "JobIDRaw"),
    "JobIDRaw": ("JobIDRaw", "JobID"),
    "Cluster": ("Cluster",),
    "JobName": ("JobName",),
    "User": ("User", "UID"),
    "UID": ("UID",),
    "Account": ("Account",),
    "Partition": ("Partition",),
    "QOS": ("QOS",),
    "State": ("State",),
    "ExitCode": ("ExitCode",),
    "Submit": ("Submit",),
    "Eligible": ("Eligible",),
    "Start": ("Start",),
    "End": ("End",),
    "ElapsedRaw": ("ElapsedRaw", "Elapsed"),
    "TimelimitRaw": ("TimelimitRaw", "Timelimit"),
    "Suspended": ("Suspended",),
    "ReqTRES": ("ReqTRES",),
    "AllocTRES": ("AllocTRES",),
    "NNodes": ("NNodes", "AllocNodes"),
    "NCPUS": ("NCPUS", "AllocCPUS"),
    "NodeList": ("NodeList",),
    "Priority": ("Priority",),
    "Reservation": ("Reservation",),
    "Reason": ("Reason",),
    "Comment": ("Comment",),
    "Restarts": ("Restarts",),
    "WCKey": ("WCKey",),
    "Container": ("Container",),
    "SubmitLine": ("SubmitLine",),
}
REQUIRED = ("JobID", "Submit", "State", "Start", "End", "AllocTRES")
DELIMITERS = ("\x1f", "|")
COMMAND = (
    "sacct -a -X -D --parsable2 --format=Cluster,JobID,JobIDRaw,User,UID,Account,Partition,QOS,State,ExitCode,Submit,Eligible,"
    "Start,End,ElapsedRaw,TimelimitRaw,Suspended,ReqTRES,AllocTRES,NNodes,NCPUS,NodeList,Priority,Reservation,Reason,JobName "
    "-S START -E END"
)
MAX_HEADER = 16_384


class SacctHeaderError(ValueError):
    """The first line is no usable header; the message names what is missing and the command that would print it."""


class Columns(NamedTuple):
    """Layout of one dump. `pick` takes the fields of a line plus one empty string and gives the values of `COLUMNS` in order.

    `field_count` is how many fields each line has (one more than names under `sacct -p`, which ends every line with a bar).
    """

    names: tuple[str, ...]
    delimiter: str
    field_count: int
    present: frozenset[str]
    pick: Callable[[list[str]], tuple[str, ...]]
    ends_with_return: bool
    job_id_at: int


def read_header(line: bytes) -> Columns:
    """Resolve the header (any order, any case, more columns than needed). Raises SacctHeaderError."""
    text = line[: MAX_HEADER + 1].decode("utf-8", "replace").removeprefix("\ufeff").removesuffix("\n")
    bare = text.removesuffix("\r")
    if not bare.strip():
        raise SacctHeaderError(
            f"the dump is empty or starts with an empty line; its first line must be sacct's header: {COMMAND}"
        )
    delimiter = next((mark for mark in DELIMITERS if mark in bare), "|")
    names = tuple(name.strip() for name in bare.split(delimiter))
    at: dict[str, int] = {}
    for index, name in enumerate(names):
        if at.setdefault(name.lower(), index) != index and name:
            raise SacctHeaderError(f"the header names the column {name[:40]} twice; write the dump with: {COMMAND}")
    chosen = {name: _first_present(at, alternatives) for name, alternatives in COLUMNS.items()}
    _require(chosen, bare)
    return Columns(
        names=names,
        delimiter=delimiter,
        field_count=len(names),
        present=frozenset(name for name, index in chosen.items() if index is not None),
        pick=itemgetter(*(len(names) if index is None else index for index in chosen.values())),
        ends_with_return=bare != text,
        job_id_at=chosen["JobID"] or 0,
    )


def _first_present(at: dict[str, int], alternatives: tuple[str, ...]) -> int | None:
    return next((at[name.lower()] for name in alternatives if name.lower() in at), None)


def _require(chosen: dict[str, int | None], header: str) -> None:
    missing = [name for name in REQUIRED if chosen[name] is None]
    if missing:
        hint = "the first line is no header of sacct --parsable2" if len(missing) == len(REQUIRED) else "the header lacks columns"
        raise SacctHeaderError(f"{hint} (missing: {', '.join(missing)}; found: {header[:80]!r}); write the dump with: {COMMAND}")
