"""The only calendar: every day, hour, week and month of the product is cut here.

Periods are half-open `[start, end)` of aware UTC instants. A reporting day is as long as the wall clock of its zone says:
23, 24 or 25 hours (definitions.md, "Time").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)
ONE_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Period:
    """Half-open span `[start, end)` of aware UTC instants; `start` may equal `end` (empty), never exceed it."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a period needs aware instants")
        if self.start > self.end:
            raise ValueError(f"period ends ({self.end}) before it starts ({self.start})")

    @property
    def seconds(self) -> int:
        """Length in whole seconds."""
        return round((self.end - self.start).total_seconds())

    def overlap_seconds(self, start: datetime, end: datetime) -> int:
        """Whole seconds that `[start, end)` shares with this period; 0 when they do not meet."""
        return max(0, round((min(end, self.end) - max(start, self.start)).total_seconds()))


def midnight(on: date, zone: ZoneInfo) -> datetime:
    """First instant of the local day `on`, in UTC (the first that exists, where a DST change skips midnight)."""
    return datetime.combine(on, time.min, zone).astimezone(UTC)


def day(on: date, zone: ZoneInfo) -> Period:
    """The reporting day `on`."""
    return Period(midnight(on, zone), midnight(on + ONE_DAY, zone))


def span(first: date, last: date, zone: ZoneInfo) -> Period:
    """All reporting days from `first` up to but not including `last`."""
    return Period(midnight(first, zone), midnight(last, zone))


def month(year: int, number: int, zone: ZoneInfo) -> Period:
    """The billing period `year`-`number`."""
    return span(date(year, number, 1), first_of_next_month(date(year, number, 1)), zone)


def first_of_next_month(on: date) -> date:
    return (on.replace(day=1) + timedelta(days=32)).replace(day=1)


def first_of_week(on: date) -> date:
    """The Monday on or before `on` (ISO 8601 weeks)."""
    return on - timedelta(days=on.weekday())


def dates(first: date, last: date) -> list[date]:
    """The dates from `first` up to but not including `last`."""
    return [first + timedelta(days=offset) for offset in range((last - first).days)]


def midnights(first: date, last: date, zone: ZoneInfo) -> list[datetime]:
    """The bounds of the days from `first` up to but not including `last`: one more than there are days."""
    return [midnight(on, zone) for on in [*dates(first, last), last]]


def days_of(start: datetime, end: datetime, zone: ZoneInfo) -> list[date]:
    """The reporting days from that of `start` to that of `end`, both included."""
    return dates(local_date(start, zone), local_date(end, zone) + ONE_DAY)


def local_date(instant: datetime, zone: ZoneInfo) -> date:
    """The reporting day in which `instant` falls."""
    return instant.astimezone(zone).date()


def hours(on: date, zone: ZoneInfo) -> Iterator[Period]:
    """The hours of one reporting day, counted from its midnight; the last may be shorter where DST moves by half an hour."""
    whole = day(on, zone)
    start = whole.start
    while start < whole.end:
        end = min(start + ONE_HOUR, whole.end)
        yield Period(start, end)
        start = end


def runs(days: list[date]) -> Iterator[tuple[date, date]]:
    """Sorted dates as half-open runs of neighbours, so that one late record from 2019 never re-reads the years between."""
    first = last = None
    for on in sorted(set(days)):
        if last is not None and on == last + ONE_DAY:
            last = on
            continue
        if first is not None and last is not None:
            yield first, last + ONE_DAY
        first = last = on
    if first is not None and last is not None:
        yield first, last + ONE_DAY


def repeated_hours(within: Period, zone: ZoneInfo) -> list[Period]:
    """The spans in `within` whose wall-clock times come twice in `zone`: from an hour before the clocks are put back to an hour after
    (an hour being what they are put back by)."""
    found = []
    at = within.start
    while at < within.end:
        following = min(at + ONE_DAY, within.end)
        before, after = at.astimezone(zone).utcoffset(), following.astimezone(zone).utcoffset()
        if before is not None and after is not None and after < before:
            change = _change_between(at, following, zone)
            found.append(Period(change - (before - after), change + (before - after)))
        at = following
    return found


def _change_between(first: datetime, last: datetime, zone: ZoneInfo) -> datetime:
    """The whole second of UTC in `(first, last]` at which the offset of `zone` changes, where it changes once."""
    low, high = int(first.timestamp()), int(last.timestamp())
    offset = first.astimezone(zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if datetime.fromtimestamp(middle, zone).utcoffset() == offset else (low, middle)
    return datetime.fromtimestamp(high, UTC)
