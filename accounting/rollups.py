"""Rollups, rebuilt from facts alone for dirty days only."""

from __future__ import annotations

from collections.abc import Callable


def rebuild(cluster_id: int | None = None, progress: Callable[[int, int], None] | None = None) -> int:
    """Rebuild the dirty days of one cluster (None: of all); returns how many. `progress(done, of)` is called as it goes."""
    raise NotImplementedError
