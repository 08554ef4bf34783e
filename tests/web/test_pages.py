"""Every page: who sees what, what a wrong address answers, and that its work does not grow with the data."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounting.domain.reports import Report, ReportRequest
from accounting.queries import reports
from estate.models import Cluster, Project, User
from tests.web.world import MARCH, PAGES, REPORT_PAGES, WEEK, fill, load

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(slurm: Cluster, vision: Project) -> Cluster:
    fill(slurm)
    return slurm


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.content.decode()


def as_user(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


# who ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PAGES, "/estate/nodes/alpha/gpu01/"])
def test_the_anonymous_are_sent_to_the_sign_in_page_and_back(client: Client, world: Cluster, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response["Location"]) == (302, f"/sign-in?next={path}")


@pytest.mark.parametrize("path", REPORT_PAGES)
@pytest.mark.parametrize("who", ["alice", "bob"])
def test_owner_and_member_see_their_project_and_no_other(world: Cluster, path: str, who: str) -> None:
    text = page(as_user(who), f"{path}?{MARCH}")
    assert "Speech" not in text
    assert "bea0" not in text
    assert "nobodys" not in text


def test_a_member_sees_the_cost_of_their_project(world: Cluster) -> None:
    rows = as_user("bob").get(f"/costs/?{MARCH}").context["table"].rows
    assert [row.cells[0].value for row in rows] == ["Vision"]


@pytest.mark.parametrize("path", REPORT_PAGES)
def test_a_stranger_sees_no_project_and_no_user(world: Cluster, charlie: User, path: str) -> None:
    text = page(as_user("charlie"), f"{path}?{MARCH}")
    for secret in ("Vision", "Speech", "ann0", "bea0", "cyd"):
        assert secret not in text


def test_a_stranger_may_not_ask_for_a_project_by_name(world: Cluster, charlie: User) -> None:
    assert as_user("charlie").get(f"/costs/?{MARCH}&project=Vision").status_code == 422


@pytest.mark.parametrize("path", REPORT_PAGES)
def test_the_lead_sees_every_page(as_lead: Client, world: Cluster, path: str) -> None:
    assert "<h1>" in page(as_lead, f"{path}?{MARCH}")


def test_only_those_who_answer_for_the_estate_are_shown_the_way_to_the_collectors(world: Cluster, as_lead: Client) -> None:
    assert "/collectors/" in page(as_lead, f"/?{MARCH}")
    assert "/collectors/" not in page(as_user("bob"), f"/?{MARCH}")


def test_every_line_that_needs_attention_leads_somewhere(as_lead: Client, world: Cluster) -> None:
    links = [href for _, href in as_lead.get(f"/?{MARCH}").context["findings"]]
    assert len(links) == 3
    for href in links:
        assert as_lead.get(href).status_code == 200


# what -----------------------------------------------------------------------------------------------------------------


def test_the_overview_says_what_waits_and_what_is_wrong(as_lead: Client, world: Cluster) -> None:
    text = page(as_lead, f"/?{MARCH}")
    assert "in 1 records" in text
    assert "Down for over a day: gpu03 (8 GPUs)" in text
    assert "Usage of alpha ends" in text
    assert "48 GPU-hours" not in text
    assert "96 GPU-hours belong to no project" in text


def test_the_parts_of_a_bar_fill_it(as_lead: Client, world: Cluster) -> None:
    response = as_lead.get(f"/?{MARCH}")
    for row in response.context["partitions"]:
        assert sum(segment.percent for segment in row["segments"]) == pytest.approx(100)


def test_the_costs_reconcile_in_words(as_lead: Client, world: Cluster) -> None:
    response = as_lead.get(f"/costs/?{MARCH}")
    books = response.context["sum"]
    assert books.total == books.attributed + books.unattributed + books.idle + books.shared
    assert books.total > books.idle > 0
    assert "difference 0.00 EUR" in response.content.decode()


def test_idle_and_unattributed_are_rows_of_their_own_and_stand_last(as_lead: Client, world: Cluster) -> None:
    for sort in ("total_cost", "-total_cost", "project"):
        rows = as_lead.get(f"/costs/?{MARCH}&sort={sort}").context["table"].rows
        assert {row.cells[0].value for row in rows[-2:]} == {"Idle", "Unattributed"}


def test_a_project_leads_to_its_accounts_and_they_to_its_users(as_lead: Client, world: Cluster) -> None:
    text = page(as_lead, f"/costs/?{MARCH}&project=Vision&of=account")
    assert ">vision<" in text
    assert ">speech<" not in text
    assert ">ann0<" in page(as_lead, f"/costs/?{MARCH}&project=Vision&of=user")


def test_unattributed_usage_can_be_looked_into(as_lead: Client, world: Cluster) -> None:
    assert ">nobodys<" in page(as_lead, f"/costs/?{MARCH}&project=Unattributed&of=account")


def test_an_hour_without_data_looks_different_from_an_idle_one(as_lead: Client, world: Cluster) -> None:
    heat = as_lead.get(f"/utilisation/?{WEEK}").context["heat"]["map"].body
    assert "<td style=--v:0>0 %</td>" in heat
    assert "<td style=--v:25>25 %</td>" in heat
    assert "<td class=x>no data</td>" in heat


def test_a_heat_map_has_a_cell_for_every_column(as_lead: Client, world: Cluster) -> None:
    for days, columns in ((WEEK, 72), (MARCH, 31), ("from=2026-01-01&to=2026-06-01", 22)):
        heat = as_lead.get(f"/utilisation/?{days}").context["heat"]["map"]
        assert len(heat.columns) == columns == sum(span.width for span in heat.spans)
        assert {len(row.ratios) for rows in heat.groups.values() for row in rows} == {columns}


def test_the_queue_page_counts_those_that_still_wait(as_lead: Client, world: Cluster) -> None:
    rows = as_lead.get(f"/queues/?{MARCH}").context["tables"][0].rows
    waiting = {row.cells[0].value: row.cells[2].value for row in rows}
    assert waiting == {"train": 1, "long": 0}


def test_the_estate_page_counts_gpus_and_names_rates(as_lead: Client, world: Cluster) -> None:
    response = as_lead.get("/estate/")
    assert (response.context["node_count"], response.context["gpu_count"]) == (3, 24)
    models = response.context["models"].rows
    assert [cell.value for cell in models[0].cells[:2]] == ["a100", 24]
    assert "2.5" in str(models[0].cells[3].value)


def test_the_estate_page_narrows_to_a_partition_and_to_a_name(as_lead: Client, world: Cluster) -> None:
    assert as_lead.get("/estate/?partition=long").context["node_count"] == 1
    assert as_lead.get("/estate/?q=gpu02").context["node_count"] == 1
    assert as_lead.get("/estate/?q=nothing").context["node_count"] == 0


def test_the_node_page_tells_its_state_and_history(as_lead: Client, world: Cluster) -> None:
    text = page(as_lead, "/estate/nodes/alpha/gpu03/")
    assert "GPU lost" in text
    assert "8 × a100" in text
    assert as_lead.get("/estate/nodes/alpha/nowhere/").status_code == 404


def test_an_unknown_figure_is_a_dash_and_not_a_zero(as_lead: Client, world: Cluster) -> None:
    text = page(as_lead, f"/?{MARCH}")
    assert '<span class="none" title="unknown">–</span>' in text
    assert "coverage 0%" in text


# empty ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", REPORT_PAGES)
def test_an_empty_estate_says_how_to_fill_it(as_lead: Client, path: str) -> None:
    assert "python manage.py collect import" in page(as_lead, path)


@pytest.mark.parametrize("path", REPORT_PAGES)
def test_a_period_without_data_leads_to_one_with_data(as_lead: Client, world: Cluster, path: str) -> None:
    text = page(as_lead, f"{path}?from=2020-01-01&to=2020-02-01")
    assert "?from=2026-03-01&amp;to=2026-04-01" in text


# addresses ------------------------------------------------------------------------------------------------------------

WRONG = {
    "from=2026-13-01&to=2026-04-01": "this is no date",
    "from=yesterday&to=today": "this is no date",
    "from=2026-04-01&to=2026-03-01": "must be before",
    "from=2026-03-01&to=2026-03-01": "must be before",
    "from=2026-03-01": "give both dates",
    "from=0001-01-01&to=0001-01-03": "between 1970 and 2199",
    "from=1970-01-01&to=2030-01-01": "ten years",
    "period=forever": "is no period",
    "cluster=nowhere": "is called “nowhere” here",
    "partition=%00": "is called",
    "project=Apollo": "is called",
    "gpu_model=%3Cscript%3E": "is called “&lt;script&gt;” here",
}


@pytest.mark.parametrize("path", REPORT_PAGES)
@pytest.mark.parametrize("query", WRONG)
def test_a_wrong_address_is_refused_with_what_is_wrong(as_lead: Client, world: Cluster, path: str, query: str) -> None:
    response = as_lead.get(f"{path}?{query}")
    assert response.status_code == 422
    assert WRONG[query] in response.content.decode()


def test_days_far_ahead_are_not_asked_for(as_lead: Client, world: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = reports.run

    def run(request: ReportRequest, **options: Any) -> Report:
        asked.append((request.last - request.first).days)
        return answer(request, **options)

    monkeypatch.setattr(reports, "run", run)
    assert as_lead.get("/?from=2198-01-01&to=2199-01-01").status_code == 200
    assert asked
    assert max(asked) <= 2 * 366


@pytest.mark.parametrize("path", ["/estate/nodes/%00/x/", "/estate/nodes/alpha/%00/"])
def test_a_node_whose_name_no_text_can_be_is_absent(as_lead: Client, world: Cluster, path: str) -> None:
    assert as_lead.get(path).status_code == 404


def test_the_estate_page_refuses_an_unknown_cluster(as_lead: Client, world: Cluster) -> None:
    response = as_lead.get("/estate/?cluster=nowhere")
    assert response.status_code == 422
    assert "nowhere" in response.content.decode()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "query", ["sort=nothing", "sort=--", "page=0", "page=-1", "page=99999999999", "page=x", "of=x", "group=x"]
)
def test_an_odd_sort_or_page_falls_back(as_lead: Client, world: Cluster, path: str, query: str) -> None:
    assert as_lead.get(f"{path}?{query}").status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_pages_only_answer_reading(as_lead: Client, world: Cluster, path: str) -> None:
    assert as_lead.post(path).status_code == 405
    assert as_lead.head(path).status_code == 200


def test_filters_are_chips_that_can_be_taken_off(as_lead: Client, world: Cluster) -> None:
    chips = as_lead.get(f"/queues/?{MARCH}&cluster=alpha&partition=train").context["form"].chips
    assert [(chip.label, chip.value) for chip in chips] == [("Cluster", "alpha"), ("Partition", "train")]
    assert chips[0].href == f"?{MARCH}&partition=train"


@pytest.mark.parametrize("path", REPORT_PAGES)
def test_exports_carry_the_dates_and_the_filters_of_the_screen(as_lead: Client, world: Cluster, path: str) -> None:
    response = as_lead.get(f"{path}?{MARCH}&cluster=alpha&partition=train&gpu_model=a100")
    links = dict(response.context["exports"])
    assert [*links] == ["CSV", "Excel (XLSX)", "JSON"]
    for href in links.values():
        for part in ("from=2026-03-01", "to=2026-04-01", "cluster=alpha", "partition=train", "gpu_model=a100", "by="):
            assert part in href
        answer = as_lead.get(href)
        assert answer.status_code == 200
        assert b"".join(answer)


def test_the_rail_keeps_scope_and_period(as_lead: Client, world: Cluster) -> None:
    assert f'href="{reverse("costs")}?{MARCH.replace("&", "&amp;")}&amp;cluster=alpha"' in page(
        as_lead, f"/queues/?{MARCH}&cluster=alpha&sort=partition"
    )


def test_the_chosen_theme_is_in_the_first_byte(as_lead: Client) -> None:
    as_lead.cookies["theme"] = "dark"
    assert '<html lang="en" data-theme="dark">' in page(as_lead, "/estate/")
    as_lead.cookies["theme"] = "solarized"
    assert '<html lang="en">' in page(as_lead, "/estate/")


@pytest.mark.parametrize("path", PAGES)
def test_scripts_come_from_files_only(as_lead: Client, world: Cluster, path: str) -> None:
    response = as_lead.get(f"{path}?{MARCH}" if path in REPORT_PAGES else path)
    policy = response["Content-Security-Policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert "unsafe" not in scripts
    text = response.content.decode()
    assert text.count("<script") == text.count("<script src=") + text.count('type="application/json"')
    assert " onclick=" not in text


# cost of a page -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [f"/?{MARCH}", f"/utilisation/?{MARCH}", f"/queues/?{MARCH}", f"/costs/?{MARCH}", "/estate/"])
def test_a_page_asks_as_much_of_many_records_as_of_few(as_lead: Client, slurm: Cluster, vision: Project, path: str) -> None:
    fill(slurm)
    as_lead.get(path)
    with CaptureQueriesContext(connection) as few:
        as_lead.get(path)
    load(slurm, copies=60)
    with CaptureQueriesContext(connection) as many:
        as_lead.get(path)
    assert len(many) == len(few)


# signing in -----------------------------------------------------------------------------------------------------------


def test_signing_in_leads_to_the_page_that_was_asked_for(client: Client, lead: User) -> None:
    response = client.post("/sign-in", {"username": "lead", "password": "lead", "next": "/costs/"})
    assert (response.status_code, response["Location"]) == (302, "/costs/")


def test_signing_in_never_leads_to_another_host(client: Client, lead: User) -> None:
    response = client.post("/sign-in", {"username": "lead", "password": "lead", "next": "https://evil.example/"})
    assert response["Location"] == "/"


def test_a_wrong_password_does_not_tell_which_names_exist(client: Client, lead: User) -> None:
    known, unknown = (
        client.post("/sign-in", {"username": name, "password": "wrong"}).content.decode().split("<h1>")[1]
        for name in ("lead", "nobody")
    )
    assert "do not match" in known
    assert known.replace("lead", "nobody") == unknown


def test_the_demo_is_named_only_where_there_is_one(client: Client, db: None) -> None:
    assert "demo" not in client.get("/sign-in").content.decode()
    User.objects.create_user("demo")
    assert "demo" in client.get("/sign-in").content.decode()


def test_signing_out_needs_a_post(as_lead: Client) -> None:
    assert as_lead.get("/sign-out").status_code == 405
    assert as_lead.post("/sign-out").status_code == 302
    assert as_lead.get("/estate/").status_code == 302


def test_a_missing_page_is_in_the_look(as_lead: Client) -> None:
    response = as_lead.get("/nowhere/")
    assert response.status_code == 404
    assert "Nothing is at this address" in response.content.decode()
