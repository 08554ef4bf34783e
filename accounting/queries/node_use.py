"""How busy each node was per hour, day or week."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from accounting.domain.reports import ReportRequest
from accounting.queries.asking import ask
from estate.domain.periods import dates, first_of_week, hours

HOURS_UP_TO_DAYS = 7
DAYS_UP_TO_DAYS = 92

Bucket = date | datetime


class NodeUse(NamedTuple):
    """Buckets from left to right (`unit`: hour, day or week), and per (cluster, node) the occupancy of each; None is no data."""

    unit: str
    buckets: list[Bucket]
    ratios: dict[tuple[str, str], list[float | None]]


def unit_of(first: date, end: date) -> str:
    """Hours up to 7 days, days up to 92, weeks beyond."""
    length = (end - first).days
    return "hour" if length <= HOURS_UP_TO_DAYS else "day" if length <= DAYS_UP_TO_DAYS else "week"


def node_use(base: ReportRequest, end: date, nodes: tuple[str, ...]) -> NodeUse:
    """Occupancy of `nodes` (names) of the scope up to the day `end` (excluded)."""
    days = dates(base.first, end)
    unit = unit_of(base.first, end)
    narrow = replace(base, scope=replace(base.scope, nodes=nodes))
    rows: list[dict[str, Any]] = ask(narrow, "capacity", "cluster", "node", unit, days=(base.first, end)).rows
    buckets = _buckets(unit, days, base.zone)
    position = {bucket: index for index, bucket in enumerate(buckets)}
    ratios: dict[tuple[str, str], list[float | None]] = {}
    for row in rows:
        cells = ratios.setdefault((row["cluster"], row["node"]), [None] * len(buckets))
        if row[unit] in position:
            cells[position[row[unit]]] = row["occupancy_ratio"]
    return NodeUse(unit, buckets, ratios)


def _buckets(unit: str, days: list[date], zone: ZoneInfo) -> list[Bucket]:
    if unit == "hour":
        return [hour.start for on in days for hour in hours(on, zone)]
    return list(days) if unit == "day" else sorted({first_of_week(on) for on in days})


def column_names(use: NodeUse, zone: ZoneInfo) -> tuple[list[str], list[str]]:
    """The full name of each bucket and the name that its header stands under (the day, the month or the year)."""
    full, above = [], []
    for bucket in use.buckets:
        local = bucket.astimezone(zone) if isinstance(bucket, datetime) else bucket
        full.append(f"{local:%a %d %b %H:%M}" if use.unit == "hour" else f"{local:%a %d %b %Y}")
        above.append(f"{local:%a %d %b}" if use.unit == "hour" else f"{local:%b %Y}")
    return full, above
