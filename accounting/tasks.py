"""Doorbells of the accounting: each calls one function and returns counts."""

from __future__ import annotations

from celery import shared_task
from django.db import OperationalError

from accounting import rollups


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, retry_jitter=True, max_retries=5, acks_late=True)
def rebuild_rollups() -> dict[str, int]:
    """Rebuild whatever is still dirty (an import that ended between its facts and their rollups)."""
    return {"day_count": rollups.rebuild()}
