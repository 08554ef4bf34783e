"""The invented estate → the database: facts through `accounting.ingest` as any others, governance as a lead would set it up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateRange, DateTimeTZRange
from django.utils import timezone

from accounting.ingest import IngestResult, ingest_nodes, ingest_records
from accounting.models import ClusterCoverage
from accounting.models import UsageRecord as StoredRecord
from accounting.rates import set_rate
from collectors.demo import people, prices, shelves
from collectors.demo.generate import DemoCluster, DemoEstate
from collectors.models import Run, RunStatus
from estate.domain.periods import local_date
from estate.models import (
    AccountMapping,
    Cluster,
    GpuModel,
    GpuModelAlias,
    Node,
    NodeInventory,
    NodeState,
    Pool,
    PoolMembership,
    Project,
    ProjectKind,
    ProjectMember,
    Role,
    User,
)

OWNER, MEMBER, THEIR_ACCOUNT = "owner-vision", "member-vision", "vision"
NAMES = tuple(plan.name for plan in shelves.CLUSTERS)


class AnotherDemoError(Exception):
    """The database holds a demo of another seed, length or end; the message says what to do."""


def strangers() -> list[str]:
    """Clusters with usage that are none of the demo's."""
    return sorted(ClusterCoverage.objects.exclude(cluster__name__in=NAMES).values_list("cluster__name", flat=True))


def known_end() -> ClusterCoverage | None:
    """Coverage of a demo that is here already: a second run ends when the first did."""
    return ClusterCoverage.objects.filter(cluster__name__in=NAMES).order_by("cluster__name").first()


def is_loaded(demo: DemoCluster) -> bool:
    """Whether exactly these records are stored. Raises AnotherDemoError when the cluster holds others."""
    stored = StoredRecord.objects.filter(cluster__name=demo.plan.name)
    if not stored.exists():
        return False
    first = demo.records[0]
    same = stored.filter(external_id=first.external_id, submitted_at=first.submitted_at).exists()
    if same and stored.count() == len(demo.records):
        return True
    raise AnotherDemoError(
        f"cluster {demo.plan.name} holds a demo of another seed, length or end; give the same --seed, --months and --until as "
        f"then, or start afresh with an empty ESTATE_DATA"
    )


@transaction.atomic
def write_governance(estate: DemoEstate) -> None:
    """Clusters, GPU models, projects, mappings, rates and people; what is there already stays."""
    zone = ZoneInfo(settings.ESTATE_ZONE)
    half_way = local_date(estate.start + (estate.until - estate.start) / 2, zone)
    for plan in shelves.CLUSTERS:
        Cluster.objects.get_or_create(name=plan.name, defaults={"scheduler": plan.scheduler, "zone": plan.zone})
    _write_models()
    projects = _write_projects()
    _write_mappings(projects, half_way)
    _write_rates(local_date(estate.start, zone), half_way)
    _write_people(projects[THEIR_ACCOUNT])


@transaction.atomic
def write_cluster(demo: DemoCluster) -> None:
    """Inventory, states and pools of one cluster, unless it has an inventory already."""
    cluster = Cluster.objects.get(name=demo.plan.name)
    if NodeInventory.objects.filter(node__cluster=cluster).exists():
        return
    for inventory in demo.inventories:
        ingest_nodes(cluster, inventory.facts, as_of=inventory.as_of, complete=inventory.complete)
    ids = dict(Node.objects.filter(cluster=cluster).values_list("name", "id"))
    NodeState.objects.bulk_create(
        NodeState(
            node_id=ids[span.node],
            condition=span.condition,
            reason=span.reason,
            valid_during=DateTimeTZRange(span.start, span.end),
        )
        for span in demo.states
    )
    _write_pools(cluster, demo, ids)


@transaction.atomic
def write_records(demo: DemoCluster) -> int:
    """Both batches, the late one after the first, each with its run, or neither; returns how many rows changed."""
    return _batch(demo, "first", lambda cluster: ingest_records(cluster, demo.known)) + _batch(
        demo, "late", lambda cluster: ingest_records(cluster, demo.late)
    )


def _batch(demo: DemoCluster, name: str, load: Callable[[Cluster], IngestResult]) -> int:
    cluster = Cluster.objects.get(name=demo.plan.name)
    began = timezone.now()
    result = load(cluster)
    Run.objects.create(
        cluster=cluster,
        kind="demo",
        input_name=f"generated, {name} batch",
        status=RunStatus.DONE,
        started_at=began,
        finished_at=timezone.now(),
        line_count=result.accepted_count,
        accepted_count=result.accepted_count,
        changed_count=result.changed_count,
    )
    return result.changed_count


def _write_models() -> None:
    for name, memory_gib in shelves.MEMORY_GIB.items():
        GpuModel.objects.update_or_create(name=name, defaults={"memory_gib": memory_gib})
    for alias, name in shelves.ALIASES.items():
        GpuModelAlias.objects.get_or_create(alias=alias, defaults={"gpu_model": GpuModel.objects.get(name=name)})


def _write_projects() -> dict[str, Project]:
    """The tree; projects by account."""
    code, name = people.ORGANISATION
    top = _project(code, name, ProjectKind.ORGANISATION, None)
    centres = {key: _project(key, text, ProjectKind.COST_CENTRE, top) for key, text in people.COST_CENTRES.items()}
    return {
        account: _project(people.project_code(account), text, ProjectKind.PROJECT, centres[centre])
        for account, (text, centre, _) in people.PROJECTS.items()
    }


def _project(code: str, name: str, kind: ProjectKind, parent: Project | None) -> Project:
    return Project.objects.get_or_create(code=code, defaults={"name": name, "kind": kind, "parent": parent})[0]


def _write_mappings(projects: dict[str, Project], half_way: date) -> None:
    """Every account but one on every cluster; some move to another project half-way."""
    for cluster in Cluster.objects.filter(name__in=NAMES):
        for account, project in projects.items():
            if AccountMapping.objects.filter(cluster=cluster, account=account).exists():
                continue
            heir = people.MOVES.get((cluster.name, account))
            spans = [(project, DateRange(None, None))]
            if heir is not None:
                spans = [(project, DateRange(None, half_way)), (projects[heir], DateRange(half_way, None))]
            for owner, span in spans:
                AccountMapping.objects.create(cluster=cluster, account=account, project=owner, valid_during=span)


def _write_rates(first: date, half_way: date) -> None:
    for since, table in ((first, prices.AT_START), (half_way, prices.HALF_WAY)):
        for name, rate in table.items():
            set_rate(GpuModel.objects.get(name=name), price=rate.price, cost=rate.cost, since=since)


def _write_people(project: Project) -> None:
    for name, role in ((OWNER, Role.OWNER), (MEMBER, Role.MEMBER)):
        user, is_new = User.objects.get_or_create(username=name)
        if is_new:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        ProjectMember.objects.get_or_create(project=project, user=user, defaults={"role": role})


def _write_pools(cluster: Cluster, demo: DemoCluster, ids: dict[str, int]) -> None:
    pools: dict[str, Pool] = {}
    memberships = []
    for shelf in demo.plan.shelves:
        if shelf.pool not in pools:
            pools[shelf.pool] = Pool.objects.get_or_create(cluster=cluster, name=shelf.pool)[0]
        memberships += [
            PoolMembership(pool=pools[shelf.pool], node_id=ids[shelf.node_name(index)], valid_during=DateTimeTZRange(None, None))
            for index in range(shelf.node_count)
        ]
    PoolMembership.objects.bulk_create(memberships)
