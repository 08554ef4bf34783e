"""Loading and asking, in a line each."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateRange

from accounting import rollups
from accounting.domain.records import GpuPart, NodeFact, UsageRecord
from accounting.domain.reports import Report, ReportRequest, Scope
from accounting.ingest import ingest_nodes, ingest_records
from accounting.models import Rate
from accounting.queries import reports
from estate.models import Cluster, GpuModel
from tests.records import at

UTC_ZONE = ZoneInfo("UTC")
MARCH = (date(2026, 3, 1), date(2026, 4, 1))
MONDAY = (date(2026, 3, 2), date(2026, 3, 3))


def load(cluster: Cluster, *records: UsageRecord) -> None:
    with transaction.atomic():
        ingest_records(cluster, records)
    rollups.rebuild()


def inventory(cluster: Cluster, gpus_by_node: dict[str, int]) -> None:
    """Nodes with so many A100s each, there since long ago."""
    facts = [
        NodeFact(name, ("train",), (GpuPart("a100", Decimal(count)),) if count else (), 64, 512_000, "up", "")
        for name, count in gpus_by_node.items()
    ]
    with transaction.atomic():
        ingest_nodes(cluster, facts, as_of=at(-500))


def ask(name: str, *by: str, days: tuple[date, date] = MARCH, **scope: Any) -> Report:
    return reports.run(ReportRequest(name=name, first=days[0], last=days[1], zone=UTC_ZONE, by=by, scope=Scope(**scope)))


def column(report: Report, key: str, figure: str) -> dict[Any, Any]:
    return {row[key]: row[figure] for row in report.rows}


def rate(price: str) -> None:
    model = GpuModel.objects.get_or_create(name="a100")[0]
    Rate.objects.create(gpu_model=model, price=Decimal(price), cost=Decimal(price), valid_during=DateRange(None, None))


def gpus(count: int | str) -> dict[str, Any]:
    """The fields of a record that holds that many A100s."""
    return {"gpus": Decimal(count), "gpu_parts": (GpuPart("a100", Decimal(count)),), "requested_gpus": Decimal(count)}
