"""Node lists as Slurm writes them (`gpu[01-03,7],login1`) as names. Pure: no group look-ups, no outside calls."""

from __future__ import annotations

import re

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

MAX_NODES = 100_000
_ALLOWED = re.compile(r"[\w.,\[\]-]+", re.ASCII)
_ONE_BRACKET = re.compile(r"([^\[\],]*)\[([\d,-]+)\]", re.ASCII)
_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)
_ITEM = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_BRACKET = re.compile(r"\[([^\]]*)\]")


def expand(text: str) -> tuple[str, ...]:
    """Node names in the order of the list. Raises ValueError when it is malformed or stands for more than `MAX_NODES`."""
    if "[" not in text and "," not in text and _ALLOWED.fullmatch(text):
        return (text,)
    if _ALLOWED.fullmatch(text) is None:
        raise ValueError(f"the node list {text[:60]!r} has characters that no node name has")
    if _size(text) > MAX_NODES:
        raise ValueError(f"the node list {text[:60]!r} stands for more than {MAX_NODES:,} nodes")
    found = _ONE_BRACKET.fullmatch(text)
    names = _expand_one(found[1], found[2]) if found else None
    return names or _expand_any(text)


def _expand_one(prefix: str, ranges: str) -> tuple[str, ...] | None:
    """The common shape `prefix[1-3,5]`, some twenty times as fast as the general one; None when it is not quite that shape."""
    names: list[str] = []
    for item in ranges.split(","):
        first, dash, last = item.partition("-")
        if not first or (dash and not last) or "-" in last:
            return None
        if not dash:
            names.append(prefix + first)
            continue
        if len(first) > len(last) or int(first) > int(last) or (first[0] == "0" and len(first) != len(last)):
            return None
        names.extend(f"{prefix}{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))
    return tuple(names)


def _expand_any(text: str) -> tuple[str, ...]:
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except Exception as exc:  # the library raises a family of its own, not under ValueError
        raise ValueError(f"the node list {text[:60]!r} is malformed") from exc


def _size(text: str) -> int:
    """How many nodes `text` stands for at most, found without making them."""
    return sum(_size_of_item(item) for item in _ITEM.findall(text))


def _size_of_item(item: str) -> int:
    size = 1
    for bracket in _BRACKET.findall(item):
        ranges = _RANGE.findall(bracket)
        if any(len(first) > 9 or len(last) > 9 for first, last in ranges):
            return MAX_NODES + 1
        size *= sum(abs(int(last) - int(first)) + 1 for first, last in ranges) + bracket.count(",") + 1
    return size
