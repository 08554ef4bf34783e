"""Does what we depend on answer? Used by the health routes, `doctor` and container health checks."""

from __future__ import annotations

import time

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from kombu import Connection
from kombu.exceptions import OperationalError

BROKER_SECONDS = 2
PULSE_SECONDS = 60.0
"""The scheduler sends something every 15 s; after four missed beats it counts as dead."""


def database_fault() -> str | None:
    """What is wrong with the database; None if it answers."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as exc:
        return str(exc).splitlines()[-1]
    return None


def pending_migrations() -> list[str]:
    """Migrations that the database lacks, as app.name. Raises django.db.Error if it does not answer."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def broker_fault() -> str | None:
    """What is wrong with the broker; None if it answers."""
    try:
        with Connection(settings.CELERY_BROKER_URL, connect_timeout=BROKER_SECONDS) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_SECONDS)
    except (OperationalError, OSError) as exc:
        return str(exc).splitlines()[-1] if str(exc) else type(exc).__name__
    return None


def scheduler_age_seconds() -> float | None:
    """Seconds since the scheduler that shares our data folder last sent something; None if it never did."""
    try:
        return max(0.0, time.time() - settings.PULSE_FILE.stat().st_mtime)
    except OSError:
        return None
