"""Values of slurmrestd's JSON as the words that sacct prints for them. Pure.

Optional numbers are plain or null up to data parser 0.0.38 and `{"set": …, "infinite": …, "number": …}` since; Slurm's own
sentinels (NO_VAL 2³² − 2, INFINITE 2³² − 1 and their 64-bit kin) shine through in places where the parser does not know them.
Everything that is not of the expected type raises ValueError, so that the job is refused and counted and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

Json = Any
SENTINELS = frozenset({2**16 - 2, 2**16 - 1, 2**32 - 2, 2**32 - 1, 2**63 - 1, 2**64 - 2, 2**64 - 1})
WIDE_SENTINELS = SENTINELS - {2**16 - 2, 2**16 - 1}
INFINITE = "UNLIMITED"
LONGEST_TEXT = 65_536
LARGEST = 2**65
# job_state_string() of Slurm: a flag is named before the base state, in this order.
STATE_FLAGS = (
    "COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED",
    "REVOKED", "RECONFIG_FAIL", "RESV_DEL_HOLD", "SIGNALING",
)  # fmt: skip
COUNTED_TRES = frozenset({"cpu", "mem", "node", "gres"})


def refuse(reason: str) -> NoReturn:
    """This value cannot be."""
    raise ValueError(reason)


def part(job: Mapping[str, Json], *path: str) -> Json:
    """The value at `path`, None where any step of it is missing or null."""
    value: Json = job
    for key in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            refuse(f"{'.'.join(path)}: an object was expected before {key!r}")
        value = value.get(key)
    return value


def text(value: Json) -> str:
    """A string; null is empty. Raises ValueError for anything that PostgreSQL or UTF-8 cannot hold."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        refuse(f"{value!r:.40} is no text")
    if "\0" in value:
        raise ValueError("a text has a NUL character")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"a text has {len(value):,} characters, more than the {LONGEST_TEXT:,} that one may have")
    value.encode()
    return value


def plain_number(value: Json) -> int | str | None:
    """A whole number; None for null and Slurm's sentinels."""
    if value is None:
        return None
    number = _whole(value)
    return None if number in WIDE_SENTINELS else number


def flagged_number(value: Json) -> int | str | None:
    """`{"set", "infinite", "number"}`: the number, UNLIMITED, or None when it is not set. A plain number is read as such."""
    if not isinstance(value, dict):
        return plain_number(value)
    if value.get("infinite") is True:
        return INFINITE
    if value.get("set") is not True:
        return None
    return plain_number(value.get("number"))


def _whole(value: Json) -> int:
    if type(value) is int:
        return value
    # The bound comes first: a number like 1e999 is infinite.
    if type(value) is not float or not -LARGEST < value < LARGEST or value != int(value):
        refuse(f"{value!r:.40} is no whole number")
    return int(value)


def printed(number: int | str | None) -> str:
    """As sacct prints it; empty when there is none."""
    return "" if number is None else str(number)


def moment(number: int | str | None) -> str:
    """Epoch seconds; 0, which stands for a time that is not known yet, and every sentinel is `Unknown`."""
    return printed(number) if isinstance(number, int) and number != 0 else "Unknown"


def duration(number: int | str | None) -> str:
    """Seconds as sacct prints a duration."""
    if not isinstance(number, int):
        return ""
    if number < 0:
        raise ValueError(f"a duration of {number} s is negative")
    return f"{number // 60}:{number % 60:02}"


def state_word(value: Json) -> str:
    """Data parsers 0.0.38 and 0.0.39: the word itself."""
    return text(value)


def state_list(value: Json) -> str:
    """Since 0.0.40 a list of base state and flags: the one word that sacct would print. A lone word is read as such."""
    if isinstance(value, str):
        return text(value)
    words = [text(word) for word in value] if isinstance(value, list) else []
    if not words:
        raise ValueError(f"{value!r:.40} is no state")
    return next((flag for flag in STATE_FLAGS if flag in words), words[0])


def cancelled_by(state: str, user: str) -> str:
    """`CANCELLED by alice`; sacct prints the uid there, the API knows the name only."""
    name = "".join(user.split())
    return f"CANCELLED by {name}" if state == "CANCELLED" and name else state


def tres(value: Json) -> str:
    """A list of `{type, name, count}` as a TRES string. An energy of −2 (not measured) and the like is left out."""
    if value is None:
        return ""
    if not isinstance(value, list):
        refuse(f"{value!r:.40} is no list of TRES")
    return ",".join(_tres_item(item) for item in value if part(item, "type") in COUNTED_TRES)


def _tres_item(item: Mapping[str, Json]) -> str:
    kind, name, count = item["type"], text(item.get("name")), item.get("count")
    if count is None:
        raise ValueError(f"{kind}/{name:.40} has no count")
    return f"{kind}{'/' if name else ''}{name}={_whole(count)}{'M' if kind == 'mem' else ''}"


def tres_count(value: Json, kind: str) -> int | None:
    """The count of `cpu`, `mem` (MiB) or `node` in a list of TRES; None when it is not in there."""
    for item in value or ():
        if part(item, "type") == kind and item.get("count") is not None:
            return _whole(item["count"])
    return None


def exit_text(code: int, signal: int) -> str:
    """`code:signal` as sacct prints it: of a code from 128 on, which a shell makes of a signal, it shows the signal's number."""
    return f"{code - 128 if code >= 128 else code}:{signal}"
