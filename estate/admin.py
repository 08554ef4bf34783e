"""GPU models and their names. The page "GPU models" says what a change does to the past, and merges models; this is the plain list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from estate.models import GpuModel, GpuModelAlias

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    AnyInline = admin.TabularInline[Any, Any]
else:
    AnyAdmin = admin.ModelAdmin
    AnyInline = admin.TabularInline


class AliasInline(AnyInline):
    model = GpuModelAlias
    extra = 1


@admin.register(GpuModel)
class GpuModelAdmin(AnyAdmin):
    list_display = ("name", "memory_gib")
    search_fields = ("name", "aliases__alias")
    inlines = (AliasInline,)


@admin.register(GpuModelAlias)
class GpuModelAliasAdmin(AnyAdmin):
    list_display = ("alias", "gpu_model")
    list_select_related = ("gpu_model",)
    search_fields = ("alias", "gpu_model__name")
