"""Words on the command line as values; what is wrong with them is bad usage."""

from __future__ import annotations

import argparse
from datetime import datetime
from zoneinfo import available_timezones

from estate.models import Cluster

SHORTEST_INTERVAL_SECONDS = 10


def zone_name(text: str) -> str:
    if text not in available_timezones():
        raise argparse.ArgumentTypeError(f"{text} is no IANA time zone; write one such as Europe/Berlin or UTC")
    return text


def instant(text: str) -> datetime:
    """A date or time; without an offset it is meant in the zone of the cluster."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text} is no time; write one such as 2026-03-01T12:00") from exc


def interval(text: str) -> int:
    if not text.isdigit() or int(text) < SHORTEST_INTERVAL_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of seconds from {SHORTEST_INTERVAL_SECONDS} on")
    return int(text)


def in_zone_of(cluster: Cluster, at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=cluster.zone_info) if at is not None and at.tzinfo is None else at
