"""A whole sacct dump: header, lines that belong together, counts. Pure: it is given lines and a clock.

Every physical line but the header is counted once: accepted + rejected + ignored = lines. A record that a line break inside a
field spread
over several lines counts as one line accepted, and its further lines as ignored; so does a header that is repeated (dumps put
together).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from accounting.domain.records import Rejected, UsageRecord
from collectors.slurm.columns import Columns, SacctHeaderError, read_header
from collectors.slurm.mapping import Mapper
from collectors.slurm.parse import MAX_LINE_BYTES, Ignored, SacctParser, SacctRow, looks_like_start, shown
from collectors.slurm.resized import ResizedSegments

__all__ = ["SacctHeaderError", "SacctReader", "bounded_lines"]

MAX_JOINED_LINES = 64
REASON_LENGTH = 500


class SacctReader:
    """Iterate it once for the usage records of a dump of `cluster`, whose times are those of `zone`; `now` is the reader's
    aware clock.

    `lines` are physical lines (with or without line ends), the header first. The counts and `rejections` grow while it is
    iterated; who
    reads a very bad dump may empty that list now and then (`rejected_count` goes on). `shards_per_gpu`: see
    `collectors.slurm.tres`.
    Raises SacctHeaderError at construction.
    """

    def __init__(
        self, lines: Iterable[bytes], *, cluster: str, zone: ZoneInfo, now: datetime, shards_per_gpu: int | None = None
    ) -> None:
        self._source = iter(lines)
        self._header = next(self._source, b"")
        self.columns: Columns = read_header(self._header)
        self._parser = SacctParser(self.columns, cluster=cluster, zone=zone, shards_per_gpu=shards_per_gpu)
        self._mapper = Mapper(now)
        self._unread: deque[bytes] = deque()
        self._segments = ResizedSegments()
        self.line_count = 0
        self.accepted_count = 0
        self.ignored_count = 0
        self.rejected_count = 0
        self.rejections: list[Rejected] = []

    def __iter__(self) -> Iterator[UsageRecord]:
        segments = self._segments
        for row, line, number in self._rows():
            try:
                record = self._mapper.record(row)
            except ValueError as exc:
                self._reject(Rejected(number, shown(line), str(exc)))
                continue
            self.accepted_count += 1
            if record.state == "RESIZING":
                segments.hold_back(record)
                continue
            if segments.held:
                segments.note_successor(record)
            yield record
        yield from segments.release()

    def _rows(self) -> Iterator[tuple[SacctRow, bytes, int]]:
        """Rows with their line and its number; what is none is counted."""
        parse = self._parser.parse
        for line in self._lines():
            self.line_count += 1
            number = self.line_count + 1
            row = parse(line, number)
            if type(row) is Rejected:
                row = self._second_thought(line, row)
            if type(row) is SacctRow:
                yield row, line, number
            elif type(row) is Rejected:
                self._reject(row)
            else:
                self.ignored_count += 1

    def _lines(self) -> Iterator[bytes]:
        """Lines that were looked at too early come again; an empty piece after the final line end is no line."""
        unread = self._unread
        for fresh in self._source:
            unread.append(fresh)
            while unread:
                line = unread.popleft()
                if line == b"" and self._at_end():
                    return
                yield line

    def _at_end(self) -> bool:
        following = self._next_line()
        if following is not None:
            self._unread.appendleft(following)
        return following is None

    def _next_line(self) -> bytes | None:
        return self._unread.popleft() if self._unread else next(self._source, None)

    def _reject(self, rejected: Rejected) -> None:
        self.rejected_count += 1
        self.rejections.append(rejected._replace(reason=rejected.reason[:REASON_LENGTH]))

    def _second_thought(self, line: bytes, rejected: Rejected) -> SacctRow | Ignored | Rejected:
        """A line that is no record by itself may be the header again, or the first part of a record that a line break split."""
        if _bare(line) == _bare(self._header):
            return Ignored(rejected.line_number, "header")
        fields = self._parser.split(line)
        if isinstance(fields, str) or len(fields) >= self.columns.field_count or not looks_like_start(fields, self.columns):
            return rejected
        return self._join(line, len(fields), rejected)

    def _join(self, line: bytes, have: int, rejected: Rejected) -> SacctRow | Ignored | Rejected:
        """`line` (of `have` fields) and those after it as one record, else `rejected`; what was not needed is read again.

        Joined are only short lines that do not begin like a record themselves, and only if all together have exactly the right
        number of
        columns and make a valid row: a good neighbour is never eaten.
        """
        looked_at, complete = self._look_ahead(have)
        row: SacctRow | Ignored | Rejected = rejected
        if complete:
            row = self._parser.parse(b"\n".join(map(_bare, [line, *looked_at])), rejected.line_number)
        if type(row) is Rejected:
            self._unread.extendleft(reversed(looked_at))
            return rejected
        self.line_count += len(looked_at)
        self.ignored_count += len(looked_at)
        return row

    def _look_ahead(self, have: int) -> tuple[list[bytes], bool]:
        """Lines read ahead, and whether they complete a record of which `have` fields are there."""
        looked_at: list[bytes] = []
        size = 0
        while len(looked_at) < MAX_JOINED_LINES and size <= MAX_LINE_BYTES:
            line = self._next_line()
            if line is None:
                break
            looked_at.append(line)
            size += len(line)
            fields = self._parser.split(line)
            if isinstance(fields, str) or len(fields) >= self.columns.field_count or looks_like_start(fields, self.columns):
                break
            have += len(fields) - 1
            if have >= self.columns.field_count:
                return looked_at, have == self.columns.field_count
        return looked_at, False


class Readable(Protocol):
    """A binary file, as far as it is needed here."""

    def readline(self, size: int, /) -> bytes: ...


def bounded_lines(stream: Readable) -> Iterator[bytes]:
    """The physical lines of a file with flat memory: of a line beyond what a record may have only the beginning is kept."""
    limit = MAX_LINE_BYTES + 2
    while line := stream.readline(limit):
        yield line
        while len(line) == limit and not line.endswith(b"\n"):
            line = stream.readline(limit)


def _bare(line: bytes) -> bytes:
    return line.rstrip(b"\r\n")
