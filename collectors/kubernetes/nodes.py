"""`kubectl get nodes -o json` → node facts. Pure.

Sources: the Node API (v1), NVIDIA's GPU feature discovery labels and the cloud providers' node pool labels.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from accounting.domain.records import GpuPart, NodeFact, Rejected
from estate.domain.gpus import mig_fraction

WHOLE_GPUS = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu")
INTEL_GPU = re.compile(r"gpu\.intel\.com/(i915|xe)$")
MIG = re.compile(r"nvidia\.com/(?P<profile>mig-\d+g\.\d+gb)")
MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
)
POOL_LABELS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.cluster.x-k8s.io/pool",
)
# GPU feature discovery marks what a product label stands for: `…-MIG-1g.5gb` a slice, `…-SHARED` a time-sliced GPU.
PRODUCT_MARKS = re.compile(r"(?P<slice>-MIG-\d+g\.\d+gb)?(?:-SHARED)?$")
BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>m|[kMGT]i?|Ki)?")


def parse_nodes(text: str | bytes) -> Iterator[NodeFact | Rejected]:
    """Facts of every node in a List (or of a single Node); a malformed item is rejected with its position from 1.

    Raises ValueError when `text` is no JSON or holds no nodes.
    """
    for position, item in enumerate(_items(text), start=1):
        try:
            yield node_fact(item)
        except (KeyError, TypeError, AttributeError, ValueError) as exc:
            yield Rejected(position, json.dumps(item), f"not a node as the Kubernetes API prints it: {_reason(exc)}")


def node_fact(item: Mapping[str, Any]) -> NodeFact:
    """Facts of one Node object; raises KeyError, TypeError, AttributeError or ValueError when it is none."""
    if item.get("kind", "Node") != "Node":
        raise ValueError(f"kind is {item['kind']}")
    labels: Mapping[str, str] = item["metadata"].get("labels") or {}
    capacity: Mapping[str, Any] = item["status"].get("capacity") or {}
    state, reason = _state(item)
    pool = next((labels[name] for name in POOL_LABELS if labels.get(name)), None)
    return NodeFact(
        name=item["metadata"]["name"],
        partitions=(pool,) if pool else (),
        gpus=_gpus(labels, capacity),
        cpu_count=_whole(capacity.get("cpu")),
        memory_mib=None if capacity.get("memory") is None else int(_quantity(capacity["memory"]) / 2**20),
        state=state,
        reason=reason,
    )


def _items(text: str | bytes) -> list[Any]:
    try:
        document = json.loads(text)
    except ValueError as exc:
        raise ValueError(f"not valid JSON ({exc}); save the output of `kubectl get nodes -o json`") from exc
    if isinstance(document, dict) and document.get("kind") == "Node":
        return [document]
    items = document.get("items") if isinstance(document, dict) else None
    if isinstance(items, list):
        return items
    raise ValueError("JSON without nodes; save the output of `kubectl get nodes -o json`")


def _gpus(labels: Mapping[str, str], capacity: Mapping[str, Any]) -> tuple[GpuPart, ...]:
    """Whole GPUs of the node: replicas of a time-sliced GPU and slices of a partitioned one are put together again."""
    product = next((labels[name] for name in MODEL_LABELS if labels.get(name)), "")
    marks = PRODUCT_MARKS.search(product)
    model = product[: marks.start()] if marks else product
    slice_share = _slice_share(model, marks["slice"]) if marks and marks["slice"] else Fraction(1)
    count = Fraction(0)
    for resource, value in capacity.items():
        mig = MIG.match(resource)
        if mig is not None:
            count += _quantity(value) * _slice_share(model, mig["profile"]) / _replicas(labels, mig[0])
        elif resource in WHOLE_GPUS or INTEL_GPU.match(resource):
            count += _quantity(value) * slice_share / _replicas(labels, "nvidia.com/gpu")
    return (GpuPart(model or None, Decimal(math.ceil(count))),) if count else ()


def _replicas(labels: Mapping[str, str], resource: str) -> int:
    """How many times over each device is offered (time-slicing); 1 when it is not shared."""
    return max(1, _whole(labels.get(f"{resource}.replicas")) or 1)


def _slice_share(model: str, profile: str) -> Fraction:
    """Share of a GPU in a MIG profile such as `mig-1g.5gb` or `-MIG-1g.5gb`; the A30 has fewer compute slices than the others."""
    family = "a30" if re.search(r"\bA30\b", model, re.IGNORECASE) else "gpu"
    return mig_fraction(f"{family}_{profile.lower().strip('-').removeprefix('mig-')}") or Fraction(1)


def _state(item: Mapping[str, Any]) -> tuple[str | None, str]:
    """Not ready is down; cordoned is planned down; without conditions the state is not known."""
    conditions = item["status"].get("conditions") or []
    ready = next((condition for condition in conditions if condition.get("type") == "Ready"), None)
    if ready is not None and ready.get("status") != "True":
        return "down", str(ready.get("message") or ready.get("reason") or "not ready")
    if (item.get("spec") or {}).get("unschedulable"):
        return "planned_down", "cordoned"
    return (None, "") if ready is None else ("up", "")


def _whole(value: Any) -> int | None:
    return None if value is None else int(_quantity(value))


def _quantity(value: Any) -> Fraction:
    """A Kubernetes quantity (`8`, `7910m`, `1056270668Ki`) in its base unit; raises ValueError when it is none."""
    found = QUANTITY.fullmatch(str(value))
    if found is None:
        raise ValueError(f"{value!r} is no quantity")
    unit = found["unit"] or ""
    return Fraction(found["number"]) * (Fraction(1, 1000) if unit == "m" else BYTES[unit])


def _reason(exc: Exception) -> str:
    return f"{exc.args[0]} is missing" if isinstance(exc, KeyError) else str(exc)
