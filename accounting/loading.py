"""Blocks of COPY text → usage records: staging → changes → upsert → dirty days, block by block.

The database works on one block in a thread of its own while the caller parses the next: both cores of a small machine are busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from queue import Queue
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.backends.utils import CursorWrapper

from accounting import staging
from accounting.partitions import ensure_months
from estate.domain.periods import days_of, midnights

BLOCKS_AHEAD = 2


class Load:
    """One load of one cluster inside the caller's transaction; counts grow as blocks are taken.

    Records that wait have no time of their own that says when they were seen: they are as new as the whole input, so they are
    set aside until `finish`.
    """

    def __init__(self, cursor: CursorWrapper, cluster_id: int, observed_at: datetime | None) -> None:
        self._cursor = cursor
        self._cluster_id = cluster_id
        self._observed_at = observed_at
        self.record_count = self.changed_count = self.dirty_day_count = 0
        self.first_submitted_at: datetime | None = None
        self.seen_at: datetime | None = observed_at
        cursor.execute(CREATE_STAGING)

    def take(self, block: staging.CopyText) -> None:
        """Bring one block into the table, but for its waiting records."""
        with self._cursor.copy(COPY_STAGING) as copy:
            copy.write(block.text)
        self._cursor.execute(STAGED_BOUNDS)
        count, first, last, seen = self._cursor.fetchone()
        self.record_count += count
        self.first_submitted_at = min(first, self.first_submitted_at or first)
        if self._observed_at is None:
            self.seen_at = max(seen, self.seen_at or seen)
        self._cursor.execute(SET_WAITING_ASIDE)
        self._merge(first, last, block.repeated)

    def finish(self) -> None:
        """Bring in the waiting records and drop what was temporary."""
        if self.record_count:
            self._cursor.execute(BRING_WAITING_BACK, {"seen": self.seen_at})
            self._cursor.execute(STAGED_BOUNDS)
            count, first, last, _ = self._cursor.fetchone()
            if count:
                self._merge(first, last, repeated=True)
        self._cursor.execute("DROP TABLE staging, waiting")

    def _merge(self, first: datetime, last: datetime, repeated: bool) -> None:
        ensure_months(self._cursor, first, last)
        span: dict[str, Any] = {"first": first, "last": last, "cluster": self._cluster_id, "observed": self._observed_at}
        self._cursor.execute(COLLECT_CHANGES.format(**(NEWEST_OF_EACH if repeated else ALL_ROWS)), span)
        changed = int(self._cursor.rowcount)
        if changed:
            self._write(span, changed)
            self._cursor.execute(NEW_PARTITIONS, {"cluster": self._cluster_id})
        self.changed_count += changed
        self._cursor.execute("DROP TABLE changed; TRUNCATE staging")

    def _write(self, span: dict[str, Any], changed: int) -> None:
        self._cursor.execute(CHANGED_SPAN)
        new, staged, first, last = self._cursor.fetchone()
        if new:
            self._cursor.execute(INSERT_NEW.format(rows=ALL_STAGED if new == staged else NEW_OF_STAGED), span)
        if new < changed:
            self._cursor.execute(UPDATE_KNOWN, span)
        zone = ZoneInfo(settings.ESTATE_ZONE)
        days = days_of(first, last, zone)
        bounds = midnights(days[0], days[-1], zone)
        self._cursor.execute(MARK_CHANGES, {"cluster": self._cluster_id, "days": days, "midnights": bounds})
        self.dirty_day_count += int(self._cursor.rowcount)


class Worker:
    """Runs `load.take` in a thread. Between `drained()` and the next `put` the cursor belongs to the caller."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._queue: Queue[staging.CopyText | None] = Queue(BLOCKS_AHEAD)
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="load", daemon=True)

    def put(self, block: staging.CopyText) -> None:
        """Hand over a block; raises what went wrong with an earlier one."""
        self._queue.put(block)
        self._check()

    def drained(self) -> None:
        """Wait until every block handed over is in."""
        self._queue.join()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while (block := self._queue.get()) is not None:
            try:
                if self._failure is None:
                    self._load.take(block)
            except BaseException as exc:
                self._failure = exc
            finally:
                self._queue.task_done()
        self._queue.task_done()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The thread lives inside this block and has ended after it, whatever happened."""
        self._thread.start()
        try:
            yield
            self.drained()
        finally:
            self._queue.put(None)
            self._thread.join()


_NAMES = ", ".join(staging.COLUMNS)

CREATE_STAGING = f"""
CREATE TEMPORARY TABLE staging ON COMMIT DROP AS SELECT {_NAMES} FROM accounting_usagerecord WHERE false;
CREATE TEMPORARY TABLE waiting (LIKE staging) ON COMMIT DROP
"""

COPY_STAGING = f"COPY staging ({_NAMES}) FROM STDIN (FORMAT text, NULL '{staging.NULL}')"

STAGED_BOUNDS = """
SELECT count(*), min(submitted_at), max(submitted_at), greatest(max(last_seen_at), max(submitted_at)) FROM staging
"""

SET_WAITING_ASIDE = """
WITH aside AS (DELETE FROM staging WHERE last_seen_at IS NULL RETURNING *) INSERT INTO waiting SELECT * FROM aside
"""

BRING_WAITING_BACK = f"""
INSERT INTO staging ({_NAMES})
SELECT {", ".join("greatest(%(seen)s, submitted_at)" if name == "last_seen_at" else name for name in staging.COLUMNS)} FROM waiting
"""

# What a block changes: which staged rows, and what the old ones held. A block with repeated keys keeps the newest of each.
COLLECT_CHANGES = """
CREATE TEMPORARY TABLE changed ON COMMIT DROP AS
SELECT {distinct} s.ctid AS row, u.external_id IS NULL AS is_new, s.submitted_at, s.started_at, s.last_seen_at,
       u.started_at AS old_started_at, u.last_seen_at AS old_last_seen_at
