"""Which span of time a live source is asked for. Pure: the clock is an argument, all instants are aware UTC.

A collection looks back 48 hours before the last time the source was asked: records arrive late, end, and are corrected. Once a week it
looks back 35 days. How far a source was asked is decided by our clock alone, never by a time found in its answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

OVERLAP = timedelta(hours=48)
LONG_LOOK_BACK = timedelta(days=35)
LONG_LOOK_EVERY = timedelta(days=7)
CHUNK = timedelta(days=7)
SHORTEST_CHUNK = timedelta(hours=1)
_MONDAY = datetime(2001, 1, 1, tzinfo=UTC)


class Span(NamedTuple):
    """`[first, last)`."""

    first: datetime
    last: datetime


class Window(NamedTuple):
    """What to ask at `last`, which is now; `is_long` for the weekly look back. `gap` is what lies too far back to be asked at once."""

    first: datetime
    last: datetime
    is_long: bool
    gap: Span | None


def next_window(now: datetime, watermark: datetime | None, reread: datetime | None) -> Window:
    """The window of a source that was last asked at `watermark` and last looked back long at `reread` (None: never)."""
    furthest = now - LONG_LOOK_BACK
    if watermark is None or reread is None or now - reread >= LONG_LOOK_EVERY:
        is_long, first = True, furthest
    else:
        is_long, first = False, max(furthest, min(watermark, now) - OVERLAP)
    missed = Span(watermark - OVERLAP, furthest) if watermark is not None and watermark - OVERLAP < furthest else None
    return Window(first, now, is_long, missed)


def narrow(window: Window) -> Window | None:
    """In place of a window that was too much: its last 48 hours, and the rest as a gap for chunks. None: it is short already."""
    first = window.last - OVERLAP
    if window.first >= first:
        return None
    return window._replace(first=first, gap=Span(window.gap.first if window.gap else window.first, first))


def weeks(span: Span) -> Iterator[Span]:
    """`span` cut at Mondays 00:00 UTC, so that spans asked for twice are cut alike."""
    first = span.first
    while first < span.last:
        last = min(span.last, _MONDAY + CHUNK * ((first - _MONDAY) // CHUNK + 1))
        yield Span(first, last)
        first = last


def halves(span: Span) -> tuple[Span, Span] | None:
    """Two spans in place of one that was too much, None when it is short already."""
    middle = span.first + (span.last - span.first) / 2
    middle = middle.replace(minute=0, second=0, microsecond=0)
    if span.last - span.first < 2 * SHORTEST_CHUNK or not span.first < middle < span.last:
        return None
    return Span(span.first, middle), Span(middle, span.last)
