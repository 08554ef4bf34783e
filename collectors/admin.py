"""Sources are configured here; runs and rejections are read only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from collectors.forms import SourceForm
from collectors.models import Rejection, Run, Source

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
else:
    AnyAdmin = admin.ModelAdmin


@admin.register(Source)
class SourceAdmin(AnyAdmin):
    form = SourceForm
    list_display = ("name", "cluster", "kind", "location", "interval_seconds", "enabled", "next_due_at", "failure_count")
    list_select_related = ("cluster",)
    readonly_fields = ("watermark_at", "lease_owner", "lease_until_at", "fence", "failure_count")


class ReadOnly(AnyAdmin):
    """History is not edited."""

    def has_add_permission(self, *_args: Any, **_options: Any) -> bool:
        return False

    def has_change_permission(self, *_args: Any, **_options: Any) -> bool:
        return False

    def has_delete_permission(self, *_args: Any, **_options: Any) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("started_at", "cluster", "source", "kind", "input_name", "status", "accepted_count", "rejected_count")
    list_filter = ("status", "kind", "cluster")
    list_select_related = ("cluster", "source")


@admin.register(Rejection)
class RejectionAdmin(ReadOnly):
    list_display = ("run", "line_number", "reason")
    list_select_related = ("run",)
    search_fields = ("reason",)
    show_full_result_count = False
