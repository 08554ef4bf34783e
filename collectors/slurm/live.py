"""Asking a running Slurm for its records through sacct: what it can print, a window of it, and what no window lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from collectors.slurm import sacct
from collectors.slurm.command import CommandError, Host, output, running

PROBE_SECONDS = 60.0


class Abilities(NamedTuple):
    """What a sacct can print: its version, the fields to ask for, and a warning about those it lacks (empty if none)."""

    version: str
    fields: list[str]
    warning: str


@dataclass
class Question:
    """Records of one cluster in `[first, last)`, and with `with_waiting` also those that wait without being eligible.

    `messages` grow while `lines` is iterated. `limit_seconds` is for each command.
    """

    host: Host
    cluster: str
    first: datetime
    last: datetime
    with_waiting: bool
    limit_seconds: float
    messages: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[bytes]:
        """A dump with its header (which comes again where several commands were needed). Raises CommandError."""
        able = probe(self.host)
        self._note(able.warning)
        yield from self._ask(sacct.window(able.fields, self.first, self.last, self.cluster))
        if self.with_waiting:
            for ids in sacct.batches(self._not_yet_eligible()):
                yield from self._ask(sacct.jobs(able.fields, ids, self.cluster))

    def _ask(self, words: list[str]) -> Iterator[bytes]:
        with running(self.host, words, limit_seconds=self.limit_seconds) as answer:
            yield from answer.lines()
            self._note(answer.warnings)

    def _not_yet_eligible(self) -> list[str]:
        """Without slurmctld the records are still worth having."""
        try:
            waiting = output(self.host, sacct.pending(self.cluster), limit_seconds=PROBE_SECONDS)
        except CommandError as exc:
            self._note(f"jobs that are held or wait for others were not asked for: {exc}")
            return []
        return sacct.not_yet_eligible(waiting, self.last)

    def _note(self, words: str) -> None:
        if words and words not in self.messages:
            self.messages.append(words)


def probe(host: Host) -> Abilities:
    """Ask sacct for its version and fields. Raises CommandError."""
    version = sacct.version_of(output(host, ["sacct", "--version"], limit_seconds=PROBE_SECONDS))
    known = sacct.fields_of(output(host, ["sacct", "--helpformat"], limit_seconds=PROBE_SECONDS).decode("ascii", "replace"))
    try:
        fields, lacking = sacct.wanted_fields(known)
    except ValueError as exc:
        raise CommandError(f"sacct {version} on {host}: {exc}") from exc
    return Abilities(version, fields, sacct.lacking_words(lacking))
