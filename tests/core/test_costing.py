"""Costing is exact: cutting usage anywhere never changes what it costs."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from accounting.domain.costing import idle_cost, usage_cost

seconds = st.decimals(0, 10**9, places=6)
prices = st.decimals(0, 1000, places=6)


@given(seconds, seconds, prices)
def test_cutting_usage_in_two_costs_the_same(first: Decimal, second: Decimal, price: Decimal) -> None:
    assert usage_cost(first, price) + usage_cost(second, price) == Fraction(price) * (Fraction(first) + Fraction(second)) / 3600


@given(seconds, seconds, prices)
def test_usage_at_cost_rates_and_idle_are_the_capacity_cost(allocated: Decimal, idle: Decimal, cost: Decimal) -> None:
    reported = allocated + idle
    assert idle_cost(reported, allocated, cost) + usage_cost(allocated, cost) == usage_cost(reported, cost)


def test_ten_gpu_seconds_at_one_an_hour_are_a_three_hundred_and_sixtieth() -> None:
    assert usage_cost(10, Decimal(1)) == Fraction(1, 360)


def test_usage_above_the_inventory_makes_no_negative_idle_time() -> None:
    assert idle_cost(10, 20, Decimal(5)) == 0
