"""Which clusters tell all that runs and waits, and when they last did; what they no longer tell of."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Max

from accounting.queries import unseen
from accounting.queries.unseen import Unseen
from collectors.models import LIVE_KINDS, Source

# Two answers within a moment may tell of a record in the same words, and then the older one counts as its sighting.
MOMENT = timedelta(seconds=5)


def last_told(cluster: str | None = None) -> dict[int, datetime]:
    """By cluster id, a moment before a live source last answered: its window covers all that runs and waits."""
    sources = Source.objects.filter(kind__in=LIVE_KINDS, watermark_at__isnull=False)
    if cluster is not None:
        sources = sources.filter(cluster__name=cluster)
    answered = sources.values_list("cluster_id").annotate(Max("watermark_at")).order_by()
    return {cluster_id: at - MOMENT for cluster_id, at in answered}


def runaways(cluster: str | None = None) -> list[Unseen]:
    """Records of `cluster` (None: of all) that run or wait by the books, but were not in the newest answer of their cluster."""
    return unseen.unseen(last_told(cluster))


def runaway_counts() -> dict[int, int]:
    """How many by cluster id."""
    return unseen.unseen_counts(last_told())
