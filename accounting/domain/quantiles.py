"""Quantiles of waits, some of which are only known as "at least this long" (definitions.md, "Queue"). Pure.

Nearest-rank: the smallest wait that at least p % of all do not exceed. With censored waits the share is the Kaplan–Meier estimate
(Kaplan & Meier 1958): S(t) = Π over waits u ≤ t of (1 − started(u) / at risk(u)); who was censored at t was still at risk at t.
Without censored waits the two are the same, and so is the code.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain, groupby
from math import inf, prod
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
    return summary_of(*_spread(waits))


def summary_of(started: Sequence[int], censored: Sequence[int]) -> WaitSummary:
    """The same of two rising sequences of waits in seconds: of those that started, and of those last seen waiting."""
    p50, p90, p95, p99 = _quantiles(started, censored, PERCENTS)
    longest = max((waits[-1] for waits in (started, censored) if waits), default=None)
    mean = round(Fraction(sum(started), len(started))) if started else None
    return WaitSummary(len(started) + len(censored), len(started), len(censored), p50, p90, p95, p99, longest, mean)


def median_of(started: Sequence[int], censored: Sequence[int]) -> int | None:
    """The median of two rising sequences of waits in seconds, as in `summary_of`."""
    return _quantiles(started, censored, (50,))[0]


def quantiles(waits: Histogram, percents: Sequence[int] = PERCENTS) -> tuple[int | None, ...]:
    """One wait in seconds for each of `percents` (rising, 1 … 99), None where unreached; `waits` as in `summary`."""
    return _quantiles(*_spread(waits), percents)


def _spread(waits: Histogram) -> tuple[list[int], list[int]]:
    """Every wait of a histogram, rising: of those that started, and of those that have not."""
    rows = [(wait, *waits[wait]) for wait in sorted(waits)] if isinstance(waits, Mapping) else list(waits)
    started = [wait for wait, count, _ in rows for _ in range(count)]
    return started, [wait for wait, _, count in rows for _ in range(count)]


def _quantiles(started: Sequence[int], censored: Sequence[int], percents: Sequence[int]) -> tuple[int | None, ...]:
    """Steps from one censored wait to the next: between two of them the start at which S falls so far is found by halving."""
    found: list[int | None] = []
    survival = _Survival(len(started) + len(censored))
    passed = 0
    for wait, count in chain(((wait, len(list(same))) for wait, same in groupby(censored)), ((inf, 0),)):
        end = bisect_right(started, wait, passed)
        starts = range(1, end - passed + 1)
        while starts and len(found) < len(percents) and survival.at_most(100 - percents[len(found)], starts[-1]):
            reached = partial(survival.at_most, 100 - percents[len(found)])
            found.append(started[passed + bisect_left(starts, True, key=reached)])
        if len(found) == len(percents):
            break
        survival.end_stretch(end - passed, count)
        passed = end
    return tuple(found + [None] * (len(percents) - len(found)))


class _Survival:
    """S(t) as a product of ratios, one for each stretch without a censored wait (inside a stretch the product telescopes)."""

    __slots__ = ("entered", "passed", "stretches")

    def __init__(self, at_risk: int) -> None:
        self.entered = at_risk
        self.stretches: list[tuple[int, int]] = []
        self.passed = 1.0

    def end_stretch(self, started: int, censored: int) -> None:
        left = self.entered - started
        if started:
            self.stretches.append((left, self.entered))
            self.passed *= left / self.entered
        self.entered = left - censored

    def at_most(self, percent: int, started: int) -> bool:
        """Is S ≤ percent / 100 after `started` have started in this stretch? Exact."""
        left = self.entered - started
        gap = self.passed * left * 100 - percent * self.entered
        if self.stretches and abs(gap) <= _DOUBT * percent * self.entered:
            return 100 * prod_of(kept for kept, _ in [*self.stretches, (left, 0)]) <= percent * prod_of(
                entered for _, entered in [*self.stretches, (0, self.entered)]
            )
        return gap <= 0


def prod_of(factors: Iterable[int]) -> int:
    """Product by halves: big factors meet big factors, which keeps 100,000 of them fast."""
    level = list(factors)
    while len(level) > 32:
        level = [prod(level[start : start + 2]) for start in range(0, len(level), 2)]
    return prod(level)
