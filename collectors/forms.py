"""Forms of the collectors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django import forms

from collectors import asking, files
from collectors.models import Source, SourceKind

SSH_FIELDS = ("ssh_host", "ssh_user", "ssh_options", "slurm_conf")
REST_FIELDS = ("location", "token_reference", "rest_user", "ca_file")

if TYPE_CHECKING:
    SourceModelForm = forms.ModelForm[Source]
else:
    SourceModelForm = forms.ModelForm


class SourceForm(SourceModelForm):
    """A source whose folder can be read from here, whose commands could be started, or whose address and token have a place."""

    class Meta:
        model = Source
        fields = (
            *("name", "cluster", "kind", "location", "ssh_host", "ssh_user", "ssh_options", "slurm_conf", "slurm_cluster"),
            *("token_reference", "rest_user", "ca_file"),
            *("time_limit_seconds", "interval_seconds", "enabled", "next_due_at"),
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        kind = cleaned.get("kind")
        try:
            if kind == SourceKind.SACCT_FILES:
                files.scan(cleaned.get("location", ""), time.time_ns())
        except files.InputError as exc:
            self.add_error("location", str(exc))
        try:
            if kind == SourceKind.SACCT:
                asking.host_of(Source(**{name: cleaned.get(name, "") for name in ("name", *SSH_FIELDS)}))
        except files.InputError as exc:
            self.add_error("ssh_host", str(exc))
        try:
            if kind == SourceKind.SLURMRESTD:
                asking.access_of(Source(**{name: cleaned.get(name, "") for name in ("name", *REST_FIELDS)}))
        except files.InputError as exc:
            self.add_error("location", str(exc))
        return cleaned
