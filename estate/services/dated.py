"""Sets of dated rows: what is as before stays, what changed ends and begins anew, what is gone ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import QuerySet

Key = tuple[Any, ...]
Values = Mapping[str, Any]


def replace(
    rows: QuerySet[Any], key: Sequence[str], wanted: Mapping[Key, Values], as_of: datetime, *, complete: bool, fixed: Values
) -> int:
    """Bring the open rows among `rows` up to `wanted` (values by key) at `as_of`; returns how many of them changed.

    Unless `complete`, rows that are not wanted stay. `fixed` are values that all new rows have.
    """
    known = {tuple(getattr(row, name) for name in key): row for row in rows.filter(valid_during__upper_inf=True)}
    ended = [row for at, row in known.items() if (at in wanted or complete) and not _is_as(row, wanted.get(at))]
    stays = known.keys() - {tuple(getattr(row, name) for name in key) for row in ended}
    begun = [
        rows.model(**fixed, **dict(zip(key, at, strict=True)), **values, valid_during=DateTimeTZRange(as_of, None))
        for at, values in sorted(wanted.items())
        if at not in stays
    ]
    end(rows, ended, as_of)
    rows.model._default_manager.bulk_create(begun, batch_size=2000)
    return len({tuple(getattr(row, name) for name in key) for row in [*ended, *begun]})


def end(rows: QuerySet[Any], ended: Sequence[Any], as_of: datetime) -> None:
    """End rows at `as_of`; one that would last no time is removed."""
    empty = {row.pk for row in ended if row.valid_during.lower >= as_of}
    rows.model._default_manager.filter(pk__in=empty).delete()
    left = [row for row in ended if row.pk not in empty]
    for row in left:
        row.valid_during = DateTimeTZRange(row.valid_during.lower, as_of)
    rows.model._default_manager.bulk_update(left, ["valid_during"], batch_size=1000)


def _is_as(row: Any, values: Values | None) -> bool:
    return values is not None and all(getattr(row, name) == value for name, value in values.items())
