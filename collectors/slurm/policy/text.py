"""The shapes in which Slurm's tools print: tables between bars, records of `Key=Value`, JSON. Pure.

A bad entry is refused with its reason, its good neighbours are kept: accepted + rejected + ignored = entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from accounting.domain.records import Rejected
from collectors.slurm.parse import shown

T = TypeVar("T")

MAX_ENTRY_BYTES = 262_144
NO_VALUE = frozenset({"", "(null)", "N/A", "n/a", "none", "None", "NONE", "Unknown", "INVALID"})
NO_LIMIT = NO_VALUE | frozenset({"UNLIMITED", "INFINITE", "infinite", "unlimited", "4294967295", "4294967294", "-1"})
LATEST_EPOCH = 253_402_300_799
_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z_:/()]*)=")
_DURATION = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):([0-5]?\d)", re.ASCII)
_SECONDS_UNIT = re.compile(r"(\d{1,12})(?: (?:sec|min|hours?))?", re.ASCII)


class PolicyTextError(ValueError):
    """The text is not what it should be as a whole; the message says which command prints it."""


class Entry(NamedTuple):
    """One line of a table or one record: `fields` by name, or the reason why there are none."""

    number: int
    raw: bytes
    fields: Mapping[str, str] | str


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What one text said. Entries that stand for nothing here (a title, the cluster among its nodes) are ignored."""

    facts: tuple[T, ...] = ()
    rejections: tuple[Rejected, ...] = ()
    ignored_count: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def line_count(self) -> int:
        return len(self.facts) + len(self.rejections) + self.ignored_count


def read(entries: Iterable[Entry], make: Callable[[Mapping[str, str]], T | None]) -> Reading[T]:
    """`make` every entry; it returns None for what is to be ignored and raises ValueError for what is wrong."""
    facts: list[T] = []
    rejections: list[Rejected] = []
    ignored_count = 0
    for entry in entries:
        try:
            fact = make(_fields(entry))
        except ValueError as exc:
            rejections.append(Rejected(entry.number, shown(entry.raw), str(exc)[:500]))
            continue
        if fact is None:
            ignored_count += 1
        else:
            facts.append(fact)
    return Reading(tuple(facts), tuple(rejections), ignored_count)


def read_json(data: bytes, keys: Sequence[str], make: Callable[[Mapping[str, Any]], T | None], command: str) -> Reading[T]:
    """The objects of the list under the first of `keys` that is there. Raises PolicyTextError."""
    objects = json_objects(data, keys, command)
    facts: list[T] = []
    rejections: list[Rejected] = []
    for number, each in enumerate(objects, start=1):
        try:
            fact = make(each)
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            why = f"the field {exc} is missing" if isinstance(exc, KeyError) else str(exc)
            rejections.append(Rejected(number, shown(json.dumps(each).encode()), why[:500]))
            continue
        if fact is not None:
            facts.append(fact)
    return Reading(tuple(facts), tuple(rejections), len(objects) - len(facts) - len(rejections))


