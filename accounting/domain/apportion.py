"""Splitting a whole so that the parts add to it exactly. The only place that splits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeVar


class Orderable(Protocol):
    """A key that sorts: ties between equal remainders are settled by key order."""

    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Orderable)


def apportion(total: int, weights: Mapping[K, int | Fraction | Decimal], *, rotate: int = 0) -> dict[K, int]:
    """Largest remainder: whole parts in proportion to `weights` that add to `total` exactly, in the order of `weights`.

    Tie rule: of equal remainders the smaller key gets the odd unit; `rotate` starts the round that many keys later, so that
    month after month (rotate=month number) the same key is not always the one that pays. Weights that are all zero are split
    evenly. A negative total is split as its positive mirror image. Raises ValueError for a negative weight, or for a total
    other than 0 and nobody to give it to.
    """
    shares = {key: Fraction(weight) for key, weight in weights.items()}
    if any(share < 0 for share in shares.values()):
        raise ValueError("a weight is negative")
    if not shares:
        if total:
            raise ValueError(f"{total} cannot be split among nobody")
        return {}
    whole = sum(shares.values(), Fraction())
    if not whole:
        shares, whole = dict.fromkeys(shares, Fraction(1)), Fraction(len(shares))
    exact = {key: abs(total) * share / whole for key, share in shares.items()}
    parts = largest_remainder(exact, abs(total), rotate=rotate)
    return parts if total >= 0 else {key: -part for key, part in parts.items()}


def largest_remainder(exact: Mapping[K, Fraction], total: int, *, rotate: int = 0) -> dict[K, int]:
    """Whole numbers that add to `total`, each the floor of its exact amount or one more: the largest remainders get more.

    Ties as in `apportion`. Raises ValueError when `total` is less than the sum of the floors, or above it by more than the keys.
    """
    parts = {key: amount.__floor__() for key, amount in exact.items()}
    odd = total - sum(parts.values())
    if not 0 <= odd <= len(parts):
        raise ValueError(f"{total} is not the sum of the amounts: it differs by more than rounding does")
    turn = rotated(sorted(parts), rotate)
    for key in sorted(turn, key=lambda key: parts[key] - exact[key])[:odd]:
        parts[key] += 1
    return parts


def rotated(keys: list[K], by: int) -> list[K]:
    """`keys` from number `by` (counted from 0, round and round) on, then those before it."""
    start = by % len(keys) if keys else 0
    return keys[start:] + keys[:start]
