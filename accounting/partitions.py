"""Monthly partitions of the usage records (by `submitted_at`, in UTC months: a storage matter, not a reporting one)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.utils import CursorWrapper
from django.db.migrations import CreateModel
from django.db.migrations.state import ProjectState

from estate.domain.periods import first_of_next_month

TABLE = "accounting_usagerecord"


class CreatePartitionedModel(CreateModel):
    """`CreateModel` for a table that is partitioned by range of `submitted_at`."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        del from_state
        editor: Any = schema_editor
        model = to_state.apps.get_model(app_label, self.name)
        sql, params = editor.table_sql(model)
        editor.execute(f"{sql} PARTITION BY RANGE (submitted_at)", params or None)
        editor.deferred_sql.extend(editor._model_indexes_sql(model))


def months(first: datetime, last: datetime) -> Iterator[tuple[date, date]]:
    """The UTC months `[first day, first day of the next)` that hold the instants from `first` to `last`, both included."""
    month = first.astimezone(UTC).date().replace(day=1)
    while month <= last.astimezone(UTC).date():
        following = first_of_next_month(month)
        yield month, following
        month = following


def ensure_months(cursor: CursorWrapper, first: datetime, last: datetime) -> None:
    """Create the partitions that records submitted from `first` to `last` need; safe beside other writers.

    A partition is made apart and attached: that lock lets others go on writing (`PARTITION OF` would wait for every open load, and
    two loads that each need a month for each other). Loads that need new months take turns.
    """
    if not _missing(cursor, first, last):
        return
    cursor.execute(f"LOCK TABLE {TABLE} IN SHARE UPDATE EXCLUSIVE MODE")
    for month, following in _missing(cursor, first, last):
        cursor.execute(f"CREATE TABLE {_name(month)} (LIKE {TABLE} INCLUDING ALL)")
        span = f"FROM ('{month} 00:00+00') TO ('{following} 00:00+00')"
        cursor.execute(f"ALTER TABLE {TABLE} ATTACH PARTITION {_name(month)} FOR VALUES {span}")


def _missing(cursor: CursorWrapper, first: datetime, last: datetime) -> list[tuple[date, date]]:
    cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [TABLE])
    known = {name for (name,) in cursor.fetchall()}
    return [(month, following) for month, following in months(first, last) if _name(month) not in known]


def _name(month: date) -> str:
    return f"{TABLE}_{month:%Y%m}"
