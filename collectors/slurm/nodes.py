"""Node inventories: `scontrol show node` (one block or one line per node, or JSON) and `sinfo -N` with header. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from accounting.domain.records import GpuPart, NodeFact, Rejected
from collectors.slurm.gres import ABSENT, gpus_of_node, node_state, shards_of_node, state_words
from collectors.slurm.hostlist import expand
from collectors.slurm.parse import shown
from collectors.slurm.policy.text import instant, json_objects, list_of, number_of

SINFO_COMMAND = "sinfo -N -a -o '%N|%P|%G|%c|%m|%T|%E'"
COLUMN_NAMES = {
    "name": ("NODELIST", "NODE", "NODENAME", "HOSTNAMES"),
    "partitions": ("PARTITION", "PARTITIONNAME"),
    "gres": ("GRES",),
    "cpus": ("CPUS", "CPUS(A/I/O/T)"),
    "memory": ("MEMORY", "REAL_MEMORY"),
    "state": ("STATE", "STATELONG", "STATECOMPACT", "STATECOMPLETE"),
    "reason": ("REASON",),
    "cluster": ("CLUSTER",),
    "author": ("USER", "REASONUSER", "USERLONG"),
    "reason_at": ("TIMESTAMP",),
}
SCONTROL_NAMES = {
    "NodeName": "name",
    "Partitions": "partitions",
    "Gres": "gres",
    "CPUTot": "cpus",
    "RealMemory": "memory",
    "State": "state",
    "Reason": "reason",
}
UTC_ZONE = ZoneInfo("UTC")
NO_TEXT = frozenset({"", "none", "(null)", "N/A", "n/a", "Unknown"})
MAX_LINE_BYTES = 262_144
# Each key where it first stands: a Reason, which may hold any text, comes after all others.
_SCONTROL_KEY = re.compile(r"(?:^|\s)(NodeName|Partitions|Gres|CPUTot|RealMemory|State|Reason)=")
_NEXT_KEY = re.compile(r"\s(?:Comment|Extra|AllocTRES|CfgTRES|InstanceId|NodeAddr|[A-Z][A-Za-z]+)=|\n")
_AUTHOR = re.compile(r"\s*\[(?P<author>[^\[\]\s@]*)@(?P<at>[^\[\]]*)\]\s*$")


class InventoryHeaderError(ValueError):
    """The text is no node inventory, or lacks a column; the message says which command prints a good one."""


class NodeInventory(NamedTuple):
    """`nodes` by first appearance. Entries are lines of `sinfo` or records of `scontrol`: accepted +
    rejected + ignored = entries."""

    nodes: list[NodeFact]
    rejections: list[Rejected]
    line_count: int
    accepted_count: int
    ignored_count: int


class _Entry(NamedTuple):
    """One line of sinfo or one record of scontrol, as texts by the keys of `COLUMN_NAMES`; `fields` is a
    string when it is unreadable."""

    line_number: int
    raw: bytes
    fields: dict[str, str] | str


def read_nodes(lines: Iterable[bytes], *, cluster: str, zone: ZoneInfo = UTC_ZONE) -> NodeInventory:
    """Nodes of `cluster` from either kind of text, whose times are those of `zone`. A node listed once per partition is one node.
    Raises InventoryHeaderError."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise InventoryHeaderError(f"the inventory is empty; write it with: scontrol show node, or {SINFO_COMMAND}")
    together = chain([first], numbered)
    entries = _scontrol(together) if first[1].lstrip(b"\xef\xbb\xbf").startswith(b"NodeName=") else _sinfo(together)
    return _collect(entries, cluster, zone)


def read_nodes_json(data: bytes, *, cluster: str) -> NodeInventory:
    """Nodes of `cluster` from `scontrol show node --json`, or the nodes that slurmrestd tells. Raises InventoryHeaderError."""
    try:
        objects = json_objects(data, ("nodes",), "scontrol show node --json")
    except ValueError as exc:
        raise InventoryHeaderError(str(exc)) from exc
    return _collect([_json_entry(number, each) for number, each in enumerate(objects, start=1)], cluster, UTC_ZONE)


