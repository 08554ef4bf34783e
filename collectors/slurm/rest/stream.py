"""The bytes of an answer as its jobs, one by one, with flat memory. Pure: it is given chunks.

slurmrestd may write bytes that are no UTF-8 (job names are stored as they were given); they become `?`, as slurmdbd stores them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

MESSAGE_LENGTH = 300
KEPT_MESSAGES = 20
NOTHING_FOUND = 9003
_FOUND_NOTHING = "found nothing"
LONGEST_VALUE = 2**24
NO_JSON = "the answer is no JSON that can be read"
ENDS_EARLY = "the answer ends in the middle of its JSON, or is none"
_DECODER = json.JSONDecoder()
_NO_SPACE = re.compile(r"[^ \t\r\n]")


class AnswerError(ValueError):
    """The answer is no JSON, ends early, or says that the question failed."""


class Answer:
    """Iterate it once for the objects under `jobs`; raises AnswerError at its end when the answer carries errors.

    Afterwards `warnings` has what slurmrestd warned of. That nothing was found is neither an error nor a warning.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._text = _Text(chunks)
        self.warnings: list[str] = []

    def __iter__(self) -> Iterator[Any]:
        rest: dict[str, Any] = {}
        for key in self._text.names():
            if key == "jobs" and self._text.next_mark() == "[":
                yield from self._text.elements()
            else:
                rest[key] = self._text.value()
        self.warnings = [message for message in map(_message, _listed(rest, "warnings")) if _FOUND_NOTHING not in message]
        del self.warnings[KEPT_MESSAGES:]
        failed = [_message(error) for error in _listed(rest, "errors") if not _is_nothing_found(error)]
        if failed:
            raise AnswerError("; ".join(failed[:KEPT_MESSAGES]))


class _Text:
    """A JSON object that comes in chunks: its keys, and after each of them its value or, of an array, its items one by one.

    Only what has not been taken yet is kept. Raises AnswerError.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = _utf8(chunks)
        self._text = ""
        self._at = 0

    def names(self) -> Iterator[str]:
        """Take the value of each key before asking for the next one."""
        self._expect("{")
        if self._took("}"):
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise AnswerError(f"{NO_JSON}: a key is no text")
            self._expect(":")
            yield key
            if not self._took(","):
                break
        self._expect("}")

    def elements(self) -> Iterator[Any]:
        self._expect("[")
        if self._took("]"):
            return
        while True:
            yield self.value()
            if not self._took(","):
                break
        self._expect("]")

    def value(self) -> Any:
        """The next value as a whole: read once more whenever it turns out not to be there yet."""
        self.next_mark()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as exc:
                self._more(exc)
            except (ValueError, RecursionError) as exc:
                raise AnswerError(f"{NO_JSON}: {str(exc)[:MESSAGE_LENGTH]}") from exc
            else:
                # What follows a number may be more of it.
                if end < len(self._text) or not self._grow():
                    self._at = end
                    return value

    def next_mark(self) -> str:
        """The next character that is no white space, without taking it; empty at the end."""
        while True:
            found = _NO_SPACE.search(self._text, self._at)
            if found is not None:
                self._at = found.start()
                return found[0]
            self._at = len(self._text)
            if not self._grow():
                return ""

    def _took(self, mark: str) -> bool:
        taken = self.next_mark() == mark
        self._at += taken
        return taken

    def _expect(self, mark: str) -> None:
        if not self._took(mark):
            found = self.next_mark()
            raise AnswerError(f"{NO_JSON}: {found!r} where {mark!r} should be" if found else ENDS_EARLY)

    def _more(self, exc: json.JSONDecodeError) -> None:
        """Wait for the rest of a value, unless it is broken or as long as none may be."""
        if len(self._text) - self._at > LONGEST_VALUE:
            raise AnswerError(f"a value of the answer is longer than {LONGEST_VALUE:,} characters") from exc
        if not self._grow():
            raise AnswerError(ENDS_EARLY if exc.pos >= len(self._text) - 1 else f"{NO_JSON}: {exc.msg}") from exc

    def _grow(self) -> bool:
        """Take the next chunk; False at the end."""
        chunk = next(self._chunks, "")
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return bool(chunk)


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


def _utf8(chunks: Iterable[bytes]) -> Iterator[str]:
    """Text that is never empty, so that an empty one can stand for the end."""
    decoder = codecs.getincrementaldecoder("utf-8")("slurm_question_mark")
    for chunk in chunks:
        if text := decoder.decode(chunk):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


def _question_mark(error: UnicodeError) -> tuple[str, int]:
    return "?", error.end if isinstance(error, UnicodeDecodeError) else 0


codecs.register_error("slurm_question_mark", _question_mark)


def _listed(rest: dict[str, Any], key: str) -> list[Any]:
    found = rest.get(key)
    return found if isinstance(found, list) else []


def _message(item: Any) -> str:
    """`Unable to connect to database: authentication error (7000)` of an entry of `errors` or `warnings`."""
    if not isinstance(item, dict):
        return str(item)[:MESSAGE_LENGTH]
    words = [str(item[key]) for key in ("error", "description") if item.get(key)]
    number = f" ({item['error_number']})" if item.get("error_number") else ""
    return (": ".join(words) + number)[:MESSAGE_LENGTH]


def _is_nothing_found(item: Any) -> bool:
    return isinstance(item, dict) and item.get("error_number") == NOTHING_FOUND
