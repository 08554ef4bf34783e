"""The Collectors page: for those who answer for the whole estate, and nobody else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from kombu.exceptions import OperationalError

from collectors import tasks
from collectors.models import Rejection, Run, RunStatus, Source
from estate.models import Cluster, Project, User
from tests.db.dumps import BROKEN, job, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(slurm: Cluster, tmp_path: Path) -> Source:
    later = timezone.now() + timedelta(hours=1)
    return Source.objects.create(name="nightly", cluster=slurm, kind="sacct_files", location=str(tmp_path), next_due_at=later)


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Source ids for which a worker was rung."""
    heard: list[int] = []
    monkeypatch.setattr(tasks, "ring", heard.append)
    return heard


def a_run(cluster: Cluster, **facts: object) -> Run:
    return Run.objects.create(
        **{"cluster": cluster, "kind": "sacct", "input_name": "jobs.txt", "status": "done", "finished_at": timezone.now()} | facts
    )


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return len(seen)


PAGES = ("/collectors/", "/collectors/runs/{run}/")


@pytest.fixture(params=["charlie", "alice", "bob"])
def outsider(request: pytest.FixtureRequest, client: Client, vision: Project, charlie: User) -> Client:
    """Somebody who does not answer for the estate: a stranger, the owner and a member of a project."""
    client.force_login(User.objects.get(username=request.param))
    return client


@pytest.mark.parametrize("page", PAGES)
def test_for_strangers_owners_and_members_the_pages_do_not_exist(page: str, outsider: Client, source: Source) -> None:
    assert outsider.get(page.format(run=a_run(source.cluster).pk)).status_code == 404


@pytest.mark.parametrize("page", PAGES)
def test_who_is_not_signed_in_is_asked_to(page: str, client: Client, source: Source) -> None:
    path = page.format(run=a_run(source.cluster).pk)

    response = client.get(path)

    assert response.status_code == 302
    assert response["Location"].endswith(f"?next={path}")


@pytest.mark.parametrize("page", PAGES)
def test_the_lead_and_staff_see_them(page: str, client: Client, source: Source, lead: User) -> None:
    path = page.format(run=a_run(source.cluster).pk)

    for user in (lead, User.objects.create_user("admin", is_staff=True)):
        client.force_login(user)
        assert client.get(path).status_code == 200


def test_an_empty_page_says_the_next_step_with_the_command(as_lead: Client) -> None:
    page = as_lead.get("/collectors/").content.decode()

    assert "python manage.py collect source add NAME" in page
    assert "python manage.py collect import sacct --cluster CLUSTER" in page


def test_a_source_shows_its_last_good_run_and_when_it_is_due(as_lead: Client, source: Source) -> None:
    good = a_run(source.cluster, source=source, line_count=12_345, accepted_count=12_340, rejected_count=5)

    page = as_lead.get("/collectors/").content.decode()

    assert "nightly" in page
    assert f"/collectors/runs/{good.pk}/" in page
    assert "12,345" in page
    assert f"{source.next_due_at:%Y-%m-%d %H:%M} UTC" in page


def test_a_failing_source_says_why(as_lead: Client, source: Source) -> None:
    Source.objects.update(failure_count=3)
    a_run(source.cluster, source=source, status="failed", message="folder /dumps: permission denied")

    page = as_lead.get("/collectors/").content.decode()

    assert "failing" in page
    assert "3 in a row: folder /dumps: permission denied" in page


def test_a_source_that_nobody_collects_is_late_and_says_what_to_look_at(as_lead: Client, source: Source) -> None:
    Source.objects.update(next_due_at=timezone.now() - timedelta(minutes=10))

    page = as_lead.get("/collectors/").content.decode()

    assert "are the worker and the scheduler running?" in page


def test_rejected_lines_are_shown_with_number_reason_and_escaped_text(as_lead: Client, tmp_path: Path) -> None:
    call_command("collect", "import", "sacct", "--cluster", "alpha", str(write(tmp_path / "a.txt", job(1), "<script>x</script>")))

    page = as_lead.get(f"/collectors/runs/{Run.objects.get().pk}/").content.decode()

    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "<script>x" not in page
    assert Rejection.objects.get().reason.split("'")[0][:20] in page
    assert "2 = 1 accepted + 1 rejected + 0 ignored" in page


def test_rejected_lines_come_in_pages_of_fifty(as_lead: Client, tmp_path: Path) -> None:
    call_command("collect", "import", "sacct", "--cluster", "alpha", str(write(tmp_path / "a.txt", job(1), *[BROKEN] * 60)))
    path = f"/collectors/runs/{Run.objects.get().pk}/"

    first, second = (as_lead.get(path, {"page": number}).content.decode() for number in (1, 2))

    assert first.count("<code>cut|in|the|mid") == 50
    assert second.count("<code>cut|in|the|mid") == 10
    assert "51–60 of 60" in second


