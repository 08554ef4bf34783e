"""Files and folders of dumps: bytes in, bytes out. The only place of the collectors that opens a file."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

STDIN = "-"
STDIN_NAME = "standard input"
SUFFIXES = (".txt", ".psv", ".gz")
SETTLE_SECONDS = 2
BLOCK_BYTES = 256 * 1024
GZIP_MAGIC = b"\x1f\x8b"

Meter = Callable[[int], object]


class InputError(Exception):
    """An input could not be read; the message names it, says what is wrong and what to do."""


class Found(NamedTuple):
    """A dump in a watched folder. `name` is printable; `modified_ns` is its time of change since the epoch."""

    name: str
    path: Path
    size_bytes: int
    modified_ns: int


def no_meter(byte_count: int) -> None:
    """Where nobody watches the progress."""


def name_of(path: str) -> str:
    """How an input is called in runs: the same file has the same name wherever it is read from."""
    return STDIN_NAME if path == STDIN else printable(str(Path(path).resolve()))


def short(path: str) -> str:
    """What a progress bar calls an input."""
    return STDIN_NAME if path == STDIN else printable(Path(path).name)


def printable(name: str) -> str:
    """A file name may hold any bytes; the database takes text."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def size_of(path: str) -> int | None:
    """Size in bytes as it lies on disk, None for standard input; raises InputError if it cannot be read."""
    if path == STDIN:
        return None
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder; name the files in it, or watch it with `collect source add`")
    try:
        with Path(path).open("rb") as file:
            return os.fstat(file.fileno()).st_size
    except OSError as exc:
        raise InputError(f"{path}: {_why(exc)}; check the name and the rights") from exc


def scan(folder: str, now_ns: int) -> list[Found]:
    """Dumps in `folder` in order of name, without hidden ones and those changed within 2 s before `now_ns`."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_dump(entry))
    except OSError as exc:
        raise InputError(f"folder {folder}: {_why(exc)}; create it, or correct the source's location") from exc
    found = (_found(Path(folder) / name) for name in names)
    return [file for file in found if file is not None and file.modified_ns <= now_ns - SETTLE_SECONDS * 10**9]


@contextmanager
def pieces_of(path: str, meter: Meter = no_meter) -> Iterator[Iterator[bytes]]:
    """The bytes of a file or of standard input (`-`), gzip or plain, piece by piece; `meter` hears of the bytes as they are read from disk.

    Raises InputError when it is missing, a folder, no gzip although called `.gz`, or a gzip that is damaged or ends early.
    """
    with _stream(path, meter) as stream:
        yield _pieces(stream, name_of(path))


def bytes_of(path: str) -> bytes:
    """The whole of a small input (an inventory, not a dump); raises InputError as `pieces_of` does."""
    with _stream(path, no_meter) as stream, _explained(name_of(path)):
        return stream.read()


@contextmanager
def _stream(path: str, meter: Meter) -> Iterator[io.BufferedIOBase]:
    name = name_of(path)
    size_of(path)
    with _opened(path) as raw:
        metered = io.BufferedReader(_Metered(raw, meter), BLOCK_BYTES)
        is_gzip = metered.peek(2)[:2] == GZIP_MAGIC
        if path.endswith(".gz") and not is_gzip:
            raise InputError(f"{name} is called .gz but is not gzip; rename it, or copy it again")
        yield _unpacked(metered) if is_gzip else metered


def _unpacked(packed: io.BufferedIOBase) -> io.BufferedIOBase:
    return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=packed)), BLOCK_BYTES)


@contextmanager
def _opened(path: str) -> Iterator[io.BufferedIOBase]:
    if path == STDIN:
        yield cast(io.BufferedIOBase, sys.stdin.buffer)
    else:
        with Path(path).open("rb") as file:
            yield file


class _Metered(io.RawIOBase):
    """Hands reads through and tells `meter` how many bytes came."""

    def __init__(self, raw: io.BufferedIOBase, meter: Meter) -> None:
        self._raw, self._meter = raw, meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stubs want every kind of buffer
        count = self._raw.readinto1(buffer)
        self._meter(count)
        return count


def _pieces(stream: io.BufferedIOBase, name: str) -> Iterator[bytes]:
    with _explained(name):
        while piece := stream.read(BLOCK_BYTES):
            yield piece


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Errors of reading as InputError."""
    try:
        yield
    except EOFError as exc:
        raise InputError(f"{name}: the gzip data ends early; the copy is not complete, copy it again") from exc
    except (gzip.BadGzipFile, zlib.error) as exc:
        raise InputError(f"{name}: the gzip data is damaged ({exc}); copy it again") from exc
    except OSError as exc:
        raise InputError(f"{name}: {_why(exc)}") from exc


def _is_dump(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.name.endswith(SUFFIXES) and entry.is_file()


def _found(path: Path) -> Found | None:
    """None when it went away since the folder was listed."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return Found(printable(path.name), path, facts.st_size, facts.st_mtime_ns)


def _why(exc: OSError) -> str:
    return exc.strerror.lower() if exc.strerror else str(exc)
