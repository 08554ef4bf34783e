"""Forms of estate: signing in, and the scope of a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.http import QueryDict

from estate.models import Cluster, GpuModel, Partition


class SignInForm(AuthenticationForm):
    """User name and password; the message does not say which of them was wrong."""

    error_messages = {
        "invalid_login": "This user name and password do not match. Both are case-sensitive.",
        "inactive": "This account is closed. Ask whoever runs this dashboard.",
    }


class Chip(NamedTuple):
    """One applied filter and the address without it."""

    label: str
    value: str
    href: str


class Menu(NamedTuple):
    """The choices of one dimension: name of the parameter, label, and (value, chosen) of each."""

    name: str
    label: str
    options: list[tuple[str, bool]]
    chosen_count: int


class ScopeForm(forms.Form):
    """Which part of the estate: any number of `cluster`, `partition`, `gpu_model` by name; none means all."""

    dimensions = {"cluster": "Cluster", "partition": "Partition", "gpu_model": "GPU model"}

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        self.query = data
        self.names = {name: list(dict.fromkeys(values)) for name, values in self.known_names().items()}
        for name, values in self.names.items():
            self.fields[name] = forms.MultipleChoiceField(
                choices=[(value, value) for value in values],
                required=False,
                error_messages={"invalid_choice": f"no {self.dimensions[name]} is called “%(value)s” here"},
            )

    def known_names(self) -> dict[str, Iterable[str]]:
        """What may be chosen, by dimension."""
        return {
            "cluster": Cluster.objects.values_list("name", flat=True),
            "partition": Partition.objects.order_by("name").values_list("name", flat=True),
            "gpu_model": GpuModel.objects.values_list("name", flat=True),
        }

    @property
    def chips(self) -> list[Chip]:
        """The applied filters."""
        chosen = [(name, value) for name in self.dimensions for value in self.cleaned_data[name]]
        return [Chip(self.dimensions[name], value, self._without(name, value)) for name, value in chosen]

    def _without(self, name: str, value: str) -> str:
        query = self.query.copy()
        query.setlist(name, [other for other in query.getlist(name) if other != value])
        query.pop("page", None)
        return f"?{query.urlencode()}"

    @property
    def menus(self) -> list[Menu]:
        """What may be chosen, for the filter bar; works for an invalid form too."""
        return [self._menu(name, label) for name, label in self.dimensions.items()]

    def _menu(self, name: str, label: str) -> Menu:
        chosen = set(self.query.getlist(name))
        options = [(value, value in chosen) for value in self.names[name]]
        return Menu(name, label, options, sum(is_chosen for _, is_chosen in options))


class NodesForm(ScopeForm):
    """The scope of the estate page, and `q`: a part of a node's name."""

    q = forms.CharField(required=False, max_length=255)
