"""When people submit: local office hours, fewer at weekends, slowly more over the year; cron jobs at one local time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from zoneinfo import ZoneInfo

from collectors.demo.shelves import HOUR

# Relative activity by local hour of day; weekends at a share of it.
BY_HOUR = (
    0.4,
    0.3,
    0.25,
    0.2,
    0.2,
    0.25,
    0.4,
    0.7,
    1.2,
    1.7,
    1.9,
    1.8,
    1.4,
    1.6,
    1.9,
    1.9,
    1.8,
    1.5,
    1.1,
    0.9,
    0.8,
    0.8,
    0.7,
    0.55,
)
WEEKEND_SHARE = 0.42
GROWTH = 0.24
CRON_HOUR, CRON_MINUTE = 2, 30


class Pace:
    """Draws instants of `[start, until)` (epoch seconds) by the local clock of `zone`."""

    def __init__(self, start: int, until: int, zone: ZoneInfo) -> None:
        self._hours = list(range(start, until, HOUR))
        self._until = until
        self._weights = list(accumulate(_activity(at, zone, (at - start) / (until - start)) for at in self._hours))

    def draw(self, rng: Random, count: int) -> list[int]:
        """`count` instants, sorted."""
        hours = rng.choices(self._hours, cum_weights=self._weights, k=count)
        return sorted(min(at + int(rng.random() * HOUR), self._until - 1) for at in hours)


def _activity(at: int, zone: ZoneInfo, age: float) -> float:
    local = datetime.fromtimestamp(at, zone)
    share = WEEKEND_SHARE if local.weekday() >= 5 else 1.0
    return BY_HOUR[local.hour] * share * (1 - GROWTH / 2 + GROWTH * age)


def cron_instants(start: int, until: int, zone: ZoneInfo) -> Iterator[int]:
    """02:30 on every local day: twice when the clock goes back over it, an hour late when it jumps over it."""
    day = datetime.fromtimestamp(start, zone).replace(hour=CRON_HOUR, minute=CRON_MINUTE, second=0, microsecond=0)
    while (at := int(day.replace(fold=0).astimezone(UTC).timestamp())) < until:
        again = int(day.replace(fold=1).astimezone(UTC).timestamp())
        # In a gap the second reading comes first, and the job runs once.
        for instant in (at,) if again <= at else (at, again):
            if start <= instant < until:
                yield instant
        day += timedelta(days=1)
