"""Remembered readings: a dump repeats the same few texts in most columns, and a dictionary answers them without a call. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

V = TypeVar("V")
K = TypeVar("K")
MEMO_LIMIT = 50_000


class Memo(dict[K, V]):
    """`memo[text]` is `read(text)`, read once. Errors are not remembered; at `limit` entries it starts over,
    so memory stays flat."""

    __slots__ = ("_limit", "_read")

    def __init__(self, read: Callable[[K], V], limit: int = MEMO_LIMIT) -> None:
        super().__init__()
        self._read = read
        self._limit = limit

    def __missing__(self, key: K) -> V:
        value = self._read(key)
        if len(self) >= self._limit:
            self.clear()
        self[key] = value
        return value
