"""Usage records (the facts), and how far they are known."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models


class UsageRecord(models.Model):
    """One grant of resources (accounting.domain.records.UsageRecord). Partitioned by month of `submitted_at`; never edited by hand.

    `last_seen_at` is the end of what is known: the end of an ended record, else its last sighting. `gpu_model_ids` and
    `gpu_counts` run in parallel and add up to `gpus`. The cluster has no foreign-key constraint (every row of a bulk load
    would pay for it): the only writer, `accounting.ingest`, holds the cluster's row.
    """

    pk = models.CompositePrimaryKey("cluster", "external_id", "submitted_at")
    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, db_constraint=False, db_index=False, related_name="+")
    external_id = models.CharField(max_length=255)
    submitted_at = models.DateTimeField()
    display_id = models.CharField(max_length=512)
    workload_id = models.CharField(max_length=255)
    workload_kind = models.CharField(max_length=32)
    name = models.TextField()
    user_name = models.CharField(max_length=255)
    account = models.CharField(max_length=255)
    namespace = models.CharField(max_length=255)
    partition = models.CharField(max_length=512)
    qos = models.CharField(max_length=255)
    state = models.CharField(max_length=32)
    eligible_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField()
    gpus = models.DecimalField(max_digits=20, decimal_places=12, null=True)
    gpu_size = models.CharField(max_length=8)
    gpu_model_ids = ArrayField(models.IntegerField(null=True))
    gpu_counts = ArrayField(models.DecimalField(max_digits=20, decimal_places=12))
    requested_gpus = models.DecimalField(max_digits=20, decimal_places=12, null=True)
    requested_gpu_model_id = models.IntegerField(null=True)
    cpus = models.DecimalField(max_digits=14, decimal_places=3, null=True)
    memory_mib = models.BigIntegerField(null=True)
    node_count = models.IntegerField(null=True)
    nodes = ArrayField(models.TextField())
    time_limit_seconds = models.BigIntegerField(null=True)
    suspended_seconds = models.BigIntegerField()
    priority = models.BigIntegerField(null=True)
    reason = models.CharField(max_length=255)
    reservation = models.CharField(max_length=255)
    exit_code = models.CharField(max_length=16)
    cancelled_by = models.CharField(max_length=255)
    comment = models.TextField()
    wckey = models.CharField(max_length=255)
    environment = models.CharField(max_length=255)
    restart_count = models.IntegerField(null=True)
    observed_at = models.DateTimeField(null=True)
    row_hash = models.BigIntegerField()

    class Meta:
        indexes = (
            BrinIndex(fields=("submitted_at", "started_at", "last_seen_at"), name="usage_record_by_time", pages_per_range=16),
            # What waits now: a handful among millions.
            models.Index(
                fields=("cluster",),
                name="usage_record_waiting",
                condition=models.Q(started_at__isnull=True, ended_at__isnull=True),
            ),
            # What runs by the books: to find what its cluster no longer knows of.
            models.Index(
                fields=("cluster",),
                name="usage_record_running",
                condition=models.Q(started_at__isnull=False, ended_at__isnull=True),
            ),
        )
        constraints = (
            models.CheckConstraint(
                name="usage_record_ends_after_it_starts",
                condition=models.Q(ended_at__isnull=True)
                | models.Q(started_at__isnull=True)
                | models.Q(ended_at__gte=models.F("started_at")),
            ),
            models.CheckConstraint(
                name="usage_record_holds_nothing_before_it_starts",
                condition=models.Q(started_at__isnull=False) | models.Q(gpus__isnull=True) | models.Q(gpus=0),
            ),
            models.CheckConstraint(
                name="usage_record_gpus_not_negative", condition=models.Q(gpus__isnull=True) | models.Q(gpus__gte=0)
            ),
        )

    def __str__(self) -> str:
        return self.display_id


class ClusterCoverage(models.Model):
    """From when to when the usage of a cluster is known: its first submission and its last sighting."""

    cluster = models.OneToOneField("estate.Cluster", models.CASCADE, primary_key=True, related_name="coverage")
    first_at = models.DateTimeField()
    through_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cluster} to {self.through_at:%Y-%m-%d %H:%M} UTC"


class Intake(models.Model):
    """How many lines of one input could not be taken in when it was last read."""

    cluster = models.ForeignKey("estate.Cluster", models.CASCADE, related_name="+")
    input_name = models.CharField(max_length=1024)
    rejected_count = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint("cluster", "input_name", name="intake_once_per_input"),)

    def __str__(self) -> str:
        return self.input_name
