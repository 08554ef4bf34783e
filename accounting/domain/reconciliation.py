"""The sum that every page of costs shows: attributed + unattributed + idle + shared = total. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

UNATTRIBUTED, IDLE = "Unattributed", "Idle"


class Reconciliation(NamedTuple):
    """Amounts of money, and what is left when the parts are taken from the total (0 when the books are right)."""

    attributed: Decimal
    unattributed: Decimal
    idle: Decimal
    shared: Decimal
    total: Decimal

    @property
    def difference(self) -> Decimal:
        return self.total - self.attributed - self.unattributed - self.idle - self.shared


def reconcile(rows: Iterable[Mapping[str, Any]], total: Any) -> Reconciliation:
    """Sums of the rows of the costs report by project against its total. Adjustments belong to the row that they correct."""
    attributed = unattributed = idle = shared = Decimal(0)
    for row in rows:
        own = Decimal(row.get("usage_cost") or 0) + Decimal(row.get("adjustment") or 0)
        if row.get("project") == UNATTRIBUTED:
            unattributed += own
        else:
            attributed += own
        idle += Decimal(row.get("idle_cost") or 0)
        shared += Decimal(row.get("shared_cost") or 0)
    return Reconciliation(attributed, unattributed, idle, shared, Decimal(total or 0))
