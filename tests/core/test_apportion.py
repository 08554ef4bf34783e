"""Splitting: whatever the weights, the parts add to the whole and none is off by a unit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.domain.apportion import apportion, largest_remainder

weights = st.integers(0, 10**9) | st.fractions(0, 10**6) | st.decimals(0, 10**6, places=4)
split = st.dictionaries(st.text(max_size=3), weights, min_size=1, max_size=20)
totals = st.integers(-(10**12), 10**12)


@given(totals, split, st.integers(0, 50))
def test_the_parts_add_to_the_total_in_the_order_given(total: int, by: dict[str, Fraction], rotate: int) -> None:
    parts = apportion(total, by, rotate=rotate)
    assert sum(parts.values()) == total
    assert list(parts) == list(by)


@given(totals, split, st.integers(0, 50))
def test_every_part_is_less_than_one_unit_from_its_exact_share(total: int, by: dict[str, Fraction], rotate: int) -> None:
    exact = {key: Fraction(weight) for key, weight in by.items()}
    whole = sum(exact.values())
    if not whole:
        exact, whole = dict.fromkeys(exact, Fraction(1)), Fraction(len(exact))
    assert all(abs(part - total * exact[key] / whole) < 1 for key, part in apportion(total, by, rotate=rotate).items())


@given(totals, split)
def test_a_negative_total_is_the_mirror_image(total: int, by: dict[str, Fraction]) -> None:
    assert apportion(-total, by) == {key: -part for key, part in apportion(total, by).items()}


@given(totals, split)
def test_the_order_of_the_mapping_changes_nothing_but_the_order(total: int, by: dict[str, Fraction]) -> None:
    assert apportion(total, dict(reversed(by.items()))) == apportion(total, by)


@pytest.mark.parametrize(
    ("rotate", "expected"),
    [(0, {"a": 4, "b": 3, "c": 3}), (1, {"a": 3, "b": 4, "c": 3}), (2, {"a": 3, "b": 3, "c": 4}), (3, {"a": 4, "b": 3, "c": 3})],
)
def test_ties_go_to_the_smaller_key_and_rotate(rotate: int, expected: dict[str, int]) -> None:
    assert apportion(10, {"c": 1, "b": 1, "a": 1}, rotate=rotate) == expected


def test_weights_that_are_all_zero_are_split_evenly() -> None:
    assert apportion(5, {"a": 0, "b": Decimal(0)}) == {"a": 3, "b": 2}


def test_a_key_without_weight_gets_nothing_while_others_have_some() -> None:
    assert apportion(7, {"a": 0, "b": 2, "c": 1}) == {"a": 0, "b": 5, "c": 2}


def test_something_cannot_be_split_among_nobody_but_nothing_can() -> None:
    assert apportion(0, {}) == {}
    with pytest.raises(ValueError, match="among nobody"):
        apportion(1, {})


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        apportion(1, {"a": 2, "b": -1})


def test_a_total_that_rounding_cannot_explain_is_refused() -> None:
    with pytest.raises(ValueError, match="more than rounding"):
        largest_remainder({"a": Fraction(1, 2)}, 5)
