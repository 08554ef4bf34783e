"""One line of a sacct dump → typed row, step to ignore, or rejected line. Pure: syntax only; what a row
means is in mapping.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from accounting.domain.records import Rejected
from collectors.slurm.columns import COLUMNS, Columns
from collectors.slurm.environment import environment_of
from collectors.slurm.hostlist import expand
from collectors.slurm.memo import Memo
from collectors.slurm.times import NO_TIME, LocalTimes, duration_seconds
from collectors.slurm.tres import Tres, tres_reader

MAX_LINE_BYTES = 262_144
RAW_LENGTH = 2_000
UNSET_ID = "4294967294"  # 2³² − 2, Slurm's NO_VAL
INFINITE = frozenset({"", "UNLIMITED", "Partition_Limit", "INFINITE", "None", "Unknown", UNSET_ID, "4294967295"})
NO_NODES = frozenset({"", "None assigned", "None", "(null)", "N/A"})
NO_WORD = frozenset({"", "None", "(null)", "N/A"})
_PLAIN_ID = re.compile(r"\d{1,18}", re.ASCII)
_JOB_ID = re.compile(r"(\d{1,18})(?:_(?:\d{1,18}|\[.*)|(\+)\d{1,9})", re.ASCII)
_STEP_ID = re.compile(r"\d{1,18}(?:_\d{1,18}|\+\d{1,9})?\.[\w.+-]{1,64}", re.ASCII)
_STATE = re.compile(r"([A-Z][A-Z_]*)\+?(?: by (\S+))?", re.ASCII)


class Ignored(NamedTuple):
    """A line that is no record and no mistake: a step, a repeated header, or the rest of a record that was broken over lines."""

    line_number: int
    kind: str


class SacctRow(NamedTuple):
    """A record as sacct prints it. Times are epoch seconds; None where sacct prints a word for "none"."""

    external_id: str
    display_id: str
    workload_id: str
    workload_kind: str
    name: str
    user: str
    account: str
    partition: str
    qos: str
    state: str
    cancelled_by: str
    exit_code: str
    submit: int
    eligible: int | None
    start: int | None
    end: int | None
    elapsed_seconds: int | None
    time_limit_seconds: int | None
    suspended_seconds: int
    requested: Tres | None
    allocated: Tres
    node_count: int | None
    cpus: Decimal | None
    nodes: tuple[str, ...]
    nodes_unassigned: bool
    priority: int | None
    reservation: str
    reason: str
    comment: str
    wckey: str = ""
    environment: str = ""
    restart_count: int | None = None


class SacctParser:
    """Reads the lines of one dump of `cluster`, whose wall clock is that of `zone`; `columns` is its header."""

    def __init__(
        self, columns: Columns, *, cluster: str, zone: ZoneInfo, shards_per_gpu: int | None = None, tracks_gpus: bool = True
    ) -> None:
        self.columns = columns
        self._cluster = cluster
        self.times = LocalTimes(zone)
        self.states = Memo(_state)
        self.words = Memo(_word)
        self.names = Memo(_name)
        self.partitions = Memo(_partition)
        self.counts = Memo(_count)
        self.numbers = Memo(_number)
        self.elapsed = Memo(_elapsed)
        self.limits = Memo(_limit)
        self.durations = Memo(duration_seconds)
        self.cpus = Memo(_cpus)
        self.nodes = Memo(_nodes)
        self.clusters = Memo(self._own_cluster)
        self.tres = tres_reader(shards_per_gpu, tracks_gpus)
        self.has_requested = "ReqTRES" in columns.present
        self.has_nodes = "NodeList" in columns.present

    def parse(self, line: bytes, number: int) -> SacctRow | Rejected | Ignored:
        """One physical line, with or without its line end."""
        fields = self.split(line)
        if isinstance(fields, str):
            return Rejected(number, shown(line), fields)
        return self.parse_fields(fields, line, number)

    def split(self, line: bytes) -> list[str] | str:
        """The fields of a line whatever their number; a string is the reason why it has none."""
        if len(line) > MAX_LINE_BYTES:
            return f"the line has more than the {MAX_LINE_BYTES:,} bytes that a record may have"
        try:
            text = line.decode()
        except UnicodeDecodeError as exc:
            return f"byte {exc.start + 1} of the line is no valid UTF-8"
        if "\0" in text:
            return "the line has a NUL character"
        text = text.removesuffix("\n")
        if self.columns.ends_with_return:
            text = text.removesuffix("\r")
        return text.split(self.columns.delimiter)

    def parse_fields(self, fields: list[str], line: bytes, number: int) -> SacctRow | Rejected | Ignored:
        """A row out of the fields of one record; `line` is only shown when it is rejected."""
        count = self.columns.field_count
        if len(fields) != count:
            return Rejected(number, shown(line), _wrong_count(fields, count))
        fields.append("")
        values = self.columns.pick(fields)
        job_id = values[0]
        if "." in job_id and _STEP_ID.fullmatch(job_id):
            return Ignored(number, "step")
        try:
            return self._row(values)
        except ValueError as exc:
            return Rejected(number, shown(line), self._reason(values) or str(exc))

    def _row(self, values: tuple[str, ...]) -> SacctRow:
        (
            job_id, raw_id, cluster, name, user, uid, account, partition, qos, state, exit_code, submit_text, eligible_text, start_text,
            end_text, elapsed_text, limit_text, suspended_text, requested_text, allocated_text, node_count, cpus, node_list, priority,
            reservation, reason, comment, restarts, wckey, container, submit_line,
        ) = values  # fmt: skip
        if job_id == raw_id and job_id.isdigit() and job_id.isascii() and len(job_id) < 19:
            workload_id, kind = job_id, "job"
        else:
            raw_id, workload_id, kind = _identity(job_id, raw_id)
        self.clusters[cluster]
        epochs = self.times.epochs
        submit, eligible, start, end = epochs[submit_text], epochs[eligible_text], epochs[start_text], epochs[end_text]
        if submit is None:
            raise ValueError("Submit: a record without a time of submission")
        elapsed, suspended = self.elapsed[elapsed_text], self.durations[suspended_text]
        if self.times.second_readings:
            held = None if elapsed is None else elapsed + suspended
            submit, (eligible, start, end) = self.times.resolve(submit, (eligible, start, end), held)
        word, cancelled_by = self.states[state]
        names = self.names
        words = self.words
        return SacctRow(
            raw_id,
            job_id[:512],
            workload_id,
            kind,
            name,
            names[user] or names[uid],
            names[account],
            self.partitions[partition],
            words[qos],
            word,
            cancelled_by,
            words[exit_code][:16],
            submit,
            eligible,
            start,
            end,
            elapsed,
            self.limits[limit_text],
            suspended,
            self.tres[requested_text] if requested_text and self.has_requested else None,
            self.tres[allocated_text],
            self.counts[node_count],
            self.cpus[cpus],
            self.nodes[node_list],
            self.has_nodes and node_list in NO_NODES,
            self.numbers[priority],
            words[reservation],
            words[reason],
            comment,
            words[wckey],
            environment_of(container, submit_line) if container or submit_line else "",
            self.counts[restarts],
        )

    def _reason(self, values: tuple[str, ...]) -> str | None:
        """Which column is at fault, found by reading each of them again; None when it is none of them alone."""
        readers: dict[str, Memo[str, Any]] = {
            "Cluster": self.clusters, "User": self.names, "UID": self.names, "Account": self.names, "State": self.states,
            "Submit": self.times.epochs, "Eligible": self.times.epochs, "Start": self.times.epochs, "End": self.times.epochs,
            "ElapsedRaw": self.elapsed, "TimelimitRaw": self.limits, "Suspended": self.durations, "ReqTRES": self.tres,
            "AllocTRES": self.tres, "NNodes": self.counts, "NCPUS": self.cpus, "NodeList": self.nodes,
            "Priority": self.numbers, "Restarts": self.counts,
        }  # fmt: skip
        for column, text in zip(COLUMNS, values, strict=True):
            reason = _failure(readers[column].__getitem__, text) if column in readers else None
            if reason is not None:
                return f"{column}: {reason}"
        return None

    def _own_cluster(self, name: str) -> str:
        if name and name.casefold() != self._cluster.casefold():
            raise ValueError(
                f"the record is of cluster {name[:60]!r}, but this import is for {self._cluster!r}; a dump has one cluster (-M)"
            )
        return name


def shown(line: bytes) -> str:
    """A raw line as it can be stored and shown: at most 2,000 characters, broken bytes escaped, NUL left out."""
    return line[: RAW_LENGTH * 4].rstrip(b"\r\n").decode("utf-8", "backslashreplace").replace("\0", "")[:RAW_LENGTH]


def looks_like_start(fields: list[str], columns: Columns) -> bool:
    """Whether a line with too few fields begins like a record (so it is not the rest of one before it)."""
    at = columns.job_id_at
    return at < len(fields) and bool(
        _PLAIN_ID.fullmatch(fields[at]) or _JOB_ID.fullmatch(fields[at]) or _STEP_ID.fullmatch(fields[at])
    )


def _failure(read: Callable[[str], Any], text: str) -> str | None:
    try:
        read(text)
    except ValueError as exc:
        return str(exc)
    return None


def _wrong_count(fields: list[str], count: int) -> str:
    if fields == [""]:
        return "an empty line"
    if len(fields) < count:
        return f"{len(fields)} columns where the header has {count}: the line was cut, or a line break inside a field splits it"
    return f"{len(fields)} columns where the header has {count}: a field contains the delimiter (dump with --delimiter=$'\\x1f')"


def _identity(job_id: str, raw_id: str) -> tuple[str, str, str]:
    """(external id, workload id, workload kind). A dump without JobIDRaw has JobID in both places: then that
    is the external id."""
    found = _JOB_ID.fullmatch(job_id)
    if found is None and _PLAIN_ID.fullmatch(job_id) is None:
        raise ValueError(f"JobID: {job_id[:40]!r} is no job id")
    if raw_id != job_id and _PLAIN_ID.fullmatch(raw_id) is None:
        raise ValueError(f"JobIDRaw: {raw_id[:40]!r} is no job id")
    if found is None:
        raise ValueError(f"JobIDRaw: {raw_id[:40]!r} does not belong to job {job_id[:40]!r}")
    return raw_id[:255], found[1], "het_job" if found[2] else "array"


def _state(text: str) -> tuple[str, str]:
    found = _STATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no state")
    by = found[2] or ""
    return found[1][:32], "" if by == UNSET_ID else by[:255]


def _word(text: str) -> str:
    return "" if text in NO_WORD else text[:255]


def _name(text: str) -> str:
    if text.endswith("+"):
        raise ValueError(f"{text[:60]!r} was cut by sacct; write the dump with --parsable2, which prints names in full")
    return "" if text in {UNSET_ID, "(null)"} else text[:255]


def _partition(text: str) -> str:
    return text[:512]


def _digits(text: str, limit: int) -> int | None:
    if text in NO_TIME:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text[:40]!r} is {'negative' if text.startswith('-') else 'no whole number'}")
    if len(text) > 18 or int(text) > limit:
        raise ValueError(f"{text[:40]} is more than there can be")
    return int(text)


def _count(text: str) -> int | None:
    return _digits(text, 2**31 - 1)


def _number(text: str) -> int | None:
    return _digits(text, 10**18)


def _cpus(text: str) -> Decimal | None:
    count = _count(text)
    return None if count is None else Decimal(count)


def _elapsed(text: str) -> int | None:
    return duration_seconds(text) if ":" in text else _number(text)


def _limit(text: str) -> int | None:
    """Seconds of a time limit: minutes as `TimelimitRaw` prints them, or `[D-]HH:MM:SS`; None when there is no limit."""
    if text in INFINITE:
        return None
    minutes = None if ":" in text else _count(text)
    return duration_seconds(text) if minutes is None else minutes * 60


def _nodes(text: str) -> tuple[str, ...]:
    return () if text in NO_NODES else expand(text)
