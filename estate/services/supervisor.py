"""Keeps the pieces running: starts them, restarts one that dies, stops them all, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from estate.engines.processes import EngineError, tail

STOP_SECONDS = 15
STEADY_SECONDS = 60
LONGEST_PAUSE_SECONDS = 30
DEATHS_WHILE_STARTING = 3
LOG_BYTES = 10 * 1024 * 1024

Say = Callable[[str], None]


class Child:
    """One piece in a process group of its own, tied to our life, writing to its log."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name, self.command, self.log = name, command, log
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.next_start_at = 0.0
        self.deaths_in_a_row = 0

    def start(self, environment: Mapping[str, str], folder: Path, inherited: tuple[int, ...]) -> None:
        """`inherited` are open files that the piece and all below it keep."""
        self.started_at = time.monotonic()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "estate.services.tether", str(os.getpid()), *self.command],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=inherited,
            )

    def reap(self) -> int | None:
        """Exit code if the piece has ended; then whatever is left of its group is ended too, before its id can be reused."""
        if self.process is None or not os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return None
        self.signal_group(signal.SIGKILL)
        code = self.process.wait()
        self.process = None
        return code

    def signal_group(self, number: int) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def terminate(self) -> None:
        """Ask the piece (not its helpers, which it stops itself) to end."""
        if self.process is not None:
            self.process.terminate()

    def pause_seconds(self) -> float:
        """How long to wait before the next start: 1, 2, 4 … 30 s, from the beginning again after a steady minute."""
        steady = time.monotonic() - self.started_at > STEADY_SECONDS
        self.deaths_in_a_row = 1 if steady else self.deaths_in_a_row + 1
        return float(min(2 ** (self.deaths_in_a_row - 1), LONGEST_PAUSE_SECONDS))


class Supervisor:
    """Runs `commands` by name until KeyboardInterrupt is raised into it."""

    def __init__(self, commands: Mapping[str, list[str]], logs: Path, say: Say) -> None:
        logs.mkdir(exist_ok=True)
        self.children = [Child(name, command, _fresh_log(logs / f"{name}.log")) for name, command in commands.items()]
        self.say = say

    def run(self, environment: Mapping[str, str], folder: Path, inherited: tuple[int, ...], ready: Callable[[], bool]) -> None:
        """Returns only by an exception. `ready` is asked until it says yes. Raises EngineError if a piece cannot start at all."""
        is_ready = False
        while True:
            for child in self.children:
                if child.process is None and time.monotonic() >= child.next_start_at:
                    child.start(environment, folder, inherited)
                self._mourn(child, starting=not is_ready)
            is_ready = is_ready or ready()
            time.sleep(0.2)

    def stop(self) -> None:
        """End all pieces gracefully; by force after a while."""
        for child in self.children:
            child.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        while any(child.process and child.reap() is None for child in self.children):
            if time.monotonic() > deadline:
                self._kill()
            time.sleep(0.05)

    def _kill(self) -> None:
        for child in self.children:
            if child.process is not None:
                self.say(f"{child.name} did not end within {STOP_SECONDS} s: ended by force")
            child.signal_group(signal.SIGKILL)

    def _mourn(self, child: Child, starting: bool) -> None:
        code = child.reap()
        if code is None:
            return
        pause = child.pause_seconds()
        last = tail(child.log)
        if starting and child.deaths_in_a_row >= DEATHS_WHILE_STARTING:
            raise EngineError(f"{child.name} ends as soon as it starts ({_reason(code)}) · log {child.log}: {last}")
        child.next_start_at = time.monotonic() + pause
        self.say(f"{child.name} ended ({_reason(code)}); starting it again in {pause:.0f} s · log {child.log}: {last}")


def _reason(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"


def _fresh_log(path: Path) -> Path:
    """One generation is kept, so that logs of a long-lived laptop estate stay small."""
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path
