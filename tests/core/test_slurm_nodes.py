"""Node inventories: one node per host whatever the listing, its GPUs and its state."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from accounting.domain.records import GpuPart, NodeFact
from collectors.slurm.gres import gpu_counts_of, gpus_of_node, node_state, shards_of_node, state_words
from collectors.slurm.nodes import InventoryHeaderError, NodeInventory, read_nodes, read_nodes_json

SINFO = b"NODELIST|PARTITION|GRES|CPUS|MEMORY|STATE|REASON\n"


def read(*lines: bytes) -> NodeInventory:
    inventory = read_nodes(lines, cluster="alpha")
    assert inventory.accepted_count + inventory.ignored_count + len(inventory.rejections) == inventory.line_count
    return inventory


@pytest.mark.parametrize(
    ("text", "reason", "expected"),
    [
        ("IDLE", "", "up"),
        ("mixed-", "", "up"),
        ("MIXED+PLANNED", "", "up"),
        ("idle~", "", "up"),
        ("IDLE+CLOUD+POWERED_DOWN", "", "up"),
        ("allocated#", "", "up"),
        ("IDLE+DRAIN", "ECC", "down"),
        ("drained*", "", "down"),
        ("drng", "", "down"),
        ("DOWN*+DRAIN", "", "down"),
        ("idle*", "", "down"),
        ("IDLE+NOT_RESPONDING", "", "down"),
        ("fail", "", "down"),
        ("MAINT", "", "planned_down"),
        ("idle$", "", "planned_down"),
        ("DOWN+MAINT", "", "planned_down"),
        ("IDLE+DRAIN", "Maintenance window", "planned_down"),
        ("DOWN+DRAIN", "maintenance gone wrong", "down"),
        ("RESERVED", "", "reserved"),
        ("IDLE+RESERVED", "", "reserved"),
        ("resv", "", "reserved"),
        ("UNKNOWN", "", None),
        ("", "", None),
    ],
)
def test_a_node_state_is_its_base_and_its_flags(text: str, reason: str, expected: object) -> None:
    assert node_state(state_words(text), reason) == expected


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        ("(null)", ()),
        ("gpu:8", ((None, 8),)),
        ("gpu:A100:8(S:0-1)", (("a100", 8),)),
        ("gpu:a100:4(S:0,2),gpu:v100:2(S:1)", (("a100", 4), ("v100", 2))),
        ("gpu:a100:4,gpu:1g.10gb:7", (("a100", 4), ("1g.10gb", 1))),
        ("gpu:l40s:4,shard:l40s:16,mps:400", (("l40s", 4),)),
        ("gpu:a100:no_consume:2", (("a100", 2),)),
    ],
)
def test_the_gpus_of_a_node_are_counted_by_model(gres: str, expected: object) -> None:
    assert gpus_of_node(gres) == expected


@pytest.mark.parametrize("gres", ["gpu:a100:", "gpu:a100", "gpu", "gpu:a100:99999"])
def test_a_gres_that_was_cut_or_is_absurd_is_refused(gres: str) -> None:
    with pytest.raises(ValueError, match="Gres"):
        gpus_of_node(gres)


def test_a_node_in_two_partitions_is_one_node() -> None:
    """C3-47."""
    inventory = read(SINFO, b"g1|train*|gpu:a100:8|64|512000|idle|none\n", b"g1|long|gpu:a100:8|64|512000|idle|none\n")
    assert inventory.nodes == [NodeFact("g1", ("train", "long"), (GpuPart("a100", Decimal(8)),), 64, 512_000, "up", "")]


def test_a_reason_may_hold_bars_and_a_bad_line_is_told() -> None:
    inventory = read(
        SINFO,
        b"g1|a|gpu:2|64|9|drained|bad|see ticket\n",
        b"g2|a|gpu:x|64|9|idle|none\n",
        b"g3|a\n",
        b"g4|a|(null)|1|1|future|\n",
    )
    assert inventory.nodes[0].reason == "bad|see ticket"
    assert [bad.line_number for bad in inventory.rejections] == [3, 4]
    assert inventory.ignored_count == 1


def test_a_node_listed_with_other_gpus_or_of_another_cluster_is_refused() -> None:
    lines = [b"CLUSTER|NODELIST|GRES\n", b"alpha|g1|gpu:8\n", b"alpha|g1|gpu:4\n", b"beta|g2|gpu:4\n"]
    assert [bad.reason.split()[0] for bad in read(*lines).rejections] == ["node", "the"]


def test_a_scontrol_record_may_say_anything_in_its_reason() -> None:
    block = (
        b"NodeName=g1 CPUTot=64 Gres=gpu:h100:8\n   State=DOWN*+DRAIN RealMemory=512000\n   Partitions=a,b \n"
        b"   Reason=State=IDLE, odd [root@2026-01-01T00:00:00]\n"
    )
    told = NodeFact("g1", ("a", "b"), (GpuPart("h100", Decimal(8)),), 64, 512_000, "down", "State=IDLE, odd")
    assert read(block).nodes == [told._replace(author="root", reason_at=datetime(2026, 1, 1, tzinfo=UTC))]


@pytest.mark.parametrize("lines", [[], [b"\n"], [b"PARTITION AVAIL\n"], [b"NODELIST|STATE\n", b"g1|idle\n"], [b"\xff\xfe\n"]])
def test_what_is_no_inventory_is_refused_with_the_command_that_prints_one(lines: list[bytes]) -> None:
    with pytest.raises(InventoryHeaderError, match="sinfo -N"):
        read_nodes(lines, cluster="alpha")


def test_the_graham_inventory_has_960_nodes_and_448_gpus(shared: Path) -> None:
    with gzip.open(shared / "data" / "slurm-drac-graham-2021-05" / "sinfo_nodes.txt.gz") as lines:
        inventory = read_nodes(lines, cluster="graham")
    gpus = sum(part.gpus for node in inventory.nodes for part in node.gpus)
    assert (len(inventory.nodes), gpus, inventory.line_count, inventory.rejections) == (960, 448, 20_318, [])


@pytest.mark.parametrize("version", ["slurm-22.05", "slurm-24.11"])
def test_all_tools_of_slurm_tell_the_same_nodes(shared: Path, version: str) -> None:
    folder = shared / "fixtures" / version
    told = []
    for name in ("scontrol-show-node.txt", "scontrol-show-node-oneline.txt", "sinfo-gres-used.txt"):
        with (folder / name).open("rb") as lines:
            inventory = read_nodes(lines, cluster="lab")
        assert inventory.rejections == []
        told.append([(node.name, frozenset(node.partitions), node.gpus, node.state) for node in inventory.nodes])
    assert told[0] == told[1] == told[2]
    assert sum(part.gpus for _, _, gpus, _ in told[0] for part in gpus) == 49
    assert {state for _, _, _, state in told[0]} == {"up", "down", "planned_down", "reserved"}


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("slurm-24.11", "scontrol-show-node.json"),
        ("slurm-24.11", "restd-slurm-nodes.json"),
        ("slurm-22.05", "restd-slurm-nodes.json"),
    ],
)
def test_json_tells_the_same_nodes_as_text(shared: Path, version: str, name: str) -> None:
    """C6-81: a state is a list of words, or a word with flags beside it, by version."""
    folder = shared / "fixtures" / version
    with (folder / "scontrol-show-node.txt").open("rb") as lines:
        told = read_nodes(lines, cluster="lab")
    inventory = read_nodes_json((folder / name).read_bytes(), cluster="lab")
    assert (inventory.nodes, inventory.rejections) == (told.nodes, [])


def test_a_bad_node_of_a_json_does_not_take_its_neighbours_along() -> None:
    data = b'{"nodes": [{"name": "g1", "state": ["IDLE"]}, {"name": "g2", "state": ["IDLE", "DRAIN"], "gres": "gpu:2"}, 7]}'
    inventory = read_nodes_json(data, cluster="alpha")
    assert [(node.name, node.state) for node in inventory.nodes] == [("g2", "down")]
    assert [bad.line_number for bad in inventory.rejections] == [1, 3]


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        ("gpu:4,shard:16", ((None, 16),)),
        ("gpu:l40s:4(S:0-1),shard:l40s:16(S:0-1)", (("l40s", 16),)),
        ("gpu:a100:4", ()),
        ("(null)", ()),
    ],
)
def test_the_shards_of_a_node_are_counted_by_model(gres: str, expected: object) -> None:
    """C3-52."""
    assert shards_of_node(gres) == expected


def test_the_gpus_of_a_job_can_be_told_from_its_gres_detail() -> None:
    """C3-42."""
    details = ["gpu:h100:1(IDX:0)", "gpu:h100:2(IDX:1-2),gpu:a100_3g.20gb:7(IDX:0-6)", "gpu:0", "(null)", "shard:4(0/4)"]
    assert gpu_counts_of(details) == [("h100", 3), ("a100_3g.20gb", 7)]
    with pytest.raises(ValueError, match="gres detail"):
        gpu_counts_of(["gpu:h100:"])
