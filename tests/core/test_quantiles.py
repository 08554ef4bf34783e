"""Quantiles against an independent O(n²) estimate with fractions (definitions.md: "Kaplan–Meier, never dropped")."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from statistics import fmean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounting.domain.quantiles import PERCENTS, quantiles, summary

Histogram = dict[int, tuple[int, int]]
counts = st.integers(0, 3)
histograms = st.dictionaries(st.integers(0, 60), st.tuples(counts, counts), max_size=8)


def kaplan_meier(histogram: Histogram, percent: int) -> int | None:
    """The textbook, one record at a time: for every wait, the product over all waits up to it."""
    waits = [(wait, True) for wait, (started, _) in histogram.items() for _ in range(started)]
    waits += [(wait, False) for wait, (_, censored) in histogram.items() for _ in range(censored)]

    def survival(at: int) -> Fraction:
        result = Fraction(1)
        for time_ in {wait for wait, started in waits if started and wait <= at}:
            at_risk = sum(wait >= time_ for wait, _ in waits)
            events = sum(wait == time_ and started for wait, started in waits)
            result *= 1 - Fraction(events, at_risk)
        return result

    starts = sorted({wait for wait, started in waits if started})
    return next((wait for wait in starts if survival(wait) <= Fraction(100 - percent, 100)), None)


@given(histograms)
@example({1: (1, 1), 2: (1, 1), 3: (1, 0)})
def test_quantiles_equal_the_textbook_estimate(histogram: Histogram) -> None:
    assert quantiles(histogram) == tuple(kaplan_meier(histogram, percent) for percent in PERCENTS)


@given(st.lists(st.integers(0, 100_000), min_size=1), st.integers(1, 99))
def test_without_censored_waits_quantiles_are_nearest_rank(waits: list[int], percent: int) -> None:
    histogram = {wait: (waits.count(wait), 0) for wait in waits}
    assert quantiles(histogram, [percent]) == (sorted(waits)[math.ceil(Fraction(percent * len(waits), 100)) - 1],)


@given(histograms)
def test_a_sorted_iterable_and_a_mapping_answer_alike(histogram: Histogram) -> None:
    rows = [(wait, *histogram[wait]) for wait in sorted(histogram)]
    assert summary(iter(rows)) == summary(histogram)


@given(histograms)
def test_counts_and_longest_include_the_censored_and_the_mean_does_not(histogram: Histogram) -> None:
    result = summary(histogram)
    started = [wait for wait, (count, _) in histogram.items() for _ in range(count)]
    censored = [wait for wait, (_, count) in histogram.items() for _ in range(count)]
    assert (result.record_count, result.started_count, result.censored_count) == (
        len(started + censored),
        len(started),
        len(censored),
    )
    assert result.max == max(started + censored, default=None)
    assert result.mean == (round(Fraction(sum(started), len(started))) if started else None)
    assert result.mean is None or result.mean == pytest.approx(fmean(started), abs=0.5)


@given(histograms, st.integers(1, 99))
def test_turning_starts_into_waits_that_still_last_never_makes_a_queue_look_faster(histogram: Histogram, percent: int) -> None:
    jammed = {
        wait: (0, started + censored) if wait % 2 else (started, censored) for wait, (started, censored) in histogram.items()
    }
    (before,), (after,) = quantiles(histogram, [percent]), quantiles(jammed, [percent])
    assert after is None or (before is not None and after >= before)


def test_a_queue_in_which_nobody_started_has_no_quantiles() -> None:
    result = summary({3600: (0, 5)})
    assert result == (5, 0, 5, None, None, None, None, 3600, None)


def test_no_waits_at_all_are_unknown_and_not_zero() -> None:
    assert summary({}) == (0, 0, 0, None, None, None, None, None, None)


def test_a_wait_censored_at_the_moment_of_a_start_was_still_at_risk() -> None:
    # At 10 s two are at risk and one starts: S = 1/2. Were the censored one gone before, S would be 0 and p99 be 10 too.
    assert quantiles({10: (1, 1)}, [50, 99]) == (10, None)


@pytest.mark.parametrize(
    ("histogram", "median"),
    [
        ({0: (2, 3), 1: (1, 2), 2: (2, 0), 3: (0, 3), 4: (2, 0), 5: (2, 3)}, 4),
        ({0: (2, 3), 1: (1, 2), 2: (2, 3), 3: (2, 2), 5: (0, 3)}, 3),
    ],
)
def test_a_share_that_is_met_exactly_is_met_although_floats_would_miss_it(histogram: Histogram, median: int) -> None:
    # S is exactly 1/2 there; as a product of floats it comes out above.
    assert quantiles(histogram, [50]) == (median,)


def test_a_mean_halfway_between_two_seconds_goes_to_the_even_one() -> None:
    assert [summary({low: (1, 0), low + 1: (1, 0)}).mean for low in (0, 1)] == [0, 2]


def test_a_hundred_thousand_distinct_waits_half_of_them_censored_take_less_than_two_seconds() -> None:
    histogram = {wait: (1, wait % 2) for wait in range(100_000)}
    began = time.process_time()
    assert summary(histogram).p50 is not None
    assert time.process_time() - began < 2
