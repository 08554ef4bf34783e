"""Cases of nodes and configuration: what a listing counts, what a state means, what is not tracked."""

from __future__ import annotations

import pytest

from collectors.slurm.gres import gpu_counts_of, node_state, shards_of_node, state_words
from collectors.slurm.nodes import read_nodes
from collectors.slurm.tres import tres_reader
from estate.domain.worth import Setup, tracks_gpus, warnings_of

SINFO = b"NODELIST|PARTITION|GRES|CPUS|MEMORY|STATE|REASON\n"


@pytest.mark.parametrize("partitions", [1, 2, 8])
@pytest.mark.parametrize("case", [pytest.param(47, id="C47")])
def test_a_node_that_is_listed_once_per_partition_is_one_node(partitions: int, case: object) -> None:
    rows = [f"gpu{node:02}|p{part}|gpu:a100:8|64|512000|idle|none\n".encode() for node in range(3) for part in range(partitions)]
    inventory = read_nodes([SINFO, *rows], cluster="alpha")
    assert sum(part.gpus for node in inventory.nodes for part in node.gpus) == 24
    assert all(len(node.partitions) == partitions for node in inventory.nodes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IDLE+DRAIN", "down"),
        ("MIXED+DRAIN", "down"),
        ("MIXED+PLANNED", "up"),
        ("DOWN*+DRAIN", "down"),
        ("drained*", "down"),
        ("idle*", "down"),
        ("MIXED+MAINT+DRAIN", "planned_down"),
        ("ALLOCATED+COMPLETING", "up"),
        ("IDLE+CLOUD+POWERED_DOWN", "up"),
    ],
)
@pytest.mark.parametrize("case", [pytest.param(81, id="C81")])
def test_a_state_is_its_base_and_its_flags(text: str, expected: str, case: object) -> None:
    assert node_state(state_words(text), "") == expected


@pytest.mark.parametrize(
    ("detail", "expected"),
    [("gpu:h100:1(IDX:0)", 1), ("gpu:a100:5(IDX:2-6)", 5), ("gpu:a100:2(IDX:0-1),gpu:v100:3(IDX:0-2)", 5), ("gpu:4(IDX:0-3)", 4)],
)
@pytest.mark.parametrize("case", [pytest.param(42, id="C42")])
def test_the_detail_of_gres_tells_what_a_cluster_does_not_track(detail: str, expected: int, case: object) -> None:
    assert sum(count for _, count in gpu_counts_of([detail])) == expected
    assert tres_reader(None, tracks_gpus=False)["cpu=8,mem=1G,node=1"].gpus is None
    assert tres_reader(None, tracks_gpus=True)["cpu=8,mem=1G,node=1"].gpus == 0


@pytest.mark.parametrize(
    ("tracked", "is_tracked", "is_warned"),
    [(("cpu", "gres/gpu:tesla"), True, True), (("cpu",), False, True), (("gres/gpu", "gres/gpu:tesla"), True, False)],
)
@pytest.mark.parametrize("case", [pytest.param(43, id="C43")])
def test_tracking_one_type_only_is_warned_of(tracked: tuple[str, ...], is_tracked: bool, is_warned: bool, case: object) -> None:
    setup = Setup(("limits",), tracked)
    assert tracks_gpus(setup) is is_tracked
    assert bool(warnings_of(setup, ("tesla",))) is is_warned


@pytest.mark.parametrize(("gres", "shards"), [("gpu:4,shard:16", 16), ("gpu:l40s:4,shard:l40s:16", 16), ("gpu:a100:8", 0)])
@pytest.mark.parametrize("case", [pytest.param(52, id="C52")])
def test_shards_divide_the_gpus_of_a_node_and_are_none_themselves(gres: str, shards: int, case: object) -> None:
    inventory = read_nodes([SINFO, f"n1|p|{gres}|64|512000|idle|none\n".encode()], cluster="alpha")
    assert sum(count for _, count in shards_of_node(gres)) == shards
    assert sum(part.gpus for part in inventory.nodes[0].gpus) == (8 if "8" in gres and not shards else 4)
