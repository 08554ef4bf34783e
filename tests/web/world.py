"""A little estate with usage in March 2026: three nodes in two partitions, two projects and one account that nobody owns."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from accounting import rollups
from accounting.domain.records import GpuPart, NodeFact, UsageRecord
from accounting.ingest import ingest_nodes, ingest_records
from accounting.models import Rate
from estate.models import AccountMapping, Cluster, GpuModel, Node, NodeState, Project
from tests.records import at, record, running, waiting

MARCH = "from=2026-03-01&to=2026-04-01"
WEEK = "from=2026-03-02&to=2026-03-05"
PAGES = ("/", "/utilisation/", "/queues/", "/costs/", "/estate/")
REPORT_PAGES = PAGES[:4]


def records(copies: int = 1) -> list[UsageRecord]:
    """`copies` times a handful of records, spread over users; the first ones are the same whatever the number."""
    made: list[UsageRecord] = []
    for number in range(copies):
        name = f"{number:04}"
        made += [
            record(f"a{name}", user=f"ann{number}", started_at=at(1), ended_at=at(30)),
            record(f"b{name}", user=f"bea{number}", account="speech", nodes=("gpu02",), started_at=at(20), ended_at=at(45)),
            record(
                f"c{name}", user="cyd", account="nobodys", partition="long", nodes=("gpu03",), started_at=at(2), ended_at=at(50)
            ),
            running(f"d{name}", seen=60, nodes=("gpu02",)),
            waiting(f"e{name}", submitted_at=at(40), eligible_at=at(40), last_seen_at=at(60)),
        ]
    return made


def load(cluster: Cluster, copies: int) -> None:
    """Take in `records(copies)`."""
    with transaction.atomic():
        ingest_records(cluster, records(copies))
    rollups.rebuild()


def fill(cluster: Cluster, copies: int = 1) -> None:
    """Inventory, rates, mappings and `records(copies)` of `cluster`."""
    facts = [
        NodeFact(f"gpu0{number}", ("train", "long")[: 1 + number // 3], (GpuPart("a100", Decimal(8)),), 64, 512_000, "up", "")
        for number in (1, 2, 3)
    ]
    with transaction.atomic():
        ingest_nodes(cluster, facts, as_of=at(-500))
    down = DateTimeTZRange(at(55), None)
    NodeState.objects.create(node=Node.objects.get(name="gpu03"), condition="down", reason="GPU lost", valid_during=down)
    Rate.objects.create(
        gpu_model=GpuModel.objects.get(name="a100"), price="2.5", cost="1.5", valid_during=(date(2026, 1, 1), None)
    )
    speech = Project.objects.create(code="P-SPEECH", name="Speech")
    AccountMapping.objects.create(cluster=cluster, account="speech", project=speech, valid_during=(None, None))
    load(cluster, copies)
