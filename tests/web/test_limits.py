"""The page of a cluster's limits, and what the estate page says of reservations and partitions: who sees what."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estate.models import Cluster, Project, User
from tests.web.rules import take_in
from tests.web.world import fill

pytestmark = pytest.mark.django_db
PATH = "/estate/clusters/alpha/limits/"


@pytest.fixture
def world(slurm: Cluster, vision: Project) -> Cluster:
    fill(slurm)
    take_in(slurm)
    return slurm


def as_user(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def page(client: Client, path: str = PATH) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_the_anonymous_are_sent_to_the_sign_in_page(client: Client, world: Cluster) -> None:
    assert client.get(PATH)["Location"] == f"/sign-in?next={PATH}"


def test_the_lead_sees_the_tree_the_limits_and_what_they_are_worth(as_lead: Client, world: Cluster) -> None:
    response = as_lead.get(PATH)
    rows = [[cell.value for cell in row.cells] for row in response.context["accounts"].rows]
    assert [row[0] for row in rows] == ["research", "research / more0", "research / speech", "research / vision"]
    assert rows[-1][4:7] == [Decimal("0.5"), Decimal("0.25"), Decimal(2)]
    worth = {(row.cells[0].value, row.cells[2].value): row.cells[3].value for row in response.context["limits"].rows}
    assert worth["vision", "16 GPUs in use at once"] == "enforced"
    assert worth["debug", "2 GPU a100 in use at once by one user"] == "bypassable"
    text = response.content.decode()
    assert "usage halves every" in text
    assert 'class="badge warn">bypassable' in text


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_owner_and_member_see_their_accounts_and_what_holds_for_all(world: Cluster, who: str) -> None:
    text = page(as_user(who))
    assert "research / vision" in text
    assert "speech" not in text
    assert "debug" in text


def test_a_stranger_sees_no_account(world: Cluster, charlie: User) -> None:
    text = page(as_user("charlie"))
    assert "No account of this cluster belongs to a project of yours" in text
    assert "vision" not in text
    assert "debug" in text


def test_a_cluster_of_which_nothing_was_read_says_what_to_do(as_lead: Client, slurm: Cluster) -> None:
    text = page(as_lead)
    assert "was not read yet" in text
    assert "collect import policy" in text
    assert as_lead.get("/estate/clusters/nowhere/limits/").status_code == 404


def test_the_estate_page_tells_reservations_and_what_partitions_allow(as_lead: Client, world: Cluster) -> None:
    response = as_lead.get("/estate/")
    rows = [[cell.value for cell in row.cells] for row in response.context["reservations"].rows]
    assert [(row[0], row[2], row[3], row[6], row[7], row[8]) for row in rows] == [
        ("course", "kept for some", "now", 1, 8, "speech"),
        ("firmware", "maintenance", "planned", 1, 8, ""),
    ]
    train = next(row for row in response.context["partitions"].rows if row.cells[0].value == "train")
    assert [cell.value for cell in train.cells[-3:]] == ["yes", 172_800, "accounts speech; QOS normal"]
    states = {row.cells[0].value: row.cells[2].value for row in response.context["nodes"].rows}
    assert states["gpu01"] == "reserved"
    assert PATH in response.content.decode()


def test_who_does_not_see_the_whole_estate_is_not_told_for_whom_something_is_kept(world: Cluster, charlie: User) -> None:
    text = page(as_user("charlie"), "/estate/")
    assert "course" in text
    assert "speech" not in text


@pytest.mark.parametrize("path", [PATH, "/estate/"])
def test_the_number_of_queries_does_not_grow_with_rows(as_lead: Client, world: Cluster, path: str) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as seen:
            page(as_lead, path)
        return len(seen)

    count()
    before = count()
    take_in(world, copies=40)
    assert count() == before
    assert before < 30


def test_a_node_says_who_set_its_reason(as_lead: Client, world: Cluster) -> None:
    assert "scheduler's history" in page(as_lead, "/estate/nodes/alpha/gpu01/").replace("&#x27;", "'")
