"""The rules that a scheduler enforces, and what it says of its nodes' past. Each is dated: a rule that goes away ends."""

from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models

from estate.models.inventory import Cluster, Node, Partition


def _names() -> ArrayField[list[str], list[str]]:
    return ArrayField(models.CharField(max_length=255), default=list, blank=True)


def _one_at_a_time(name: str, *keys: str) -> ExclusionConstraint:
    same = [(key, RangeOperators.EQUAL) for key in keys]
    return ExclusionConstraint(name=name, expressions=[*same, ("valid_during", RangeOperators.OVERLAPS)])


class SchedulerConfig(models.Model):
    """How a scheduler was set up over a span: what it enforces and what it counts."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="scheduler_configs")
    version = models.CharField(max_length=64, blank=True)
    enforces = _names()
    tracked_tres = _names()
    gres_types = _names()
    select_type = models.CharField(max_length=64, blank=True)
    priority_type = models.CharField(max_length=64, blank=True)
    half_life_seconds = models.BigIntegerField(null=True, blank=True)
    usage_reset_period = models.CharField(max_length=32, blank=True)
    preempt_type = models.CharField(max_length=64, blank=True)
    private_data = _names()
    weights = models.JSONField(default=dict, blank=True)
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (_one_at_a_time("scheduler_config_one_at_a_time", "cluster"),)

    def __str__(self) -> str:
        return f"{self.cluster}: {self.version}"


class PartitionRule(models.Model):
    """Whom a partition let in, and how much, over a span; null is no limit, an empty list of `allow_…` is everybody."""

    partition = models.ForeignKey(Partition, models.PROTECT, related_name="rules")
    state = models.CharField(max_length=32)
    is_default = models.BooleanField(default=False)
    max_time_seconds = models.BigIntegerField(null=True, blank=True)
    default_time_seconds = models.BigIntegerField(null=True, blank=True)
    max_nodes = models.BigIntegerField(null=True, blank=True)
    min_nodes = models.BigIntegerField(default=0)
    max_cpus_per_node = models.BigIntegerField(null=True, blank=True)
    max_memory_per_node_mib = models.BigIntegerField(null=True, blank=True)
    allow_accounts = _names()
    deny_accounts = _names()
    allow_groups = _names()
    allow_qos = _names()
    deny_qos = _names()
    qos = models.CharField(max_length=255, blank=True)
    priority_tier = models.BigIntegerField(null=True, blank=True)
    priority_job_factor = models.BigIntegerField(null=True, blank=True)
    preempt_mode = models.CharField(max_length=64, blank=True)
    billing_weights = models.CharField(max_length=512, blank=True)
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (_one_at_a_time("partition_rule_one_at_a_time", "partition"),)

    def __str__(self) -> str:
        return f"{self.partition}: {self.state}"


class Reservation(models.Model):
    """Nodes kept for some, or for maintenance. `valid_during` is the time for which it holds as described; it may lie ahead.

    A reservation that is changed ends and goes on in another row; one that is deleted early ends when that was seen.
    """

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="reservations")
    name = models.CharField(max_length=255)
    node_names = _names()
    flags = _names()
    accounts = _names()
    users = _names()
    groups = _names()
    partition_name = models.CharField(max_length=255, blank=True)
    tres = models.CharField(max_length=512, blank=True)
    is_maintenance = models.BooleanField(default=False)
    valid_during = DateTimeRangeField()

    class Meta:
        ordering = ("cluster", "name")
        constraints = (_one_at_a_time("reservation_one_at_a_time", "cluster", "name"),)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class SchedulerAccount(models.Model):
    """An account in the scheduler's own tree over a span; the root has no parent."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="scheduler_accounts")
    name = models.CharField(max_length=255)
    parent_name = models.CharField(max_length=255, blank=True)
    description = models.CharField(max_length=255, blank=True)
    organisation = models.CharField(max_length=255, blank=True)
    valid_during = DateTimeRangeField()

    class Meta:
        ordering = ("cluster", "name")
        constraints = (_one_at_a_time("scheduler_account_one_at_a_time", "cluster", "name"),)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class Association(models.Model):
    """The shares and QOS of an account (`user_name` empty) or of a user in it, over a span. Null shares are those of the parent."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="associations")
    account = models.CharField(max_length=255)
    user_name = models.CharField(max_length=255, blank=True)
    partition_name = models.CharField(max_length=255, blank=True)
    shares = models.BigIntegerField(null=True, blank=True)
    default_qos = models.CharField(max_length=255, blank=True)
    qos = _names()
    priority = models.BigIntegerField(null=True, blank=True)
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (_one_at_a_time("association_one_at_a_time", "cluster", "account", "user_name", "partition_name"),)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.account}/{self.user_name}"


class Qos(models.Model):
    """A quality of service over a span."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="qos")
    name = models.CharField(max_length=255)
    priority = models.BigIntegerField(null=True, blank=True)
    flags = _names()
    preempts = _names()
    preempt_mode = models.CharField(max_length=64, blank=True)
    usage_factor = models.DecimalField(max_digits=18, decimal_places=6, null=True, blank=True)
    valid_during = DateTimeRangeField()

    class Meta:
        ordering = ("cluster", "name")
        constraints = (_one_at_a_time("qos_one_at_a_time", "cluster", "name"),)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class SchedulerLimit(models.Model):
    """One limit that the scheduler knows, over a span: of a QOS (`qos` set), else of an association.

    `kind` is Slurm's word; `amount` is a count, MiB for memory, TRES-minutes for `…TRESMins`, seconds for `…Wall`.
    """

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="scheduler_limits")
    account = models.CharField(max_length=255, blank=True)
    user_name = models.CharField(max_length=255, blank=True)
    partition_name = models.CharField(max_length=255, blank=True)
    qos = models.CharField(max_length=255, blank=True)
    kind = models.CharField(max_length=32)
    tres = models.CharField(max_length=128, blank=True)
    amount = models.BigIntegerField()
    valid_during = DateTimeRangeField()

    class Meta:
        constraints = (
            _one_at_a_time(
                "scheduler_limit_one_at_a_time", "cluster", "account", "user_name", "partition_name", "qos", "kind", "tres"
            ),
            models.CheckConstraint(
                name="scheduler_limit_of_qos_or_account",
                condition=models.Q(qos="") & ~models.Q(account="") | ~models.Q(qos="") & models.Q(account=""),
            ),
            models.CheckConstraint(name="scheduler_limit_not_negative", condition=models.Q(amount__gte=0)),
        )

    def __str__(self) -> str:
        return f"{self.qos or self.account} {self.user_name} {self.kind} {self.tres}={self.amount}"


