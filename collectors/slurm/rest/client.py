"""slurmrestd over TCP or a Unix socket: the only place with a socket. GET only; it never changes anything in Slurm."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx

from collectors.slurm.command import CommandError, TooMuchError
from collectors.slurm.rest.address import Address
from collectors.slurm.rest.stream import Answer, message_of
from collectors.slurm.rest.token import TokenError, TokenReference
from collectors.slurm.rest.versions import READABLE, newest_readable, offered_in

CONNECT_SECONDS = 10.0
# slurmrestd answers only when it has everything; large windows take it minutes.
LIMIT_SECONDS = 600.0
MAX_BYTES = 4 * 2**30
MAX_OPENAPI_BYTES = 64 * 2**20
CHUNK_BYTES = 2**18
SHORT_BYTES = 2**16
PAUSES_SECONDS = (1.0, 4.0)
PASSING_STATUS = frozenset({429, 502, 503, 504})
PASSING_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.RemoteProtocolError, httpx.PoolTimeout)
_OVERLAP = 64
# Base states; with them slurmdbd also lists what was cancelled before it was eligible, as `sacct -s` does.
STATES = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
    "OUT_OF_MEMORY",
)  # fmt: skip


class RestError(CommandError):
    """slurmrestd could not be asked, or refused. The message names the place and says what to do; it never has a token in it."""


class RestTooMuchError(TooMuchError, RestError):
    """The answer is larger, or takes longer, than it may: ask for less."""


class Access(NamedTuple):
    """How to get in. `user` is sent as X-SLURM-USER-NAME (empty: the token says it); `ca_file` replaces the system's authorities."""

    address: Address
    token: TokenReference
    user: str = ""
    ca_file: str = ""


