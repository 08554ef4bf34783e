"""A whole sacct dump, many lines at a time: what `SacctReader` gives record by record comes as blocks here. Pure.

Plain lines go through `PlainReader`; the odd ones and their neighbours through `LineReader`, so that both read any dump alike.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from accounting.domain.blocks import RecordBlock, blocks_of
from accounting.domain.records import UsageRecord
from collectors.slurm.parse import MAX_LINE_BYTES
from collectors.slurm.reader import LineReader, Tally
from collectors.slurm.vectors import PlainReader

# The first blocks are small, so that the database has work soon; large ones cost less a line.
FIRST_BYTES = 512 * 1024
MOST_BYTES = 8 * 1024 * 1024
KEPT_BYTES = MAX_LINE_BYTES + 2
MOST_CARRIED = 256


class Lines(NamedTuple):
    """Neighbouring physical lines without their ends; `broken` are those that are no UTF-8 (empty among `texts`)."""

    texts: list[str]
    broken: dict[int, bytes]

    def as_bytes(self, place: int) -> bytes:
        return self.broken[place] if place in self.broken else self.texts[place].encode()

    def after(self, count: int) -> Lines:
        return Lines(self.texts[count:], {place - count: line for place, line in self.broken.items() if place >= count})

    def followed_by(self, others: Lines) -> Lines:
        moved = {place + len(self.texts): line for place, line in others.broken.items()}
        return Lines(self.texts + others.texts, self.broken | moved)


class SacctBlocks(Tally):
    """Iterate it once for the usage records of a dump, in blocks; arguments and counts as for `SacctReader`.

    `pieces` are the bytes of the dump, cut anywhere; `header` is its first line. Memory stays flat: some 8 MiB are looked at together,
    and of a line beyond what a record may have only the beginning is kept. Raises SacctHeaderError at construction.
    """

    def __init__(
        self,
        pieces: Iterable[bytes],
        *,
        cluster: str,
        zone: ZoneInfo,
        now: datetime,
        shards_per_gpu: int | None = None,
        tracks_gpus: bool = True,
    ) -> None:
        super().__init__()
        self._batches = _batches(pieces)
        first = next(self._batches, NO_LINES)
        header = first.as_bytes(0) if first.texts else b""
        self.header = header.decode("utf-8", "replace").rstrip("\r\n")
        self._lines = LineReader(
            header, self, cluster=cluster, zone=zone, now=now, shards_per_gpu=shards_per_gpu, tracks_gpus=tracks_gpus
        )
        self._first = first.after(1)
        self.columns = self._lines.columns
        self._plain = PlainReader(self.columns, self._lines.parser, self._lines.mapper)

    def __iter__(self) -> Iterator[RecordBlock]:
        lines, before = self._first, 1
        for following in self._batches:
            taken = yield from self._take(lines, before, is_last=False)
            lines, before = lines.after(taken).followed_by(following), before + taken
        yield from self._take(lines, before, is_last=True)
        yield from blocks_of(self._lines.segments.release())

    def _take(self, lines: Lines, before: int, *, is_last: bool) -> Generator[RecordBlock, None, int]:
        """Blocks of `lines`, which follow line number `before`; returns how many were taken (the rest belongs to what follows)."""
        texts = pl.Series(self._without_returns(lines.texts), dtype=pl.String)
        is_readable = self._plain.is_readable(texts)
        taken = len(texts) if is_last else _settled(is_readable)
        is_readable, readable = is_readable.head(taken), is_readable.head(taken).arg_true()
        plain = self._plain.read(texts.gather(readable))
        self.line_count += len(readable) - len(plain.odd)
        self.ignored_count += plain.step_count
        self.accepted_count += len(plain.block.frame)
        yield from blocks_of(self._records_of_odd(lines, before, is_readable, readable.gather(plain.odd).to_list()))
        self._note_successors(plain.block)
        yield plain.block
        return taken

    def _records_of_odd(self, lines: Lines, before: int, is_readable: pl.Series, odd: list[int]) -> Iterator[UsageRecord]:
        """Odd lines are read each by itself, those that have not the right columns together with such neighbours."""
        runs = _runs((~is_readable).arg_true().to_list()) + [range(place, place + 1) for place in odd]
        for run in sorted(runs, key=lambda places: places.start):
            yield from self._lines.records((lines.as_bytes(place) + b"\n" for place in run), before + run.start)

    def _note_successors(self, block: RecordBlock) -> None:
        segments = self._lines.segments
        if segments.held:
            ids = [external_id for external_id, _ in segments.held]
            keys = block.frame.filter(pl.col("external_id").is_in(ids)).select("external_id", "submitted_at")
            for key in keys.iter_rows():
                segments.note_key(key)

    def _without_returns(self, texts: list[str]) -> list[str]:
        return [text.removesuffix("\r") for text in texts] if self.columns.ends_with_return else texts


NO_LINES = Lines([], {})


def _settled(is_readable: pl.Series) -> int:
    """How many lines can be read without knowing what follows: the last of them may be the beginning of a record that goes on."""
    readable = is_readable.arg_true()
    settled = readable[-1] + 1 if len(readable) else 0
    return settled if len(is_readable) - settled <= MOST_CARRIED else len(is_readable)


def _runs(places: list[int]) -> list[range]:
    """Rising places as stretches of neighbours."""
    neighbours = groupby(enumerate(places), key=lambda pair: pair[1] - pair[0])
    groups = ([place for _, place in group] for _, group in neighbours)
    return [range(group[0], group[-1] + 1) for group in groups]


def _batches(pieces: Iterable[bytes]) -> Iterator[Lines]:
    """The whole dump as whole lines, up to some 8 MiB of them at a time."""
    rest = b""
    for data in _joined(pieces):
        whole, end, rest_of_data = data.rpartition(b"\n")
        if end:
            yield _lines(rest + whole)
            rest = b""
        rest = (rest + rest_of_data)[:KEPT_BYTES]
    if rest:
        yield _lines(rest)


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    some: list[bytes] = []
    size, wanted = 0, FIRST_BYTES
    for piece in pieces:
        some.append(piece)
        size += len(piece)
        if size >= wanted:
            yield b"".join(some)
            some, size, wanted = [], 0, min(2 * wanted, MOST_BYTES)
    yield b"".join(some)


def _lines(data: bytes) -> Lines:
    try:
        return Lines(data.decode().split("\n"), {})
    except UnicodeDecodeError:
        pass
    texts, broken = [], {}
    for place, line in enumerate(data.split(b"\n")):
        try:
            texts.append(line.decode())
        except UnicodeDecodeError:
            texts.append("")
            broken[place] = line
    return Lines(texts, broken)