class FairShare(models.Model):
    """Fair-share of an account (`user_name` empty) or a user in it as last seen on one day (UTC)."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="fair_shares")
    account = models.CharField(max_length=255)
    user_name = models.CharField(max_length=255, blank=True)
    seen_on = models.DateField()
    seen_at = models.DateTimeField()
    raw_shares = models.BigIntegerField(null=True, blank=True)
    norm_shares = models.DecimalField(max_digits=18, decimal_places=6, null=True, blank=True)
    raw_usage = models.DecimalField(max_digits=30, decimal_places=0, null=True, blank=True)
    norm_usage = models.DecimalField(max_digits=18, decimal_places=6, null=True, blank=True)
    effective_usage = models.DecimalField(max_digits=18, decimal_places=6, null=True, blank=True)
    fair_share = models.DecimalField(max_digits=18, decimal_places=6, null=True, blank=True)
    level_fs = models.DecimalField(max_digits=30, decimal_places=6, null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint("cluster", "seen_on", "account", "user_name", name="fair_share_once_a_day"),)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.account}/{self.user_name} {self.seen_on}"


class NodeEventRecord(models.Model):
    """A span of a node's past from the scheduler's own history; evidence from which gaps between snapshots are filled."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="events")
    condition = models.CharField(max_length=16)
    state = models.CharField(max_length=64)
    reason = models.CharField(max_length=255, blank=True)
    author = models.CharField(max_length=255, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("node", "started_at")
        constraints = (
            models.UniqueConstraint("node", "started_at", name="node_event_once"),
            models.CheckConstraint(
                name="node_event_ends_after_it_starts",
                condition=models.Q(ended_at__isnull=True) | models.Q(ended_at__gte=models.F("started_at")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.node}: {self.state}"


class InventorySnapshot(models.Model):
    """A moment at which the nodes of a cluster were looked at: between two of them only the scheduler's history tells."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="snapshots")
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint("cluster", "seen_at", name="inventory_snapshot_once"),)

    def __str__(self) -> str:
        return f"{self.cluster} {self.seen_at}"


class PolicyReading(models.Model):
    """When each section of a cluster's policy was last read: an older reading does not overwrite a newer one."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="policy_readings")
    section = models.CharField(max_length=32)
    read_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint("cluster", "section", name="policy_reading_once_per_section"),)

    def __str__(self) -> str:
        return f"{self.cluster} {self.section} {self.read_at}"
