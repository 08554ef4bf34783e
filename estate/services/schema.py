"""The tables of an embedded database: made when a command first needs them, as `up` does."""

from __future__ import annotations

from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

SCHEMA_LOCK = 7_110_003


def ensure() -> None:
    """Migrate a database that has never been migrated; an older schema is left to `migrate` and `up`.

    Of several processes on a fresh database one migrates and the others wait for it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [SCHEMA_LOCK])
        try:
            if not MigrationRecorder(connection).has_table():
                call_command("migrate", verbosity=0, interactive=False)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [SCHEMA_LOCK])
