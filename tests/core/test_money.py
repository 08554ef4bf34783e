"""Rounding: the rounded parts are the rounded total, to the last minor unit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.domain import money

currencies = st.sampled_from(["EUR", "JPY", "KWD", "XXX"])
amounts = st.dictionaries(st.text(max_size=3), st.fractions(-(10**6), 10**6), max_size=20)


@given(amounts, currencies, st.integers(0, 12))
def test_parts_add_to_the_rounded_total_and_none_moves_by_a_minor_unit(
    parts: dict[str, Fraction], currency: str, rotate: int
) -> None:
    rounded = money.rounded(parts, currency, rotate=rotate)
    unit = Fraction(1, 10 ** money.exponent(currency))
    assert sum(rounded.values(), Decimal()) == money.amount(sum(parts.values(), Fraction()), currency)
    assert list(rounded) == list(parts)
    assert all(abs(Fraction(rounded[key]) - exact) < unit for key, exact in parts.items())


@given(st.integers(-(10**40), 10**40), currencies)
def test_minor_units_come_back_exactly_however_large(units: int, currency: str) -> None:
    assert money.minor_units(money.from_minor_units(units, currency), currency) == units


@pytest.mark.parametrize(
    ("currency", "text"), [("EUR", "1234.50"), ("eur", "1234.50"), ("JPY", "1234"), ("KWD", "1234.500"), ("UNKNOWN", "1234.50")]
)
def test_an_amount_has_the_decimal_places_of_its_currency(currency: str, text: str) -> None:
    assert str(money.amount(Decimal("1234.5"), currency)) == text


@pytest.mark.parametrize(
    ("exact", "text"), [("0.125", "0.12"), ("0.135", "0.14"), ("-0.125", "-0.12"), ("-0.005", "0.00"), ("0.0050001", "0.01")]
)
def test_half_a_cent_goes_to_the_even_cent(exact: str, text: str) -> None:
    assert str(money.amount(Decimal(exact), "EUR")) == text


def test_three_thirds_of_a_euro_are_a_euro() -> None:
    assert money.rounded(dict.fromkeys("abc", Fraction(1, 3)), "EUR") == {
        "a": Decimal("0.34"),
        "b": Decimal("0.33"),
        "c": Decimal("0.33"),
    }


def test_no_amounts_round_to_none() -> None:
    assert money.rounded({}, "EUR") == {}
