"""System checks of accounting; `doctor` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import Error

from accounting.queries.sources import stored_zone


@checks.register(checks.Tags.database)
def rollups_are_cut_in_the_reporting_zone(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Days are cut in the reporting zone; after a change of zone the stored ones are wrong until they are rebuilt."""
    stored = _stored_zone() if databases else None
    if stored is None or stored == settings.ESTATE_ZONE:
        return []
    return [
        checks.Warning(
            f"the stored days are cut in {stored}, but the reporting zone is {settings.ESTATE_ZONE}",
            hint="leave worker and scheduler running: they rebuild every day within minutes; or set ESTATE_ZONE back",
            id="accounting.W001",
        )
    ]


def _stored_zone() -> str | None:
    """None where the schema is not there yet (`migrate` runs this check before it begins)."""
    try:
        return stored_zone()
    except Error:
        return None
