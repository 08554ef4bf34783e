"""The only writer of usage records and node inventories."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from accounting.domain.records import NodeFact, UsageRecord
from estate.models import Cluster


class IngestResult(NamedTuple):
    """What a load did: records taken in, rows of them that changed the table, reporting days marked dirty, and the last sighting."""

    accepted_count: int
    changed_count: int
    dirty_day_count: int
    through_at: datetime | None


class NodeIngestResult(NamedTuple):
    """What an inventory did: nodes in it, nodes of which something changed, known nodes that it does not name."""

    node_count: int
    changed_count: int
    absent_count: int


def ingest_records(cluster: Cluster, records: Iterable[UsageRecord], *, observed_at: datetime | None = None) -> IngestResult:
    """Load `records` of one cluster: COPY → staging → upsert → dirty days. Must run inside `transaction.atomic()`.

    `observed_at` is when a live source was asked; None for saved dumps, whose own content says how new they are.
    """
    raise NotImplementedError


def ingest_nodes(
    cluster: Cluster, facts: Iterable[NodeFact], *, as_of: datetime | None, complete: bool = False
) -> NodeIngestResult:
    """Bring the dated inventory of `cluster` up to `facts` as they were at `as_of`. Must run inside `transaction.atomic()`.

    None as `as_of` means now; a cluster without any inventory gets it with an open beginning. With `complete`, nodes that are not named end.
    """
    raise NotImplementedError


def note_intake(cluster: Cluster, input_name: str, rejected_count: int) -> None:
    """Remember how many lines of an input could not be taken in (the newest reading of the same input counts)."""
    raise NotImplementedError
