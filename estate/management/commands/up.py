"""`manage.py up`: run the estate, or one piece of it."""

from __future__ import annotations

import os
import signal
import socket
import time
import urllib.request
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from estate import engines, env
from estate.services import first_start, ports, running
from estate.services.pieces import PIECES, Piece, command
from estate.services.supervisor import Supervisor

LOOPBACK = "127.0.0.1"
ANSWER_SECONDS = 120
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Command(BaseCommand):
    help = "Run everything (web, worker, scheduler and embedded services) on this machine, or one piece in the foreground."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("piece", nargs="?", choices=PIECES, help="run this piece only, in the foreground")
        parser.add_argument(
            "--port", type=_port, help="port of the web pages (default: 8000; the whole estate takes the next free one)"
        )
        parser.add_argument("--bind", help="address at which `up web` listens (default: 127.0.0.1)")
        parser.add_argument("--no-demo", action="store_true", help="do not fill an empty estate with the demo")

    def handle(self, *_: Any, piece: Piece | None, port: int | None, bind: str | None, no_demo: bool, **__: Any) -> None:
        if bind is not None and piece != "web":
            self.stderr.write("--bind is for `up web` only: the whole estate is served on this machine alone.")
            raise SystemExit(2)
        if piece is None:
            _stop_on_signals()
            self._everything(port, no_demo)
        else:
            self._one(piece, bind or LOOPBACK, port)

    def _everything(self, port: int | None, no_demo: bool) -> None:
        with running.only_one() as held:
            supervisor: Supervisor | None = None
            try:
                line = self._take_port(port)
                self._prepare(no_demo)
                commands: dict[str, list[str]] = {piece: command(piece, line.fileno()) for piece in PIECES}
                supervisor = Supervisor(commands, settings.DATA_DIR / "log", self._say)
                self._serve(supervisor, held, line)
            except KeyboardInterrupt:
                self._say("Stopping …")
            finally:
                _ignore_signals()
                if supervisor is not None:
                    supervisor.stop()
                connections.close_all()
                stopped = engines.stop()
                if supervisor is not None:
                    stopped = ["web, worker, scheduler", *stopped]
                if stopped:
                    self._say(f"Stopped: {', '.join(stopped)}")

    def _take_port(self, port: int | None) -> socket.socket:
        line = ports.take(LOOPBACK, port)
        if port is None and ports.port_of(line) != ports.DEFAULT_PORT:
            self._say(f"Port {ports.DEFAULT_PORT} is taken: using {ports.port_of(line)}.")
        return line

    def _prepare(self, no_demo: bool) -> None:
        with self._stage(f"Services from {settings.DATA_DIR}: {' and '.join(engines.embedded()) or 'none embedded'}"):
            engines.ensure()
        with self._stage("Database schema"):
            first_start.migrate()
        with self._stage("Static files"):
            first_start.collect_static()
        if not no_demo and first_start.wants_demo():
            with self._stage("Demo estate (first start only)"):
                first_start.make_demo()
        connections.close_all()

    def _serve(self, supervisor: Supervisor, held: IO[str], line: socket.socket) -> None:
        """The pieces inherit the lock, so that a later start can tell that they live, and the socket of the web."""
        url = f"http://{LOOPBACK}:{ports.port_of(line)}"
        environment = {"INSECURE_HTTP": "true"} | os.environ | {"ESTATE_DATA": str(settings.DATA_DIR)}
        self._say("Web, worker and scheduler …")
        supervisor.run(environment, settings.BASE_DIR, (held.fileno(), line.fileno()), self._greeter(url))

    def _greeter(self, url: str) -> Callable[[], bool]:
        started_at = time.monotonic()

        def ready() -> bool:
            if _answers(f"{url}/healthz"):
                self._say(f"  done in {time.monotonic() - started_at:.1f} s")
                self._greet(url)
                return True
            if time.monotonic() - started_at > ANSWER_SECONDS:
                raise engines.EngineError(f"{url} does not answer; see {settings.DATA_DIR / 'log' / 'web.log'}")
            return False

        return ready

    def _greet(self, url: str) -> None:
        sign_in = first_start.demo_sign_in()
        connections.close_all()
        self.stdout.write(f"\nGPU Estate: {url}")
        if sign_in:
            self.stdout.write(f"Sign in as {sign_in.user} with the password {sign_in.password}")
        else:
            self.stdout.write("Make an account with: python manage.py createsuperuser")
        self.stdout.write(f"Logs: {settings.DATA_DIR / 'log'} · stop with Ctrl-C")
        self.stdout.flush()

    def _one(self, piece: Piece, host: str, port: int | None) -> None:
        """Become the piece. Embedded services that it started stay until `down`: other pieces may use them.

        With a server as database, its schema is the deployment's business; so are the static files where STATIC_ROOT names a place.
        """
        engines.ensure()
        if engines.embedded() and host == LOOPBACK:
            os.environ.setdefault("INSECURE_HTTP", "true")
        if piece == "web":
            if "PostgreSQL" in engines.embedded():
                first_start.migrate()
            if not env.text("STATIC_ROOT"):
                first_start.collect_static()
        line = ports.take(host, port or ports.DEFAULT_PORT) if piece == "web" else None
        connections.close_all()
        if line is not None:
            self._say(f"Listening on {host}, port {ports.port_of(line)}")
            line.set_inheritable(True)
        words = command(piece, line.fileno() if line else -1)
        os.chdir(settings.BASE_DIR)
        os.execv(words[0], words)  # noqa: S606 (our own command line)

    @contextmanager
    def _stage(self, what: str) -> Iterator[None]:
        started_at = time.monotonic()
        self._say(f"{what} …")
        yield
        self._say(f"  done in {time.monotonic() - started_at:.1f} s")

    def _say(self, line: str) -> None:
        self.stderr.write(line, self.style.HTTP_INFO)
        self.stderr.flush()


def _port(value: str) -> int:
    if not value.isdigit() or not 0 < int(value) < 65536:
        raise ArgumentTypeError(f"{value}: a port is a number from 1 to 65535")
    return int(value)


def _stop_on_signals() -> None:
    """The first signal stops; more of them (make passes on what the terminal has sent already) do not disturb the stopping."""
    for number in STOP_SIGNALS:
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(*_: object) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 (our own http address)
            return bool(answer.status == 200)
    except OSError:
        return False
