"""The JWT by reference: where it is kept, what it says about its end. It is read when it is needed and never kept."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from collectors.slurm.times import instant

MAX_TOKEN_BYTES = 16_384
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,8192}(?:\.[A-Za-z0-9_-]{0,8192}){2}", re.ASCII)
LATEST_EPOCH = 253_402_300_799


class TokenError(ValueError):
    """The reference is none, or what it points to cannot be read or is no token. Says nothing of the token itself."""


class TokenReference(NamedTuple):
    """`env:NAME` or `file:/path`. Its text may be stored and shown; the token may not."""

    kind: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}"

    def read(self) -> str:
        """The token as it is now. Raises TokenError."""
        text = self._environment() if self.kind == "env" else self._file()
        # `scontrol token` prints SLURM_JWT=<token>; a file with that line is what one gets by redirecting it.
        token = text.strip().removeprefix("SLURM_JWT=")
        if not _TOKEN.fullmatch(token):
            raise TokenError(f"what {self} holds is no JWT (three parts, separated by dots); `scontrol token` prints one")
        return token

    def _environment(self) -> str:
        value = os.environ.get(self.place)
        if value is None:
            raise TokenError(f"the environment variable {self.place} is not set where the collectors run")
        return value

    def _file(self) -> str:
        try:
            with Path(self.place).open("rb") as stream:
                return stream.read(MAX_TOKEN_BYTES).decode("ascii", "replace")
        except OSError as exc:
            raise TokenError(f"{self.place}: {(exc.strerror or str(exc)).lower()}") from exc


def token_reference(text: str) -> TokenReference:
    """Raises TokenError for anything but `env:NAME` or `file:/path`, and never repeats it: it may be a token."""
    kind, _, place = text.strip().partition(":")
    if kind == "env" and _NAME.fullmatch(place):
        return TokenReference(kind, place)
    if kind == "file" and place.startswith("/") and "\0" not in place:
        return TokenReference(kind, place)
    raise TokenError("name the token by env:NAME or file:/absolute/path; the token itself is not kept here")


def expires_at(token: str) -> datetime | None:
    """When the token ends by its own word (`exp`), aware UTC; None when it does not say. The signature is not checked here."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    is_time = isinstance(end, int | float) and not isinstance(end, bool) and 0 <= end <= LATEST_EPOCH
    return instant(int(end)) if is_time and end is not None else None
