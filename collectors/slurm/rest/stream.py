"""The bytes of an answer as its jobs, one by one, with flat memory. Pure: it is given chunks.

slurmrestd may write bytes that are no UTF-8 (job names are stored as they were given); they become `?`, as slurmdbd stores them.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import ijson

MESSAGE_LENGTH = 300
KEPT_MESSAGES = 20
NOTHING_FOUND = 9003
_FOUND_NOTHING = "found nothing"


class AnswerError(ValueError):
    """The answer is no JSON, ends early, or says that the question failed."""


class Answer:
    """Iterate it once for the objects under `jobs`; raises AnswerError at its end when the answer carries errors.

    Afterwards `warnings` has what slurmrestd warned of. That nothing was found is neither an error nor a warning.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.warnings: list[str] = []

    def __iter__(self) -> Iterator[Any]:
        jobs, errors, warnings = _Collected("jobs.item"), _Collected("errors.item"), _Collected("warnings.item")
        for chunk in _utf8(self._chunks):
            for collected in (jobs, errors, warnings):
                collected.send(chunk)
            yield from jobs.take()
        for collected in (jobs, errors, warnings):
            collected.end()
        yield from jobs.take()
        self.warnings = [message for message in map(_message, warnings.take()) if _FOUND_NOTHING not in message][:KEPT_MESSAGES]
        failed = [_message(error) for error in errors.take() if not _is_nothing_found(error)]
        if failed:
            raise AnswerError("; ".join(failed[:KEPT_MESSAGES]))


class _Collected:
    """The objects at one place of a JSON document that comes in chunks."""

    def __init__(self, prefix: str) -> None:
        self._items: list[Any] = ijson.sendable_list()
        self._parser = ijson.items_coro(self._items, prefix)

    def send(self, chunk: bytes) -> None:
        try:
            self._parser.send(chunk)
        except ijson.IncompleteJSONError as exc:
            raise AnswerError("the answer ends in the middle of its JSON, or is none") from exc
        except ijson.JSONError as exc:
            raise AnswerError(f"the answer is no JSON that can be read: {str(exc)[:MESSAGE_LENGTH]}") from exc

    def end(self) -> None:
        with suppress(StopIteration):
            self.send(b"")

    def take(self) -> list[Any]:
        taken = list(self._items)
        self._items.clear()
        return taken


def message_of(body: bytes) -> str:
    """The errors that a short answer carries, in one line; else its beginning."""
    try:
        for _ in Answer([body]):
            pass
    except AnswerError as exc:
        if not body.lstrip().startswith(b"{"):
            return body[:MESSAGE_LENGTH].decode("utf-8", "replace").strip()
        return str(exc)
    return ""


def _utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")("slurm_question_mark")
    for chunk in chunks:
        # An empty piece would be taken for the end.
        if text := decoder.decode(chunk):
            yield text.encode()
    if text := decoder.decode(b"", final=True):
        yield text.encode()


def _question_mark(error: UnicodeError) -> tuple[str, int]:
    return "?", error.end if isinstance(error, UnicodeDecodeError) else 0


codecs.register_error("slurm_question_mark", _question_mark)


def _message(item: Any) -> str:
    """`Unable to connect to database: authentication error (7000)` of an entry of `errors` or `warnings`."""
    if not isinstance(item, dict):
        return str(item)[:MESSAGE_LENGTH]
    words = [str(item[key]) for key in ("error", "description") if item.get(key)]
    number = f" ({item['error_number']})" if item.get("error_number") else ""
    return (": ".join(words) + number)[:MESSAGE_LENGTH]


def _is_nothing_found(item: Any) -> bool:
    return isinstance(item, dict) and item.get("error_number") == NOTHING_FOUND
