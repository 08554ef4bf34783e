"""How busy the GPUs were, where and for whom."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from accounting.charts.capacity import capacity_chart
from accounting.charts.heat import HeatMap, HeatRow, group_rows, spans
from accounting.forms import ReportForm
from accounting.queries.asking import ask
from accounting.queries.node_use import column_names, node_use, unit_of
from accounting.views.pages import exports, narrowed, node_href, report_page
from estate.domain.periods import span
from estate.queries.inventory import NodeNow, NodeScope, gpu_nodes_during, nodes_at
from estate.views import tables

MOST_NODES = {"hour": 40, "day": 80, "week": 80}
MONTHS_AFTER_DAYS = 92
GROUPINGS = {"partition": "by partition", "gpu_model": "by GPU model", "cluster": "by cluster"}


@report_page("Utilisation")
def utilisation(request: HttpRequest, form: ReportForm) -> HttpResponse:
    base = form.request("capacity")
    over = "month" if (form.elapsed_end - base.first).days > MONTHS_AFTER_DAYS else "day"
    capacity = ask(base, "capacity", over)
    context = {
        "title": "Utilisation",
        "form": form,
        "total": capacity.total,
        "chart": capacity_chart(capacity.rows, over),
        "heat": _heat(request, form),
        "groupings": [(key, name, narrowed(request.GET, group=key)) for key, name in GROUPINGS.items()],
        "group": _grouping(request),
        "tables": [_usage(request, form, "project"), _usage(request, form, "user")],
        "exports": exports(form, "capacity", over),
    }
    return render(request, "accounting/utilisation.html", context)


def _grouping(request: HttpRequest) -> str:
    wanted = request.GET.get("group", "")
    return wanted if wanted in GROUPINGS else "partition"


def _heat(request: HttpRequest, form: ReportForm) -> dict[str, Any]:
    base, end = form.request("capacity"), form.elapsed_end
    scope = NodeScope(base.scope.clusters, base.scope.partitions, base.scope.gpu_models)
    group_of = {(node.cluster, node.name): _group(node, _grouping(request)) for node in nodes_at(timezone.now(), scope)}
    period = span(base.first, end, form.zone)
    names = sorted(gpu_nodes_during(period.start, period.end, scope), key=lambda name: (group_of.get(name, "~"), name))
    most = MOST_NODES[unit_of(base.first, end)]
    page = tables.page_number(request.GET.get("nodes-page", "1"), len(names), most)
    shown = names[(page - 1) * most : page * most]
    use = node_use(base, end, tuple(name for _, name in shown))
    columns, above = column_names(use, form.zone)
    nothing = [None] * len(columns)
    rows = [(group_of.get(name, ""), HeatRow(name[1], node_href(*name), use.ratios.get(name, nothing))) for name in shown]
    heat = HeatMap(caption=f"Occupancy of each node by {use.unit}", columns=columns, spans=spans(above), groups=group_rows(rows))
    return {"map": heat, "unit": use.unit, "pager": tables.pager(request.GET, "nodes-page", page, len(names), most)}


def _group(node: NodeNow, grouping: str) -> str:
    if grouping == "cluster":
        return node.cluster
    names = node.partitions if grouping == "partition" else list(node.gpus)
    return f"{node.cluster} · {names[0]}" if names else f"{node.cluster} · none"


def _usage(request: HttpRequest, form: ReportForm, of: str) -> tables.Table:
    report = ask(form.request("usage"), "usage", of)
    link = (lambda row: narrowed(request.GET, project=row["project"])) if of == "project" else None
    spec = tables.TableSpec(
        columns=(
            tables.Column(of, of.capitalize(), link=link),
            tables.Column("gpu_seconds", "GPU-hours", "gpu_hours"),
            tables.Column("wall_seconds", "Run time", "duration", help="Time that records ran, added up"),
            tables.Column("started_count", "Started", "count"),
        ),
        caption=f"GPU-hours by {of}",
        sort="-gpu_seconds",
        name=f"{of}s",
        aside=lambda row: row[of] == "Unattributed",
    )
    return tables.build(spec, report.rows, request.GET, report.total)
