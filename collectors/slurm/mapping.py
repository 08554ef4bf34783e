"""A sacct row → usage record: what sacct's times and words mean. Pure; rules from definitions.md.

- A record never started when Start is none, or its NodeList is "None assigned" (before Slurm 23.02 such a record still prints
  Start = End
  and a full AllocTRES), or, where the dump cannot say the nodes, it was cancelled and Start = End. It holds 0 GPUs and no nodes.
- Start before Submit: a job that was resized. Slurm opens a new record whose Submit is the resize; up to 22.05 its Start stays
  the first
  start, a time that belongs to the record before it (RESIZING). So it is taken to start at Submit, and no second counts twice.
- Submit, Start and End may lie at most a day ahead of the reader's clock (zones, skew), and never before 1995. Eligible may lie
  ahead.
- ElapsedRaw that contradicts End − Start is let be: the times rule, here and in the reports.
"""

from __future__ import annotations

from datetime import datetime

from accounting.domain.records import UsageRecord
from collectors.slurm.memo import Memo
from collectors.slurm.parse import SacctRow
from collectors.slurm.times import instant
from collectors.slurm.tres import NOTHING

EARLIEST = 788_918_400  # 1995-01-01, older than any Slurm
AHEAD_SECONDS = 86_400
SKEW_SECONDS = 300


class Mapper:
    """Turns rows into records as of `now` (aware), the clock against which times "in the future" are judged."""

    def __init__(self, now: datetime) -> None:
        self.latest = round(now.timestamp()) + AHEAD_SECONDS
        self._instants = Memo(instant)

    def record(self, row: SacctRow) -> UsageRecord:
        """Raises ValueError when the times of the row cannot be."""
        submit, start, end = row.submit, row.start, row.end
        eligible = row.eligible
        if start is None or end is None or eligible is None or not EARLIEST <= submit <= eligible <= start <= end <= self.latest:
            self._check(row)
        if start is not None and (row.nodes_unassigned or (start == end and not row.nodes and row.state == "CANCELLED")):
            start = None
        if start is not None and start < submit:
            start = _start_of_resized(submit, start, end)
        elif start is None and end is not None and end < submit:
            end = submit
        at = self._instants
        started = start is not None
        held = row.allocated if started else NOTHING
        requested = row.requested
        last_seen = None
        if started and end is None:
            last_seen = self._last_seen(row)
        return UsageRecord(
            external_id=row.external_id,
            display_id=row.display_id,
            workload_id=row.workload_id,
            workload_kind=row.workload_kind,
            name=row.name,
            user=row.user,
            account=row.account,
            namespace="",
            partition=row.partition,
            qos=row.qos,
            state=row.state,
            submitted_at=at[submit],
            eligible_at=None if eligible is None else at[eligible],
            started_at=None if start is None else at[start],
            ended_at=None if end is None else at[end],
            last_seen_at=last_seen,
            gpus=held.gpus,
            gpu_parts=held.gpu_parts,
            requested_gpus=None if requested is None else requested.gpus,
            requested_gpu_model=None if requested is None else requested.gpu_model,
            cpus=row.cpus if held.cpus is None else held.cpus,
            memory_mib=held.memory_mib,
            node_count=row.node_count,
            nodes=row.nodes if started else (),
            time_limit_seconds=row.time_limit_seconds,
            suspended_seconds=row.suspended_seconds,
            priority=row.priority,
            reason=row.reason,
            reservation=row.reservation,
            exit_code=row.exit_code,
            cancelled_by=row.cancelled_by,
            comment=row.comment,
            wckey=row.wckey,
            environment=row.environment,
            restart_count=row.restart_count,
        )

    def _check(self, row: SacctRow) -> None:
        for column, at in (("Submit", row.submit), ("Start", row.start), ("End", row.end)):
            if at is not None and at > self.latest:
                raise ValueError(f"{column} {_readable(at)} lies in the future")
            if at is not None and at < EARLIEST:
                raise ValueError(f"{column} {_readable(at)} lies before 1995")
        if row.eligible is not None and row.eligible < EARLIEST:
            raise ValueError(f"Eligible {_readable(row.eligible)} lies before 1995")
        if row.start is not None and row.end is not None and row.end < row.start:
            raise ValueError(f"End {_readable(row.end)} lies before Start {_readable(row.start)}")
        if row.end is not None and row.end < row.submit - SKEW_SECONDS:
            raise ValueError(f"End {_readable(row.end)} lies before Submit {_readable(row.submit)}")

    def _last_seen(self, row: SacctRow) -> datetime | None:
        """When a running record was seen: sacct counts Elapsed up to that moment, without the time it was suspended."""
        if row.start is None or row.elapsed_seconds is None:
            return None
        seen = row.start + row.elapsed_seconds + row.suspended_seconds
        if seen > self.latest:
            raise ValueError(f"ElapsedRaw {row.elapsed_seconds} counts into the future")
        return self._instants[max(seen, row.submit)]


def _start_of_resized(submit: int, start: int, end: int | None) -> int:
    """Submit, unless the record also ended before it (clocks a little apart): then its times stay as they are."""
    return start if end is not None and end < submit else submit


def _readable(epoch: int) -> str:
    return f"{instant(epoch):%Y-%m-%d %H:%M:%S} UTC"
