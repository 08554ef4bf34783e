"""Which of the kinds of inventory a text is, and what it says. Pure."""

from __future__ import annotations

import io
import re
from zoneinfo import ZoneInfo

from accounting.domain.records import NodeFact, Rejected
from collectors.kubernetes import nodes as kubernetes
from collectors.slurm.nodes import NodeInventory, read_nodes, read_nodes_json

# slurmrestd and scontrol put their nodes under this key; kubectl says "kind" and "items" before it may say anything like it.
_SLURM_JSON = re.compile(rb'"(?:nodes|items|kind|apiVersion)"\s*:')


def is_kubernetes(data: bytes) -> bool:
    """JSON is what kubectl prints, unless it is that of Slurm's tools."""
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in {b"{", b"["}:
        return False
    first = _SLURM_JSON.search(data)
    return first is None or not first[0].startswith(b'"nodes"')


def read_inventory(data: bytes, cluster: str, zone: ZoneInfo) -> NodeInventory:
    """Nodes of `cluster`, whose tools print times of `zone`, from any kind of inventory; raises ValueError when `data` is none, with the
    command that prints one."""
    if is_kubernetes(data):
        return _kubernetes(data)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return read_nodes_json(data, cluster=cluster)
    return read_nodes(io.BytesIO(data), cluster=cluster, zone=zone)


def _kubernetes(data: bytes) -> NodeInventory:
    read = list(kubernetes.parse_nodes(data))
    facts = [each for each in read if isinstance(each, NodeFact)]
    rejections = [each for each in read if isinstance(each, Rejected)]
    return NodeInventory(facts, rejections, len(read), len(facts), 0)
