"""The first page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from accounting.charts.capacity import PARTS, describe, segments
from accounting.charts.sparkline import sparkline
from accounting.forms import ReportForm
from accounting.queries import overview as overviews
from accounting.queries.attention import Finding, findings
from accounting.views.pages import exports, narrowed, report_page


@report_page("Overview")
def overview(request: HttpRequest, form: ReportForm) -> HttpResponse:
    asked = overviews.Asked(base=form.request("capacity"), before=form.before, today=form.today)
    found = overviews.overview(asked)
    context = {
        "title": "Overview",
        "form": form,
        "kpis": [(kpi, sparkline(kpi.trend, f"{kpi.label}, last 30 days")) for kpi in found.kpis],
        "partitions": [_shown(row, request) for row in found.partitions] if found.is_known else [],
        "parts": PARTS,
        "findings": [(finding, _href(request, finding)) for finding in _for(form, found)],
        "exports": exports(form, "capacity", "cluster", "partition"),
    }
    return render(request, "accounting/overview.html", context)


def _shown(row: dict[str, Any], request: HttpRequest) -> dict[str, Any]:
    href = narrowed(request.GET, cluster=row["cluster"], partition=row["partition"])
    return row | {"segments": segments(row), "words": describe(row), "href": href}


def _for(form: ReportForm, found: overviews.Overview) -> list[Finding]:
    """What the person may do something about: the collectors are for those who see the whole estate."""
    lines = findings(found.nodes, found.unattributed_gpu_seconds, timezone.now())
    return [line for line in lines if form.visible is None or line.route != "collectors"]


def _href(request: HttpRequest, finding: Finding) -> str:
    return reverse(finding.route) + narrowed(request.GET, **dict(finding.parameters))
