"""The data quality of one cluster, and reading refused lines again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from collectors import replaying
from collectors.files import InputError
from collectors.models import Run, RunStatus
from collectors.permissions import for_platform_leads
from collectors.queries.quality import quality_of
from estate.models import Cluster

MOST_RUNS = 20


@require_GET
@for_platform_leads
def quality(request: HttpRequest, name: str) -> HttpResponse:
    """What is known of one cluster, what is missing and what is odd."""
    cluster = get_object_or_404(Cluster, name=name)
    runs = replaying.open_runs().filter(cluster=cluster)[:MOST_RUNS]
    context = {"title": f"Data quality of {cluster}", "quality": quality_of(cluster), "runs": runs}
    return render(request, "collectors/quality.html", context)


@require_POST
@for_platform_leads
def replay(request: HttpRequest, run_id: int) -> HttpResponse:
    """Read the refused lines of a run again; rollups follow within a minute."""
    run = get_object_or_404(Run.objects.select_related("cluster", "source__cluster"), pk=run_id, status=RunStatus.DONE)
    try:
        outcome = replaying.replay(run)
    except InputError as exc:
        messages.warning(request, str(exc))
        return redirect("collectors-run", run_id)
    messages.success(request, f"{outcome.message}.")
    return redirect("collectors-run", outcome.run_id if outcome.rejected_count == 0 else run_id)
