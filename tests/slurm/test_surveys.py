"""A real Slurm tells what it has and what it enforces, through the commands that a source runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounting.models import RunawayRecord, SchedulerSample, StartEstimate, UsageRecord
from collectors import collecting
from collectors.models import Rejection, Run, Source
from estate.models import (
    Association,
    Cluster,
    FairShare,
    Node,
    NodeEventRecord,
    NodeInventory,
    NodeState,
    PartitionRule,
    Qos,
    Reservation,
    SchedulerAccount,
    SchedulerConfig,
    SchedulerLimit,
)
from tests.slurm.conftest import TestBed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(slurm_bed: TestBed, mixed_jobs: dict[str, str]) -> Source:
    cluster = Cluster.objects.create(name=slurm_bed.cluster, scheduler="slurm", zone="UTC")
    return Source.objects.create(name="bed", cluster=cluster, kind="sacct", slurm_conf=str(slurm_bed.slurm_conf))


def collect(source: Source) -> dict[str, Run]:
    """The runs of one collection, by kind."""
    before = set(Run.objects.values_list("pk", flat=True))
    done = collecting.collect(source.pk, only_due=False)
    assert (done.is_held, done.failures) == (True, [])
    return {run.kind: run for run in Run.objects.exclude(pk__in=before)}


def test_a_collection_tells_nodes_rules_and_outlook(source: Source) -> None:
    runs = collect(source)
    assert {run.kind: (run.status, run.rejected_count) for run in runs.values()} == dict.fromkeys(
        ("sacct", "nodes", "policy"), ("done", 0)
    )
    assert (runs["nodes"].message, runs["policy"].message) == ("", "")
    assert sum(NodeInventory.objects.values_list("gpu_count", flat=True)) == 49
    shared = NodeInventory.objects.get(shard_count__gt=0)
    assert (shared.node.name, shared.gpu_count, shared.shard_count) == ("gpu05", 4, 16)

    drained = NodeState.objects.get(node__name="gpu03", valid_during__upper_inf=True)
    assert (drained.condition, drained.reason, drained.author) == ("down", "ECC errors, GPU 3|see ticket", "root")
    assert drained.reason_at is not None
    failure = NodeEventRecord.objects.get(node__name="gpu06", reason="Not responding")
    assert (failure.condition, failure.state, failure.reason) == ("down", "DOWN*", "Not responding")
    assert NodeState.objects.filter(node__name="gpu06", source="history", valid_during__startswith=failure.started_at).exists()

    course = Reservation.objects.get(name="course")
    assert (course.node_names, sorted(course.accounts)) == (["gpu05"], ["mlops", "platform", "serving", "teaching"])
    assert Reservation.objects.get(name="maintenance").is_maintenance

    assert PartitionRule.objects.get(partition__name="long").allow_qos == ["normal", "low"]
    assert SchedulerAccount.objects.get(name="vision").parent_name == "research"
    assert SchedulerAccount.objects.get(name="teaching").description == "courses, labs | exams"
    assert Association.objects.filter(user_name="alice").count() == 2
    assert Qos.objects.get(name="high").preempts == ["low", "scavenger"]
    limits = {(each.account or each.qos, each.kind, each.tres): each.amount for each in SchedulerLimit.objects.all()}
    assert limits["nlp", "GrpTRES", "gres/gpu:h100"] == 8
    assert limits["vision", "GrpTRESMins", "gres/gpu"] == 600_000
    assert limits["debug", "MaxWall", ""] == 1800
    config = SchedulerConfig.objects.get()
    assert "limits" in config.enforces
    assert config.half_life_seconds == 7 * 86_400
    assert FairShare.objects.get(account="vision", user_name="").raw_shares == 30
    assert SchedulerSample.objects.get().backfill_depth is not None
    assert RunawayRecord.objects.count() == 0


def test_start_estimates_are_kept_under_the_key_of_their_record(source: Source, mixed_jobs: dict[str, str]) -> None:
    collect(source)
    waiting = set(UsageRecord.objects.filter(started_at=None, ended_at=None).values_list("external_id", "submitted_at"))
    estimates = set(StartEstimate.objects.values_list("external_id", "submitted_at"))
    if not estimates:
        pytest.skip("the jobs of the test bed that waited have started since")
    assert estimates <= waiting
    assert all(row.expected_at > row.submitted_at for row in StartEstimate.objects.all())


def test_asking_again_changes_nothing_and_rules_are_asked_less_often(source: Source) -> None:
    collect(source)
    counts = [kind.objects.count() for kind in (NodeInventory, SchedulerLimit, Association, Reservation, PartitionRule)]
    assert set(collect(source)) == {"sacct"}
    Run.objects.filter(kind="nodes").update(started_at=timezone.now() - timedelta(minutes=6))
    assert set(collect(source)) == {"sacct", "nodes"}
    Run.objects.filter(kind="policy").update(started_at=timezone.now() - timedelta(hours=2))
    assert collect(source)["policy"].changed_count == 0
    assert counts == [kind.objects.count() for kind in (NodeInventory, SchedulerLimit, Association, Reservation, PartitionRule)]


def test_a_limit_that_is_removed_ends(source: Source, slurm_bed: TestBed) -> None:
    slurm_bed.run("sacctmgr", "-i", "modify", "account", "serving", "set", "GrpTRES=gres/gpu=3")
    collect(source)
    slurm_bed.run("sacctmgr", "-i", "modify", "account", "serving", "set", "GrpTRES=gres/gpu=-1")
    Run.objects.filter(kind="policy").update(started_at=timezone.now() - timedelta(hours=2))
    collect(source)
    limit = SchedulerLimit.objects.get(account="serving", kind="GrpTRES")
    assert (limit.amount, limit.valid_during.upper is not None) == (3, True)


def test_a_node_that_is_drained_and_resumed_has_a_state_with_reason_and_end(source: Source, slurm_bed: TestBed) -> None:
    collect(source)
    slurm_bed.run("scontrol", "update", "nodename=gpu06", "state=drain", "reason=swap | fan")
    Run.objects.filter(kind="nodes").update(started_at=timezone.now() - timedelta(minutes=6))
    collect(source)
    state = NodeState.objects.get(node__name="gpu06", valid_during__upper_inf=True)
    assert (state.condition, state.reason, state.author) == ("down", "swap | fan", "root")
    slurm_bed.run("scontrol", "update", "nodename=gpu06", "state=resume")
    Run.objects.filter(kind="nodes").update(started_at=timezone.now() - timedelta(minutes=6))
    collect(source)
    assert not NodeState.objects.filter(node__name="gpu06", valid_during__upper_inf=True).exists()


def test_a_command_that_fails_is_a_warning_and_not_an_end(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    from collectors import surveys
    from collectors.slurm.command import CommandError, output

    def without_database(host: object, words: list[str], **options: object) -> bytes:
        if words[0] == "sacctmgr":
            raise CommandError("slurmdbd is away")
        return output(host, words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(surveys, "output", without_database)
    runs = collect(source)
    assert runs["policy"].status == "done"
    assert "sacctmgr -r -P show: slurmdbd is away" in runs["policy"].message
    assert SchedulerConfig.objects.exists()
    assert PartitionRule.objects.exists()
    assert not Qos.objects.exists()
    assert Node.objects.count() == 8
    assert not Rejection.objects.exists()
