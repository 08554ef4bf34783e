"""A slurmrestd of straw that answers with what it is told."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

TOKEN = "aaaa.bbbb.cccc"
Reply = tuple[int, bytes] | None


class Stub:
    """A slurmrestd that answers with what `replies` has for a path; None hangs up without a word."""

    def __init__(self) -> None:
        self.replies: Callable[[str, int], Reply] = lambda _path, _count: (200, b'{"jobs": []}')
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.location = ""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name is http.server's
                stub.seen.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
                reply = stub.replies(self.path, len(stub.seen))
                if reply is None:
                    self.close_connection = True
                    return
                self.send_response(reply[0])
                if stub.location:
                    self.send_header("Location", stub.location)
                self.send_header("Content-Length", str(len(reply[1])))
                self.end_headers()
                self.wfile.write(reply[1])

            def address_string(self) -> str:
                return "client"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is http.server's
                pass

        return Handler
