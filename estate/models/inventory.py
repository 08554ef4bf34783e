"""Clusters and what they are made of. What changes over time is dated; nothing is overwritten."""

from __future__ import annotations

from zoneinfo import ZoneInfo, available_timezones

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Coalesce


def validate_zone(name: str) -> None:
    """A zone must be one that the IANA database knows."""
    if name not in available_timezones():
        raise ValidationError(f"{name} is no IANA time zone; write one such as Europe/Berlin")


class Scheduler(models.TextChoices):
    SLURM = "slurm", "Slurm"
    KUBERNETES = "kubernetes", "Kubernetes"


class Cluster(models.Model):
    """One Slurm cluster (a `ClusterName`) or one Kubernetes cluster. `zone` is the one in which its tools print times."""

    name = models.CharField(max_length=64, unique=True)
    scheduler = models.CharField(max_length=16, choices=Scheduler)
    zone = models.CharField(max_length=64, default="UTC", validators=[validate_zone])

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def zone_info(self) -> ZoneInfo:
        return ZoneInfo(self.zone)


class Partition(models.Model):
    """A Slurm partition; on Kubernetes the queue, else the node pool."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="partitions")
    name = models.CharField(max_length=128)

    class Meta:
        ordering = ("cluster", "name")
        constraints = (models.UniqueConstraint("cluster", "name", name="partition_once_per_cluster"),)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class GpuModel(models.Model):
    """A GPU model under its one canonical name."""

    name = models.CharField(max_length=128, unique=True)
    memory_gib = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class GpuModelAlias(models.Model):
    """Another spelling of a model, as some scheduler prints it."""

    alias = models.CharField(max_length=128, unique=True)
    gpu_model = models.ForeignKey(GpuModel, models.CASCADE, related_name="aliases")

    class Meta:
        ordering = ("alias",)

    def __str__(self) -> str:
        return f"{self.alias} → {self.gpu_model}"


class Node(models.Model):
    """A host, by name; what it had and when is in its dated rows."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=255)

    class Meta:
        ordering = ("cluster", "name")
        constraints = (models.UniqueConstraint("cluster", "name", name="node_once_per_cluster"),)

    def __str__(self) -> str:
        return self.name


class NodeInventory(models.Model):
    """GPUs of one model in one node over one span; a node without GPUs has a row with no model and 0 GPUs.

    An open lower bound means "as far back as we know": the first inventory of a cluster does not say since when.
    """

    node = models.ForeignKey(Node, models.CASCADE, related_name="inventory")
    gpu_model = models.ForeignKey(GpuModel, models.PROTECT, null=True, blank=True, related_name="+")
    gpu_count = models.PositiveIntegerField(default=0)
    shard_count = models.PositiveIntegerField(default=0, help_text="Shards that these GPUs are divided into; 0: not shared.")
    cpu_count = models.PositiveIntegerField(null=True, blank=True)
    memory_mib = models.PositiveBigIntegerField(null=True, blank=True)
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (
            ExclusionConstraint(
                name="node_inventory_one_at_a_time",
                expressions=[
                    ("node", RangeOperators.EQUAL),
                    (Coalesce("gpu_model", 0), RangeOperators.EQUAL),
                    ("valid_during", RangeOperators.OVERLAPS),
                ],
            ),
        )

    def __str__(self) -> str:
        return f"{self.node}: {self.gpu_count} × {self.gpu_model or 'no GPU'}"


class NodePartition(models.Model):
    """Membership of a node in a partition over one span (a node may be in several at once)."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="memberships")
    partition = models.ForeignKey(Partition, models.CASCADE, related_name="memberships")
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (
            ExclusionConstraint(
                name="node_partition_one_at_a_time",
                expressions=[
                    ("node", RangeOperators.EQUAL),
                    ("partition", RangeOperators.EQUAL),
                    ("valid_during", RangeOperators.OVERLAPS),
                ],
            ),
        )

    def __str__(self) -> str:
        return f"{self.node} in {self.partition}"


class NodeCondition(models.TextChoices):
    DOWN = "down", "Down"
    PLANNED_DOWN = "planned_down", "Planned down"
    RESERVED = "reserved", "Reserved"


class StateSource(models.TextChoices):
    SNAPSHOT = "snapshot", "Seen"
    HISTORY = "history", "From the scheduler's history"


class NodeState(models.Model):
    """A span in which a node was not simply up. No row means up.

    What a snapshot saw stands; rows from the scheduler's history (node events, reservations) fill the time between snapshots and
    are rebuilt from that evidence.
    """

    node = models.ForeignKey(Node, models.CASCADE, related_name="states")
    condition = models.CharField(max_length=16, choices=NodeCondition)
    reason = models.CharField(max_length=255, blank=True)
    author = models.CharField(max_length=255, blank=True, help_text="Who set the reason.")
    reason_at = models.DateTimeField(null=True, blank=True, help_text="When the reason was set.")
    source = models.CharField(max_length=16, choices=StateSource, default=StateSource.SNAPSHOT)
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (
            ExclusionConstraint(
                name="node_state_one_at_a_time",
                expressions=[("node", RangeOperators.EQUAL), ("valid_during", RangeOperators.OVERLAPS)],
            ),
        )

    def __str__(self) -> str:
        return f"{self.node}: {self.condition}"


class Pool(models.Model):
    """A named set of nodes of one cluster with one purpose; pools do not overlap."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="pools")
    name = models.CharField(max_length=128)
    purpose = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering = ("cluster", "name")
        constraints = (models.UniqueConstraint("cluster", "name", name="pool_once_per_cluster"),)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class PoolMembership(models.Model):
    """A node's place in a pool over one span; in at most one pool at a time."""

    pool = models.ForeignKey(Pool, models.CASCADE, related_name="memberships")
    node = models.ForeignKey(Node, models.CASCADE, related_name="pools")
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (
            ExclusionConstraint(
                name="node_in_one_pool_at_a_time",
                expressions=[("node", RangeOperators.EQUAL), ("valid_during", RangeOperators.OVERLAPS)],
            ),
        )

    def __str__(self) -> str:
        return f"{self.node} in {self.pool}"