class Slurmrestd:
    """One slurmrestd. Use it as a context manager; every method raises RestError. `limit_seconds` is for all answers together.

    Redirects are refused and proxies of the environment are not used, so the token goes to the named place only.
    """

    def __init__(self, access: Access, *, max_bytes: int = MAX_BYTES, limit_seconds: float = LIMIT_SECONDS) -> None:
        if access.address.socket is not None and not Path(access.address.socket).is_socket():
            raise RestError(f"{access.address}: there is no socket, or it may not be seen from here")
        self._access = access
        self._max_bytes = max_bytes
        self._limit_seconds = limit_seconds
        self._deadline = time.monotonic() + limit_seconds
        transport = httpx.HTTPTransport(verify=_trust(access.ca_file), uds=access.address.socket, trust_env=False)
        self._client = httpx.Client(
            transport=transport,
            timeout=httpx.Timeout(limit_seconds, connect=CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,
        )

    def __enter__(self) -> Slurmrestd:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def version(self) -> str:
        """The newest data parser version that it offers and that can be read here."""
        offered = self._offered()
        found = newest_readable(offered)
        if found is None:
            known = f"it offers {', '.join(sorted(offered))}" if offered else "it offers no jobs of slurmdbd"
            raise RestError(f"{self._access.address}: {known}; those that can be read: {', '.join(READABLE)}")
        return found

    def stored_jobs(self, version: str, cluster: str, start: datetime, end: datetime) -> Answer:
        """What slurmdbd has of `cluster` with any part in [start, end): every attempt, whole times, no steps."""
        return Answer(self._chunks(f"/slurmdb/{version}/jobs?{stored_query(version, cluster, start, end)}", self._max_bytes))

    def live_jobs(self, version: str) -> Answer:
        """What slurmctld has in memory."""
        return Answer(self._chunks(f"/slurm/{version}/jobs", self._max_bytes))

    def _offered(self) -> frozenset[str]:
        """By its openapi document; where there is none (it may be switched off) by asking for one version after the other."""
        found: set[str] = set()
        tail = ""
        with self._answer("/openapi/v3") as response:
            if response.status_code == httpx.codes.NOT_FOUND:
                return self._probed()
            self._check(response)
            for chunk in self._read(response, MAX_OPENAPI_BYTES):
                text = tail + chunk.decode("ascii", "replace")
                found |= offered_in(text)
                tail = text[-_OVERLAP:]
        return frozenset(found)

    def _probed(self) -> frozenset[str]:
        for version in READABLE:
            with self._answer(f"/slurmdb/{version}/diag") as response:
                if response.status_code != httpx.codes.NOT_FOUND:
                    self._check(response)
                    return frozenset({version})
        return frozenset()

    def _chunks(self, path: str, limit: int) -> Iterator[bytes]:
        with self._answer(path) as response:
            self._check(response)
            yield from self._read(response, limit)

    def _read(self, response: httpx.Response, limit: int) -> Iterator[bytes]:
        size = 0
        try:
            for chunk in response.iter_bytes(CHUNK_BYTES):
                size += len(chunk)
                if size > limit:
                    raise RestTooMuchError(f"{self._access.address}: the answer is larger than {limit:,} bytes; ask for less")
                if time.monotonic() > self._deadline:
                    raise self._late()
                yield chunk
        except httpx.ReadTimeout as exc:
            raise self._late() from exc
        except httpx.HTTPError as exc:
            raise RestError(f"{self._access.address}: the answer broke off after {size:,} bytes ({_words(exc)})") from exc

    @contextmanager
    def _answer(self, path: str) -> Iterator[httpx.Response]:
        """The head of an answer; a passing fault is tried again, but never after the body was begun."""
        response = self._opened(path)
        try:
            yield response
        finally:
            response.close()

    def _opened(self, path: str) -> httpx.Response:
        for pause in (*PAUSES_SECONDS, None):
            try:
                response = self._client.send(self._request(path), stream=True)
            except PASSING_ERRORS as exc:
                if pause is None:
                    raise RestError(f"{self._access.address}: no answer ({_words(exc)})") from exc
            except httpx.ReadTimeout as exc:
                raise self._late() from exc
            except (httpx.HTTPError, httpx.InvalidURL) as exc:
                raise RestError(f"{self._access.address}: no answer ({_words(exc)})") from exc
            else:
                if response.status_code not in PASSING_STATUS or pause is None:
                    return response
                response.close()
            time.sleep(pause)
        raise AssertionError  # pragma: no cover

    def _late(self) -> RestTooMuchError:
        return RestTooMuchError(
            f"{self._access.address}: it did not answer within {self._limit_seconds:.0f} s; raise the limit or ask for less"
        )

    def _request(self, path: str) -> httpx.Request:
        """With the token as it is now: it may have been renewed since."""
        try:
            token = self._access.token.read()
        except TokenError as exc:
            raise RestError(str(exc)) from exc
        headers = {"X-SLURM-USER-TOKEN": token, "Accept": "application/json"}
        if self._access.user:
            headers["X-SLURM-USER-NAME"] = self._access.user
        return self._client.build_request("GET", self._access.address.base_url + path, headers=headers)

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == httpx.codes.OK:
            return
        where = f"{self._access.address}: {status} {response.reason_phrase}"
        if response.is_redirect:
            raise RestError(f"{where}: it sends elsewhere, which is refused; name the final address")
        said = message_of(b"".join(self._read(response, SHORT_BYTES * 16))[:SHORT_BYTES])
        if status in {401, 403}:
            raise RestError(f"{where}: {said}; is the token in {self._access.token} still valid, and for this user?")
        raise RestError(f"{where}: {said}")


def stored_query(version: str, cluster: str, start: datetime, end: datetime) -> str:
    """The question for a window, as each data parser takes it.

    Times are `uts<epoch>`, which all of them read whatever the zone of the server. With any question at all 0.0.38 lists every attempt
    with whole times; later ones must be told not to leave out earlier attempts and not to cut times at the window.
    """
    first, last = round(start.timestamp()), round(end.timestamp())
    pairs = [("start_time", f"uts{first}"), ("end_time", f"uts{last}"), ("cluster", cluster), ("skip_steps", "true")]
    if version == "v0.0.38":
        pairs.append(("state", ",".join(STATES)))
    else:
        pairs += [("show_duplicates", "true"), ("disable_truncate_usage_time", "true"), *(("state", state) for state in STATES)]
    return "&".join(f"{key}={quote(value, safe='')}" for key, value in pairs)


def _trust(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as exc:
        raise RestError(f"{ca_file}: no certificates can be read from it ({exc.strerror or 'damaged'})") from exc


def _words(exc: Exception) -> str:
    return str(exc)[:200] or type(exc).__name__
