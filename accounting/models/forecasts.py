"""What a scheduler said would happen, kept with the time at which it said so: start estimates; and jobs it lost track of."""

from __future__ import annotations

from django.db import models


class StartEstimate(models.Model):
    """When the scheduler expected a waiting record to start, as of `estimated_at`; to be compared with when it did.

    The record is (`cluster`, `external_id`, `submitted_at`), as in the usage records. A new row is kept only when the expectation moved.
    """

    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, db_index=False, related_name="+")
    external_id = models.CharField(max_length=255)
    submitted_at = models.DateTimeField()
    estimated_at = models.DateTimeField()
    expected_at = models.DateTimeField()
    partition = models.CharField(max_length=512, blank=True)
    reason = models.CharField(max_length=255, blank=True)
    priority = models.BigIntegerField(null=True)
    priority_parts = models.JSONField(default=dict)

    class Meta:
        constraints = (
            # Serves the look-up of the newest estimate of a record, too.
            models.UniqueConstraint("cluster", "external_id", "submitted_at", "estimated_at", name="start_estimate_once"),
        )

    def __str__(self) -> str:
        return f"{self.external_id}: {self.expected_at} as of {self.estimated_at}"


class SchedulerSample(models.Model):
    """State of a scheduler when it was asked for estimates: how deep its last backfill cycle looked says what they are worth."""

    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, db_index=False, related_name="+")
    sampled_at = models.DateTimeField()
    pending_count = models.IntegerField(null=True)
    running_count = models.IntegerField(null=True)
    estimated_count = models.IntegerField(null=True)
    backfill_cycle_microseconds = models.BigIntegerField(null=True)
    backfill_depth = models.IntegerField(null=True)
    backfill_queue_length = models.IntegerField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint("cluster", "sampled_at", name="scheduler_sample_once"),)

    def __str__(self) -> str:
        return f"{self.cluster} {self.sampled_at}"


class RunawayRecord(models.Model):
    """A record that the accounting database holds for running although the scheduler does not know it; `gone_at` once it was mended."""

    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, db_index=False, related_name="+")
    external_id = models.CharField(max_length=255)
    submitted_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=32)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint("cluster", "external_id", "submitted_at", name="runaway_record_once", nulls_distinct=False),
        )

    def __str__(self) -> str:
        return f"{self.cluster} {self.external_id}"
