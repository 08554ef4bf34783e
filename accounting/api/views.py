"""The reports over HTTP, for scripts. Every answer is made from the same request and query as the command's and the pages'."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.exceptions import NotFound
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounting.api import schema
from accounting.domain.metrics import REPORTS, ReportDefinition
from accounting.domain.reports import ReportError
from accounting.exports.responses import FORMATS, response
from accounting.permissions import projects_in_report
from accounting.queries import reports
from accounting.requests import PARAMETERS, Params, RequestError, report_request


class ByParameter(BaseContentNegotiation):
    """`format` chooses the format, never the Accept header; errors are JSON whatever was asked for."""

    def select_parser(self, request: Request, parsers: Any) -> Any:  # noqa: ARG002 - the framework's signature
        return parsers[0]

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002 - the framework's signature
        renderers: Any,
        format_suffix: str | None = None,  # noqa: ARG002 - the framework's signature
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class ReportView(APIView):
    """One report; only read."""

    http_method_names = ["get", "head", "options"]
    content_negotiation_class = ByParameter
    report = ""

    def get(self, request: Request) -> HttpResponseBase:
        """Answer, or say by parameter what is wrong."""
        params = dict(request.query_params.lists())
        try:
            output = _format(params)
            visible = projects_in_report(self.report, request.user)
            zone = ZoneInfo(settings.ESTATE_ZONE)
            asked = report_request(self.report, params, visible_projects=visible, reporting_zone=zone)
            return response(reports.run(asked), output)
        except RequestError as exc:
            return Response({"errors": exc.errors}, status=400)
        except ReportError as exc:
            return Response({"errors": {"report": [str(exc)]}}, status=400)


def _format(params: Params) -> str:
    """The format asked for; a parameter nobody knows is refused here, as a misspelt filter would widen the answer."""
    unknown = {name: ["is no parameter of a report"] for name in params if name not in (*PARAMETERS, "format")}
    if unknown:
        raise RequestError(unknown)
    output = params.get("format", ["json"])[-1]
    if output not in FORMATS:
        raise RequestError({"format": [f"“{output}” is no format; choose one of {', '.join(FORMATS)}"]})
    return output


def report_view(definition: ReportDefinition) -> type[ReportView]:
    """The view of one report, described to OpenAPI by its definition."""
    name = f"{definition.title}ReportView"
    view: type[ReportView] = type(name, (ReportView,), {"report": definition.name, "__doc__": definition.title})
    operation = extend_schema(
        operation_id=f"report_{definition.name}",
        summary=definition.title,
        description=schema.description(definition),
        tags=["reports"],
        parameters=schema.parameters(definition),
        responses=schema.responses(definition),
    )
    return extend_schema_view(get=operation)(view)


class ReportsView(APIView):
    """What reports there are, with their dimensions and figures."""

    http_method_names = ["get", "head", "options"]
    content_negotiation_class = ByParameter

    @extend_schema(operation_id="reports", summary="Reports", tags=["reports"], responses=schema.registry_responses())
    def get(self, request: Request) -> Response:  # noqa: ARG002 - the framework's signature
        """Every report with the definition of each dimension and figure."""
        return Response({"reports": [schema.registry_entry(definition) for definition in REPORTS.values()]})


class UnknownReportView(APIView):
    """Any other name; says which there are."""

    content_negotiation_class = ByParameter

    @extend_schema(exclude=True)
    def get(self, request: Request, report: str) -> Response:  # noqa: ARG002 - the framework's signature
        """Raises NotFound."""
        raise NotFound(f"“{report}” is no report; there are {', '.join(REPORTS)}")
