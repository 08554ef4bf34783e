"""Many lines of a sacct dump at once → usage records, column by column. Pure.

It reads what is plain, by the very readers of parse.py (each distinct text once) and the rules of mapping.py spelled for columns, and
leaves the rest: what it calls odd is read line by line by `LineReader`, which alone decides what is wrong with it. Odd are rows that
would be rejected, resized segments, and times on days on which the clock changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple

import polars as pl

from accounting.domain.blocks import INSTANT, NO_RECORDS, Holding, RecordBlock, Request
from collectors.slurm.columns import COLUMNS, Columns
from collectors.slurm.environment import environment_of
from collectors.slurm.mapping import EARLIEST, SKEW_SECONDS, Mapper
from collectors.slurm.memo import Memo
from collectors.slurm.parse import MAX_LINE_BYTES, NO_NODES, NO_WORD, SacctParser
from collectors.slurm.times import LATEST_EPOCH, NO_TIME
from collectors.slurm.tres import NOTHING

ABSENT = ""
PLAIN_ID = "^[0-9]{1,18}$"
STEP_ID = r"^[0-9]{1,18}(?:_[0-9]{1,18}|\+[0-9]{1,9})?\.[A-Za-z0-9_.+-]{1,64}$"
JOB_ID = r"^([0-9]{1,18})(?:_(?:[0-9]{1,18}|\[.*)|\+[0-9]{1,9})$"
HET_ID = r"^[0-9]+\+"
WALL_TIME = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$"
EPOCH = "^[0-9]{1,12}$"
SECONDS_A_DAY = 86_400
TIMES = {"Submit": "submit", "Eligible": "eligible", "Start": "start", "End": "end"}
NAMES = ("User", "Account")
CUT_WORDS = {"QOS": "qos", "Reservation": "reservation", "Reason": "reason", "WCKey": "wckey"}


class PlainRows(NamedTuple):
    """What was read of some lines: the records, how many lines were steps, and the places of the lines that are odd."""

    block: RecordBlock
    step_count: int
    odd: list[int]


class Read(NamedTuple):
    """The values of a column, and where it could be read."""

    values: pl.Series
    is_good: pl.Series


class PlainReader:
    """Reads lines that have the right number of columns. `parser` and `mapper` give it their readers, limits and clock."""

    def __init__(self, columns: Columns, parser: SacctParser, mapper: Mapper) -> None:
        self._columns = columns
        self._parser = parser
        self._latest = mapper.latest
        at = columns.pick([*(f"field_{index}" for index in range(columns.field_count)), ABSENT])
        self._fields = [(name, field) for name, field in zip(COLUMNS, at, strict=True)]

    def is_readable(self, lines: pl.Series) -> pl.Series:
        """Which lines have the right number of columns, no NUL and no more bytes than a record may have."""
        bars = lines.str.count_matches(self._columns.delimiter, literal=True)
        fits = (bars == self._columns.field_count - 1) & (lines.str.len_bytes() <= MAX_LINE_BYTES)
        return fits & ~lines.str.contains("\0", literal=True)

    def read(self, lines: pl.Series) -> PlainRows:
        if not len(lines):
            return PlainRows(NO_RECORDS, 0, [])
        rows = self._split(lines)
        is_step = rows["JobID"].str.contains(STEP_ID)
        read = _Columns(rows, self._parser, self._latest)
        frame, is_good = read.records()
        odd = (~is_good & ~is_step).arg_true().to_list()
        block = RecordBlock(frame.filter(is_good & ~is_step), read.holdings, read.requests, read.node_lists)
        return PlainRows(block, int(is_step.sum()), odd)

    def _split(self, lines: pl.Series) -> pl.DataFrame:
        fields = lines.str.split_exact(self._columns.delimiter, self._columns.field_count - 1).struct.unnest()
        return fields.select((pl.col(field) if field else pl.lit(ABSENT)).alias(name) for name, field in self._fields)


class _Columns:
    """The columns of some rows, read one after the other; `_good` shrinks to the rows in which all could be read."""

    def __init__(self, rows: pl.DataFrame, parser: SacctParser, latest: int) -> None:
        self._rows = rows
        self._parser = parser
        self._latest = latest
        self._good = pl.repeat(True, len(rows), dtype=pl.Boolean, eager=True)
        self.holdings: list[Holding] = []
        self.requests: list[Request] = []
        self.node_lists: list[tuple[str, ...]] = []

    def records(self) -> tuple[pl.DataFrame, pl.Series]:
        """The frame of all rows, and which of them are records that it got right."""
        seen = pl.DataFrame([*self._identity(), *self._texts(), *self._times(), *self._amounts(), *self._held(), *self._states()])
        frame = self._as_mapped(seen)
        return frame, self._good

    # What each column says

    def _identity(self) -> list[pl.Series]:
        job, raw = self._rows["JobID"], self._rows["JobIDRaw"]
        is_plain = (job == raw) & job.str.contains(PLAIN_ID)
        workload = job.str.extract(JOB_ID)
        self._good &= is_plain | (workload.is_not_null() & ((job == raw) | raw.str.contains(PLAIN_ID)))
        kind = pl.select(
            pl.when(is_plain)
            .then(pl.lit("job"))
            .when(job.str.contains(HET_ID))
            .then(pl.lit("het_job"))
            .otherwise(pl.lit("array"))
        )[:, 0]
        return [
            raw.str.head(255).alias("external_id"),
            job.str.head(512).alias("display_id"),
            job.zip_with(is_plain, workload.fill_null("")).alias("workload_id"),
            kind.alias("workload_kind"),
        ]

    def _texts(self) -> list[pl.Series]:
        rows, parser = self._rows, self._parser
        self._by_text("Cluster", parser.clusters)
        user = self._by_text("User", parser.names)
        if (user == "").any():
            uid = self._read("UID", parser.names)
            self._good &= (user != "") | uid.is_good
            user = user.zip_with(user != "", uid.values)
        words = [_word(rows[column]).alias(name) for column, name in CUT_WORDS.items()]
        return [
            *words,
            user.alias("user"),
            self._by_text("Account", parser.names).alias("account"),
            rows["JobName"].alias("name"),
            rows["Partition"].str.head(512).alias("partition"),
            _word(rows["ExitCode"]).str.head(16).alias("exit_code"),
            rows["Comment"].alias("comment"),
            self._environment(),
        ]

    def _environment(self) -> pl.Series:
        container, line = self._rows["Container"], self._rows["SubmitLine"]
        if not (container != "").any() and not (line != "").any():
            return line.alias("environment")
        pairs = pl.DataFrame([container, line]).unique()
        said = pl.Series("environment", [environment_of(*pair) for pair in pairs.iter_rows()], dtype=pl.String)
        return pl.DataFrame([container, line]).join(
            pairs.with_columns(said), on=["Container", "SubmitLine"], maintain_order="left"
        )["environment"]

    def _states(self) -> list[pl.Series]:
        states = self._table("State", self._parser.states, ("", ""))
        state = states.column(itemgetter(0), pl.String).alias("state")
        self._good &= state != "RESIZING"
        return [state, states.column(itemgetter(1), pl.String).alias("cancelled_by")]

    def _times(self) -> list[pl.Series]:
        return [self._epochs(column).alias(name) for column, name in TIMES.items()]

    def _epochs(self, column: str) -> pl.Series:
        """Epoch seconds, null for "none"."""
        text = self._rows[column]
        is_wall = text.str.contains(WALL_TIME)
        epochs = self._of_wall_clock(text.set(~is_wall, None)) if is_wall.any() else self._nothing(pl.Int64)
        is_none = text.is_in(list(NO_TIME))
        if not (is_wall | is_none).all():
            counted = text.set(~text.str.contains(EPOCH), None).cast(pl.Int64, strict=False)
            epochs = epochs.fill_null(counted.set(counted > LATEST_EPOCH, None))
        self._good &= is_none | epochs.is_not_null()
        return epochs.set(is_none, None)

    def _of_wall_clock(self, text: pl.Series) -> pl.Series:
        """Null where the text is no time, and on days on which the offset changes."""
        wall = text.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False, time_unit="us")
        day = wall.dt.date()
        days = day.unique().drop_nulls()
        midnights = [_none_if_refused(self._parser.times.midnights.__getitem__, on.isoformat()) for on in days.to_list()]
        since = wall.dt.epoch("s") % SECONDS_A_DAY
        return day.replace_strict(days, pl.Series(midnights, dtype=pl.Int64), default=None, return_dtype=pl.Int64) + since

    def _amounts(self) -> list[pl.Series]:
        parser = self._parser
        return [
            self._number("ElapsedRaw", parser.elapsed).alias("elapsed"),
            self._number("Priority", parser.numbers).alias("priority"),
            self._by_text("TimelimitRaw", parser.limits, pl.Int64).alias("time_limit_seconds"),
            self._by_text("Suspended", parser.durations, pl.Int64).alias("suspended_seconds"),
            self._by_text("NNodes", parser.counts, pl.Int64).alias("node_count"),
            self._by_text("Restarts", parser.counts, pl.Int64).alias("restart_count"),
            self._by_text("NCPUS", Memo(lambda text: _plain(parser.cpus[text]))).alias("row_cpus"),
        ]

    def _number(self, column: str, reader: Mapping[str, int | None]) -> pl.Series:
        """Whole numbers in their plain spelling are many and different: read as one column."""
        text = self._rows[column]
        is_plain, is_none = text.str.contains(PLAIN_ID), text.is_in(list(NO_TIME))
        if not (is_plain | is_none).all():
            return self._by_text(column, reader, pl.Int64)
        return text.set(is_none, None).cast(pl.Int64)

    def _held(self) -> list[pl.Series]:
        parser = self._parser
        allocated = self._table("AllocTRES", parser.tres, NOTHING)
        self.holdings = [Holding(tres.gpus, tres.gpu_parts) for tres in allocated.values]
        requested = (
            self._table("ReqTRES", parser.tres, NOTHING) if parser.has_requested else _Table([NOTHING], self._nothing(pl.UInt32))
        )
        self.requests = [Request(tres.gpus, tres.gpu_model) for tres in requested.values]
        nodes = self._table("NodeList", parser.nodes, ())
        self.node_lists = list(nodes.values)
        return [
            allocated.places.alias("holding"),
            allocated.column(lambda tres: _plain(tres.cpus), pl.String).alias("held_cpus"),
            allocated.column(lambda tres: tres.memory_mib, pl.Int64).alias("memory_mib"),
            requested.places.set(self._rows["ReqTRES"] == "", None).alias("request"),
            nodes.places.alias("node_list"),
            nodes.column(lambda names: not names, pl.Boolean).alias("has_no_nodes"),
            (self._rows["NodeList"].is_in(list(NO_NODES)) & parser.has_nodes).alias("is_unassigned"),
        ]

    # The rules of mapping.py

    def _as_mapped(self, seen: pl.DataFrame) -> pl.DataFrame:
        self._good &= seen.select(~self._cannot_be())[:, 0]
        submit, start, end = pl.col("submit"), pl.col("start"), pl.col("end")
        never_started = pl.col("is_unassigned") | ((start == end) & pl.col("has_no_nodes") & (pl.col("state") == "CANCELLED"))
        seen_at = start + pl.col("elapsed") + pl.col("suspended_seconds")
        rows = seen.with_columns(
            pl.when(never_started.fill_null(False)).then(None).otherwise(start).alias("began"), seen_at.alias("seen")
        )
        began, nothing = pl.col("began"), pl.lit(0, pl.UInt32)
        is_running = began.is_not_null() & end.is_null()
        self._good &= rows.select(~(is_running & (pl.col("seen") > self._latest)).fill_null(False))[:, 0]
        resized = (began < submit) & (end.is_null() | (end >= submit))
        is_started = began.is_not_null()
        ended_too_early = began.is_null() & (end < submit)
        return rows.select(
            "external_id", "display_id", "workload_id", "workload_kind", "name", "user", "account", "partition", "qos", "state",
            "reason", "reservation", "exit_code", "cancelled_by", "comment", "wckey", "environment",
            "node_count", "time_limit_seconds", "suspended_seconds", "priority", "restart_count", "request",
            pl.lit("").alias("namespace"),
            _instant(submit).alias("submitted_at"),
            _instant(pl.col("eligible")).alias("eligible_at"),
            _instant(pl.when(resized).then(submit).otherwise(began)).alias("started_at"),
            _instant(pl.when(ended_too_early).then(submit).otherwise(end)).alias("ended_at"),
            _instant(pl.when(is_running & pl.col("seen").is_not_null()).then(pl.max_horizontal("seen", "submit"))).alias("last_seen_at"),
            pl.when(is_started).then("holding").otherwise(nothing).alias("holding"),
            pl.when(is_started).then("node_list").otherwise(nothing).alias("node_list"),
            pl.when(is_started).then("memory_mib").alias("memory_mib"),
            pl.coalesce(pl.when(is_started).then("held_cpus"), "row_cpus").alias("cpus"),
        )  # fmt: skip

    def _cannot_be(self) -> pl.Expr:
        submit, eligible, start, end = (pl.col(name) for name in ("submit", "eligible", "start", "end"))
        reasons = [submit.is_null()]
        reasons += [(at > self._latest) | (at < EARLIEST) for at in (submit, start, end)]
        reasons += [eligible < EARLIEST, end < start, end < submit - SKEW_SECONDS]
        return pl.any_horizontal(reason.fill_null(False) for reason in reasons)

    # Each distinct text is read once

    def _by_text(self, column: str, reader: Mapping[str, Any], dtype: Any = pl.String) -> pl.Series:
        read = self._read(column, reader, dtype)
        self._good &= read.is_good
        return read.values

    def _read(self, column: str, reader: Mapping[str, Any], dtype: Any = pl.String) -> Read:
        text = self._rows[column]
        distinct = text.unique()
        values, refused = _readings(distinct.to_list(), reader)
        read = text.replace_strict(distinct, pl.Series(values, dtype=dtype), return_dtype=dtype)
        return Read(read, ~text.is_in(refused))

    def _table(self, column: str, reader: Mapping[str, Any], nothing: Any) -> _Table:
        """The distinct values of a column; the first of them is `nothing`."""
        text = self._rows[column]
        distinct = text.unique()
        values, refused = _readings(distinct.to_list(), reader)
        self._good &= ~text.is_in(refused)
        numbers = pl.int_range(1, len(distinct) + 1, dtype=pl.UInt32, eager=True)
        places = text.replace_strict(distinct, numbers, return_dtype=pl.UInt32)
        return _Table([nothing, *(nothing if value is None else value for value in values)], places)

    def _nothing(self, dtype: Any) -> pl.Series:
        return pl.repeat(None, len(self._rows), dtype=dtype, eager=True)


class _Table(NamedTuple):
    values: Sequence[Any]
    places: pl.Series

    def column(self, figure: Callable[[Any], Any], dtype: Any) -> pl.Series:
        return pl.Series([figure(value) for value in self.values], dtype=dtype).gather(self.places)


def _readings(texts: Sequence[str], reader: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """What each text says (None where it is refused), and the refused ones."""
    values, refused = [], []
    for text in texts:
        try:
            values.append(reader[text])
        except ValueError:
            values.append(None)
            refused.append(text)
    return values, refused


def _none_if_refused(read: Callable[[str], int | None], text: str) -> int | None:
    try:
        return read(text)
    except ValueError:
        return None


def _word(text: pl.Series) -> pl.Series:
    return text.set(text.is_in(list(NO_WORD)), "").str.head(255)


def _plain(quantity: Decimal | None) -> str | None:
    return None if quantity is None else format(quantity, "f")


def _instant(seconds: pl.Expr) -> pl.Expr:
    return (seconds * 1_000_000).cast(INSTANT)
