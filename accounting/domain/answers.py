"""A report as JSON-able values: the shape that the API, the command and the exports share (docs/api.md). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from accounting.domain.metrics import REPORTS, Kind, ReportDefinition
from accounting.domain.reports import Report

Json = str | int | float | None

RATIO_PLACES = 6
CURRENCY = "currency"


def answer(report: Report, currency: str) -> dict[str, Any]:
    """The whole answer. `currency` stands beside money in each row that does not name its own."""
    request = report.request
    definition = REPORTS[request.name]
    return {
        "report": request.name,
        "from": request.first.isoformat(),
        "to": request.last.isoformat(),
        "zone": request.zone.key,
        "by": list(request.by),
        "data_through": scalar(report.data_through),
        "rows": [row(each, definition, request.by, currency) for each in report.rows],
        "total": row(report.total, definition, (), currency),
        "quality": plain(report.quality),
    }


def columns(definition: ReportDefinition, by: tuple[str, ...]) -> list[str]:
    """Names of a row's values in order: dimensions as asked for, figures, the currency where there is money."""
    figures = [figure.id for figure in definition.figures]
    return [*by, *figures, *([CURRENCY] if has_money(definition) else [])]


def has_money(definition: ReportDefinition) -> bool:
    return any(figure.kind is Kind.MONEY for figure in definition.figures)


def row(values: Mapping[str, Any], definition: ReportDefinition, by: tuple[str, ...], currency: str) -> dict[str, Json]:
    """Dimensions and figures of one row in order; what the row lacks is unknown. ValueError for a name without definition."""
    names = columns(definition, by)
    strange = values.keys() - {*names, CURRENCY}
    if strange:
        raise ValueError(f"report {definition.name} has values without a definition: {', '.join(sorted(strange))}")
    given = {CURRENCY: currency, **values}
    kinds = {figure.id: figure.kind for figure in definition.figures}
    return {name: figure_value(given.get(name), kinds[name]) if name in kinds else scalar(given.get(name)) for name in names}


def figure_value(value: Any, kind: Kind) -> Json:
    """Ratios as numbers of six places, money as a decimal string with its places, the rest whole or as a plain decimal string."""
    if value is None:
        return None
    if kind is Kind.RATIO:
        return round(float(value), RATIO_PLACES)
    if kind is Kind.MONEY:
        return format(Decimal(value), "f")
    return scalar(value)


def scalar(value: Any) -> Json:
    """Text and whole numbers as they are, other exact numbers as plain decimal strings, dates and instants in ISO 8601."""
    if isinstance(value, Decimal | Fraction):
        return number(value)
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} has no place in an answer")


def number(value: Decimal | Fraction) -> int | str:
    """An integer where the value is whole, else its decimal digits without exponent or trailing zeros."""
    if value == value.__floor__():
        return value.__floor__()
    exact = value if isinstance(value, Decimal) else Decimal(value.numerator) / value.denominator
    return format(exact, "f").rstrip("0")


def instant(value: datetime) -> str:
    """ISO 8601 with `Z` for UTC and the offset for any other zone. Raises ValueError for a naive instant."""
    if value.tzinfo is None:
        raise ValueError(f"{value} has no zone")
    return value.isoformat().removesuffix("+00:00") + "Z" if value.utcoffset() == UTC.utcoffset(None) else value.isoformat()


def plain(value: Any) -> Any:
    """Nested mappings and lists with every leaf as in `scalar`, floats (they are ratios) of six places."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return round(value, RATIO_PLACES) if isinstance(value, float) else scalar(value)
