"""The only place that rounds money. Amounts come in exact (Fraction or Decimal) and leave as Decimal. No float. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from accounting.domain.apportion import Orderable, largest_remainder

K = TypeVar("K", bound=Orderable)

DEFAULT_EXPONENT = 2
# ISO 4217 table A.1: currencies whose minor unit is not a hundredth.
EXPONENTS: Mapping[str, int] = dict.fromkeys(
    ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"), 0
) | dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3)


def exponent(currency: str) -> int:
    """Decimal places of the minor unit of an ISO 4217 currency code; 2 for codes that the table does not name."""
    return EXPONENTS.get(currency.upper(), DEFAULT_EXPONENT)


def minor_units(amount: Fraction | Decimal | int, currency: str) -> int:
    """`amount` in whole minor units (cents), half to even."""
    scale: int = 10 ** exponent(currency)
    return round(Fraction(amount) * scale)


def from_minor_units(units: int, currency: str) -> Decimal:
    """Minor units as an amount with exactly the currency's decimal places."""
    digits = Decimal(units).as_tuple()
    return Decimal((digits.sign, digits.digits, -exponent(currency)))


def amount(exact: Fraction | Decimal | int, currency: str) -> Decimal:
    """One amount rounded to the currency's minor unit, half to even."""
    return from_minor_units(minor_units(exact, currency), currency)


def rounded(amounts: Mapping[K, Fraction], currency: str, *, rotate: int = 0) -> dict[K, Decimal]:
    """Each amount rounded to the minor unit so that together they are the rounded total, in the order given.

    Largest remainder over floors: no amount moves by a whole minor unit or more. Ties as in `apportion`.
    """
    scale = 10 ** exponent(currency)
    exact = {key: Fraction(value) * scale for key, value in amounts.items()}
    total = round(sum(exact.values(), Fraction()))
    return {key: from_minor_units(units, currency) for key, units in largest_remainder(exact, total, rotate=rotate).items()}
