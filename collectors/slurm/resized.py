"""Segments of jobs that were resized while they ran. Pure.

Slurm ends a record with state RESIZING and opens the next one under the same job id. slurmdbd keeps (job id, Submit) unique and
gives the
next record the time of the resize as its Submit, so both keep their plain ids; and a running record that was seen before the
resize is
replaced by its RESIZING segment. Only where a dump shows a successor under the same Submit does the segment get an id of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from accounting.domain.records import UsageRecord

Key = tuple[str, datetime]


class ResizedSegments:
    """Holds back RESIZING records (few) until the end of the dump, when it is known whether their key is taken."""

    def __init__(self) -> None:
        self.held: dict[Key, dict[datetime | None, UsageRecord]] = {}
        self._taken: set[Key] = set()

    def hold_back(self, record: UsageRecord) -> None:
        self.held.setdefault(_key(record), {})[record.ended_at] = record

    def note_successor(self, record: UsageRecord) -> None:
        self.note_key(_key(record))

    def note_key(self, key: Key) -> None:
        if key in self.held:
            self._taken.add(key)

    def release(self) -> Iterator[UsageRecord]:
        """All segments; those whose key another record has get `<id>/<epoch seconds of their end>`."""
        for key, by_end in self.held.items():
            *earlier, last = sorted(by_end.values(), key=_end)
            yield from map(_with_own_id, earlier)
            yield _with_own_id(last) if key in self._taken else last


def _key(record: UsageRecord) -> Key:
    return record.external_id, record.submitted_at


def _end(record: UsageRecord) -> float:
    return record.ended_at.timestamp() if record.ended_at else float("inf")


def _with_own_id(record: UsageRecord) -> UsageRecord:
    return record._replace(external_id=f"{record.external_id[:230]}/{_end(record):.0f}")
