"""Small helpers for questions that take several reports of the same scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

from accounting.domain.reports import Report, ReportRequest
from accounting.queries import reports
from accounting.queries.memory import remembered


@remembered
def ask(base: ReportRequest, name: str, *by: str, days: tuple[date, date] | None = None, judged: bool = False) -> Report:
    """Report `name` by `by` in the scope of `base`, over its days or `days`; what it holds must not be changed."""
    first, last = days or (base.first, base.last)
    return reports.run(replace(base, name=name, by=by, first=first, last=last), judged=judged)


def number(value: Any) -> float | None:
    """A figure as it is drawn; unknown stays None."""
    return None if value is None else float(value)


def total_of(rows: Iterable[dict[str, Any]], key: str) -> Any:
    """Sum of one figure; None when it is unknown in every row (or there is none)."""
    known = [row[key] for row in rows if row.get(key) is not None]
    return sum(known) if known else None


def quotient(dividend: Any, divisor: Any) -> float | None:
    """None when either is unknown or there is nothing to divide by."""
    return None if dividend is None or not divisor else float(dividend) / float(divisor)
