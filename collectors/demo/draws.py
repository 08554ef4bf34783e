"""Weighted draws for hundreds of thousands of jobs: the same draws as `Random.choices`, without its list. Pure."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def weighted(rng: Random, options: Sequence[T], up_to: Sequence[float]) -> T:
    """One of `options`; `up_to` are their weights, added up so far."""
    return options[bisect(up_to, rng.random() * up_to[-1], 0, len(options) - 1)]
