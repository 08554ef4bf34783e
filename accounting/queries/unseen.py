"""Records that have not ended by the books, but that their cluster no longer tells of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet

from accounting.models import UsageRecord

MOST_ROWS = 1_000


class Unseen(NamedTuple):
    """A record that runs or waits by the books and was last seen at `last_seen_at`: its usage ends there."""

    cluster: str
    display_id: str
    state: str
    user: str
    account: str
    partition: str
    gpus: Decimal | None
    started_at: datetime | None
    last_seen_at: datetime


def unseen(asked: Mapping[int, datetime]) -> list[Unseen]:
    """The first thousand, by cluster and the longest unseen first; `asked` says by cluster id when it last told all that runs and waits."""
    rows = (
        _unseen(asked)
        .order_by("cluster__name", "last_seen_at", "external_id")
        .values_list(
            *("cluster__name", "display_id", "state", "user_name", "account", "partition", "gpus", "started_at", "last_seen_at")
        )
    )
    return [Unseen(*row) for row in rows[:MOST_ROWS]]


def unseen_counts(asked: Mapping[int, datetime]) -> dict[int, int]:
    """How many there are by cluster id; clusters without any have no entry."""
    return dict(_unseen(asked).values_list("cluster_id").annotate(Count("external_id")).order_by())


def _unseen(asked: Mapping[int, datetime]) -> QuerySet[UsageRecord]:
    """Two searches, so that each is served by its partial index."""
    if not asked:
        return UsageRecord.objects.none()
    since = Q()
    for cluster_id, at in asked.items():
        since |= Q(cluster_id=cluster_id) & (Q(observed_at__lt=at) | Q(observed_at=None, last_seen_at__lt=at))
    return UsageRecord.objects.filter(since, ended_at__isnull=True)
