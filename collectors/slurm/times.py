"""Times as sacct prints them: wall clock of the cluster's zone without an offset, epoch seconds, or a word for "none". Pure.

All results are whole epoch seconds. A wall-clock time that stands for two instants (the hour that is repeated in autumn, and by
PEP 495
also the hour that is skipped in spring) is read as the first of them; `resolve` then lets the order of the record's own events
decide.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from zoneinfo import ZoneInfo

from collectors.slurm.memo import Memo

NO_TIME = frozenset({"", "Unknown", "None", "N/A", "INVALID", "NONE"})
LATEST_EPOCH = 253_402_300_799  # the last second of the year 9999
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = re.compile(r"[T ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)", re.ASCII)
_WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)", re.ASCII)
_EPOCH = re.compile(r"\d{1,12}", re.ASCII)
_DURATION = re.compile(
    r"(?:(?P<days>\d{1,9})-)?(?:(?P<hours>\d{1,9}):)?(?P<minutes>\d{1,9}):(?P<seconds>[0-5]?\d)(?:\.\d+)?", re.ASCII
)

Times = tuple[int | None, int | None, int | None]


class LocalTimes:
    """Reads wall-clock times of one zone; a day without a change of offset costs two look-ups."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self.midnights: Memo[str, int | None] = Memo(self._midnight)
        self._seconds: Memo[str, int] = Memo(_second_of_day, limit=86_400 * 2)
        self.second_readings: dict[int, int] = {}
        self.epochs: Memo[str, int | None] = Memo(self._read)

    def _read(self, text: str) -> int | None:
        if text in NO_TIME:
            return None
        if len(text) != 19:
            return _read_rare(text)
        midnight = self.midnights[text[:10]]
        if midnight is None:
            return self._read_on_day_of_change(text)
        return midnight + self._seconds[text[10:]]

    def _midnight(self, day: str) -> int | None:
        """Epoch of the local midnight; None for a day on which the offset changes."""
        if _DAY.fullmatch(day) is None:
            raise ValueError(f"{day!r} is no date")
        try:
            start = datetime.fromisoformat(day).replace(tzinfo=self._zone)
            # One hour of margin on both sides: a change at midnight belongs to both days.
            offsets = {_offset(start + timedelta(hours=hours)) for hours in range(-1, 26)}
            return round(start.timestamp()) if len(offsets) == 1 else None
        except (ValueError, OverflowError):
            raise ValueError(f"{day!r} is no date of the calendar") from None

    def _read_on_day_of_change(self, text: str) -> int:
        wall = datetime.fromisoformat(text[:10]).replace(tzinfo=self._zone) + timedelta(seconds=self._seconds[text[10:]])
        first, second = round(wall.timestamp()), round(wall.replace(fold=1).timestamp())
        if first != second:
            self.second_readings[first] = second
        return first

    def resolve(self, submit: int, others: Times, held_s: int | None) -> tuple[int, Times]:
        """The readings of submit and (eligible, start, end) that fit one another best: in order, and `held_s` = end − start.

        Preferred are, in this sequence: fewest events out of order, the smallest deviation from `held_s` (elapsed + suspended,
        None when it is not known), the earlier reading of each.
        """
        chosen = min(
            product(self._readings(submit), *map(self._readings, others)),
            key=lambda times: (
                _misfit(times, held_s),
                sum(at != first for at, first in zip(times, (submit, *others), strict=True)),
            ),
        )
        return chosen[0] or submit, (chosen[1], chosen[2], chosen[3])

    def _readings(self, epoch: int | None) -> tuple[int | None, ...]:
        return (epoch,) if epoch is None or epoch not in self.second_readings else (epoch, self.second_readings[epoch])


def _second_of_day(clock: str) -> int:
    found = _CLOCK.fullmatch(clock)
    if found is None:
        raise ValueError(f"{clock[1:]!r} is no time of day")
    hours, minutes, seconds = found.groups()
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def _read_rare(text: str) -> int:
    """Epoch seconds (`SLURM_TIME_FORMAT=%s`), or a time that carries its offset (`%FT%T%z`)."""
    if _EPOCH.fullmatch(text):
        if int(text) > LATEST_EPOCH:
            raise ValueError(f"{text!r} lies after the year 9999")
        return int(text)
    if _WITH_OFFSET.fullmatch(text):
        return round(datetime.fromisoformat(text).timestamp())
    if text.startswith("-"):
        raise ValueError(f"{text!r} is negative")
    raise ValueError(f"{text[:40]!r} is no time (expected YYYY-MM-DDTHH:MM:SS or epoch seconds)")


def _offset(instant: datetime) -> timedelta | None:
    return instant.utcoffset()


def _misfit(times: tuple[int | None, ...], held_s: int | None) -> tuple[int, int]:
    known = [at for at in times if at is not None]
    disorder = sum(later < earlier for earlier, later in pairwise(known))
    start, end = times[2], times[3]
    deviation = abs(end - start - held_s) if start is not None and end is not None and held_s is not None else 0
    return disorder, deviation


def duration_seconds(text: str) -> int:
    """Whole seconds of `[D-]HH:MM:SS` or `MM:SS[.mmm]`; words for "none" are 0."""
    if text in NO_TIME:
        return 0
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is {'negative' if text.startswith('-') else 'no duration (expected [D-]HH:MM:SS)'}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.group("days", "hours", "minutes", "seconds"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def instant(epoch: int) -> datetime:
    """The aware UTC instant of `epoch` seconds."""
    return datetime.fromtimestamp(epoch, UTC)
