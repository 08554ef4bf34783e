"""The scope and the period of a page, from its query string."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.http import QueryDict
from django.utils import timezone

from accounting.domain.presets import DEFAULT_PRESET, PRESETS, days_before, elapsed_end, preset_days
from accounting.domain.reconciliation import UNATTRIBUTED
from accounting.domain.reports import ReportRequest, Scope
from accounting.permissions import visible_projects
from accounting.requests import EARLIEST, LATEST
from estate.domain.periods import local_date
from estate.forms import ScopeForm
from estate.models import Project, User

LONGEST_DAYS = 3660


class ReportForm(ScopeForm):
    """Reads `period` or `from` and `to` (excluded), and any number of `cluster`, `partition`, `project`, `gpu_model`.

    Without any, it is this month of the whole estate. Everything but menus and presets needs a valid form.
    """

    dimensions = {"cluster": "Cluster", "partition": "Partition", "project": "Project", "gpu_model": "GPU model"}

    def __init__(self, data: QueryDict, *, user: User) -> None:
        self.visible = visible_projects(user)
        super().__init__(data)
        self.zone = ZoneInfo(settings.ESTATE_ZONE)
        self.today = local_date(timezone.now(), self.zone)
        self.fields["period"] = forms.ChoiceField(
            choices=list(PRESETS.items()),
            required=False,
            error_messages={"invalid_choice": "“%(value)s” is no period; choose one of " + ", ".join(PRESETS)},
        )
        for name in ("from", "to"):
            self.fields[name] = forms.DateField(
                required=False,
                input_formats=["%Y-%m-%d"],
                error_messages={"invalid": "this is no date; write it as 2026-11-30"},
            )

    def known_names(self) -> dict[str, Iterable[str]]:
        projects = Project.objects.order_by("name")
        if self.visible is not None:
            return super().known_names() | {"project": projects.filter(id__in=self.visible).values_list("name", flat=True)}
        return super().known_names() | {"project": [*projects.values_list("name", flat=True), UNATTRIBUTED]}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        first, last = cleaned.get("from"), cleaned.get("to")
        if not self.errors and (first is None) != (last is None):
            raise forms.ValidationError("give both dates, from and to, or neither")
        if first is not None and last is not None:
            _check_order(first, last)
        return cleaned

    @property
    def preset(self) -> str:
        """Name of the preset in force; empty when dates are given."""
        return "" if self.cleaned_data.get("from") else self.cleaned_data["period"] or DEFAULT_PRESET

    @property
    def days(self) -> tuple[date, date]:
        """First and last (excluded) reporting day."""
        preset = self.preset
        return preset_days(preset, self.today) if preset else (self.cleaned_data["from"], self.cleaned_data["to"])

    @property
    def before(self) -> tuple[date, date]:
        """The days that this period is compared with."""
        return days_before(*self.days, self.today)

    @property
    def elapsed_end(self) -> date:
        """End (excluded) of the part of the period that is not in the future."""
        return elapsed_end(*self.days, self.today)

    @property
    def scope(self) -> Scope:
        names = {f"{name}s": tuple(self.cleaned_data[name]) for name in self.dimensions}
        return Scope(**names, visible_projects=self.visible)

    def request(self, name: str, *by: str) -> ReportRequest:
        """Report `name` of this scope and period by `by`."""
        first, last = self.days
        return ReportRequest(name=name, first=first, last=last, zone=self.zone, by=by, scope=self.scope)

    @property
    def period_label(self) -> str:
        preset = self.preset
        first, last = self.days
        return PRESETS[preset] if preset else f"{first} to {last}"

    @property
    def shown_dates(self) -> tuple[str, str]:
        """What the date fields show: the dates that were given, as they were written when they are wrong."""
        return self.query.get("from", ""), self.query.get("to", "")

    @property
    def kept_period(self) -> str:
        """The preset that another choice of scope keeps."""
        period = self.query.get("period", "")
        return period if period in PRESETS and not any(self.shown_dates) else ""

    @property
    def presets(self) -> list[tuple[str, str, str]]:
        """Name, label and address of each preset, with the scope kept."""
        query = self.query.copy()
        for name in ("from", "to", "page"):
            query.pop(name, None)
        return [(name, label, f"?{_with(query, name)}") for name, label in PRESETS.items()]

    def export_query(self, *by: str) -> str:
        """Query string of the export of this period and scope by `by`; with dates, so that a kept link keeps its meaning."""
        query = QueryDict(mutable=True)
        first, last = self.days
        query["from"], query["to"] = first.isoformat(), last.isoformat()
        query.setlist("by", list(by))
        for name in self.dimensions:
            query.setlist(name, self.cleaned_data[name])
        return query.urlencode()


class GpuNameForm(forms.Form):
    """A name of a GPU, and the model that it means."""

    name = forms.CharField(max_length=128)
    means = forms.CharField(max_length=128)


def _with(query: QueryDict, preset: str) -> str:
    changed = query.copy()
    changed["period"] = preset
    return changed.urlencode()


def _check_order(first: date, last: date) -> None:
    if first >= last:
        raise forms.ValidationError(f"from ({first}) must be before to ({last}); to is the first day that is not included")
    if (last - first).days > LONGEST_DAYS:
        raise forms.ValidationError("a period may be ten years long at most")
    if first < EARLIEST or last > LATEST:
        raise forms.ValidationError(f"dates must lie between {EARLIEST.year} and {LATEST.year}")
