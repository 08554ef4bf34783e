"""Where facts come from, what each run of a source did, and what it could not take in."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class SourceKind(models.TextChoices):
    SACCT_FILES = "sacct_files", "Folder of sacct dumps"


class Source(models.Model):
    """One configured source of one cluster. What is due is decided by `next_due_at` here, never by the queue.

    A runner takes the lease (`lease_owner`, `lease_until_at`) and the next `fence`; without the newest fence it may not write.
    """

    name = models.CharField(max_length=100, unique=True)
    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, related_name="sources")
    kind = models.CharField(max_length=32, choices=SourceKind)
    location = models.CharField(max_length=1024, help_text="Folder that is watched for dumps (*.txt, *.psv, *.gz).")
    interval_seconds = models.PositiveIntegerField(default=300)
    enabled = models.BooleanField(default=True)
    next_due_at = models.DateTimeField(default=timezone.now)
    watermark_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_until_at = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    failure_count = models.PositiveIntegerField(default=0, help_text="Failed collections in a row; the next one waits longer.")

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(name="source_interval_at_least_10_s", condition=models.Q(interval_seconds__gte=10)),
        )

    def __str__(self) -> str:
        return self.name


class SourceFile(models.Model):
    """A file of a folder source as it was when it was taken in; a changed size or time means that it is read again."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="files")
    name = models.CharField(max_length=1024)
    size_bytes = models.BigIntegerField()
    modified_ns = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint("source", "name", name="source_file_once"),)

    def __str__(self) -> str:
        return self.name


class RunStatus(models.TextChoices):
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class Run(models.Model):
    """One reading of one input. Its counts obey accepted + rejected + ignored = lines."""

    source = models.ForeignKey(Source, models.PROTECT, null=True, blank=True, related_name="runs")
    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, related_name="runs")
    kind = models.CharField(max_length=32)
    input_name = models.CharField(max_length=1024)
    status = models.CharField(max_length=16, choices=RunStatus, default=RunStatus.RUNNING)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    line_count = models.BigIntegerField(default=0)
    accepted_count = models.BigIntegerField(default=0)
    rejected_count = models.BigIntegerField(default=0)
    ignored_count = models.BigIntegerField(default=0)
    changed_count = models.BigIntegerField(default=0)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ("-started_at", "-id")
        indexes = (
            models.Index(fields=("cluster", "-started_at"), name="run_newest_of_cluster"),
            models.Index(fields=("source", "-started_at"), name="run_newest_of_source"),
            models.Index(fields=("-started_at", "-id"), name="run_newest"),
        )
        constraints = (
            models.CheckConstraint(
                name="run_every_line_is_accounted_for",
                condition=~models.Q(status="done")
                | models.Q(line_count=models.F("accepted_count") + models.F("rejected_count") + models.F("ignored_count")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.input_name}"


class Rejection(models.Model):
    """A line that was not taken in: where it stands, the text (cut at 2,000 characters), and why."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="rejections")
    line_number = models.BigIntegerField()
    raw = models.TextField()
    reason = models.CharField(max_length=500)

    class Meta:
        ordering = ("run", "line_number")
        constraints = (models.UniqueConstraint("run", "line_number", name="rejection_once_per_line"),)

    def __str__(self) -> str:
        return f"line {self.line_number}: {self.reason}"
