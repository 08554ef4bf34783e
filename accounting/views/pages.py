"""What the views of reports share: reading the form, refusing it, and saying what can be exported."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import quote

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from accounting.domain.reports import ReportError
from accounting.forms import ReportForm
from estate.models import User

FORMATS = {"csv": "CSV", "xlsx": "Excel (XLSX)", "json": "JSON"}
ReportView = Callable[[HttpRequest, ReportForm], HttpResponse]


def report_page(title: str) -> Callable[[ReportView], Callable[[HttpRequest], HttpResponse]]:
    """A page for people who are signed in, given the valid form; a form that is not valid is answered with 422 and what is wrong."""

    def decorate(view: ReportView) -> Callable[[HttpRequest], HttpResponse]:
        @require_safe
        @login_required
        @wraps(view)
        def page(request: HttpRequest) -> HttpResponse:
            assert isinstance(request.user, User)  # noqa: S101 - login_required has seen to it
            form = ReportForm(request.GET, user=request.user)
            if not form.is_valid():
                return _refused(request, form, title)
            try:
                return view(request, form)
            except ReportError as exc:
                form.add_error(None, str(exc))
                return _refused(request, form, title)

        return page

    return decorate


def _refused(request: HttpRequest, form: ReportForm, title: str) -> HttpResponse:
    return render(request, "accounting/refused.html", {"title": title, "form": form}, status=422)


def exports(form: ReportForm, report: str, *by: str) -> list[tuple[str, str]]:
    """Name and address of each export of what is on screen; empty where the route does not exist."""
    query = form.export_query(*by)
    try:
        return [(label, f"{reverse('export-report', args=[report, name])}?{query}") for name, label in FORMATS.items()]
    except NoReverseMatch:
        return []


def narrowed(query: QueryDict, **names: Any) -> str:
    """The address of the same page with filters set; pages and sorts start anew."""
    changed = query.copy()
    for name in list(changed):
        if name == "sort" or name.endswith(("page", "-sort")):
            del changed[name]
    for name, value in names.items():
        changed[name] = value
    return f"?{changed.urlencode()}"


def node_href(cluster: str, name: str) -> str:
    """Address of a node's page (built by hand: reverse() costs more than a heat map's row)."""
    return f"/estate/nodes/{quote(cluster, safe='')}/{quote(name, safe='')}/"
