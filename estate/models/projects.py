"""Who answers for usage: a tree (organisation → cost centre → project) and dated rules from scheduler accounts to it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateRangeField, RangeOperators
from django.db import models


class ProjectKind(models.TextChoices):
    ORGANISATION = "organisation", "Organisation"
    COST_CENTRE = "cost_centre", "Cost centre"
    PROJECT = "project", "Project"


class Project(models.Model):
    """A node of the tree. `code` is what finance knows it by."""

    code = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=255, unique=True)
    kind = models.CharField(max_length=16, choices=ProjectKind, default=ProjectKind.PROJECT)
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="children")

    class Meta:
        ordering = ("code",)
        constraints = (
            models.CheckConstraint(
                name="project_only_organisations_have_no_parent",
                condition=models.Q(kind="organisation", parent__isnull=True) | ~models.Q(kind="organisation"),
            ),
        )

    def __str__(self) -> str:
        return self.name


class AccountMapping(models.Model):
    """Usage of one Slurm account (or Kubernetes namespace) of one cluster belongs to `project` on the reporting days of `valid_during`."""

    cluster = models.ForeignKey("estate.Cluster", models.PROTECT, related_name="account_mappings")
    account = models.CharField(max_length=255)
    project = models.ForeignKey(Project, models.PROTECT, related_name="account_mappings")
    valid_during = DateRangeField()

    class Meta:
        constraints = (
            ExclusionConstraint(
                name="account_maps_to_one_project_at_a_time",
                expressions=[
                    ("cluster", RangeOperators.EQUAL),
                    ("account", RangeOperators.EQUAL),
                    ("valid_during", RangeOperators.OVERLAPS),
                ],
            ),
        )

    def __str__(self) -> str:
        return f"{self.cluster}/{self.account} → {self.project}"


class Role(models.TextChoices):
    OWNER = "owner", "Owner"
    MEMBER = "member", "Member"


class ProjectMember(models.Model):
    """A person's role in a project."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)

    class Meta:
        constraints = (models.UniqueConstraint("project", "user", name="project_member_once"),)

    def __str__(self) -> str:
        return f"{self.user} {self.role} of {self.project}"
