"""Which of the three kinds of inventory a text is, and what it says. Pure."""

from __future__ import annotations

import io

from accounting.domain.records import NodeFact, Rejected
from collectors.kubernetes import nodes as kubernetes
from collectors.slurm.nodes import NodeInventory, read_nodes


def is_kubernetes(data: bytes) -> bool:
    """JSON is what kubectl prints; the Slurm tools print text."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"{", b"["}


def read_inventory(data: bytes, cluster: str) -> NodeInventory:
    """Nodes of `cluster` from any kind of inventory; raises ValueError when `data` is none, with the command that prints one."""
    return _kubernetes(data) if is_kubernetes(data) else read_nodes(io.BytesIO(data), cluster=cluster)


def _kubernetes(data: bytes) -> NodeInventory:
    read = list(kubernetes.parse_nodes(data))
    facts = [each for each in read if isinstance(each, NodeFact)]
    rejections = [each for each in read if isinstance(each, Rejected)]
    return NodeInventory(facts, rejections, len(read), len(facts), 0)
