"""The writer of prices: a new rate closes the one in force."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateRange

from accounting.models import Rate
from estate.models import GpuModel


@transaction.atomic
def set_rate(gpu_model: GpuModel, *, price: Decimal, cost: Decimal, since: date) -> bool:
    """Make one GPU-hour of `gpu_model` cost `price` (capacity: `cost`) from the reporting day `since` until the next known change.

    Returns False when that is already so. Rates before `since` and rates that begin later stay as they are.
    """
    GpuModel.objects.select_for_update().get(pk=gpu_model.pk)
    rates = Rate.objects.filter(gpu_model=gpu_model)
    in_force = rates.filter(valid_during__contains=since).first()
    if in_force is None:
        later = rates.filter(valid_during__startswith__gt=since).order_by("valid_during").first()
        _open(gpu_model, price, cost, since, None if later is None else later.valid_during.lower)
        return True
    if (in_force.price, in_force.cost) == (price, cost):
        return False
    if in_force.valid_during.lower == since:
        in_force.price, in_force.cost = price, cost
        in_force.save(update_fields=["price", "cost"])
        return True
    until = in_force.valid_during.upper
    in_force.valid_during = DateRange(in_force.valid_during.lower, since)
    in_force.save(update_fields=["valid_during"])
    _open(gpu_model, price, cost, since, until)
    return True


def _open(gpu_model: GpuModel, price: Decimal, cost: Decimal, since: date, until: date | None) -> None:
    Rate.objects.create(gpu_model=gpu_model, price=price, cost=cost, valid_during=DateRange(since, until))
