"""What the scheduler of the little estate enforces, reserves and plans."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from accounting.policy import ingest_policy
from estate.domain.policy import (
    AccountFact,
    AssociationFact,
    ConfigFact,
    Limit,
    PartitionFact,
    PolicyFacts,
    QosFact,
    ReservationFact,
    ShareFact,
)
from estate.models import Cluster

CONFIG = ConfigFact(
    "22.05.8", ("limits",), ("cpu", "gres/gpu", "gres/gpu:a100"), ("gpu",), "", "priority/multifactor", 604_800, "", "", (), ()
)


def policy(copies: int = 1) -> PolicyFacts:
    now = timezone.now()
    accounts = [AccountFact("vision", "research"), AccountFact("speech", "research"), AccountFact("research", "root")]
    accounts += [AccountFact(f"more{number}", "research") for number in range(copies)]
    gpus, typed = Limit("GrpTRES", "gres/gpu", 16), Limit("GrpTRES", "gres/gpu:a100", 8)
    return PolicyFacts(
        config=CONFIG,
        partitions=(
            PartitionFact(
                "train", "UP", True, 172_800, 300, None, 0, None, None, ("speech",), (), (), ("normal",), (), "", 1, 1, "", ""
            ),
        ),
        reservations=(
            ReservationFact(
                "course", now - timedelta(hours=1), now + timedelta(hours=5), ("gpu01",), ("SPEC_NODES",), accounts=("speech",)
            ),
            ReservationFact("firmware", now + timedelta(hours=9), now + timedelta(hours=10), ("gpu02",), ("MAINT",)),
        ),
        accounts=tuple(accounts),
        associations=tuple(
            AssociationFact(each.name, "", "", 30, "normal", ("normal",), None, (gpus, typed)) for each in accounts
        ),
        qos=(QosFact("debug", 500, (), ("low",), "cluster", Decimal(1), (Limit("MaxTRESPU", "gres/gpu:a100", 2),)),),
        shares=(ShareFact("vision", "", 30, Decimal("0.5"), 100, Decimal("0.25"), None, None, Decimal(2)),),
    )


def take_in(cluster: Cluster, copies: int = 1) -> None:
    with transaction.atomic():
        ingest_policy(cluster, policy(copies), as_of=timezone.now())
