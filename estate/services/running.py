"""One estate runs from a data folder at a time. Locks tell, not pids: the kernel drops a lock with its last holder."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from estate.engines.folder import prepare
from estate.engines.processes import EngineError, wait

LEFTOVER_SECONDS = 30.0


@contextmanager
def only_one() -> Iterator[IO[str]]:
    """Hold the data folder for one `up`; yields the lock that its pieces inherit. Raises EngineError if another one runs."""
    with (prepare() / "up.lock").open("a+") as own, (prepare() / "pieces.lock").open("a") as pieces:
        if not _take(own):
            raise EngineError(
                f"GPU Estate runs from {prepare()} already (process {_noted(own)}); stop it, or set another ESTATE_DATA"
            )
        own.seek(0)
        own.truncate()
        own.write(str(os.getpid()))
        own.flush()
        _await_leftovers(pieces)
        yield pieces


def stop_running(data: Path) -> bool:
    """Ask the `up` that runs from `data` to end and wait for it; False if none runs."""
    path = data / "up.lock"
    if not path.exists():
        return False
    with path.open("a+") as lock:
        if _take(lock):
            return False
        with suppress(ProcessLookupError):
            os.kill(_noted(lock), signal.SIGTERM)
        wait(lambda: _take(lock), "`manage.py up` to end", seconds=60)
    return True


def _await_leftovers(lock: IO[str]) -> None:
    """Pieces of a killed `up` end by themselves; they hold the port until then."""
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while not _take(lock):
        if time.monotonic() > deadline:
            raise EngineError(f"pieces of an earlier run from {prepare()} have not ended; end them and start again")
        time.sleep(0.1)


def _take(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _noted(lock: IO[str]) -> int:
    lock.seek(0)
    return int(lock.read().strip() or 0)
