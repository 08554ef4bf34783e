"""Asking a running Slurm for its records through slurmrestd: a window of slurmdbd, and what waits in slurmctld."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from collectors.slurm.rest.client import Access, RestError, RestTooMuchError, Slurmrestd
from collectors.slurm.rest.reader import HEADER_LINE, RestReader
from collectors.slurm.rest.stream import Answer, AnswerError
from collectors.slurm.rest.token import TokenError, expires_at
from collectors.slurm.rest.versions import dialect_of

WARN_BEFORE_END = timedelta(days=2)
# What slurmdbd says beyond its MaxQueryTimeRange and its largest message.
_TOO_MUCH = re.compile(r"too wide of a date range|too large", re.IGNORECASE)


@dataclass
class RestQuestion:
    """Records of `cluster` (as Slurm calls it) in `[first, last)`, and with `with_waiting` also those that wait without being eligible.

    `messages` grow while the reader is iterated; `token_ends_at` is known from `reader` on. `limit_seconds` is for each of the answers.
    """

    access: Access
    cluster: str
    first: datetime
    last: datetime
    with_waiting: bool
    limit_seconds: float
    messages: list[str] = field(default_factory=list)
    header: str = HEADER_LINE
    token_ends_at: datetime | None = None

    def reader(self, now: datetime, *, shards_per_gpu: int | None = None, tracks_gpus: bool = True) -> RestReader:
        """`shards_per_gpu`, `tracks_gpus`: see `collectors.slurm.tres`. Raises RestError here and while it is iterated."""
        self._note_end_of_token(now)
        with self._rest() as rest:
            version = rest.version()
        waiting = self._waiting(version) if self.with_waiting else ()
        return RestReader(
            self._stored(version),
            waiting,
            dialect=dialect_of(version),
            cluster=self.cluster,
            now=now,
            shards_per_gpu=shards_per_gpu,
            tracks_gpus=tracks_gpus,
        )

    def _stored(self, version: str) -> Iterator[Any]:
        with self._rest() as rest:
            answer = rest.stored_jobs(version, self.cluster, self.first, self.last)
            yield from self._told(answer)

    def _waiting(self, version: str) -> Iterator[Any]:
        """Without slurmctld the records are still worth having. It shows its own cluster only, which need not be this one."""
        try:
            with self._rest() as rest:
                yield from (job for job in self._told(rest.live_jobs(version)) if self._is_ours(job))
        except RestError as exc:
            self._note(f"jobs that are held or wait for others were not asked for: {exc}")

    def _told(self, answer: Answer) -> Iterator[Any]:
        """The jobs of an answer; its warnings go into the messages, and what it says of a failure into the error."""
        try:
            yield from answer
        except AnswerError as exc:
            kind = RestTooMuchError if _TOO_MUCH.search(str(exc)) else RestError
            hint = f"; is the token in {self.access.token} still valid?" if "authentication" in str(exc).lower() else ""
            raise kind(f"{self.access.address}: {exc}{hint}") from exc
        for warning in answer.warnings:
            self._note(f"slurmrestd warns: {warning}")

    def _is_ours(self, job: Any) -> bool:
        name = job.get("cluster") if isinstance(job, dict) else None
        return not isinstance(name, str) or name.casefold() in {"", self.cluster.casefold()}

    def _rest(self) -> Slurmrestd:
        return Slurmrestd(self.access, limit_seconds=self.limit_seconds)

    def _note(self, words: str) -> None:
        if words not in self.messages:
            self.messages.append(words)

    def _note_end_of_token(self, now: datetime) -> None:
        self.token_ends_at = end = token_ends_at(self.access)
        if end is not None and end - now < WARN_BEFORE_END:
            when = "ended" if end <= now else "ends"
            self._note(f"The token in {self.access.token} {when} {end.astimezone(UTC):%Y-%m-%d %H:%M} UTC.")


def token_ends_at(access: Access) -> datetime | None:
    """When the token that is there now ends by its own word; None when it does not say or cannot be read."""
    try:
        return expires_at(access.token.read())
    except TokenError:
        return None
