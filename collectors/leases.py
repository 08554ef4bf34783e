"""One runner per source: a lease with a fence, kept in the source's row and timed by the database's clock.

Of the sources that ask a cluster itself only one is held at a time, so that its accounting database gets one call at a time.
Whoever takes the lease gets the next number of the fence. A runner that was away too long may go on reading, but what it read is
rolled back: `check` compares its number with the newest in the same transaction that would write.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Thread
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from collectors.models import LIVE_KINDS

LEASE_SECONDS = float(settings.LEASE_SECONDS)
RENEW_SECONDS = LEASE_SECONDS / 4
LONGEST_BACKOFF_SECONDS = 900.0
CLUSTER_LOCK = 7_110_003


class LeaseLostError(Exception):
    """Another runner has taken the source over; nothing of this run may be written."""


@dataclass
class Lease:
    """A source as its runner holds it. `due_at` is when it was due at the time it was taken."""

    source_id: int
    fence: int
    due_at: datetime
    renewed: float = field(default_factory=time.monotonic)

    def keep_alive(self) -> None:
        """Renew now and then while bytes keep coming; call it as often as is handy."""
        if time.monotonic() - self.renewed >= RENEW_SECONDS:
            renew(self)


def acquire(source_id: int, *, only_due: bool) -> Lease | None:
    """Take the source, or None when somebody has it or asks its cluster (with `only_due` also when it is not due or switched off)."""
    owner = f"{socket.gethostname()[:80]}:{os.getpid()}"
    facts: dict[str, Any] = {"id": source_id, "owner": owner, "lease": LEASE_SECONDS, "only_due": only_due}
    facts["live"] = [str(kind) for kind in LIVE_KINDS]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK_CLUSTER, {"id": source_id, "lock": CLUSTER_LOCK})
        cursor.execute(ACQUIRE, facts)
        row = cursor.fetchone()
    return None if row is None else Lease(source_id, *row)


@contextmanager
def kept(lease: Lease) -> Iterator[None]:
    """The lease is renewed beside this block, also while nothing comes: a database may think for minutes before its first byte.

    A loss is noticed where it matters, in `check`.
    """
    done = Event()

    def renew_now_and_then() -> None:
        while not done.wait(RENEW_SECONDS):
            with suppress(DatabaseError, LeaseLostError):
                renew(lease)

    beat = Thread(target=renew_now_and_then, name="lease", daemon=True)
    beat.start()
    try:
        yield
    finally:
        done.set()
        beat.join()


def renew(lease: Lease) -> None:
    """Prolong the lease, over another connection: nobody sees the run's transaction before its end. Raises LeaseLostError."""
    with _own_connection() as own, own.cursor() as cursor:
        cursor.execute(RENEW, {"id": lease.source_id, "fence": lease.fence, "lease": LEASE_SECONDS})
        if cursor.rowcount == 0:
            raise LeaseLostError(LOST)
    lease.renewed = time.monotonic()


def check(lease: Lease) -> None:
    """Call last inside the transaction that writes: raises LeaseLostError unless this is still the newest runner."""
    with connection.cursor() as cursor:
        cursor.execute(CHECK, {"id": lease.source_id})
        if cursor.fetchone() != (lease.fence,):
            raise LeaseLostError(LOST)


def give_back(lease: Lease) -> None:
    """Give the source back as it was taken: when it is due does not change."""
    with connection.cursor() as cursor:
        cursor.execute(GIVE_BACK, {"id": lease.source_id, "fence": lease.fence})


def release(lease: Lease, *, failed: bool) -> None:
    """Give the source back and say when it is due next: after its interval, or later and later while it fails.

    A "run now" that came in meanwhile stays in force.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            RELEASE,
            {
                "id": lease.source_id,
                "fence": lease.fence,
                "due": lease.due_at,
                "failed": failed,
                "longest": LONGEST_BACKOFF_SECONDS,
            },
        )


@contextmanager
def _own_connection() -> Iterator[BaseDatabaseWrapper]:
    own = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        yield own
    finally:
        own.close()


LOST = "another runner has taken this source over; nothing was written"

LOCK_CLUSTER = "SELECT pg_advisory_xact_lock(%(lock)s, cluster_id::integer) FROM collectors_source WHERE id = %(id)s"

ACQUIRE = """
UPDATE collectors_source AS source
SET lease_owner = %(owner)s, lease_until_at = clock_timestamp() + make_interval(secs => %(lease)s), fence = fence + 1
WHERE id = %(id)s AND (lease_until_at IS NULL OR lease_until_at < clock_timestamp())
  AND (NOT %(only_due)s OR (enabled AND next_due_at <= clock_timestamp()))
  AND (kind <> ALL(%(live)s) OR NOT EXISTS (
        SELECT FROM collectors_source AS other
        WHERE other.cluster_id = source.cluster_id AND other.id <> source.id AND other.kind = ANY(%(live)s)
          AND other.lease_until_at > clock_timestamp()))
RETURNING fence, next_due_at
"""

RENEW = """
UPDATE collectors_source SET lease_until_at = clock_timestamp() + make_interval(secs => %(lease)s)
WHERE id = %(id)s AND fence = %(fence)s
"""

GIVE_BACK = "UPDATE collectors_source SET lease_owner = '', lease_until_at = NULL WHERE id = %(id)s AND fence = %(fence)s"

CHECK = "SELECT fence FROM collectors_source WHERE id = %(id)s FOR NO KEY UPDATE"

# interval × 2^failures, at most 15 minutes or the interval itself where that is longer.
RELEASE = """
UPDATE collectors_source
SET lease_owner = '', lease_until_at = NULL,
    failure_count = CASE WHEN %(failed)s THEN failure_count + 1 ELSE 0 END,
    next_due_at = CASE
        WHEN next_due_at <> %(due)s THEN next_due_at
        WHEN NOT %(failed)s THEN clock_timestamp() + make_interval(secs => interval_seconds)
        ELSE clock_timestamp() + least(
            make_interval(secs => interval_seconds * power(2, least(failure_count + 1, 16))),
            make_interval(secs => greatest(%(longest)s, interval_seconds)))
    END
WHERE id = %(id)s AND fence = %(fence)s
"""