FROM staging s
LEFT JOIN accounting_usagerecord u
       ON u.cluster_id = %(cluster)s AND u.external_id = s.external_id AND u.submitted_at = s.submitted_at
      AND u.submitted_at BETWEEN %(first)s AND %(last)s
WHERE u.external_id IS NULL
   OR ((s.row_hash <> u.row_hash OR s.last_seen_at <> u.last_seen_at)
       AND (s.ended_at IS NOT NULL, coalesce(%(observed)s::timestamptz, '-infinity'), s.last_seen_at, s.row_hash)
         > (u.ended_at IS NOT NULL, coalesce(u.observed_at, '-infinity'), u.last_seen_at, u.row_hash))
{order}
"""
NEWEST_OF_EACH = {
    "distinct": "DISTINCT ON (s.submitted_at, s.external_id)",
    "order": "ORDER BY s.submitted_at, s.external_id, s.ended_at IS NOT NULL DESC, s.last_seen_at DESC, s.row_hash DESC",
}
ALL_ROWS = {"distinct": "", "order": ""}

# Only one load writes a cluster at a time, so what is new needs no ON CONFLICT (which nearly doubles the cost of a row).
INSERT_NEW = f"""
INSERT INTO accounting_usagerecord (cluster_id, observed_at, {_NAMES})
SELECT %(cluster)s, %(observed)s::timestamptz, {", ".join(f"s.{name}" for name in staging.COLUMNS)} FROM {{rows}}
"""
ALL_STAGED = "staging s"
NEW_OF_STAGED = "staging s JOIN changed ON changed.row = s.ctid WHERE changed.is_new"

_KEY = {"external_id", "submitted_at"}
# What was known of a stay's GPUs is not forgotten for a source that cannot tell them: while a job runs the scheduler's memory says more
# than the books of a cluster that does not count GPUs.
_HELD = {"gpus", "gpu_size", "gpu_model_ids", "gpu_counts"}
_STILL_HELD = "s.gpus IS NULL AND u.gpus IS NOT NULL AND s.started_at = u.started_at"


def _newer(name: str) -> str:
    return f"{name} = CASE WHEN {_STILL_HELD} THEN u.{name} ELSE s.{name} END" if name in _HELD else f"{name} = s.{name}"


UPDATE_KNOWN = f"""
UPDATE accounting_usagerecord u
SET observed_at = %(observed)s::timestamptz, {", ".join(_newer(name) for name in staging.COLUMNS if name not in _KEY)}
FROM staging s JOIN changed ON changed.row = s.ctid
WHERE NOT changed.is_new AND u.cluster_id = %(cluster)s AND u.external_id = s.external_id AND u.submitted_at = s.submitted_at
  AND u.submitted_at BETWEEN %(first)s AND %(last)s
"""

NEW_PARTITIONS = """
INSERT INTO estate_partition (cluster_id, name)
SELECT DISTINCT %(cluster)s::bigint, left(name, 128)
FROM (SELECT DISTINCT partition FROM staging) c, unnest(string_to_array(c.partition, ',')) AS name
WHERE name <> '' ORDER BY 2
ON CONFLICT DO NOTHING
"""

CHANGED_SPAN = """
SELECT count(*) FILTER (WHERE is_new), (SELECT count(*) FROM staging),
       least(min(submitted_at), min(started_at), min(old_started_at)),
       greatest(max(submitted_at), max(last_seen_at), max(old_last_seen_at))
FROM changed
"""

# A record touches the day it was submitted on, and every day on which it holds or held something.
MARK_CHANGES = """
INSERT INTO accounting_dirtyday (cluster_id, day)
SELECT DISTINCT %(cluster)s::bigint, (%(days)s::date[])[bucket]
FROM (
    SELECT DISTINCT width_bucket(submitted_at, bounds) AS submit_bucket,
           width_bucket(started_at, bounds) AS first_bucket,
           width_bucket(greatest(started_at, last_seen_at - interval '1 microsecond'), bounds) AS last_bucket,
           width_bucket(old_started_at, bounds) AS old_first_bucket,
           width_bucket(greatest(old_started_at, old_last_seen_at - interval '1 microsecond'), bounds) AS old_last_bucket
    FROM changed, (SELECT %(midnights)s::timestamptz[] AS bounds) AS day
) AS stay CROSS JOIN LATERAL (
    SELECT submit_bucket AS bucket
    UNION ALL SELECT generate_series(first_bucket, last_bucket) WHERE first_bucket IS NOT NULL
    UNION ALL SELECT generate_series(old_first_bucket, old_last_bucket) WHERE old_first_bucket IS NOT NULL
) AS touched
ON CONFLICT DO NOTHING
"""
