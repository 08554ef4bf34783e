"""What a node was between the moments at which it was looked at: the scheduler's history fills the gaps, sightings stand. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

FOREVER = datetime.max.replace(tzinfo=UTC)
# Inside a maintenance window a node is planned down whatever else it is (definitions.md, "Capacity and utilisation").
RANK = {"planned_down": 0, "down": 1, "reserved": 2}


class Span(NamedTuple):
    """A node in `condition` during `[start, end)`; FOREVER as end means until told otherwise."""

    start: datetime
    end: datetime
    condition: str
    reason: str
    author: str = ""


def filled(seen: Sequence[tuple[datetime, datetime]], looks: Sequence[datetime], evidence: Iterable[Span]) -> list[Span]:
    """Spans out of `evidence` for the time that `seen` spans do not cover, in order, none overlapping another.

    `looks` are the moments, in order, at which the node was looked at: at those outside of `seen` it was up, and what the history says
    from there on is not believed, so that a span ends at the first of them that falls into it. Planned down counts before down before
    reserved; then what began earlier.
    """
    seen = sorted(seen)
    taken = list(seen)
    spans: list[Span] = []
    for span in sorted(evidence, key=lambda each: (RANK[each.condition], each.start, each.end)):
        until = min(span.end, _first_up(looks, seen, span.start))
        for start, end in gaps(span.start, until, taken):
            spans.append(span._replace(start=start, end=end))
            taken.append((start, end))
        taken.sort()
    return sorted(spans)


def gaps(start: datetime, end: datetime, taken: Sequence[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """The parts of `[start, end)` that no span of `taken` (in order) covers."""
    found = []
    at = start
    for first, last in taken:
        if first >= end:
            break
        if last <= at:
            continue
        if first > at:
            found.append((at, first))
        at = max(at, last)
    if at < end:
        found.append((at, end))
    return found


def _first_up(looks: Sequence[datetime], seen: Sequence[tuple[datetime, datetime]], start: datetime) -> datetime:
    """The first look from `start` on that no seen span covers."""
    at = bisect_left(looks, start)
    for first, last in seen:
        if at == len(looks) or looks[at] < first:
            break
        if looks[at] < last:
            at = bisect_left(looks, last, at)
    return looks[at] if at < len(looks) else FOREVER
