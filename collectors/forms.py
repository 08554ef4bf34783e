"""Forms of the collectors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django import forms

from collectors import files
from collectors.models import Source

if TYPE_CHECKING:
    SourceModelForm = forms.ModelForm[Source]
else:
    SourceModelForm = forms.ModelForm


class SourceForm(SourceModelForm):
    """A source whose folder can be read from here."""

    class Meta:
        model = Source
        fields = ("name", "cluster", "kind", "location", "interval_seconds", "enabled", "next_due_at")

    def clean_location(self) -> str:
        location: str = self.cleaned_data["location"]
        try:
            files.scan(location, time.time_ns())
        except files.InputError as exc:
            raise forms.ValidationError(str(exc)) from exc
        return location
