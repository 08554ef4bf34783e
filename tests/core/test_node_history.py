"""The past of a node between looks: whatever the evidence, no moment has two states and no look is contradicted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from estate.domain.node_history import FOREVER, RANK, Span, filled, gaps

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def hour(count: int) -> datetime:
    return NOON + timedelta(hours=count)


spans = st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda pair: (hour(pair[0]), hour(sum(pair))))
evidence = st.tuples(spans, st.sampled_from(sorted(RANK)), st.booleans()).map(
    lambda each: Span(each[0][0], FOREVER if each[2] else each[0][1], each[1], "why")
)


def disjoint(found: list[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    kept: list[tuple[datetime, datetime]] = []
    for start, end in sorted(found):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


@given(
    st.lists(spans, max_size=5).map(disjoint),
    st.lists(st.integers(0, 60), max_size=10, unique=True).map(lambda looks: [hour(look) for look in sorted(looks)]),
    st.lists(evidence, max_size=6),
)
def test_history_fills_gaps_and_contradicts_no_look(
    seen: list[tuple[datetime, datetime]], looks: list[datetime], told: list[Span]
) -> None:
    found = filled(seen, looks, told)
    everything = sorted([*seen, *((span.start, span.end) for span in found)])
    assert all(before[1] <= after[0] for before, after in pairwise(everything))
    up = [look for look in looks if not any(start <= look < end for start, end in seen)]
    for span in found:
        assert span.start < span.end
        assert not any(span.start <= look < span.end for look in up)
        assert any(each.start <= span.start and span.end <= each.end and each.condition == span.condition for each in told)
    assert filled(seen, looks, list(reversed(told))) == found


@given(st.lists(spans, max_size=5).map(disjoint), spans)
def test_gaps_and_what_is_taken_make_the_whole(taken: list[tuple[datetime, datetime]], whole: tuple[datetime, datetime]) -> None:
    free = sum((end - start for start, end in gaps(*whole, taken)), timedelta(0))
    held = sum((max(timedelta(0), min(end, whole[1]) - max(start, whole[0])) for start, end in taken), timedelta(0))
    assert free + held == whole[1] - whole[0]


def test_maintenance_counts_before_a_fault_and_a_fault_before_a_reservation() -> None:
    told = [
        Span(hour(0), hour(10), "reserved", "r"),
        Span(hour(2), hour(8), "down", "d"),
        Span(hour(4), hour(6), "planned_down", "m"),
    ]
    found = [(span.condition, (span.start - NOON) // timedelta(hours=1)) for span in filled([], [], told)]
    assert found == [("reserved", 0), ("down", 2), ("planned_down", 4), ("down", 6), ("reserved", 8)]
