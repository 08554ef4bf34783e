"""Running helper programs and waiting for them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path


class EngineError(Exception):
    """An embedded service could not be started or stopped; the message says what to do or where its log is."""


def run(command: Sequence[str], what: str) -> str:
    """Run to the end and return what was printed. Raises EngineError with its last words."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            env=clean_environment(),
            check=False,
        )
    except OSError as exc:
        raise EngineError(f"{what} failed: {command[0]}: {exc.strerror}") from exc
    if done.returncode != 0:
        raise EngineError(f"{what} failed: {one_line(done.stdout) or f'exit {done.returncode}'}")
    return done.stdout


def clean_environment() -> dict[str, str]:
    """The environment without PGPORT and its like, which are meant for other servers, in a locale that every machine has."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C.UTF-8"}


def one_line(output: str) -> str:
    return " · ".join(line.strip() for line in output.splitlines() if line.strip())[-600:]


def tail(path: Path, lines: int = 3) -> str:
    """The last lines of a log, on one line; empty if there is none."""
    try:
        return one_line("\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]))
    except OSError:
        return ""


def wait(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Poll until `condition` holds. Raises EngineError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise EngineError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)
