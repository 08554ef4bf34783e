"""GPU models by their names: every name that was seen, what it means, and changing that."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from kombu.exceptions import OperationalError

from accounting import gpu_models, tasks
from accounting.forms import GpuNameForm
from accounting.gpu_models import Act, Effect, MeaningError
from accounting.queries.gpu_names import gpu_names
from estate.permissions import for_platform_leads
from estate.views import tables

NAMES = tables.TableSpec(
    columns=(
        tables.Column("name", "Name as seen", link=lambda row: f"?name={row['name']}#meaning"),
        tables.Column("model", "Model"),
        tables.Column("kind", "Which is"),
        tables.Column("gpu_count", "GPUs of the model", "count"),
        tables.Column("gpu_seconds", "Used, all time", "gpu_hours"),
        tables.Column("last_used_on", "Last used on", "when"),
    ),
    caption="Names of GPU models",
    sort="model",
)


@require_http_methods(["GET", "HEAD", "POST"])
@for_platform_leads
def names(request: HttpRequest) -> HttpResponse:
    """GET shows the names, and with `name` and `means` what would happen; POST does it."""
    data = request.POST if request.method == "POST" else request.GET
    form = GpuNameForm(data if data.get("means") else None, initial={"name": data.get("name", "")})
    effect = _effect(form) if form.is_bound and form.is_valid() else None
    if request.method == "POST" and effect is not None and _done(request, form, effect):
        return redirect("estate-gpu-models")
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "accounting/gpu_models.html", _context(request, form, effect), status=status)


def _effect(form: GpuNameForm) -> Effect | None:
    try:
        return gpu_models.effect_of(form.cleaned_data["name"], form.cleaned_data["means"])
    except MeaningError as exc:
        form.add_error(None, str(exc))
        return None


def _done(request: HttpRequest, form: GpuNameForm, effect: Effect) -> bool:
    try:
        day_count = gpu_models.carry_out(effect)
    except MeaningError as exc:
        form.add_error(None, str(exc))
        return False
    if day_count:
        with suppress(OperationalError):
            tasks.rebuild_rollups.apply_async(retry=False)
    rebuilt = f"; {day_count} days are being rebuilt" if day_count else ""
    messages.success(request, f"{effect.name} means {effect.model} from now on{rebuilt}.")
    return True


def _context(request: HttpRequest, form: GpuNameForm, effect: Effect | None) -> dict[str, Any]:
    found = gpu_names()
    rows = [each._asdict() | {"kind": "another name of it" if each.is_alias else "its own name"} for each in found]
    return {
        "title": "GPU models",
        "form": form,
        "effect": effect,
        "past": _past(effect) if effect else "",
        "names": tables.build(NAMES, rows, request.GET),
        "models": [each.model for each in found if not each.is_alias],
    }


def _past(effect: Effect) -> str:
    """What becomes of what is recorded already, in words."""
    if effect.act is Act.MERGE:
        return (
            f"{effect.record_count:,} records, the inventory of {effect.node_count:,} nodes and {effect.rate_count:,} prices "
            f"of {effect.name} will be of {effect.model}, past included, and {effect.name} becomes another name of it. "
            f"This cannot be undone: which records came under which name is not kept. Closed statements stay as they are."
        )
    if effect.act is Act.RENAME:
        return (
            f"The model {effect.name} will be called {effect.model}; its records stay with it, and the old name still means it."
        )
    if effect.act is Act.POINT:
        return (
            f"From now on what is read as {effect.name} is {effect.model}. What was recorded before stays with {effect.former}: "
            f"which of its records came under this name is not kept."
        )
    return (
        f"{effect.name} was not seen yet: what is read under this name will be {effect.model}. Nothing that is recorded changes."
    )
