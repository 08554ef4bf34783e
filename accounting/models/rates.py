"""Prices, dated."""

from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateRangeField, RangeOperators
from django.db import models


class Rate(models.Model):
    """Price of one GPU-hour of a model on the reporting days of `valid_during`, in the estate's currency.

    `price` is what users are charged; `cost` is what a GPU-hour of capacity costs (idle is valued at it).
    """

    gpu_model = models.ForeignKey("estate.GpuModel", models.PROTECT, related_name="rates")
    price = models.DecimalField(max_digits=14, decimal_places=6)
    cost = models.DecimalField(max_digits=14, decimal_places=6)
    valid_during = DateRangeField()

    class Meta:
        constraints = (
            ExclusionConstraint(
                name="rate_one_at_a_time",
                expressions=[("gpu_model", RangeOperators.EQUAL), ("valid_during", RangeOperators.OVERLAPS)],
            ),
            models.CheckConstraint(name="rate_not_negative", condition=models.Q(price__gte=0, cost__gte=0)),
        )

    def __str__(self) -> str:
        return f"{self.gpu_model}: {self.price} a GPU-hour"
