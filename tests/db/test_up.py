"""`up` serves, survives the death of a piece, and leaves no process behind, however it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from estate import env

pytestmark = pytest.mark.slow
URL = re.compile(r"GPU Estate: (http://127\.0\.0\.1:\d+)")


class Up:
    """A running `manage.py up` on a data folder of its own."""

    def __init__(self, data: Path) -> None:
        self.data, self.log = data, data.parent / "up.log"
        servers = {"DATABASE_URL", "DATABASE_URL_FILE", "REDIS_URL", "REDIS_URL_FILE", "INSECURE_HTTP"}
        self.environment = {key: value for key, value in os.environ.items() if key not in servers} | {"ESTATE_DATA": str(data)}
        self.environment["DJANGO_SETTINGS_MODULE"] = "estate.config.settings"

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(command, cwd=env.ROOT, env=self.environment, capture_output=True, text=True, check=False)

    def start(self) -> None:
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--no-demo"],
                cwd=env.ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        eventually(lambda: URL.search(self.said()) is not None or self.process.poll() is not None, 120)
        assert self.process.poll() is None, self.said()

    def said(self) -> str:
        return self.log.read_text()

    def alive(self) -> int:
        found = URL.search(self.said())
        assert found
        with urllib.request.urlopen(f"{found[1]}/healthz", timeout=10) as answer:  # noqa: S310 (the pattern of URL is http)
            return int(answer.status)

    def pieces(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def eventually(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def all_gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    running = Up(tmp_path_factory.mktemp("up") / "data")
    yield running
    running.manage("down")
    if running.process.poll() is None:
        running.process.kill()
    running.process.wait()


def test_it_serves_and_ctrl_c_stops_all_of_it(up: Up) -> None:
    up.start()
    pieces = up.pieces()
    assert up.alive() == 200
    assert len(pieces) >= 7
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(60) == 0
    assert all_gone(pieces)
    assert up.manage("down").stderr.startswith("Nothing runs")


def test_a_piece_that_is_killed_comes_back_without_leaving_its_helpers(up: Up) -> None:
    up.start()
    worker = next(piece for piece in up.pieces() if "worker" in piece.cmdline() and piece.ppid() == up.process.pid)
    family = [worker, *worker.children(recursive=True)]
    worker.kill()
    eventually(lambda: "worker ended (signal 9); starting it again in 1 s" in up.said())
    eventually(lambda: all_gone(family))
    eventually(lambda: any("worker" in piece.cmdline() for piece in up.pieces()))


def test_a_second_one_on_the_same_folder_is_refused(up: Up) -> None:
    done = up.manage("up", "--no-demo")
    assert done.returncode == 1
    assert (
        done.stderr
        == f"Error: GPU Estate runs from {up.data} already (process {up.process.pid}); stop it, or set another ESTATE_DATA\n"
    )


def test_its_pieces_end_when_it_is_killed_and_the_next_start_recovers(up: Up) -> None:
    pieces = up.pieces()
    up.process.kill()
    up.process.wait()
    eventually(lambda: all_gone(pieces))
    up.start()
    assert up.alive() == 200


def test_down_stops_it_and_two_signals_do_no_harm(up: Up) -> None:
    up.process.send_signal(signal.SIGTERM)
    up.process.send_signal(signal.SIGTERM)
    up.manage("down")
    assert up.process.wait(60) == 0
    assert "Stopped: web, worker, scheduler, broker, PostgreSQL" in up.said()


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(up: Up) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = up.manage("up", "--no-demo", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: port {port} of 127.0.0.1 is taken")
