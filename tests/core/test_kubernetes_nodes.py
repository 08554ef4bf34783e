"""`kubectl get nodes -o json` → node facts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.domain.records import GpuPart, NodeFact, Rejected
from collectors.kubernetes.nodes import parse_nodes

READY = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]


def node(
    name: str = "n1",
    capacity: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    conditions: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec or {},
        "status": {
            "capacity": {"cpu": "128", "memory": "1056270668Ki", "pods": "110"} | (capacity or {}),
            "conditions": READY if conditions is None else conditions,
        },
    }


def fact(**facts: Any) -> NodeFact:
    (read,) = parse_nodes(json.dumps({"kind": "List", "items": [node(**facts)]}))
    assert isinstance(read, NodeFact)
    return read


def gpus(labels: dict[str, str] | None = None, **capacity: str) -> tuple[GpuPart, ...]:
    names = {"gpu": "nvidia.com/gpu", "shared": "nvidia.com/gpu.shared", "amd": "amd.com/gpu", "intel": "gpu.intel.com/i915"}
    resources = {
        names.get(name, f"nvidia.com/{name.replace('__', '-').replace('_', '.')}"): value for name, value in capacity.items()
    }
    return fact(capacity=resources, labels=labels).gpus


def test_a_node_says_its_size_its_pool_and_that_it_is_up() -> None:
    read = fact(
        labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "cloud.google.com/gke-nodepool": "a100-pool"},
        capacity={"nvidia.com/gpu": "8"},
    )

    assert read == NodeFact(
        name="n1",
        partitions=("a100-pool",),
        gpus=(GpuPart("NVIDIA-A100-SXM4-80GB", Decimal(8)),),
        cpu_count=128,
        memory_mib=1_031_514,
        state="up",
        reason="",
    )


def test_a_node_without_gpus_has_none() -> None:
    assert gpus() == ()
    assert gpus(gpu="0") == ()


A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}


@pytest.mark.parametrize(
    ("labels", "capacity", "model", "count"),
    [
        pytest.param({}, {"gpu": "8"}, None, 8, id="no feature discovery: the model is unknown"),
        pytest.param({"amd.com/gpu.product-name": "AMD_Instinct_MI300X"}, {"amd": "8"}, "AMD_Instinct_MI300X", 8, id="AMD"),
        pytest.param({}, {"intel": "2"}, None, 2, id="Intel"),
        pytest.param({"cloud.google.com/gke-accelerator": "nvidia-l4"}, {"gpu": "1"}, "nvidia-l4", 1, id="GKE label"),
        pytest.param(
            {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"},
            {"gpu": "8"},
            "Tesla-T4",
            2,
            id="time-sliced: 8 replicas of 2 GPUs",
        ),
        pytest.param(
            {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "4"},
            {"gpu": "0", "shared": "8"},
            "Tesla-T4",
            2,
            id="time-sliced under the shared name",
        ),
        pytest.param(A100 | {"nvidia.com/gpu.replicas": "1"}, {"gpu": "4"}, "NVIDIA-A100-SXM4-40GB", 4, id="one replica"),
        pytest.param(A100, {"gpu": "6", "mig__1g_5gb": "14"}, "NVIDIA-A100-SXM4-40GB", 8, id="mixed: 6 whole, 2 in sevenths"),
        pytest.param(A100, {"mig__3g_20gb": "2"}, "NVIDIA-A100-SXM4-40GB", 1, id="two 3g slices are one GPU"),
        pytest.param({"nvidia.com/gpu.product": "NVIDIA-A30"}, {"mig__1g_6gb": "4"}, "NVIDIA-A30", 1, id="an A30 has quarters"),
        pytest.param(
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
            {"gpu": "56"},
            "NVIDIA-A100-SXM4-40GB",
            8,
            id="single strategy: slices under the name of whole GPUs",
        ),
    ],
)
def test_gpus_are_whole_ones_however_they_are_offered(
    labels: dict[str, str], capacity: dict[str, str], model: str | None, count: int
) -> None:
    assert gpus(labels, **capacity) == (GpuPart(model, Decimal(count)),)


@given(whole=st.integers(1, 16), replicas=st.integers(1, 64))
def test_time_slicing_neither_adds_nor_loses_a_gpu(whole: int, replicas: int) -> None:
    shared = gpus({"nvidia.com/gpu.replicas": str(replicas)}, gpu=str(whole * replicas))

    assert shared == (GpuPart(None, Decimal(whole)),)


NOT_READY = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting"}]


@pytest.mark.parametrize(
    ("spec", "conditions", "state", "reason"),
    [
        ({}, READY, "up", ""),
        ({"unschedulable": True}, READY, "planned_down", "cordoned"),
        ({}, NOT_READY, "down", "Kubelet stopped posting"),
        ({"unschedulable": True}, NOT_READY, "down", "Kubelet stopped posting"),
        ({}, [], None, ""),
    ],
    ids=["ready", "cordoned", "not ready", "cordoned and not ready", "no conditions"],
)
def test_the_state_follows_the_ready_condition_and_the_cordon(
    spec: dict[str, Any], conditions: list[dict[str, str]], state: str | None, reason: str
) -> None:
    read = fact(spec=spec, conditions=conditions)

    assert (read.state, read.reason) == (state, reason)


@pytest.mark.parametrize(
    ("cpu", "memory", "cpus", "mib"),
    [("128", "1Gi", 128, 1024), ("127500m", "2048Mi", 127, 2048), ("8", "1048576", 8, 1), ("8", "1G", 8, 953)],
)
def test_quantities_are_read_in_every_unit(cpu: str, memory: str, cpus: int, mib: int) -> None:
    read = fact(capacity={"cpu": cpu, "memory": memory})

    assert (read.cpu_count, read.memory_mib) == (cpus, mib)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"kind": "Pod", "metadata": {"name": "p"}}, "kind is Pod"),
        ({"kind": "Node", "metadata": {}, "status": {}}, "name is missing"),
        ({"kind": "Node", "metadata": {"name": "n2"}}, "status is missing"),
        (node(capacity={"nvidia.com/gpu": "many"}), "'many' is no quantity"),
        ("text", "has no attribute"),
        (None, "has no attribute"),
    ],
)
def test_a_bad_item_is_rejected_with_its_position_and_the_others_are_read(item: Any, reason: str) -> None:
    first, second, third = parse_nodes(json.dumps({"items": [node("a"), item, node("b")]}))

    assert isinstance(second, Rejected)
    assert second.line_number == 2
    assert reason in second.reason
    assert [each.name for each in (first, third) if isinstance(each, NodeFact)] == ["a", "b"]


def test_a_single_node_is_read_too() -> None:
    assert [each.name for each in parse_nodes(json.dumps(node())) if isinstance(each, NodeFact)] == ["n1"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"items": 3}', '"nodes"', "null"])
def test_what_is_no_list_of_nodes_fails_with_the_command_that_prints_one(text: str) -> None:
    with pytest.raises(ValueError, match="kubectl get nodes -o json"):
        list(parse_nodes(text))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_no_item_whatever_its_shape_breaks_the_reader(item: Any) -> None:
    (read,) = parse_nodes(json.dumps({"items": [item]}))

    assert isinstance(read, Rejected)
