"""`collect import nodes`: inventories of either scheduler by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from collectors.models import Rejection, Run, RunStatus
from estate.models import Cluster, Node, NodeInventory, NodeState
from tests.core.test_kubernetes_nodes import node

pytestmark = pytest.mark.django_db

SCONTROL = """NodeName=g001 Arch=x86_64 CoresPerSocket=32
   CPUTot=64 CPULoad=1.0
   Gres=gpu:a100:4(S:0-1)
   RealMemory=512000 State=IDLE ThreadsPerCore=1
   Partitions=gpu,short

NodeName=g002 Arch=x86_64 CoresPerSocket=32
   CPUTot=64 CPULoad=1.0
   Gres=gpu:a100:4(S:0-1)
   RealMemory=512000 State=DOWN ThreadsPerCore=1
   Partitions=gpu
   Reason=Not responding [root@2026-03-01T10:00:00]
"""
SINFO = "NODELIST|PARTITION|GRES|CPUS|MEMORY|STATE\ng001|gpu|gpu:a100:4|64|512000|idle\ng001|short|gpu:a100:4|64|512000|idle\n"
KUBECTL = json.dumps({"kind": "List", "items": [node("k1", {"nvidia.com/gpu": "8"}), node("k2", {"nvidia.com/gpu": "8"})]})


def import_nodes(path: Path, text: str, *words: str, cluster: str = "alpha") -> str:
    path.write_text(text)
    err = io.StringIO()
    call_command("collect", "import", "nodes", "--cluster", cluster, *words, str(path), stderr=err)
    return err.getvalue()


@pytest.mark.parametrize(
    ("text", "scheduler", "names", "gpu_count"),
    [(SCONTROL, "slurm", ["g001", "g002"], 8), (SINFO, "slurm", ["g001"], 4), (KUBECTL, "kubernetes", ["k1", "k2"], 16)],
    ids=["scontrol", "sinfo", "kubectl"],
)
def test_each_kind_is_told_by_its_content(text: str, scheduler: str, names: list[str], gpu_count: int, tmp_path: Path) -> None:
    import_nodes(tmp_path / "nodes.txt", text)

    assert Cluster.objects.get().scheduler == scheduler
    assert list(Node.objects.values_list("name", flat=True)) == names
    assert sum(NodeInventory.objects.values_list("gpu_count", flat=True)) == gpu_count
    run = Run.objects.get()
    assert (run.kind, run.status, run.line_count, run.accepted_count) == ("nodes", RunStatus.DONE, 2, 2)


def test_the_same_inventory_again_changes_nothing(tmp_path: Path) -> None:
    import_nodes(tmp_path / "nodes.txt", SCONTROL)

    assert "changed rows 0," in import_nodes(tmp_path / "nodes.txt", SCONTROL)


def test_the_moment_is_read_in_the_zone_of_the_cluster(tmp_path: Path) -> None:
    Cluster.objects.create(name="alpha", scheduler="slurm", zone="Europe/Berlin")

    import_nodes(tmp_path / "nodes.txt", SCONTROL, "--as-of", "2026-03-01T12:00")

    assert NodeState.objects.get().valid_during.lower.isoformat() == "2026-03-01T11:00:00+00:00"


def test_nodes_that_are_missing_stay_unless_it_is_complete(tmp_path: Path) -> None:
    import_nodes(tmp_path / "nodes.txt", SCONTROL, "--as-of", "2026-03-01")

    said = import_nodes(tmp_path / "nodes.txt", SINFO, "--as-of", "2026-03-02")
    assert "1 known nodes are not in it and stayed (--complete ends them)." in said
    assert NodeInventory.objects.filter(node__name="g002", valid_during__upper_inf=True).exists()

    import_nodes(tmp_path / "nodes.txt", SINFO, "--as-of", "2026-03-03", "--complete")
    assert not NodeInventory.objects.filter(node__name="g002", valid_during__upper_inf=True).exists()


def test_a_bad_node_is_kept_as_a_rejection(tmp_path: Path) -> None:
    text = json.dumps({"items": [node("k1"), {"kind": "Node"}]})

    import_nodes(tmp_path / "nodes.json", text)

    assert (Run.objects.get().rejected_count, Rejection.objects.get().line_number) == (1, 2)


@pytest.mark.parametrize("text", ["", "nothing of the kind\n", "{"], ids=["empty", "prose", "half a JSON"])
def test_what_is_no_inventory_fails_in_one_line_that_names_the_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nodes\.txt: ") as failure:
        import_nodes(tmp_path / "nodes.txt", text)

    assert "\n" not in str(failure.value)
    assert not Node.objects.exists()


def test_kubectl_output_does_not_go_into_a_slurm_cluster(tmp_path: Path) -> None:
    Cluster.objects.create(name="alpha", scheduler="slurm")

    with pytest.raises(CommandError, match="cluster alpha is Slurm, and this input is Kubernetes"):
        import_nodes(tmp_path / "nodes.json", KUBECTL)


def test_a_time_that_is_none_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="noon is no time; write one such as"):
        import_nodes(tmp_path / "nodes.txt", SCONTROL, "--as-of", "noon")
