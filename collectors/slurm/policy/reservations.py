"""Reservations: `scontrol show reservation` (what is and what is planned) and `sacctmgr show reservation` (what was). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from collectors.slurm.hostlist import expand
from collectors.slurm.policy.text import (
    Reading,
    instant,
    list_of,
    names,
    needed,
    number_of,
    read,
    read_json,
    records,
    table,
    word,
)
from estate.domain.policy import ReservationFact

COMMAND = "scontrol -o show reservation"
HISTORY_COMMAND = "sacctmgr -r -P show reservation start=… format=Cluster,Name,ID,TRES,Start,End,Flags,NodeNames"
HISTORY_COLUMNS = ("Cluster", "Name", "TimeStart", "TimeEnd", "Flags", "NodeName")


def read_reservations(data: bytes, zone: ZoneInfo) -> Reading[ReservationFact]:
    """Reservations that are in force or planned. Raises PolicyTextError for a text that is none."""
    if data.lstrip()[:1] == b"{":
        return read_json(data, ("reservations",), _from_json, COMMAND + " --json")
    return read(records(data, "ReservationName", COMMAND), lambda fields: _from_text(fields, zone))


def read_past_reservations(data: bytes, cluster: str, zone: ZoneInfo) -> Reading[ReservationFact]:
    """Reservations of the accounting database, those of other clusters ignored. Raises PolicyTextError."""
    return read(
        table(data, needs=HISTORY_COLUMNS, free="Name", command=HISTORY_COMMAND),
        lambda fields: _from_history(fields, cluster, zone),
    )


def _from_text(fields: Mapping[str, str], zone: ZoneInfo) -> ReservationFact:
    starts, ends = _span(fields, "StartTime", "EndTime", zone)
    return ReservationFact(
        name=needed(fields, "ReservationName"),
        starts_at=starts,
        ends_at=ends,
        nodes=_nodes(fields.get("Nodes", "")),
        flags=names(fields.get("Flags", "")),
        accounts=names(fields.get("Accounts", "")),
        users=names(fields.get("Users", "")),
        groups=names(fields.get("Groups", "")),
        partition=word(fields.get("PartitionName", "")),
        tres=word(fields.get("TRES", "")),
    )


def _from_history(fields: Mapping[str, str], cluster: str, zone: ZoneInfo) -> ReservationFact | None:
    if fields["Cluster"].casefold() != cluster.casefold():
        return None
    starts, ends = _span(fields, "TimeStart", "TimeEnd", zone)
    return ReservationFact(
        name=needed(fields, "Name"),
        starts_at=starts,
        ends_at=ends,
        nodes=_nodes(fields["NodeName"]),
        flags=names(fields["Flags"]),
        tres=word(fields.get("TRES", "")),
    )


def _span(fields: Mapping[str, str], first: str, last: str, zone: ZoneInfo) -> tuple[datetime, datetime]:
    starts, ends = instant(first, fields.get(first, ""), zone), instant(last, fields.get(last, ""), zone)
    return _ordered(starts, ends)


def _ordered(starts: datetime | None, ends: datetime | None) -> tuple[datetime, datetime]:
    if starts is None or ends is None:
        raise ValueError("the reservation has no start or no end")
    if ends <= starts:
        raise ValueError("the reservation ends before it starts")
    return starts, ends


def _nodes(text: str) -> tuple[str, ...]:
    return expand(text) if word(text) else ()


def _from_json(found: Mapping[str, Any]) -> ReservationFact:
    starts, ends = _ordered(_epoch(found["start_time"]), _epoch(found["end_time"]))
    return ReservationFact(
        name=found["name"],
        starts_at=starts,
        ends_at=ends,
        nodes=_nodes(found.get("node_list") or ""),
        flags=list_of(found.get("flags")),
        accounts=list_of(found.get("accounts")),
        users=list_of(found.get("users")),
        groups=list_of(found.get("groups")),
        partition=word(found.get("partition") or ""),
        tres=word(found.get("tres") or ""),
    )


def _epoch(value: Any) -> datetime | None:
    seconds = number_of(value)
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