def json_objects(data: bytes, keys: Sequence[str], command: str) -> list[Mapping[str, Any]]:
    """The list under the first of `keys`. Raises PolicyTextError."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise PolicyTextError(f"the text is no JSON ({str(exc)[:80]}); write it with: {command}") from exc
    found = next((document[key] for key in keys if key in document), None) if isinstance(document, dict) else None
    if not isinstance(found, list):
        raise PolicyTextError(f"the JSON has no list {' or '.join(keys)}; write it with: {command}")
    return found


def table(data: bytes, *, needs: Sequence[str], free: str, command: str) -> Iterator[Entry]:
    """Lines of a table with header, between bars or unit separators. Bars beyond those of the header belong to the column `free`.

    Raises PolicyTextError when the header lacks a column of `needs`.
    """
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    header = lines[0].decode("utf-8", "replace").strip()
    mark = "\x1f" if "\x1f" in header else "|"
    names = [name.strip() for name in header.rstrip(mark).split(mark)]
    missing = [name for name in needs if name not in names]
    if missing:
        raise PolicyTextError(f"the table lacks {', '.join(missing)} (found: {header[:80]!r}); write it with: {command}")
    free_at = names.index(free) if free in names else None
    return _rows(lines, header, names, mark, free_at)


def _rows(lines: list[bytes], header: str, names: list[str], mark: str, free_at: int | None) -> Iterator[Entry]:
    for number, raw in enumerate(lines[1:], start=2):
        if not raw.strip():
            continue
        text = text_of(raw)
        if text is None:
            yield Entry(number, raw, "the line is no valid UTF-8, has a NUL character, or is far too long")
        elif text.strip() != header:
            # With -p instead of -P every line, the header too, is closed by a further bar.
            yield Entry(number, raw, _cells(text, names, mark, free_at, header.endswith(mark)))


def _cells(text: str, names: list[str], mark: str, free_at: int | None, is_closed: bool) -> Mapping[str, str] | str:
    cells = text.split(mark)
    if is_closed and not cells[-1]:
        cells.pop()
    excess = len(cells) - len(names)
    if excess > 0 and free_at is not None:
        cells[free_at : free_at + excess + 1] = [mark.join(cells[free_at : free_at + excess + 1])]
    if len(cells) != len(names):
        return f"{len(cells)} columns where the header has {len(names)}"
    return dict(zip(names, cells, strict=True))


def records(data: bytes, first_key: str, command: str) -> Iterator[Entry]:
    """Records of `Key=Value`, each beginning with `first_key` at the beginning of a line, on one line or several.

    Raises PolicyTextError for a text without any, unless it says that there is none.
    """
    begin = first_key.encode() + b"="
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    starts = [at for at, line in enumerate(lines) if line.startswith(begin)]
    if not starts and lines and not lines[0].startswith(b"No "):
        raise PolicyTextError(f"the text has no {first_key}=…; write it with: {command}")
    for at, until in pairwise([*starts, len(lines)]):
        raw = b"\n".join(lines[at:until])
        text = text_of(raw)
        yield Entry(
            at + 1, raw, "the record is no valid UTF-8, has a NUL character, or is far too long" if text is None else _pairs(text)
        )


def _pairs(text: str) -> dict[str, str]:
    """Each key where it first stands: free text, which may look like anything, comes last."""
    found = list(_KEY.finditer(text))
    ends = [*(key.start() for key in found[1:]), len(text)]
    pairs: dict[str, str] = {}
    for key, end in zip(found, ends, strict=False):
        pairs.setdefault(key[1], text[key.end() : end].strip())
    return pairs


def text_of(raw: bytes) -> str | None:
    """`raw` as text; None when it cannot be one."""
    if len(raw) > MAX_ENTRY_BYTES or b"\0" in raw:
        return None
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return None


def _fields(entry: Entry) -> Mapping[str, str]:
    if isinstance(entry.fields, str):
        raise ValueError(entry.fields)  # noqa: TRY004 - the text says what is wrong with the line, not with a type
    return entry.fields


def names(text: str) -> tuple[str, ...]:
    """`a,b` as names; `ALL` and words for nothing are empty."""
    return () if text in NO_VALUE or text in {"ALL", "all"} else tuple(name.strip() for name in text.split(",") if name.strip())


def word(text: str) -> str:
    """`text`, or nothing for a word that means so."""
    return "" if text.strip() in NO_VALUE else text.strip()


def whole(name: str, text: str) -> int | None:
    """A whole number; None for a word that means no limit. Raises ValueError."""
    if text in NO_LIMIT:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"{name}: {text[:40]!r} is no whole number")
    return int(text)


def ratio(name: str, text: str) -> Decimal | None:
    """A decimal number; None for a word that means none, for infinity and for NaN. Raises ValueError."""
    if text in NO_VALUE:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation as exc:
        raise ValueError(f"{name}: {text[:40]!r} is no number") from exc
    return number if number.is_finite() else None


def duration(name: str, text: str) -> int | None:
    """Seconds of `[D-]HH:MM:SS`, `MM:SS`, or a plain number of minutes; None for no limit. Raises ValueError."""
    if text in NO_LIMIT:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return int(text) * 60
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{name}: {text[:40]!r} is no duration (expected [D-]HH:MM:SS)")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def instant(name: str, text: str, zone: ZoneInfo) -> datetime | None:
    """An aware UTC instant of epoch seconds or of wall-clock time in `zone`; None for a word that means none. Raises ValueError."""
    if text in NO_VALUE:
        return None
    try:
        if text.isascii() and text.isdigit() and len(text) <= 12 and int(text) <= LATEST_EPOCH:
            return datetime.fromtimestamp(int(text), UTC) if int(text) else None
        wall = datetime.fromisoformat(text)
    except ValueError as exc:
        raise ValueError(f"{name}: {text[:40]!r} is no time (expected YYYY-MM-DDTHH:MM:SS or epoch seconds)") from exc
    return (wall if wall.tzinfo else wall.replace(tzinfo=zone)).astimezone(UTC)


def needed(fields: Mapping[str, str], name: str) -> str:
    """The value of `name`. Raises ValueError when it is missing or empty."""
    value = word(fields.get(name, ""))
    if not value:
        raise ValueError(f"{name} is missing")
    return value


def number_of(value: Any) -> int | None:
    """A number of Slurm's JSON: plain, or `{"set", "infinite", "number"}`; None when it is not set, infinite or a sentinel."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0 or value in {4294967294, 4294967295}:
        return None
    return value


def list_of(value: Any) -> tuple[str, ...]:
    """Names of a JSON list, or of a text with commas."""
    if isinstance(value, str):
        return names(value)
    return tuple(str(each) for each in value or ())
