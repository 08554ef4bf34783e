"""How OpenAPI describes the reports: made from the registry of figures, so that it cannot differ from the answers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from accounting.domain import answers
from accounting.domain.metrics import Dimension, Figure, Kind, ReportDefinition
from accounting.exports.responses import FORMATS, XLSX_TYPE

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
KINDS: dict[Kind, Schema] = {
    Kind.COUNT: {"type": "integer"},
    Kind.DURATION: {"type": "integer"},
    Kind.RESOURCE_SECONDS: {"oneOf": [{"type": "integer"}, {"type": "string", "description": "decimal, where GPUs are shared"}]},
    Kind.RATIO: {"type": "number"},
    Kind.MONEY: {"type": "string", "description": "decimal"},
}
DATES = {"day", "week"}


def description(definition: ReportDefinition) -> str:
    """Markdown: what each figure means."""
    return "\n".join(
        ["Figures; unknown ones are null:", "", *(f"- `{each.id}`: {each.definition}" for each in definition.figures)]
    )


def parameters(definition: ReportDefinition) -> list[OpenApiParameter]:
    """The query parameters of a report."""
    by = {"type": "array", "items": {"type": "string", "enum": list(definition.dimension_ids)}}
    return [
        OpenApiParameter("from", OpenApiTypes.DATE, required=True, description="First reporting day."),
        OpenApiParameter("to", OpenApiTypes.DATE, required=True, description="First reporting day that is not included."),
        OpenApiParameter("by", by, description="Dimensions of the rows; repeat it, or separate them by commas."),
        _names("cluster", "Only these clusters."),
        _names("partition", "Only these partitions."),
        _names("project", "Only these projects, by name or code."),
        _names("gpu_model", "Only these GPU models, by name or alias."),
        OpenApiParameter("zone", OpenApiTypes.STR, description="IANA zone that cuts the days; the estate's by default."),
        OpenApiParameter("format", OpenApiTypes.STR, enum=FORMATS, default="json"),
    ]


def _names(name: str, text: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "array", "items": TEXT}, description=f"{text} Repeat it for several.")


def responses(definition: ReportDefinition) -> dict[Any, Any]:
    """What a report answers, by status and media type."""
    errors = {"type": "object", "additionalProperties": {"type": "array", "items": TEXT}}
    return {
        (200, "application/json"): OpenApiResponse(_answer(definition), description="The report."),
        (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, description="Rows only, with a header."),
        (200, XLSX_TYPE): OpenApiResponse(OpenApiTypes.BINARY, description="Sheets Rows, Total and About."),
        400: OpenApiResponse(_object({"errors": errors}), description="What is wrong, by parameter."),
        401: OpenApiResponse(_object({"detail": TEXT}), description="Not signed in, or the token is unknown or has expired."),
    }


def _answer(definition: ReportDefinition) -> Schema:
    figures = {each.id: _figure(each) for each in definition.figures}
    if answers.has_money(definition):
        figures[answers.CURRENCY] = TEXT
    rows = _object({each.id: _dimension(each) for each in definition.dimensions} | figures, required=list(figures))
    return _object(
        {
            "report": {"type": "string", "enum": [definition.name]},
            "from": {"type": "string", "format": "date"},
            "to": {"type": "string", "format": "date"},
            "zone": TEXT,
            "by": {"type": "array", "items": TEXT},
            "data_through": {"type": "string", "format": "date-time", "nullable": True},
            "rows": {"type": "array", "items": rows},
            "total": _object(figures),
            "quality": {"type": "object", "additionalProperties": True},
        }
    )


def _figure(figure: Figure) -> Schema:
    return KINDS[figure.kind] | {"nullable": True, "description": f"{figure.definition} Unit: {figure.unit}."}


def _dimension(dimension: Dimension) -> Schema:
    form = {"format": "date"} if dimension.id in DATES else {"format": "date-time"} if dimension.id == "hour" else {}
    return TEXT | form | {"nullable": True, "description": dimension.definition}


def _object(properties: Schema, required: list[str] | None = None) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


def registry_entry(definition: ReportDefinition) -> Schema:
    """A report as `/api/v1/reports` lists it."""
    return {
        "name": definition.name,
        "title": definition.title,
        "dimensions": [{"id": each.id, "label": each.label, "definition": each.definition} for each in definition.dimensions],
        "figures": [
            {"id": each.id, "unit": each.unit, "label": each.label, "definition": each.definition} for each in definition.figures
        ],
    }


def registry_responses() -> dict[int, OpenApiResponse]:
    """What `/api/v1/reports` answers."""
    dimension = _object(dict.fromkeys(("id", "label", "definition"), TEXT))
    figure = _object(dict.fromkeys(("id", "unit", "label", "definition"), TEXT))
    lists = {"dimensions": {"type": "array", "items": dimension}, "figures": {"type": "array", "items": figure}}
    report = _object({"name": TEXT, "title": TEXT} | lists)
    return {200: OpenApiResponse(_object({"reports": {"type": "array", "items": report}}), description="Every report.")}
