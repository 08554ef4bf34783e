"""Which of the three kinds of inventory a text is, and what it says. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from accounting.domain.records import NodeFact, Rejected
from collectors.kubernetes import nodes as kubernetes


class Inventory(NamedTuple):
    facts: list[NodeFact]
    rejections: list[Rejected]


def is_kubernetes(text: str) -> bool:
    """JSON is what kubectl prints; the Slurm tools print text."""
    return text.lstrip()[:1] in {"{", "["}


def read_inventory(text: str) -> Inventory:
    """Facts of every node; raises ValueError when `text` is none of the three kinds or names no node."""
    read = kubernetes.parse_nodes(text)
    inventory = _sorted_out(read)
    if not inventory.facts and not inventory.rejections:
        raise ValueError("no node in it; save the output of the command with all its nodes")
    return inventory


def _sorted_out(read: Iterable[NodeFact | Rejected]) -> Inventory:
    inventory = Inventory([], [])
    for each in read:
        if isinstance(each, Rejected):
            inventory.rejections.append(each)
        else:
            inventory.facts.append(each)
    return inventory
