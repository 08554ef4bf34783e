"""Taking a free TCP port. It is held from the moment it is chosen, so that nobody else can take it before the web listens."""

from __future__ import annotations

import socket

from estate.engines.processes import EngineError

DEFAULT_PORT = 8000
TRIES = 100
BACKLOG = 128


def take(host: str, wanted: int | None) -> socket.socket:
    """A listening socket at `wanted` if given, else at the first free port from 8000 on. Raises EngineError if there is none."""
    for port in (wanted,) if wanted is not None else range(DEFAULT_PORT, DEFAULT_PORT + TRIES):
        line = _listen(host, port)
        if line is not None:
            return line
    if wanted is not None:
        raise EngineError(f"port {wanted} of {host} is taken or not allowed; name another with --port, or leave --port out")
    raise EngineError(f"no free port from {DEFAULT_PORT} to {DEFAULT_PORT + TRIES - 1}; name one with --port")


def port_of(line: socket.socket) -> int:
    return int(line.getsockname()[1])


def _listen(host: str, port: int) -> socket.socket | None:
    line = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        line.bind((host, port))
        line.listen(BACKLOG)
    except OSError:
        line.close()
        return None
    return line
