"""Spans that people name instead of writing dates, and the span to compare one with. Pure."""

from __future__ import annotations

from datetime import date, timedelta

from estate.domain.periods import ONE_DAY, first_of_next_month

PRESETS = {
    "this-month": "This month",
    "last-month": "Last month",
    "7d": "Last 7 days",
    "30d": "Last 30 days",
    "90d": "Last 90 days",
    "365d": "Last 365 days",
}
DEFAULT_PRESET = "this-month"

Days = tuple[date, date]


def preset_days(name: str, today: date) -> Days:
    """First and last (excluded) reporting day of a preset; "last N days" end with today. Raises KeyError for an unknown name."""
    this_month = today.replace(day=1)
    if name == "this-month":
        return this_month, first_of_next_month(today)
    if name == "last-month":
        return (this_month - ONE_DAY).replace(day=1), this_month
    if name not in PRESETS:
        raise KeyError(name)
    return today + ONE_DAY - timedelta(days=int(name[:-1])), today + ONE_DAY


def elapsed_end(first: date, last: date, today: date) -> date:
    """End (excluded) of the part of a span that is not in the future; at least one day."""
    return max(first + ONE_DAY, min(last, today + ONE_DAY))


def days_before(first: date, last: date, today: date) -> Days:
    """The days to compare a span with: as many as have passed of it, right before it."""
    return first - (elapsed_end(first, last, today) - first), first
