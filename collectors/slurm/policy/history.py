"""What Slurm's accounting database tells of the past of nodes, and of jobs that it believes to run although they do not. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from zoneinfo import ZoneInfo

from accounting.domain.forecasts import Runaway
from collectors.slurm.gres import node_state, state_words
from collectors.slurm.policy.text import Entry, Reading, instant, needed, read, table, text_of
from estate.domain.policy import NodeEvent

EVENT_COMMAND = "sacctmgr -r -P show event start=… format=Cluster,NodeName,Start,End,State,User,Reason"
EVENT_COLUMNS = ("Cluster", "NodeName", "TimeStart", "TimeEnd", "State", "Reason")
RUNAWAY_FIELDS = ("ID", "Cluster", "State", "Submit", "Start", "End")
RUNAWAY_COMMAND = "sacctmgr -r -n -P show runawayjobs format=ID,Cluster,State,TimeSubmit,TimeStart,TimeEnd"
_AUTHOR = re.compile(r"\(\d+\)$", re.ASCII)


def read_events(data: bytes, cluster: str, zone: ZoneInfo) -> Reading[NodeEvent]:
    """Events of the nodes of `cluster`; those of the cluster itself and of other clusters are ignored. Raises PolicyTextError."""
    entries = table(data, needs=EVENT_COLUMNS, free="Reason", command=EVENT_COMMAND)
    return read(entries, lambda fields: _event(fields, cluster, zone))


def _event(fields: Mapping[str, str], cluster: str, zone: ZoneInfo) -> NodeEvent | None:
    if fields["Cluster"].casefold() != cluster.casefold() or not fields["NodeName"]:
        return None
    started = instant("TimeStart", fields["TimeStart"], zone)
    ended = instant("TimeEnd", fields["TimeEnd"], zone)
    if started is None:
        raise ValueError("the event has no start")
    if ended is not None and ended < started:
        raise ValueError("the event ends before it starts")
    reason = fields["Reason"].strip()
    condition = node_state(state_words(needed(fields, "State")), reason)
    if condition in {None, "up"}:
        return None
    author = _AUTHOR.sub("", fields.get("User", ""))
    return NodeEvent(fields["NodeName"], condition or "", fields["State"][:64], reason[:255], author[:255], started, ended)


def read_runaways(data: bytes, cluster: str, zone: ZoneInfo) -> Reading[Runaway]:
    """Runaway jobs of `cluster` from the lines that have six fields; the words around them are ignored."""
    return read(_runaway_lines(data), lambda fields: _runaway(fields, cluster, zone))


def _runaway_lines(data: bytes) -> Iterator[Entry]:
    for number, raw in enumerate(data.split(b"\n"), start=1):
        text = text_of(raw)
        if not raw.strip():
            continue
        cells = (text or "").split("|")
        is_job = len(cells) == len(RUNAWAY_FIELDS) and cells[0] != "ID"
        yield Entry(number, raw, dict(zip(RUNAWAY_FIELDS, cells, strict=True)) if is_job else {})


def _runaway(fields: Mapping[str, str], cluster: str, zone: ZoneInfo) -> Runaway | None:
    if not fields or fields["Cluster"].casefold() != cluster.casefold():
        return None
    return Runaway(
        needed(fields, "ID"),
        fields["State"][:32],
        instant("TimeSubmit", fields["Submit"], zone),
        instant("TimeStart", fields["Start"], zone),
    )
