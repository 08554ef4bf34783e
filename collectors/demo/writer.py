"""The invented estate → the database: facts through `accounting.ingest` as any others, governance as a lead would set it up."""

from __future__ import annotations

from datetime import date, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateRange, DateTimeTZRange
from django.utils import timezone

from accounting.ingest import ingest_nodes, ingest_records
from accounting.queries.freshness import coverage_by_cluster
from accounting.rates import set_rate
from collectors.demo import people, prices, shelves
from collectors.demo.generate import DemoCluster
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
RUN_KIND = "demo"
NAMES = tuple(plan.name for plan in shelves.CLUSTERS)


class OtherUsageError(Exception):
    """A cluster of the demo's names holds usage that is not this demo's; the message says what to do."""


class Label(NamedTuple):
    """What tells one demo from another; `until` is aware."""

    seed: int
    months: int
    until: datetime

    def of_batch(self, name: str) -> str:
        return f"generated, seed {self.seed}, {self.months} months until {self.until:%Y-%m-%d %H:%M %Z}, {name} batch"


def strangers() -> list[str]:
    """Clusters with usage that are none of the demo's."""
    return sorted(name for name in _ends() if name not in NAMES)


def known_end() -> datetime | None:
    """The end of a demo that is here already: a second run ends when the first did."""
    return next((end for name, end in sorted(_ends().items()) if name in NAMES), None)


def missing(label: Label) -> list[str]:
    """The demo's clusters that hold nothing yet. Raises OtherUsageError when one holds anything but the demo `label`.

    A cluster's records and the run that names them are written together, so the run is the proof.
    """
    loaded = set(Run.objects.filter(kind=RUN_KIND, input_name=label.of_batch("late")).values_list("cluster__name", flat=True))
    held = set(_ends())
    for name in NAMES:
        if name in held and name not in loaded:
            raise OtherUsageError(
                f"cluster {name} holds other usage: of a demo with another seed, length or end, or real. Give the same --seed, "
                f"--months and --until as then, or start afresh with an empty ESTATE_DATA"
            )
    return [name for name in NAMES if name not in held]


def _ends() -> dict[str, datetime]:
    """The last sighting by cluster, for clusters with usage."""
    names = dict(Cluster.objects.values_list("id", "name"))
    return {names[cluster_id]: coverage.through_at for cluster_id, coverage in coverage_by_cluster().items()}


@transaction.atomic
def write_governance(start: datetime, until: datetime) -> None:
    """Clusters, GPU models, projects, mappings, rates and people; what is there already stays."""
    zone = ZoneInfo(settings.ESTATE_ZONE)
    half_way = local_date(start + (until - start) / 2, zone)
    for plan in shelves.CLUSTERS:
        Cluster.objects.get_or_create(name=plan.name, defaults={"scheduler": plan.scheduler, "zone": plan.zone})
    _write_models()
    projects = _write_projects()
    _write_mappings(projects, half_way)
    _write_rates(local_date(start, zone), half_way)
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
def write_records(demo: DemoCluster, label: Label) -> None:
    """Both batches, the late one after the first, each with its run, or nothing."""
    cluster = Cluster.objects.get(name=demo.plan.name)
    for name, records in (("first", demo.known), ("late", demo.late)):
        began = timezone.now()
        result = ingest_records(cluster, records)
        Run.objects.create(
            cluster=cluster,
            kind=RUN_KIND,
            input_name=label.of_batch(name),
            status=RunStatus.DONE,
            started_at=began,
            finished_at=timezone.now(),
            line_count=result.accepted_count,
            accepted_count=result.accepted_count,
            changed_count=result.changed_count,
        )


def _write_models() -> None:
    for name, memory_gib in shelves.MEMORY_GIB.items():
        GpuModel.objects.get_or_create(name=name, defaults={"memory_gib": memory_gib})
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
    """Prices of models that have none."""
    models = {model.name: model for model in GpuModel.objects.filter(name__in=prices.AT_START, rates=None)}
    for since, table in ((first, prices.AT_START), (half_way, prices.HALF_WAY)):
        for name, model in models.items():
            set_rate(model, price=table[name].price, cost=table[name].cost, since=since)


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