def test_rejections_by_cluster_are_those_of_the_newest_reading(as_lead: Client, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for lines in ([job(1), BROKEN], [job(1), job(2)]):
        call_command("collect", "import", "sacct", "--cluster", "alpha", str(write(path, *lines)))

    (row,) = as_lead.get("/collectors/").context["quality"]

    assert (row.cluster, row.rejected_count, row.failed_count) == ("alpha", 0, 0)


def test_clusters_stand_in_order_of_name(as_lead: Client) -> None:
    for name in ("c", "a", "b"):
        a_run(Cluster.objects.create(name=name, scheduler="slurm"))

    assert [row.cluster for row in as_lead.get("/collectors/").context["quality"]] == ["a", "b", "c"]


def test_runs_that_ended_badly_or_not_at_all_are_counted(as_lead: Client, slurm: Cluster) -> None:
    for status in (RunStatus.FAILED, RunStatus.FAILED, RunStatus.RUNNING, RunStatus.DONE):
        a_run(slurm, status=status)

    (row,) = as_lead.get("/collectors/").context["quality"]

    assert (row.failed_count, row.running_count) == (2, 1)


def test_run_now_makes_the_source_due_and_rings(as_lead: Client, source: Source, rung: list[int]) -> None:
    response = as_lead.post(f"/collectors/sources/{source.pk}/run/", follow=True)

    source.refresh_from_db()
    assert source.next_due_at <= timezone.now()
    assert rung == [source.pk]
    assert "nightly will be collected" in response.content.decode()


def test_run_now_needs_no_broker(as_lead: Client, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_there(source_id: int) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(tasks, "ring", nobody_there)

    assert as_lead.post(f"/collectors/sources/{source.pk}/run/").status_code == 302
    source.refresh_from_db()
    assert source.next_due_at <= timezone.now()


def test_nobody_else_can_run_a_source(outsider: Client, source: Source, rung: list[int]) -> None:
    before = source.next_due_at

    assert outsider.post(f"/collectors/sources/{source.pk}/run/").status_code == 404

    source.refresh_from_db()
    assert source.next_due_at == before
    assert rung == []


def test_a_get_runs_nothing(as_lead: Client, source: Source, rung: list[int]) -> None:
    assert as_lead.get(f"/collectors/sources/{source.pk}/run/").status_code == 405
    assert rung == []


def test_run_now_wants_the_csrf_token(lead: User, source: Source, rung: list[int]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(lead)

    assert client.post(f"/collectors/sources/{source.pk}/run/").status_code == 403
    assert rung == []


def test_the_number_of_queries_does_not_grow_with_rows(as_lead: Client, source: Source, tmp_path: Path) -> None:
    a_run(source.cluster, source=source)
    few = queries(as_lead, "/collectors/")

    for number in range(20):
        cluster = Cluster.objects.create(name=f"c{number}", scheduler="slurm")
        other = Source.objects.create(name=f"s{number}", cluster=cluster, kind="sacct_files", location=str(tmp_path))
        a_run(cluster, source=other)
        a_run(cluster, source=other, status="failed")

    assert queries(as_lead, "/collectors/") == few


def test_the_queries_of_a_run_do_not_grow_with_its_rejections(as_lead: Client, slurm: Cluster) -> None:
    run = a_run(slurm, line_count=2, rejected_count=2)
    Rejection.objects.create(run=run, line_number=2, raw="x", reason="y")
    path = f"/collectors/runs/{run.pk}/"
    few = queries(as_lead, path)

    Rejection.objects.bulk_create(Rejection(run=run, line_number=number, raw="x", reason="y") for number in range(3, 200))

    assert queries(as_lead, path) == few


def test_the_admin_edits_sources_and_only_shows_runs(client: Client, source: Source, tmp_path: Path) -> None:
    client.force_login(User.objects.create_superuser("root"))
    run = a_run(source.cluster)

    assert client.get("/admin/collectors/source/").status_code == 200
    assert client.get(f"/admin/collectors/run/{run.pk}/change/").status_code == 200
    assert client.post(f"/admin/collectors/run/{run.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.get("/admin/collectors/rejection/add/").status_code == 403


def test_the_admin_refuses_a_folder_that_cannot_be_read(source: Source, tmp_path: Path) -> None:
    from collectors.forms import SourceForm

    form = SourceForm({"kind": "sacct_files", "location": str(tmp_path / "missing")}, instance=source)

    assert "no such file or directory" in form.errors["location"][0]