def _json_entry(number: int, found: Any) -> _Entry:
    """A node with its state as a list of words, or as a word with flags beside it (data parser 0.0.38)."""
    raw = json.dumps(found).encode()
    try:
        words = [*([found["state"]] if isinstance(found["state"], str) else found["state"]), *(found.get("state_flags") or ())]
        set_at = number_of(found.get("reason_changed_at"))
        fields = {
            "name": found["name"],
            "partitions": ",".join(list_of(found.get("partitions"))),
            "gres": found["gres"],
            "cpus": str(found.get("cpus", "")),
            "memory": str(found.get("real_memory", "")),
            "state": "+".join(words),
            "reason": found.get("reason") or "",
            "author": found.get("reason_set_by_user") or "",
            "reason_at": str(set_at or ""),
            "cluster": found.get("cluster_name") or "",
        }
    except (KeyError, TypeError, AttributeError) as exc:
        return _Entry(
            number, raw, f"the node has no {exc}" if isinstance(exc, KeyError) else "the node is no object with a state"
        )
    return _Entry(number, raw, fields if all(isinstance(value, str) for value in fields.values()) else "a field is no text")


def _collect(entries: Iterable[_Entry], cluster: str, zone: ZoneInfo) -> NodeInventory:
    nodes: dict[str, NodeFact] = {}
    rejections: list[Rejected] = []
    entry_count = ignored_count = 0
    for entry in entries:
        entry_count += 1
        try:
            facts = _facts(entry.fields, cluster, zone)
            merged = {fact.name: _merge(nodes.get(fact.name), fact) for fact in facts}
        except ValueError as exc:
            rejections.append(Rejected(entry.line_number, shown(entry.raw), str(exc)[:500]))
            continue
        nodes.update(merged)
        ignored_count += not facts
    accepted_count = entry_count - ignored_count - len(rejections)
    return NodeInventory(list(nodes.values()), rejections, entry_count, accepted_count, ignored_count)


def _facts(fields: dict[str, str] | str, cluster: str, zone: ZoneInfo) -> list[NodeFact]:
    """The nodes of one entry (a list of equal nodes in one line counts each); none for nodes that are only announced (FUTURE)."""
    if isinstance(fields, str):
        raise ValueError(fields)  # noqa: TRY004 - the text says what is wrong with the line, not with a type
    _require_cluster(fields.get("cluster", ""), cluster)
    names = expand(fields["name"])
    words = state_words(fields.get("state", ""))
    if words & ABSENT:
        return []
    reason, author, reason_at = _reason(fields, zone)
    partitions = tuple(
        part.strip().rstrip("*") for part in fields.get("partitions", "").split(",") if part.strip() not in NO_TEXT
    )
    gpus: tuple[GpuPart, ...] = gpus_of_node(fields["gres"])
    cpus, memory = _number("CPUs", fields.get("cpus", "")), _number("Memory", fields.get("memory", ""))
    shards = shards_of_node(fields["gres"])
    state = node_state(words, reason)
    return [NodeFact(name, partitions, gpus, cpus, memory, state, reason, shards, author, reason_at) for name in names]


def _reason(fields: dict[str, str], zone: ZoneInfo) -> tuple[str, str, datetime | None]:
    """Reason, who set it and when: `ECC errors [root@2026-11-30T23:40:28]`, or columns of their own."""
    text = fields.get("reason", "").strip()
    found = _AUTHOR.search(text)
    reason = _AUTHOR.sub("", text)
    if reason in NO_TEXT:
        return "", "", None
    author = found["author"] if found else fields.get("author", "")
    set_at = found["at"] if found else fields.get("reason_at", "")
    try:
        at = instant("Reason", set_at, zone)
    except ValueError:
        at = None  # a site may print times in any format here; the reason still counts
    return reason, "" if author in NO_TEXT else author, at


def _require_cluster(name: str, cluster: str) -> None:
    if name and name.casefold() != cluster.casefold():
        raise ValueError(f"the node is of cluster {name[:60]!r}, but this import is for {cluster!r}")


def _number(column: str, text: str) -> int | None:
    """`64`, `512000+` (the least of several) or the total of `2/62/0/64`; None when it is not said."""
    last = text.strip().rsplit("/", 1)[-1].rstrip("+")
    if last in NO_TEXT:
        return None
    if not (last.isascii() and last.isdigit() and len(last) <= 15):
        raise ValueError(f"{column}: {text[:40]!r} is no whole number")
    return int(last)


def _merge(known: NodeFact | None, fact: NodeFact) -> NodeFact:
    """One node out of its lines: partitions together, the rest as in the first line. Raises ValueError when GPUs differ."""
    if known is None:
        return fact
    if known.gpus != fact.gpus:
        raise ValueError(f"node {fact.name} is listed before with other GPUs")
    return known._replace(partitions=tuple(dict.fromkeys(known.partitions + fact.partitions)))


