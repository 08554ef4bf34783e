"""The three processes of a running estate, as command lines."""

from __future__ import annotations

import sys
from typing import Literal

from django.conf import settings

Piece = Literal["web", "worker", "scheduler"]
PIECES: tuple[Piece, ...] = ("web", "worker", "scheduler")


def command(piece: Piece, listening: int) -> list[str]:
    """Command line of a piece, to be run in the folder of the code; `listening` is the open socket (its number) of the web."""
    return [sys.executable, "-m", *{"web": _web(listening), "worker": _worker(), "scheduler": _scheduler()}[piece]]


def _web(listening: int) -> list[str]:
    return [
        *("gunicorn", "estate.config.wsgi", "--bind", f"fd://{listening}", "--worker-class", "gthread"),
        *("--workers", str(settings.WEB_WORKERS), "--threads", str(settings.WEB_THREADS)),
        *("--graceful-timeout", "8", "--timeout", "60", "--no-control-socket", "--log-level", "info"),
    ]


def _worker() -> list[str]:
    return [
        *("celery", "--app", "estate.config.celery", "worker", "--pool", "prefork"),
        *("--concurrency", str(settings.WORKER_CONCURRENCY), "--without-gossip", "--without-mingle", "--loglevel", "INFO"),
    ]


def _scheduler() -> list[str]:
    """What is due is decided by rows, so the scheduler remembers nothing and has no file that a crash could spoil."""
    return [
        *("celery", "--app", "estate.config.celery", "beat", "--scheduler", "estate.config.beat:Pulse"),
        *("--pidfile", "", "--loglevel", "INFO"),
    ]
