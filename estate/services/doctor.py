"""What is wrong with an installation, and how to mend it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import Literal, NamedTuple

from django.conf import settings
from django.core import checks
from django.db import connection

from estate import engines, env
from estate.engines import folder
from estate.queries import vitals

OLDEST_POSTGRES = 14

Level = Literal["ok", "warning", "bad"]


class Finding(NamedTuple):
    level: Level
    text: str
    mend: str = ""


def examine() -> Iterator[Finding]:
    """Findings in the order in which they should be mended. Starts embedded services as every command does."""
    yield from _configuration()
    yield _data_folder()
    database = _services()
    yield database
    if database.level == "ok":
        yield _database()
        yield from _schema()
    yield _broker()
    yield _scheduler()
    yield from _system_checks(with_database=database.level == "ok")


def _configuration() -> Iterator[Finding]:
    yield Finding("ok", f"configuration is valid; reporting zone {settings.ESTATE_ZONE}, currency {settings.ESTATE_CURRENCY}")
    if env.text("DATABASE_URL") and not env.text("SECRET_KEY"):
        yield Finding(
            "warning",
            "SECRET_KEY is not set: this host uses one of its own, so a second web host would not know its sessions",
            "set SECRET_KEY (or SECRET_KEY_FILE) to the same 32 or more random characters everywhere",
        )
    if settings.DEBUG:
        yield Finding("warning", "DEBUG is on: errors show the inside of the program", "unset DEBUG")


def _data_folder() -> Finding:
    try:
        data = folder.prepare()
    except env.ConfigurationError as exc:
        return Finding("bad", str(exc))
    secrets = [data / name for name in ("secret_key", "demo-sign-in")]
    open_ones = [path for path in secrets if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077]
    if open_ones:
        names = " ".join(str(path) for path in open_ones)
        return Finding("bad", f"secrets are readable by others: {names}", f"chmod 600 {names}")
    return Finding("ok", f"data folder {data}")


def _services() -> Finding:
    """The embedded services can run, and the database answers."""
    try:
        engines.ensure()
    except (engines.EngineError, env.ConfigurationError) as exc:
        return Finding("bad", str(exc))
    fault = vitals.database_fault()
    if fault is not None:
        return Finding(
            "bad", f"the database does not answer: {fault}", "check DATABASE_URL, and that its server runs and lets us in"
        )
    return Finding("ok", f"services: {' and '.join(engines.embedded()) or 'none'} embedded")


def _database() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int / 10000")
        version = int(cursor.fetchone()[0])
    if version < OLDEST_POSTGRES:
        return Finding("bad", f"PostgreSQL {version} is too old", f"use PostgreSQL {OLDEST_POSTGRES} or newer")
    return Finding("ok", f"PostgreSQL {version}")


def _schema() -> Iterator[Finding]:
    pending = vitals.pending_migrations()
    if pending:
        yield Finding("bad", f"{len(pending)} migrations are pending, first {pending[0]}", "run: python manage.py migrate")
    else:
        yield Finding("ok", "the schema is up to date")


def _broker() -> Finding:
    fault = vitals.broker_fault()
    if fault is None:
        return Finding("ok", "the broker answers")
    return Finding("bad", f"the broker does not answer: {fault}", "check REDIS_URL, and that its server runs")


def _scheduler() -> Finding:
    age = vitals.scheduler_age_seconds()
    if age is not None and age < vitals.PULSE_SECONDS:
        return Finding("ok", f"the scheduler sent something {age:.0f} s ago")
    return Finding(
        "warning",
        "no scheduler runs from this data folder, so nothing is collected by itself (unless it runs on another host)",
        "run: python manage.py up (or `up scheduler` and `up worker`)",
    )


def _system_checks(with_database: bool) -> Iterator[Finding]:
    """Checks that the apps registered with Django, those of the database included."""
    for message in checks.run_checks(databases=["default"] if with_database else None):
        level: Level = "bad" if message.is_serious() else "warning"
        yield Finding(level, f"{message.msg} ({message.id})", message.hint or "")
