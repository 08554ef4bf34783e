"""Data quality of one cluster, backfill progress, and refused lines read again: for those who answer for the estate."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounting import rollups
from accounting.domain.reports import Scope
from accounting.ingest import ingest_nodes, ingest_records, note_asked
from accounting.models import Intake, UsageRecord
from accounting.queries.cluster_quality import coverage_of, oddities
from accounting.queries.freshness import Coverage
from accounting.queries.waiting import waiting_now
from collectors import backfills, replaying, runs
from collectors.files import InputError
from collectors.models import BackfillChunk, Rejection, Run, Source
from collectors.queries.quality import Gap, gaps_of, quality_of
from collectors.windows import Span
from estate.domain.nodes import GpuPart, NodeFact
from estate.models import Cluster, Project, User
from tests.db.dumps import BROKEN, HEADER, job, write
from tests.records import record, waiting

pytestmark = pytest.mark.django_db

PAGE = "/collectors/clusters/alpha/"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def source(slurm: Cluster) -> Source:
    later = timezone.now() + timedelta(hours=1)
    return Source.objects.create(name="alpha-sacct", cluster=slurm, kind="sacct", next_due_at=later)


@pytest.fixture
def bad_run(slurm: Cluster, tmp_path: Path) -> Run:
    """A run of a dump that was taken to be of another cluster: two of its lines name none, two are not to be had."""
    path = write(tmp_path / "a.txt", job(1), BROKEN, job(2).replace("2026-03-01T10:00:00", "2026-13-01T10:00:00"))
    runs.import_sacct(slurm, str(path))
    return Run.objects.get()


def load(cluster: Cluster, *records: object, observed_at: datetime | None = None) -> None:
    with transaction.atomic():
        ingest_records(cluster, records, observed_at=observed_at)  # type: ignore[arg-type]
    rollups.rebuild()


def finding(cluster: Cluster, what: str) -> tuple[str, str]:
    (found,) = [each for each in quality_of(cluster).findings if each.what == what]
    return found.level, found.text


# Who


@pytest.mark.parametrize("name", ["charlie", "alice", "bob"])
def test_for_strangers_owners_and_members_the_page_does_not_exist(
    name: str, client: Client, vision: Project, charlie: User, bad_run: Run
) -> None:
    client.force_login(User.objects.get(username=name))

    assert client.get(PAGE).status_code == 404
    assert client.post(f"/collectors/runs/{bad_run.pk}/replay/").status_code == 404
    assert not Run.objects.filter(kind="replay").exists()


def test_who_is_not_signed_in_is_asked_to(client: Client, slurm: Cluster) -> None:
    assert client.get(PAGE)["Location"].endswith(f"?next={PAGE}")


def test_a_get_reads_nothing_again(as_lead: Client, bad_run: Run) -> None:
    assert as_lead.get(f"/collectors/runs/{bad_run.pk}/replay/").status_code == 405


def test_an_empty_cluster_says_what_is_not_known(as_lead: Client, slurm: Cluster) -> None:
    page = as_lead.get(PAGE).content.decode()

    for words in (
        "Nothing is known of its usage yet",
        "Nothing has been lost from sight",
        "No gap is known",
        "No line is rejected",
    ):
        assert words in page
    assert as_lead.get("/collectors/clusters/nowhere/").status_code == 404


def test_hostile_words_of_a_job_are_shown_as_text(as_lead: Client, slurm: Cluster, source: Source) -> None:
    load(slurm, record("1", user="<script>x</script>", ended_at=None, last_seen_at=NOON), observed_at=NOON)
    Source.objects.update(watermark_at=NOON + timedelta(minutes=5))

    page = as_lead.get(PAGE).content.decode()

    assert "&lt;script&gt;x" in page
    assert "<script>x" not in page


def test_the_number_of_queries_does_not_grow_with_rows(as_lead: Client, slurm: Cluster, source: Source, bad_run: Run) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert as_lead.get(PAGE).status_code == 200
        return len(seen)

    Source.objects.update(watermark_at=NOON + timedelta(minutes=5))
    few = queries()
    load(slurm, *(record(str(n), ended_at=None, last_seen_at=NOON) for n in range(100, 130)), observed_at=NOON)
    Rejection.objects.bulk_create(Rejection(run=bad_run, line_number=n, raw="x", reason=f"r{n}") for n in range(100, 130))

    assert queries() == few


# Findings


def test_gaps_are_what_no_live_source_was_asked_for(slurm: Cluster, source: Source) -> None:
    def asked(first: int, last: int, status: str = "done") -> None:
        at = [NOON + timedelta(hours=hour) for hour in (first, last)]
        Run.objects.create(
            cluster=slurm, source=source, kind="sacct", input_name="x", status=status, window_from=at[0], window_to=at[1]
        )

    asked(0, 10)
    asked(5, 20)
    asked(30, 40)
    asked(20, 30, status="failed")
    Source.objects.update(watermark_at=NOON)

    assert gaps_of(slurm.pk) == [Gap(NOON + timedelta(hours=20), NOON + timedelta(hours=30))]
    assert finding(slurm, "Gaps")[0] == "warn"


def test_gpus_that_are_not_tracked_are_said_with_since_when(slurm: Cluster) -> None:
    with transaction.atomic():
        ingest_nodes(slurm, [NodeFact("gpu01", ("gpu",), (GpuPart("a100", Decimal(8)),), 64, 512_000, "up", "")], as_of=None)
    day = timedelta(days=1)
    at = [NOON + n * day for n in range(30)]
    load(slurm, record("0", submitted_at=at[0], eligible_at=at[0], started_at=at[0], ended_at=at[0] + day / 24))
    assert finding(slurm, "GPUs tracked")[0] == "good"

    bare = {"gpus": Decimal(0), "gpu_parts": ()}
    load(
        slurm,
        *(
            record(str(n), submitted_at=t, eligible_at=t, started_at=t, ended_at=t + day / 24, **bare)
            for n, t in enumerate(at[1:], 1)
        ),
    )

    level, text = finding(slurm, "GPUs tracked")
    assert level == "warn"
    assert "not tracked since 2026-03-01: 29 records started" in text


def test_records_that_start_before_they_are_eligible_and_unknown_gpus_are_counted(slurm: Cluster) -> None:
    load(
        slurm,
        record(
            "1", eligible_at=NOON + timedelta(hours=9), submitted_at=NOON, started_at=NOON, ended_at=NOON + timedelta(hours=1)
        ),
        record("2", gpus=None, gpu_parts=()),
    )

    assert finding(slurm, "Order of events")[0] == "warn"
    assert "1 of 2 records" in finding(slurm, "GPU counts")[1]


def test_times_in_the_repeated_hour_are_counted_for_dumps_only(slurm: Cluster) -> None:
    Cluster.objects.update(zone="Europe/Berlin")
    slurm.refresh_from_db()
    change = datetime(2026, 10, 25, 1, tzinfo=UTC)  # 03:00 becomes 02:00
    inside, outside = change - timedelta(minutes=30), change - timedelta(minutes=61)

    def hour_from(name: str, at: datetime) -> object:
        return record(name, submitted_at=at, eligible_at=at, started_at=at, ended_at=at)

    load(slurm, hour_from("1", inside), hour_from("2", change + timedelta(minutes=59)), hour_from("3", outside))
    load(slurm, hour_from("4", inside), observed_at=change)
    coverage = Coverage(change - timedelta(days=300), change + timedelta(days=300))

    assert oddities(slurm.pk, coverage, slurm.zone_info).ambiguous_count == 2


def test_days_without_anything_are_told(slurm: Cluster) -> None:
    later = NOON + timedelta(days=5)
    first = record("1", submitted_at=NOON, eligible_at=NOON, started_at=NOON, ended_at=NOON)
    load(slurm, first, record("2", submitted_at=later, eligible_at=later, started_at=later, ended_at=later))

    assert [(a.day, b.day) for a, b in quality_of(slurm).empty_days] == [(2, 5)]


# Backfill


def test_the_progress_of_a_backfill_is_shown_without_scripts(as_lead: Client, source: Source) -> None:
    now = timezone.now()
    backfills.request(source, Span(now - timedelta(days=40), now - timedelta(days=26)))
    chunks = list(BackfillChunk.objects.all())
    backfills.finish(chunks[0], 120.0, 10)

    page = as_lead.get("/collectors/").content.decode()

    assert f'<progress max="{len(chunks)}" value="1"' in page
    assert "left" in page


# Replay


def test_lines_are_taken_in_from_their_kept_text_after_a_fix(as_lead: Client, slurm: Cluster, bad_run: Run) -> None:
    fixed = Rejection.objects.get(line_number=4)
    Rejection.objects.filter(pk=fixed.pk).update(raw=job(2))

    response = as_lead.post(f"/collectors/runs/{bad_run.pk}/replay/", follow=True)

    assert "1 of 2 lines that run" in response.content.decode()
    assert sorted(UsageRecord.objects.values_list("external_id", flat=True)) == ["1", "2"]
    again = Run.objects.get(kind="replay")
    assert again.line_count == again.accepted_count + again.rejected_count + again.ignored_count
    fixed.refresh_from_db()
    assert fixed.replayed_in == again
    assert Intake.objects.get().rejected_count == 1
    assert "taken in later" in as_lead.get(f"/collectors/runs/{bad_run.pk}/").content.decode()


def test_a_replay_twice_takes_nothing_in_twice(bad_run: Run) -> None:
    Rejection.objects.update(raw=job(2))
    replaying.replay(bad_run)

    with pytest.raises(InputError, match="no refused line"):
        replaying.replay(bad_run)
    assert UsageRecord.objects.count() == 2


def test_all_that_can_be_read_again_is_by_command(bad_run: Run) -> None:
    Rejection.objects.filter(line_number=4).update(raw=job(2))
    said = io.StringIO()

    call_command("collect", "replay", stderr=said)

    assert "1 of 2 lines that run" in said.getvalue()
    assert UsageRecord.objects.count() == 2
    with pytest.raises(CommandError, match="there is no run 999999"):
        call_command("collect", "replay", "999999")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [("x" * 2000, "too many fields"), (job(9), "byte 7 of the line is no valid UTF-8"), (job(9), "the line has a NUL character")],
)
def test_text_that_is_not_what_was_read_is_not_read_again(raw: str, reason: str, bad_run: Run) -> None:
    Rejection.objects.all().delete()
    Rejection.objects.create(run=bad_run, line_number=2, raw=raw, reason=reason)

    with pytest.raises(InputError):
        replaying.replay(bad_run)


def test_pieces_of_different_records_are_not_joined(bad_run: Run) -> None:
    halves = job(7)[:60], job(7)[60:]
    Rejection.objects.all().delete()
    for number, half in ((2, halves[0]), (9, halves[1])):
        Rejection.objects.create(run=bad_run, line_number=number, raw=half, reason="cut")

    outcome = replaying.replay(bad_run)

    assert (outcome.accepted_count, outcome.rejected_count, outcome.ignored_count) == (0, 2, 1)


def test_lines_of_a_live_source_are_read_in_epochs_as_of_when_it_was_asked(slurm: Cluster, source: Source) -> None:
    Cluster.objects.update(zone="Asia/Tokyo")
    line = job(1).replace("2026-03-01T10:00:00", str(int(NOON.timestamp())))
    line = (
        line.replace("2026-03-01T10:05:00", "Unknown").replace("2026-03-01T11:05:00", "Unknown").replace("COMPLETED", "PENDING")
    )
    run = Run.objects.create(
        cluster=slurm,
        source=source,
        kind="sacct",
        input_name="x",
        status="done",
        header=HEADER,
        asked_at=NOON + timedelta(hours=1),
    )
    Rejection.objects.create(run=run, line_number=2, raw=line, reason="the record is of cluster 'x'")

    replaying.replay(run)

    found = UsageRecord.objects.get()
    assert (found.submitted_at, found.observed_at, found.last_seen_at) == (NOON, run.asked_at, run.asked_at)


# What is known


def test_a_cluster_on_which_nothing_happens_is_known_all_the_same(slurm: Cluster) -> None:
    load(slurm, record("1"))

    note_asked(slurm, NOON + timedelta(days=30))

    assert coverage_of(slurm.pk) == Coverage(record("1").submitted_at, NOON + timedelta(days=30))


def test_a_record_that_got_lost_while_it_waited_is_not_waiting_now(slurm: Cluster) -> None:
    load(slurm, waiting("lost"), observed_at=NOON + timedelta(days=1))
    load(slurm, waiting("new"), observed_at=NOON + timedelta(days=3, hours=1))

    assert waiting_now(Scope())[("alpha", "train")].record_count == 1
