"""What is rebuilt from the facts for every reporting day (accounting.rollups); never edited by hand, never incremented."""

from __future__ import annotations

from django.db import models


class RollupZone(models.Model):
    """The zone in which the stored rollups were cut (one row); another reporting zone means that all must be rebuilt."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    zone = models.CharField(max_length=64)

    class Meta:
        constraints = (models.CheckConstraint(name="rollup_zone_single_row", condition=models.Q(id=1)),)

    def __str__(self) -> str:
        return self.zone


class DirtyDay(models.Model):
    """A reporting day of a cluster whose facts changed since its rollups were built."""

    pk = models.CompositePrimaryKey("cluster", "day")
    cluster = models.ForeignKey("estate.Cluster", models.CASCADE, related_name="+")
    day = models.DateField()

    def __str__(self) -> str:
        return f"{self.cluster} {self.day}"


class UsageKey(models.Model):
    """Names that rows of the daily usage have in common, spelled once; empty where that kind of row is summed over them."""

    id = models.AutoField(primary_key=True)
    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, db_index=False, related_name="+")
    partition = models.CharField(max_length=512)
    account = models.CharField(max_length=255)
    namespace = models.CharField(max_length=255)
    user_name = models.CharField(max_length=255)
    qos = models.CharField(max_length=255)
    gpu_size = models.CharField(max_length=8)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("cluster", "partition", "account", "namespace", "user_name", "qos", "gpu_size"), name="usage_key_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.partition} {self.account}{self.namespace} {self.user_name}"


class UsageOfDay(models.Model):
    """What was used on one reporting day. Each kind of it holds the whole usage, summed over other names: no kind has one row a record.

    `record_count` counts records submitted, `started_count` those started on that day (so that days add up); the seconds are what
    overlaps the day. A record on several GPU models is counted with its first one; `gpu_model_id` is 0 where there is none. The
    primary key begins with the day: reports read days, a rebuild replaces them.
    """

    pk = models.CompositePrimaryKey("day", "key", "gpu_model_id")
    day = models.DateField()
    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, db_constraint=False, db_index=False, related_name="+")
    key = models.ForeignKey(UsageKey, models.PROTECT, db_constraint=False, db_index=False, related_name="+")
    gpu_model_id = models.IntegerField()
    record_count = models.IntegerField()
    started_count = models.IntegerField()
    gpu_seconds = models.DecimalField(max_digits=30, decimal_places=12)
    cpu_seconds = models.DecimalField(max_digits=24, decimal_places=3)
    wall_seconds = models.BigIntegerField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.day}: {self.record_count} records"


class UsageDay(UsageOfDay):
    """By partition and by who answers for it (account, namespace): what projects used and what it costs."""


class UserDay(UsageOfDay):
    """By user and by who answers for it (account, namespace)."""


class QueueDay(UsageOfDay):
    """By partition, QOS and GPUs of the record: what is asked of the scheduler."""


class NodeDay(models.Model):
    """GPUs of one model in one node held on one reporting day; no row means none were.

    `allocated` never exceeds what the node has (the rest is `sharing`), at any instant; time held on no node of the inventory is
    `unplaced` (no node). Where a node was held although down, planned down or reserved, that part is in `…_allocated`, to be taken
    off those figures: a GPU-second is in one part of the capacity identity only.
    """

    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, db_constraint=False, db_index=False, related_name="+")
    node = models.ForeignKey("estate.Node", models.PROTECT, null=True, db_constraint=False, db_index=False, related_name="+")
    gpu_model_id = models.IntegerField(null=True)
    day = models.DateField()
    allocated_gpu_seconds = models.DecimalField(max_digits=30, decimal_places=12)
    sharing_gpu_seconds = models.DecimalField(max_digits=30, decimal_places=12)
    unplaced_gpu_seconds = models.DecimalField(max_digits=30, decimal_places=12)
    down_allocated_gpu_seconds = models.DecimalField(max_digits=30, decimal_places=12)
    planned_allocated_gpu_seconds = models.DecimalField(max_digits=30, decimal_places=12)
    reserved_allocated_gpu_seconds = models.DecimalField(max_digits=30, decimal_places=12)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("day", "cluster", "node", "gpu_model_id"), name="node_day_once", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return f"{self.day} {self.node_id}"
