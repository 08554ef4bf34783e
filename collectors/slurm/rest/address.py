"""Where slurmrestd listens: `http://host:6820`, `https://host[:port][/prefix]`, or `unix:/path/to/socket`. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit


class Address(NamedTuple):
    """`base_url` has no slash at its end; `socket` is the path of a Unix socket, None for TCP."""

    base_url: str
    socket: str | None

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket else self.base_url

    @property
    def is_plain(self) -> bool:
        """Whether the token travels over the network unencrypted."""
        return self.socket is None and self.base_url.startswith("http:") and urlsplit(self.base_url).hostname not in LOOPBACK


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def read_address(text: str) -> Address:
    """Raises ValueError with a hint; a password in a URL is refused."""
    given = text.strip()
    if given.startswith("unix:"):
        path = given.removeprefix("unix:").removeprefix("//")
        if not path.startswith("/"):
            raise ValueError("write a Unix socket as unix:/absolute/path")
        return Address("http://localhost", path)
    parts = urlsplit(given)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("write the address of slurmrestd as https://host:6820, http://host:6820 or unix:/path/to/socket")
    if parts.username or parts.password:
        raise ValueError("leave user and password out of the address; the token is named by reference")
    if parts.query or parts.fragment:
        raise ValueError("leave the part from ? or # out of the address")
    _ = parts.port  # raises ValueError when it is no port
    return Address(given.rstrip("/"), None)
