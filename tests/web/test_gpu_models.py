"""Names of GPU models: who may change what they mean, and what becomes of the past."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounting import rollups
from accounting.domain.records import GpuPart, NodeFact
from accounting.domain.reports import ReportRequest
from accounting.gpu_models import MeaningError, carry_out, effect_of
from accounting.ingest import ingest_nodes, ingest_records
from accounting.models import DirtyDay, NodeDay, Rate, UsageRecord
from accounting.queries import reports
from estate.models import Cluster, GpuModel, GpuModelAlias, NodeInventory, Project, User
from tests.records import at, record
from tests.web.world import fill

pytestmark = pytest.mark.django_db
PATH = "/estate/gpu-models/"
PROPER = "NVIDIA-A100-SXM4-80GB"


@pytest.fixture
def world(slurm: Cluster, vision: Project) -> Cluster:
    fill(slurm)
    return slurm


def as_user(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def gpu_seconds() -> dict[Any, Any]:
    """What the usage report of March says by GPU model."""
    first, last = date(2026, 3, 1), date(2026, 4, 1)
    report = reports.run(ReportRequest(name="usage", first=first, last=last, zone=ZoneInfo("UTC"), by=("gpu_model",)))
    return {row["gpu_model"]: row["gpu_seconds"] for row in report.rows if row["gpu_seconds"]}


def test_the_anonymous_are_sent_to_the_sign_in_page(client: Client, world: Cluster) -> None:
    assert client.get(PATH)["Location"] == f"/sign-in?next={PATH}"


@pytest.mark.parametrize("who", ["alice", "bob", "charlie"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_for_owner_member_and_stranger_the_page_does_not_exist(world: Cluster, charlie: User, who: str, method: str) -> None:
    response = getattr(as_user(who), method)(PATH, {"name": "a100", "means": PROPER})
    assert response.status_code == 404
    assert GpuModel.objects.filter(name="a100").exists()
    assert "Names of models" not in as_user(who).get("/estate/").content.decode()


def test_the_lead_sees_every_name_with_what_stands_under_it(as_lead: Client, world: Cluster) -> None:
    GpuModelAlias.objects.create(alias="tesla-a100", gpu_model=GpuModel.objects.get(name="a100"))
    rows = [[cell.value for cell in row.cells] for row in as_lead.get(PATH).context["names"].rows]
    assert [(row[0], row[1], row[2], row[3]) for row in rows] == [
        ("a100", "a100", "its own name", 24),
        ("tesla-a100", "a100", "another name of it", 24),
    ]
    assert rows[0][4] > 0
    assert PATH in as_lead.get("/estate/").content.decode()


def test_nothing_is_changed_by_looking(as_lead: Client, world: Cluster) -> None:
    text = as_lead.get(PATH, {"name": "a100", "means": PROPER}).content.decode()
    assert "will be called NVIDIA-A100-SXM4-80GB" in text
    assert list(GpuModel.objects.values_list("name", flat=True)) == ["a100"]


def test_a_new_name_for_a_model_keeps_its_records_and_its_old_name(as_lead: Client, world: Cluster) -> None:
    before = sum(gpu_seconds().values())
    assert as_lead.post(PATH, {"name": "gpu:A100", "means": PROPER}).status_code == 302
    assert gpu_seconds() == {PROPER: before}
    assert GpuModelAlias.objects.get(alias="a100").gpu_model.name == PROPER
    with transaction.atomic():
        ingest_records(world, [record("later", started_at=at(1), ended_at=at(2))])
    assert list(GpuModel.objects.values_list("name", flat=True)) == [PROPER]


def test_a_model_that_is_another_one_is_merged_past_included(as_lead: Client, world: Cluster) -> None:
    total = sum(gpu_seconds().values())
    h100 = (GpuPart(PROPER, Decimal(2)),)
    with transaction.atomic():
        ingest_records(world, [record("other", started_at=at(1), ended_at=at(3), gpus=Decimal(2), gpu_parts=h100, nodes=())])
    rollups.rebuild()
    assert set(gpu_seconds()) == {"a100", PROPER}
    text = as_lead.get(PATH, {"name": "a100", "means": PROPER}).content.decode()
    assert "inventory of 3 nodes and 1 prices" in text
    assert "cannot be undone" in text

    response = as_lead.post(PATH, {"name": "a100", "means": PROPER}, follow=True)
    assert "days are being rebuilt" in response.content.decode()
    merged = {PROPER: total + 2 * 2 * 3600}
    assert gpu_seconds() == merged
    assert DirtyDay.objects.exists()
    rollups.rebuild()
    assert gpu_seconds() == merged
    target = GpuModel.objects.get()
    assert set(NodeDay.objects.values_list("gpu_model_id", flat=True)) == {target.pk}
    assert all(set(ids) <= {target.pk} for ids in UsageRecord.objects.values_list("gpu_model_ids", flat=True))
    assert sum(NodeInventory.objects.filter(gpu_model=target).values_list("gpu_count", flat=True)) == 24
    assert Rate.objects.get().gpu_model == target
    assert GpuModelAlias.objects.get().alias == "a100"


def test_an_alias_that_is_pointed_elsewhere_leaves_the_past_where_it_is(as_lead: Client, world: Cluster) -> None:
    GpuModelAlias.objects.create(alias="b200", gpu_model=GpuModel.objects.get(name="a100"))
    before = gpu_seconds()
    text = as_lead.get(PATH, {"name": "b200", "means": "nvidia-b200"}).content.decode()
    assert "What was recorded before stays with a100" in text
    as_lead.post(PATH, {"name": "b200", "means": "nvidia-b200"})
    assert gpu_seconds() == before
    assert GpuModelAlias.objects.get(alias="b200").gpu_model.name == "nvidia-b200"


def test_a_name_may_be_given_a_meaning_before_it_is_seen(as_lead: Client, world: Cluster) -> None:
    as_lead.post(PATH, {"name": "tesla-a100", "means": "A100"})
    with transaction.atomic():
        ingest_records(world, [record("seen", gpu_parts=(GpuPart("tesla-a100", Decimal(4)),))])
    assert list(GpuModel.objects.values_list("name", flat=True)) == ["a100"]


def test_a_name_that_means_that_already_and_an_empty_one_are_refused(as_lead: Client, world: Cluster) -> None:
    for name, means in (("a100", "A100"), ("\x07", "a100"), ("x" * 200, "a100")):
        assert as_lead.post(PATH, {"name": name, "means": means}).status_code == 422
    assert not GpuModelAlias.objects.exists()


def test_two_prices_for_the_same_days_are_refused_with_what_to_do(as_lead: Client, world: Cluster) -> None:
    other = GpuModel.objects.create(name="other")
    Rate.objects.create(gpu_model=other, price=1, cost=1, valid_during=(date(2026, 2, 1), None))
    response = as_lead.post(PATH, {"name": "a100", "means": "other"})
    assert response.status_code == 422
    assert "both have prices for the same days" in response.content.decode()
    assert GpuModel.objects.count() == 2


def test_a_node_with_both_at_once_has_two_models(world: Cluster) -> None:
    both = (GpuPart("a100", Decimal(4)), GpuPart("other", Decimal(4)))
    with transaction.atomic():
        ingest_nodes(world, [NodeFact("gpu09", ("train",), both, 64, 1, "up", "")], as_of=at(0))
    with pytest.raises(MeaningError, match="gpu09 had GPUs of other and of a100 at once"):
        carry_out(effect_of("other", "a100"))


def test_an_estate_without_gpus_says_what_to_do(as_lead: Client, db: None) -> None:
    assert "No GPU was seen yet" in as_lead.get(PATH).content.decode()


def test_the_number_of_queries_does_not_grow_with_names(as_lead: Client, world: Cluster) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert as_lead.get(PATH).status_code == 200
        return len(seen)

    count()
    before = count()
    model = GpuModel.objects.get(name="a100")
    GpuModelAlias.objects.bulk_create([GpuModelAlias(alias=f"alias{number}", gpu_model=model) for number in range(40)])
    assert count() == before
