"""Several texts of Slurm's tools as the facts of one cluster: which kind each is, what it says, what could not be read. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from accounting.domain.forecasts import Runaway
from accounting.domain.records import Rejected
from collectors.slurm.policy import config, history, limits, partitions, queue, reservations
from collectors.slurm.policy.text import PolicyTextError, Reading
from estate.domain.policy import AccountFact, PolicyFacts

# The first words of a text, or the columns that only one table has.
BEGINNINGS = {
    b"Configuration data as of": "config",
    b"PartitionName=": "partitions",
    b"ReservationName=": "reservations",
    b"No reservations": "reservations",
    b"Runaway Jobs": "runaways",
    b"NOTE: Runaway": "runaways",
}
COLUMNS = (
    ("events", {"NodeName", "TimeStart", "State"}),
    ("past_reservations", {"Name", "TimeStart", "NodeName"}),
    ("shares", {"RawShares", "RawUsage"}),
    ("associations", {"Cluster", "Account", "User", "Share"}),
    ("qos", {"Name", "UsageFactor"}),
    ("accounts", {"Account", "Descr", "Org"}),
)
JSON_LISTS = ("partitions", "reservations")
COMMANDS = (
    config.COMMAND,
    partitions.COMMAND,
    reservations.COMMAND,
    limits.ASSOCIATION_COMMAND,
    limits.ACCOUNT_COMMAND,
    limits.QOS_COMMAND,
    queue.SHARE_COMMAND,
    history.EVENT_COMMAND,
    reservations.HISTORY_COMMAND,
)


class Text(NamedTuple):
    """What one command printed: its section and its name for people."""

    section: str
    name: str
    data: bytes


@dataclass(slots=True)
class Understood:
    """The facts of several texts. Line numbers of rejections run on from text to text, so that each is unique.

    `failures` are texts that could not be understood at all. `runaways` is None when they were not asked for.
    """

    facts: PolicyFacts = field(default_factory=PolicyFacts)
    runaways: tuple[Runaway, ...] | None = None
    rejections: list[Rejected] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    line_count: int = 0
    accepted_count: int = 0
    ignored_count: int = 0

    def count(self, text: Text, reading: Reading[Any]) -> None:
        told = (each._replace(line_number=each.line_number + self.line_count) for each in reading.rejections)
        self.rejections += [each._replace(reason=f"{text.name}: {each.reason}"[:500]) for each in told]
        # Rows of a table begin at its second line; numbers run on behind the last line of this text.
        self.line_count += text.data.count(b"\n") + 1
        self.accepted_count += len(reading.facts)
        self.ignored_count += reading.ignored_count


def section_of(data: bytes) -> str:
    """Which section a saved text tells. Raises PolicyTextError when it is none of them."""
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    for beginning, section in BEGINNINGS.items():
        if start.startswith(beginning):
            return section
    if start[:1] == b"{":
        found = json_list(start)
        if found is not None:
            return found
    header = start.split(b"\n", 1)[0].decode("utf-8", "replace").replace("\x1f", "|").strip("\r|")
    names = {name.strip() for name in header.split("|")}
    told = next((section for section, columns in COLUMNS if columns <= names), None)
    if told is None:
        raise PolicyTextError(f"the text ({header[:60]!r}) is none that is known; write one with: {'; or '.join(COMMANDS)}")
    return told


def json_list(data: bytes) -> str | None:
    """Which of the known lists stands first in a JSON text: nodes and jobs name partitions and reservations, too."""
    places = {name: data.find(f'"{name}":'.encode()) for name in JSON_LISTS}
    places |= {name: data.find(f'"{name}" :'.encode()) for name in JSON_LISTS if places[name] < 0}
    found = [(place, name) for name, place in places.items() if place >= 0]
    return min(found)[1] if found else None


def understand(texts: Sequence[Text], cluster: str, zone: ZoneInfo) -> Understood:
    """The facts of `cluster` in `texts`, whose wall-clock times are those of `zone`."""
    understood = Understood()
    by_section = {text.section: text for text in texts}
    readers: dict[str, Callable[[bytes], Reading[Any]]] = {
        "partitions": partitions.read_partitions,
        "reservations": lambda data: reservations.read_reservations(data, zone),
        "past_reservations": lambda data: reservations.read_past_reservations(data, cluster, zone),
        "associations": lambda data: limits.read_associations(data, cluster),
        "qos": limits.read_qos,
        "shares": queue.read_shares,
        "events": lambda data: history.read_events(data, cluster, zone),
        "runaways": lambda data: history.read_runaways(data, cluster, zone),
    }
    for section, reader in readers.items():
        if section in by_section:
            _take(understood, by_section[section], reader)
    if "config" in by_section:
        _take(understood, by_section["config"], lambda data: Reading((config.read_config(data),)))
    _take_accounts(understood, by_section, cluster)
    return understood


def _take(understood: Understood, text: Text, reader: Callable[[bytes], Reading[Any]]) -> None:
    try:
        reading = reader(text.data)
    except PolicyTextError as exc:
        understood.failures.append(f"{text.name}: {exc}")
        return
    understood.count(text, reading)
    facts = understood.facts
    if reading.rejections:
        facts = facts._replace(incomplete=facts.incomplete | {text.section})
    if text.section == "runaways":
        understood.runaways = reading.facts
    elif text.section == "config":
        facts = facts._replace(config=reading.facts[0])
    else:
        told: dict[str, Any] = {text.section: reading.facts}
        facts = facts._replace(**told)
    understood.facts = facts


def _take_accounts(understood: Understood, texts: dict[str, Text], cluster: str) -> None:
    """The tree is in the table of associations, the words are in that of accounts; either will do."""
    parents: dict[str, str] = {}
    if understood.facts.associations is not None:
        parents = limits.parents_of(texts["associations"].data, cluster)
    if "accounts" in texts:
        _take(understood, texts["accounts"], lambda data: limits.read_accounts(data, parents))
    described = understood.facts.accounts or ()
    known = {account.name for account in described}
    rest = tuple(AccountFact(name, parent) for name, parent in parents.items() if name not in known)
    if described or rest:
        incomplete = understood.facts.incomplete
        if "associations" in incomplete:
            incomplete |= {"accounts"}
        understood.facts = understood.facts._replace(accounts=described + rest, incomplete=incomplete)


def without_titles(data: bytes) -> bytes:
    """Tools that are asked for a cluster by name print `CLUSTER: name` above what they say."""
    return b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"CLUSTER: "))
