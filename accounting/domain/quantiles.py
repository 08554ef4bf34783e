"""Quantiles of waits, some of which are only known as "at least this long" (definitions.md, "Queue"). Pure.

Nearest-rank: the smallest wait that at least p % of all do not exceed. With censored waits the share is the Kaplan–Meier estimate
(Kaplan & Meier 1958): S(t) = Π over waits u ≤ t of (1 − started(u) / at risk(u)); who was censored at t was still at risk at t.
Without censored waits the two are the same, and so is the code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

PERCENTS = (50, 90, 95, 99)

# A float product of 100,000 ratios is off by less than 1e-10 of itself; what lies closer to a threshold is decided exactly.
_DOUBT = 1e-9

Histogram = Mapping[int, tuple[int, int]] | Iterable[tuple[int, int, int]]


class WaitSummary(NamedTuple):
    """Waits in whole seconds. Quantiles that so many censored waits leave open are None; `mean` is of the started only."""

    record_count: int
    started_count: int
    censored_count: int
    p50: int | None
    p90: int | None
    p95: int | None
    p99: int | None
    max: int | None
    mean: int | None


def summary(waits: Histogram) -> WaitSummary:
    """Counts, quantiles, longest (censored ones included) and mean (half to even) of a histogram.

    `waits` maps wait seconds to (started_count, censored_count), or yields (wait seconds, started_count, censored_count) in
    rising order.
    """
    rows = _rows(waits)
    started = sum(count for _, count, _ in rows)
    censored = sum(count for _, _, count in rows)
    p50, p90, p95, p99 = _quantiles(rows, PERCENTS)
    longest = max((wait for wait, *counts in rows if any(counts)), default=None)
    mean = round(Fraction(sum(wait * count for wait, count, _ in rows), started)) if started else None
    return WaitSummary(started + censored, started, censored, p50, p90, p95, p99, longest, mean)


def summary_of(started: Sequence[int], censored: Sequence[int]) -> WaitSummary:
    """The same of two rising sequences of waits in seconds: of those that started, and of those last seen waiting."""
    if censored or not started:
        return summary(_histogram(started, censored))
    p50, p90, p95, p99 = (_nearest_rank(started, percent) for percent in PERCENTS)
    return WaitSummary(
        len(started), len(started), 0, p50, p90, p95, p99, started[-1], round(Fraction(sum(started), len(started)))
    )


def median_of(started: Sequence[int], censored: Sequence[int]) -> int | None:
    """The median of two rising sequences of waits in seconds, as in `summary_of`."""
    if censored or not started:
        return quantiles(_histogram(started, censored), (50,))[0]
    return _nearest_rank(started, 50)


def _nearest_rank(rising: Sequence[int], percent: int) -> int:
    """The smallest value that at least `percent` % of all do not exceed."""
    return rising[-(-percent * len(rising) // 100) - 1]


def _histogram(started: Sequence[int], censored: Sequence[int]) -> dict[int, tuple[int, int]]:
    started_counts, censored_counts = Counter(started), Counter(censored)
    return {wait: (started_counts[wait], censored_counts[wait]) for wait in started_counts.keys() | censored_counts.keys()}


def quantiles(waits: Histogram, percents: Sequence[int] = PERCENTS) -> tuple[int | None, ...]:
    """One wait in seconds for each of `percents` (rising, 1 … 99), None where unreached; `waits` as in `summary`."""
    return _quantiles(_rows(waits), percents)


def _rows(waits: Histogram) -> list[tuple[int, int, int]]:
    if isinstance(waits, Mapping):
        return [(wait, *waits[wait]) for wait in sorted(waits)]
    return list(waits)


def _quantiles(rows: list[tuple[int, int, int]], percents: Sequence[int]) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for wait, survival in _survival(rows):
        while len(found) < len(percents) and survival.at_most(100 - percents[len(found)]):
            found.append(wait)
        if len(found) == len(percents):
            break
    return tuple(found + [None] * (len(percents) - len(found)))


class _Survival:
    """S(t) as a product of ratios, one for each stretch without a censored wait (inside a stretch the product telescopes)."""

    __slots__ = ("entered", "left", "passed", "stretches")

    def __init__(self, at_risk: int) -> None:
        self.entered = self.left = at_risk
        self.stretches: list[tuple[int, int]] = []
        self.passed = 1.0

    def end_stretch(self, censored: int) -> None:
        self.stretches.append((self.left, self.entered))
        self.passed *= self.left / self.entered
        self.entered = self.left = self.left - censored

    def at_most(self, percent: int) -> bool:
        """Is S ≤ percent / 100? Exact."""
        gap = self.passed * self.left * 100 - percent * self.entered
        if self.stretches and abs(gap) <= _DOUBT * percent * self.entered:
            return 100 * prod_of(left for left, _ in [*self.stretches, (self.left, 0)]) <= percent * prod_of(
                entered for _, entered in [*self.stretches, (0, self.entered)]
            )
        return gap <= 0


def _survival(rows: list[tuple[int, int, int]]) -> Iterator[tuple[int, _Survival]]:
    """S after each wait at which somebody started (one object, moved along)."""
    survival = _Survival(sum(started + censored for _, started, censored in rows))
    for wait, started, censored in rows:
        if started:
            survival.left -= started
            yield wait, survival
        if censored:
            survival.end_stretch(censored)


def prod_of(factors: Iterable[int]) -> int:
    """Product by halves: big factors meet big factors, which keeps 100,000 of them fast."""
    level = list(factors)
    while len(level) > 32:
        level = [prod(level[start : start + 2]) for start in range(0, len(level), 2)]
    return prod(level)
