"""Every name of a GPU model that was seen, the model that it means, and how much stands under that."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import NamedTuple

from django.db import connection


class GpuName(NamedTuple):
    """A name and its model: `is_alias` where the two differ. GPUs of the inventory now; GPU-seconds and last day of the model's usage."""

    name: str
    model: str
    is_alias: bool
    gpu_count: int
    gpu_seconds: Decimal
    last_used_on: date | None


NAMES = """
WITH name AS (
    SELECT name, id AS model_id, name AS model, false AS is_alias FROM estate_gpumodel
    UNION ALL
    SELECT alias, gpu_model_id, model.name, true FROM estate_gpumodelalias alias JOIN estate_gpumodel model ON model.id = gpu_model_id
), owned AS (
    SELECT gpu_model_id, sum(gpu_count) AS gpu_count FROM estate_nodeinventory WHERE upper_inf(valid_during) GROUP BY gpu_model_id
), used AS (
    SELECT gpu_model_id, sum(gpu_seconds) AS gpu_seconds, max(day) AS last_used_on FROM accounting_usageday GROUP BY gpu_model_id
)
SELECT name, model, is_alias, coalesce(gpu_count, 0), coalesce(gpu_seconds, 0), last_used_on
FROM name LEFT JOIN owned ON owned.gpu_model_id = model_id LEFT JOIN used ON used.gpu_model_id = model_id
ORDER BY model, is_alias, name
"""


def gpu_names() -> list[GpuName]:
    """All names, those of one model together, its own first. One query."""
    with connection.cursor() as cursor:
        cursor.execute(NAMES)
        return [GpuName(*row) for row in cursor.fetchall()]
