"""Where facts come from, what each run of a source did, and what it could not take in."""

from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import Func
from django.utils import timezone


class SourceKind(models.TextChoices):
    SACCT_FILES = "sacct_files", "Folder of sacct dumps"
    SACCT = "sacct", "sacct, here or over SSH"
    SLURMRESTD = "slurmrestd", "slurmrestd"


# Kinds that ask the cluster itself: one call per cluster at a time.
LIVE_KINDS = (SourceKind.SACCT, SourceKind.SLURMRESTD)


class Source(models.Model):
    """One configured source of one cluster. What is due is decided by `next_due_at` here, never by the queue.

    A runner takes the lease (`lease_owner`, `lease_until_at`) and the next `fence`; without the newest fence it may not write.
    `watermark_at` of a live source is the time at which it was last asked with success (never a time found in its answer), and
    `reread_at` that of the last long look back.
    """

    name = models.CharField(max_length=100, unique=True)
    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, related_name="sources")
    kind = models.CharField(max_length=32, choices=SourceKind)
    location = models.CharField(
        max_length=1024,
        blank=True,
        help_text="Folder that is watched for dumps (*.txt, *.psv, *.gz), or address of slurmrestd (https://host:6820 or unix:/path).",
    )
    ssh_host = models.CharField(max_length=255, blank=True, help_text="Host on which sacct runs; empty: the worker's own.")
    ssh_user = models.CharField(max_length=64, blank=True)
    ssh_options = models.TextField(
        blank=True, help_text="ssh_config options, one Key=Value a line, such as IdentityFile=/etc/gpu-estate/id_ed25519."
    )
    slurm_conf = models.CharField(
        max_length=1024, blank=True, help_text="SLURM_CONF for the commands, where it is not the default."
    )
    slurm_cluster = models.CharField(max_length=64, blank=True, help_text="Name for -M where several clusters share a slurmdbd.")
    token_reference = models.CharField(
        max_length=1024,
        blank=True,
        help_text="Where the JWT for slurmrestd is kept: env:NAME or file:/path. The token itself is never stored.",
    )
    rest_user = models.CharField(max_length=64, blank=True, help_text="X-SLURM-USER-NAME; empty: the token says who asks.")
    ca_file = models.CharField(
        max_length=1024, blank=True, help_text="Certificates to trust for https, where the system's are not right."
    )
    token_ends_at = models.DateTimeField(null=True, blank=True, help_text="What the token said of its end when it was last used.")
    time_limit_seconds = models.PositiveIntegerField(default=600, help_text="A command that takes longer is stopped.")
    interval_seconds = models.PositiveIntegerField(default=300)
    enabled = models.BooleanField(default=True)
    next_due_at = models.DateTimeField(default=timezone.now)
    watermark_at = models.DateTimeField(null=True, blank=True)
    reread_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_until_at = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    failure_count = models.PositiveIntegerField(default=0, help_text="Failed collections in a row; the next one waits longer.")

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(name="source_interval_at_least_10_s", condition=models.Q(interval_seconds__gte=10)),
            models.CheckConstraint(
                name="source_of_files_has_a_folder", condition=~models.Q(kind="sacct_files") | ~models.Q(location="")
            ),
            models.CheckConstraint(
                name="source_of_slurmrestd_has_an_address_and_a_token",
                condition=~models.Q(kind="slurmrestd") | ~models.Q(location="") & ~models.Q(token_reference=""),
            ),
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


class BackfillChunk(models.Model):
    """A bounded span `[start_at, end_at)` of a source's past that was asked for and is read once, the newest first."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="chunks")
    start_at = models.DateTimeField()
    end_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True, help_text="How long it took.")
    record_count = models.BigIntegerField(default=0)
    failure_count = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ("source", "-start_at")
        constraints = (
            models.CheckConstraint(
                name="backfill_chunk_ends_after_it_starts", condition=models.Q(end_at__gt=models.F("start_at"))
            ),
            ExclusionConstraint(
                name="backfill_chunk_every_span_once",
                expressions=[
                    ("source", RangeOperators.EQUAL),
                    (
                        Func("start_at", "end_at", function="tstzrange", output_field=DateTimeRangeField()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        )

    def __str__(self) -> str:
        return f"{self.source} {self.start_at:%Y-%m-%d} to {self.end_at:%Y-%m-%d}"


class RunStatus(models.TextChoices):
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class Run(models.Model):
    """One reading of one input. Its counts obey accepted + rejected + ignored = lines.

    A live source was asked at `asked_at` for `[window_from, window_to)`. `header` is the first line of a dump, without which a rejected
    line could not be read again.
    """

    source = models.ForeignKey(Source, models.PROTECT, null=True, blank=True, related_name="runs")
    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, related_name="runs")
    kind = models.CharField(max_length=32)
    input_name = models.CharField(max_length=1024)
    status = models.CharField(max_length=16, choices=RunStatus, default=RunStatus.RUNNING)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    window_from = models.DateTimeField(null=True, blank=True)
    window_to = models.DateTimeField(null=True, blank=True)
    header = models.TextField(blank=True)
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
    """A line that was not taken in: where it stands, the text (cut at 2,000 characters), and why.

    `replayed_in` is the run that read it again with success, after a fix.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="rejections")
    line_number = models.BigIntegerField()
    raw = models.TextField()
    reason = models.CharField(max_length=500)
    replayed_in = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="replayed")

    class Meta:
        ordering = ("run", "line_number")
        constraints = (models.UniqueConstraint("run", "line_number", name="rejection_once_per_line"),)

    def __str__(self) -> str:
        return f"line {self.line_number}: {self.reason}"
