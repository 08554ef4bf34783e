"""The Collectors page, the page of one run, and "run now"."""

from __future__ import annotations

from contextlib import suppress

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST
from kombu.exceptions import OperationalError

from collectors import collecting, replaying, tasks
from collectors.models import Run, Source
from collectors.permissions import for_platform_leads
from collectors.queries.overview import quality_rows, recent_runs, source_rows

PAGE_LENGTH = 50


@require_GET
@for_platform_leads
def collectors(request: HttpRequest) -> HttpResponse:
    """Sources, the runs of all clusters, and the quality of what came in."""
    runs = Paginator(recent_runs(), PAGE_LENGTH).get_page(request.GET.get("page"))
    context = {"title": "Collectors", "sources": source_rows(timezone.now()), "runs": runs, "quality": quality_rows()}
    return render(request, "collectors/collectors.html", context)


@require_GET
@for_platform_leads
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """One run with the lines that it refused."""
    shown = get_object_or_404(Run.objects.select_related("cluster", "source"), pk=run_id)
    rejections = Paginator(shown.rejections.select_related("replayed_in").order_by("line_number"), PAGE_LENGTH).get_page(
        request.GET.get("page")
    )
    context = {"title": f"Run {shown.pk}", "run": shown, "rejections": rejections}
    context["open_count"] = replaying.replayable(shown.pk).count() if rejections else 0
    return render(request, "collectors/run.html", context)


@require_POST
@for_platform_leads
def run_now(request: HttpRequest, source_id: int) -> HttpResponse:
    """Make a source due and ring; if the broker is away the scheduler finds it due all the same."""
    source = get_object_or_404(Source, pk=source_id, enabled=True)
    collecting.make_due(source)
    with suppress(OperationalError):
        tasks.ring(source.pk)
    messages.success(request, f"{source} will be collected as soon as a worker is free.")
    return redirect("collectors")