def _scontrol(lines: Iterator[tuple[int, bytes]]) -> Iterator[_Entry]:
    block: list[bytes] = []
    block_number = 0
    for number, line in lines:
        if line.removeprefix(b"\xef\xbb\xbf").startswith(b"NodeName=") and block:
            yield _scontrol_entry(block_number, block)
            block = []
        block_number = block_number if block else number
        block.append(line)
    yield _scontrol_entry(block_number, block)


def _scontrol_entry(number: int, block: list[bytes]) -> _Entry:
    raw = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in block)
    text = _text(raw)
    if text is None:
        return _Entry(number, raw, "the record is no valid UTF-8, has a NUL character, or is far too long")
    fields: dict[str, str] = {}
    for found in _SCONTROL_KEY.finditer(text):
        fields.setdefault(SCONTROL_NAMES[found[1]], _scontrol_value(text, found))
    missing = [key for key, name in SCONTROL_NAMES.items() if name in {"name", "gres", "state"} and not fields.get(name)]
    return _Entry(number, raw, f"the record lacks {', '.join(missing)}" if missing else fields)


def _scontrol_value(text: str, found: re.Match[str]) -> str:
    """Up to the next blank, but a Reason up to the next key or the end of its line."""
    if found[1] == "Reason":
        end = _NEXT_KEY.search(text, found.end())
        return text[found.end() : end.start() if end else len(text)].strip()
    return text[found.end() :].split(maxsplit=1)[0] if text[found.end() : found.end() + 1].strip() else ""


def _sinfo(lines: Iterator[tuple[int, bytes]]) -> Iterator[_Entry]:
    _, header_line = next(lines)
    header = header_line[:16_384].decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")
    table = _Table(header)
    for number, line in lines:
        if line.rstrip(b"\r\n").decode("utf-8", "replace") == header:
            continue
        text = _text(line)
        yield _Entry(number, line, "no valid UTF-8, a NUL character, or far too long" if text is None else table.fields(text))


def _text(raw: bytes) -> str | None:
    if len(raw) > MAX_LINE_BYTES or b"\0" in raw:
        return None
    try:
        return raw.decode().removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError:
        return None


class _Table:
    """The columns of a sinfo table, with bars between them or in columns of fixed width."""

    def __init__(self, header: str) -> None:
        self._delimiter = next((mark for mark in ("\x1f", "|") if mark in header), None)
        names = [name.strip().upper() for name in (header.split(self._delimiter) if self._delimiter else header.split())]
        self._count = len(names)
        self._starts = [found.start() for found in re.finditer(r"\S+", header)]
        self._at = {key: names.index(name) for key, known in COLUMN_NAMES.items() for name in known if name in names}
        missing = [COLUMN_NAMES[key][0] for key in ("name", "gres") if key not in self._at]
        if missing:
            raise InventoryHeaderError(
                f"the text is neither scontrol's nor a sinfo table with header (missing: {', '.join(missing)}; "
                f"found: {header[:80]!r}); write it with: scontrol show node, or {SINFO_COMMAND}"
            )

    def fields(self, line: str) -> dict[str, str] | str:
        """The texts of one line by key; a string says why there are none."""
        cells = self._cells_between_bars(line, self._delimiter) if self._delimiter else self._cells_of_fixed_width(line)
        if len(cells) != self._count:
            return f"{len(cells)} columns where the header has {self._count}"
        return {key: cells[at].strip() for key, at in self._at.items()}

    def _cells_between_bars(self, line: str, delimiter: str) -> list[str]:
        """Bars beyond those of the header belong to the reason, the only free text that sinfo prints."""
        cells = line.split(delimiter)
        excess = len(cells) - self._count
        if excess > 0 and "reason" in self._at:
            at = self._at["reason"]
            cells[at : at + excess + 1] = [delimiter.join(cells[at : at + excess + 1])]
        return cells

    def _cells_of_fixed_width(self, line: str) -> list[str]:
        cells = line.split()
        if len(cells) == self._count:
            return cells
        if any(not line[start - 1 : start].isspace() for start in self._starts[1:]):
            return cells
        return [line[start:end] for start, end in zip(self._starts, [*self._starts[1:], None], strict=True)]
