"""A whole sacct dump: header, lines that belong together, counts. Pure: it is given lines and a clock.

Every physical line but the header is counted once: accepted + rejected + ignored = lines. A record that a line break inside a field
spread over several lines counts as one line accepted, and its further lines as ignored; so does a header that is repeated (dumps put
together).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from accounting.domain.records import Rejected, UsageRecord
from collectors.slurm.columns import Columns, SacctHeaderError, read_header
from collectors.slurm.mapping import Mapper
from collectors.slurm.parse import MAX_LINE_BYTES, Ignored, SacctParser, SacctRow, looks_like_start, shown
from collectors.slurm.resized import ResizedSegments

__all__ = ["LineReader", "SacctHeaderError", "SacctReader", "Tally", "bounded_lines"]

MAX_JOINED_LINES = 64
REASON_LENGTH = 500


@dataclass
class Tally:
    """What became of the lines that were read so far.

    Who reads a very bad dump may empty `rejections` now and then (`rejected_count` goes on).
    """

    line_count: int = 0
    accepted_count: int = 0
    ignored_count: int = 0
    rejected_count: int = 0
    rejections: list[Rejected] = field(default_factory=list)

    def reject(self, rejected: Rejected) -> None:
        self.rejected_count += 1
        self.rejections.append(rejected._replace(reason=rejected.reason[:REASON_LENGTH]))


class LineReader:
    """Reads the lines below `header` one by one and counts them in `tally`; this is where it is decided what a line is.

    `shards_per_gpu`, `tracks_gpus`: see `collectors.slurm.tres`. Raises SacctHeaderError at construction.
    """

    def __init__(
        self,
        header: bytes,
        tally: Tally,
        *,
        cluster: str,
        zone: ZoneInfo,
        now: datetime,
        shards_per_gpu: int | None = None,
        tracks_gpus: bool = True,
    ) -> None:
        self._header = _bare(header)
        self.columns: Columns = read_header(header)
        self.parser = SacctParser(
            self.columns, cluster=cluster, zone=zone, shards_per_gpu=shards_per_gpu, tracks_gpus=tracks_gpus
        )
        self.mapper = Mapper(now)
        self.segments = ResizedSegments()
        self.tally = tally
        self._source: Iterator[bytes] = iter(())
        self._unread: deque[bytes] = deque()
        self._number = 0

    def records(self, lines: Iterable[bytes], before: int) -> Iterator[UsageRecord]:
        """Records of neighbouring `lines`, with or without line ends, that follow line number `before`.

        Resized segments are held back in `segments` until all is read.
        """
        segments = self.segments
        self._source, self._number = iter(lines), before
        for row, line, number in self._rows():
            try:
                record = self.mapper.record(row)
            except ValueError as exc:
                self.tally.reject(Rejected(number, shown(line), str(exc)))
                continue
            self.tally.accepted_count += 1
            if record.state == "RESIZING":
                segments.hold_back(record)
                continue
            if segments.held:
                segments.note_successor(record)
            yield record

    def _rows(self) -> Iterator[tuple[SacctRow, bytes, int]]:
        """Rows with their line and its number; what is none is counted."""
        parse, tally = self.parser.parse, self.tally
        for line in self._lines():
            tally.line_count += 1
            self._number += 1
            number = self._number
            row = parse(line, number)
            if type(row) is Rejected:
                row = self._second_thought(line, row)
            if type(row) is SacctRow:
                yield row, line, number
            elif type(row) is Rejected:
                tally.reject(row)
            else:
                tally.ignored_count += 1

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

    def _second_thought(self, line: bytes, rejected: Rejected) -> SacctRow | Ignored | Rejected:
        """A line that is no record by itself may be the header again, or the first part of a record that a line break split."""
        if _bare(line) == self._header:
            return Ignored(rejected.line_number, "header")
        fields = self.parser.split(line)
        if isinstance(fields, str) or len(fields) >= self.columns.field_count or not looks_like_start(fields, self.columns):
            return rejected
        return self._join(line, len(fields), rejected)

    def _join(self, line: bytes, have: int, rejected: Rejected) -> SacctRow | Ignored | Rejected:
        """`line` (of `have` fields) and those after it as one record, else `rejected`; what was not needed is read again.

        Joined are only short lines that do not begin like a record themselves, and only if all together have exactly the right
        number of columns and make a valid row: a good neighbour is never eaten.
        """
        looked_at, complete = self._look_ahead(have)
        row: SacctRow | Ignored | Rejected = rejected
        if complete:
            row = self.parser.parse(b"\n".join(map(_bare, [line, *looked_at])), rejected.line_number)
        if type(row) is Rejected:
            self._unread.extendleft(reversed(looked_at))
            return rejected
        self.tally.line_count += len(looked_at)
        self.tally.ignored_count += len(looked_at)
        self._number += len(looked_at)
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
            fields = self.parser.split(line)
            if isinstance(fields, str) or len(fields) >= self.columns.field_count or looks_like_start(fields, self.columns):
                break
            have += len(fields) - 1
            if have >= self.columns.field_count:
                return looked_at, have == self.columns.field_count
        return looked_at, False


class SacctReader(Tally):
    """Iterate it once for the usage records of a dump of `cluster`, whose times are those of `zone`; `now` is the reader's aware clock.

    `lines` are physical lines (with or without line ends), the header first; the counts grow while it is iterated. For large dumps
    `collectors.slurm.blocks` reads the same, many lines at a time. Raises SacctHeaderError at construction.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        *,
        cluster: str,
        zone: ZoneInfo,
        now: datetime,
        shards_per_gpu: int | None = None,
        tracks_gpus: bool = True,
    ) -> None:
        super().__init__()
        self._source = iter(lines)
        header = next(self._source, b"")
        self._reader = LineReader(
            header, self, cluster=cluster, zone=zone, now=now, shards_per_gpu=shards_per_gpu, tracks_gpus=tracks_gpus
        )
        self.columns = self._reader.columns

    def __iter__(self) -> Iterator[UsageRecord]:
        yield from self._reader.records(self._source, before=1)
        yield from self._reader.segments.release()


def _bare(line: bytes) -> bytes:
    return line.rstrip(b"\r\n")


class LineSource(Protocol):
    """A binary file, as far as it is needed here."""

    def readline(self, size: int, /) -> bytes: ...


def bounded_lines(stream: LineSource) -> Iterator[bytes]:
    """The physical lines of a file with flat memory: of a line beyond what a record may have only the beginning is kept."""
    limit = MAX_LINE_BYTES + 2
    while line := stream.readline(limit):
        yield line
        while len(line) == limit and not line.endswith(b"\n"):
            line = stream.readline(limit)
