"""What exists and who may use it."""

from estate.models.inventory import (
    Cluster,
    GpuModel,
    GpuModelAlias,
    Node,
    NodeCondition,
    NodeInventory,
    NodePartition,
    NodeState,
    Partition,
    Pool,
    PoolMembership,
    Scheduler,
)
from estate.models.people import ApiToken, User
from estate.models.projects import AccountMapping, Project, ProjectKind, ProjectMember, Role

__all__ = [
    "AccountMapping",
    "ApiToken",
    "Cluster",
    "GpuModel",
    "GpuModelAlias",
    "Node",
    "NodeCondition",
    "NodeInventory",
    "NodePartition",
    "NodeState",
    "Partition",
    "Pool",
    "PoolMembership",
    "Project",
    "ProjectKind",
    "ProjectMember",
    "Role",
    "Scheduler",
    "User",
]
