"""Jobs of slurmrestd → usage records: columns, rows, mapping and counts. Pure: it is given parsed JSON and a clock.

Every job is counted once: accepted + rejected + ignored = jobs. Both APIs may show the same record; slurmdbd's word counts, and what
slurmctld said of it is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from accounting.domain.records import Rejected, UsageRecord
from collectors.slurm.columns import read_header
from collectors.slurm.mapping import Mapper
from collectors.slurm.parse import RAW_LENGTH, Ignored, SacctParser, SacctRow
from collectors.slurm.reader import Tally
from collectors.slurm.resized import ResizedSegments
from collectors.slurm.rest import accounting, live
from collectors.slurm.rest.dialect import Dialect

COLUMNS = (
    "JobID", "JobIDRaw", "Cluster", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "Submit", "Eligible", "Start",
    "End", "ElapsedRaw", "TimelimitRaw", "Suspended", "ReqTRES", "AllocTRES", "NNodes", "NCPUS", "NodeList", "Priority", "Reservation",
    "Reason", "Comment", "Restarts", "WCKey", "Container", "SubmitLine",
)  # fmt: skip
SEPARATOR = "\x1f"
# A job that is refused is kept as the line that sacct would have printed, so that it can be read again like one.
HEADER_LINE = SEPARATOR.join(COLUMNS)
_HEADER = read_header(HEADER_LINE.encode())
ColumnsOf = Callable[[Mapping[str, Any], Dialect], dict[str, str] | None]


class JobParser:
    """Reads the jobs of one cluster as one data parser writes them; times are epoch seconds, so no zone is needed."""

    def __init__(self, dialect: Dialect, *, cluster: str, shards_per_gpu: int | None = None, tracks_gpus: bool = True) -> None:
        self._dialect = dialect
        self._rows = SacctParser(
            _HEADER, cluster=cluster, zone=ZoneInfo("UTC"), shards_per_gpu=shards_per_gpu, tracks_gpus=tracks_gpus
        )

    def stored(self, job: object, number: int) -> SacctRow | Rejected | Ignored:
        """A job of `slurmdb/vX/jobs`, the `number`-th of the answer."""
        return self._row(job, number, accounting.columns_of)

    def live(self, job: object, number: int) -> SacctRow | Rejected | Ignored:
        """A job of `slurm/vX/jobs`; one that has ended is ignored."""
        return self._row(job, number, live.columns_of)

    def _row(self, job: object, number: int, columns_of: ColumnsOf) -> SacctRow | Rejected | Ignored:
        if not isinstance(job, Mapping):
            return Rejected(number, shown(job), "the job is no JSON object")
        try:
            columns = columns_of(job, self._dialect)
        except ValueError as exc:
            return Rejected(number, shown(job), str(exc))
        if columns is None:
            return Ignored(number, "ended")
        fields = [columns.get(name, "") for name in COLUMNS]
        return self._rows.parse_fields(fields, SEPARATOR.join(fields).encode(), number)


class RestReader(Tally):
    """Iterate it once for the usage records of `stored` (jobs of slurmdbd) and of those in `waiting` (of slurmctld) that are not among
    them. `waiting` is read first and kept, `stored` streams through; `now` is the reader's aware clock.

    The counts and `rejections` grow while it is iterated; who reads a very bad answer may empty that list now and then.
    """

    def __init__(
        self,
        stored: Iterable[object],
        waiting: Iterable[object] = (),
        *,
        dialect: Dialect,
        cluster: str,
        now: datetime,
        shards_per_gpu: int | None = None,
        tracks_gpus: bool = True,
    ) -> None:
        super().__init__()
        self._stored = stored
        self._waiting = waiting
        self._parser = JobParser(dialect, cluster=cluster, shards_per_gpu=shards_per_gpu, tracks_gpus=tracks_gpus)
        self._mapper = Mapper(now)
        self._segments = ResizedSegments()

    def __iter__(self) -> Iterator[UsageRecord]:
        only_live = {_key(record): record for record in self._records(self._waiting, self._parser.live)}
        for record in self._records(self._stored, self._parser.stored):
            live = only_live.pop(_key(record), None)
            if live is not None:
                self.accepted_count -= 1
                self.ignored_count += 1
                if record.gpus is None and live.gpu_parts:
                    record = record._replace(gpus=live.gpus, gpu_parts=live.gpu_parts)  # noqa: PLW2901 - the fuller of the two
            if record.state == "RESIZING":
                self._segments.hold_back(record)
                continue
            if self._segments.held:
                self._segments.note_successor(record)
            yield record
        yield from self._segments.release()
        yield from only_live.values()

    def _records(
        self, jobs: Iterable[object], parse: Callable[[object, int], SacctRow | Rejected | Ignored]
    ) -> Iterator[UsageRecord]:
        for job in jobs:
            self.line_count += 1
            row = parse(job, self.line_count)
            if isinstance(row, SacctRow):
                yield from self._mapped(row, job)
            elif isinstance(row, Rejected):
                self.reject(row)
            else:
                self.ignored_count += 1

    def _mapped(self, row: SacctRow, job: object) -> Iterator[UsageRecord]:
        try:
            record = self._mapper.record(row)
        except ValueError as exc:
            self.reject(Rejected(self.line_count, shown(job), str(exc)))
            return
        self.accepted_count += 1
        yield record


def shown(job: object) -> str:
    """A job as it can be stored and shown: ASCII JSON without its steps, at most 2,000 characters."""
    kept = (
        {key: value for key, value in job.items() if key not in {"steps", "job_resources"}} if isinstance(job, Mapping) else job
    )
    return json.dumps(kept, default=str)[:RAW_LENGTH]


def _key(record: UsageRecord) -> tuple[str, datetime]:
    return record.external_id, record.submitted_at
