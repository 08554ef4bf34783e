"""Downloads for people who are signed in: what is on the page, as a file."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from accounting.domain.metrics import REPORTS
from accounting.domain.reports import ReportError
from accounting.exports.responses import FORMATS, response
from accounting.permissions import projects_in_report
from accounting.queries import reports
from accounting.requests import report_request


@require_safe
@login_required
def export_report(request: HttpRequest, report: str, output: str) -> HttpResponseBase:
    """The report of the query string as a file; 400 with the reason in words when it cannot be answered."""
    if report not in REPORTS or output not in FORMATS:
        raise Http404
    visible = projects_in_report(report, request.user)
    params = dict(request.GET.lists())
    try:
        asked = report_request(report, params, visible_projects=visible, reporting_zone=ZoneInfo(settings.ESTATE_ZONE))
        return response(reports.run(asked), output, for_browser=True)
    except ReportError as exc:
        return HttpResponse(f"{exc}\n", status=400, content_type="text/plain; charset=utf-8")
