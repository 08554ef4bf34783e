"""The first page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
@login_required
def overview(request: HttpRequest) -> HttpResponse:
    return render(request, "accounting/overview.html", {"title": "Overview"})
