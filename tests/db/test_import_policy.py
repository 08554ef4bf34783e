"""`collect import policy`: saved outputs of two real versions of Slurm, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from collectors.models import Rejection, Run
from estate.models import (
    Association,
    Cluster,
    FairShare,
    NodeEventRecord,
    NodeState,
    PartitionRule,
    Qos,
    Reservation,
    SchedulerAccount,
    SchedulerLimit,
)

pytestmark = pytest.mark.django_db(transaction=True)
FILES = (
    "scontrol-show-partition.txt",
    "scontrol-show-reservation.txt",
    "sacctmgr-assoc.psv",
    "sacctmgr-qos.psv",
    "sacctmgr-account.psv",
    "sacctmgr-event.psv",
    "sacctmgr-reservation.psv",
    "sshare.psv",
)


def import_policy(*files: Path | str, as_of: str = "2026-12-01T00:00:00") -> Run:
    call_command("collect", "import", "policy", "--cluster", "lab", "--as-of", as_of, *map(str, files))
    return Run.objects.latest("pk")


@pytest.mark.parametrize("version", ["slurm-22.05", "slurm-24.11"])
def test_saved_outputs_of_a_cluster_become_its_rules_and_history(shared: Path, version: str) -> None:
    folder = shared / "fixtures" / version
    call_command(
        "collect", "import", "nodes", "--cluster", "lab", "--as-of", "2026-11-30T23:39:00", str(folder / "scontrol-show-node.txt")
    )
    run = import_policy(*(folder / name for name in FILES))
    assert (run.status, run.rejected_count, run.ignored_count) == ("done", 0, 1)
    assert run.line_count == run.accepted_count + run.ignored_count
    assert PartitionRule.objects.count() == 6
    assert set(Reservation.objects.values_list("name", flat=True)) == {"course", "maintenance"}
    assert Association.objects.count() == 16
    assert Qos.objects.count() == 6
    assert SchedulerAccount.objects.get(name="teaching").description == "courses, labs | exams"
    assert FairShare.objects.count() == 16
    assert NodeEventRecord.objects.count() == 2
    limits = {(each.account or each.qos, each.kind, each.tres): each.amount for each in SchedulerLimit.objects.all()}
    assert limits == {
        ("research", "GrpTRES", "gres/gpu"): 28,
        ("nlp", "GrpTRES", "gres/gpu:h100"): 8,
        ("nlp", "GrpTRES", "gres/gpu"): 16,
        ("vision", "GrpTRESMins", "gres/gpu"): 600_000,
        ("teaching", "GrpTRESMins", "gres/gpu"): 10,
        ("mlops", "MaxJobs", ""): 6,
        ("serving", "MaxJobs", ""): 6,
        ("high", "MaxTRESPU", "gres/gpu"): 12,
        ("debug", "MaxTRESPU", "gres/gpu"): 2,
        ("debug", "MaxJobsPU", ""): 2,
        ("debug", "MaxSubmitPU", ""): 20,
        ("debug", "MaxWall", ""): 1800,
        ("part_long", "GrpTRES", "gres/gpu"): 12,
    }
    # Seen in maintenance before its window began: what was seen stands.
    maintained = NodeState.objects.filter(node__name="gpu07").order_by("valid_during")
    assert [(row.condition, row.source) for row in maintained] == [("planned_down", "snapshot")]
    failed = NodeState.objects.get(node__name="gpu06")
    assert (failed.condition, failed.reason, failed.source) == ("down", "Not responding", "history")

    again = import_policy(*(folder / name for name in FILES), as_of="2026-12-01T00:10:00")
    assert again.changed_count == 0


def test_an_older_output_is_refused_in_words(shared: Path) -> None:
    qos = shared / "fixtures" / "slurm-22.05" / "sacctmgr-qos.psv"
    import_policy(qos)
    run = import_policy(qos, as_of="2026-11-01T00:00:00")
    assert run.message == "qos: a newer reading is known; nothing of this was taken"


def test_a_bad_line_is_told_with_its_file_and_its_neighbours_are_kept(tmp_path: Path) -> None:
    qos = tmp_path / "qos.psv"
    qos.write_text(
        "Name|Priority|UsageFactor|GrpTRES|MaxWall\nnormal|10|1.0|gres/gpu=4|\nbad|10|1.0|gres/gpu=|\nworse|x|1.0||\nlow|1|1.0||01:00:00\n"
    )
    run = import_policy(qos)
    assert (run.line_count, run.accepted_count, run.rejected_count) == (4, 2, 2)
    assert list(Rejection.objects.values_list("line_number", flat=True)) == [3, 4]
    assert "qos.psv: GrpTRES: 'gres/gpu='" in Rejection.objects.order_by("line_number")[0].reason
    assert set(Qos.objects.values_list("name", flat=True)) == {"normal", "low"}


def test_what_is_no_policy_is_refused_with_the_commands_that_print_one(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("hello\n")
    with pytest.raises(CommandError, match=r"other.txt: the text .* is none that is known; write one with: scontrol show config"):
        import_policy(other)
    assert not Cluster.objects.exists()


def test_two_texts_of_a_kind_are_not_of_one_moment(shared: Path) -> None:
    folder = shared / "fixtures"
    with pytest.raises(CommandError, match="the same kind"):
        import_policy(*(folder / version / "sacctmgr-qos.psv" for version in ("slurm-22.05", "slurm-24.11")))
