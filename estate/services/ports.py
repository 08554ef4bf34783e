"""Finding a free TCP port."""

from __future__ import annotations

import socket

from estate.engines.processes import EngineError

DEFAULT_PORT = 8000
TRIES = 100


def is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def choose(host: str, wanted: int | None) -> int:
    """`wanted` if given and free, else the first free port from 8000 on. Raises EngineError."""
    if wanted is not None:
        if not is_free(host, wanted):
            raise EngineError(f"port {wanted} of {host} is taken or not allowed; name another with --port, or leave --port out")
        return wanted
    for port in range(DEFAULT_PORT, DEFAULT_PORT + TRIES):
        if is_free(host, port):
            return port
    raise EngineError(f"no free port from {DEFAULT_PORT} to {DEFAULT_PORT + TRIES - 1}; name one with --port")
