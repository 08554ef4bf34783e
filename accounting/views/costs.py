"""Who owes what, and whether it adds up."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounting.charts.costs import costs_chart
from accounting.domain.reconciliation import IDLE, UNATTRIBUTED, reconcile
from accounting.domain.reports import Report
from accounting.forms import ReportForm
from accounting.queries.asking import ask
from accounting.views.pages import exports, narrowed, report_page
from accounting.views.utilisation import MONTHS_AFTER_DAYS
from estate.views import tables

LEVELS = {"project": "account", "account": "user", "user": "", "cost_centre": "project", "gpu_model": "", "cluster": ""}
SIDES = {
    "project": "by project",
    "cost_centre": "by cost centre",
    "account": "by account",
    "user": "by user",
    "gpu_model": "by GPU model",
}
AMOUNTS = (
    tables.Column("gpu_seconds", "GPU-hours", "gpu_hours"),
    tables.Column("usage_cost", "Usage", "money", help="GPU-hours × the rate in force on the day"),
    tables.Column("idle_cost", "Idle", "money", help="Capacity that nobody used, at cost rates"),
    tables.Column("shared_cost", "Shared", "money", help="Storage, network, people"),
    tables.Column("adjustment", "Adjustments", "money", help="Corrections of closed periods"),
    tables.Column("total_cost", "Total", "money"),
)


@report_page("Costs")
def costs(request: HttpRequest, form: ReportForm) -> HttpResponse:
    base = form.request("costs")
    of = request.GET.get("of", "project")
    of = of if of in LEVELS else "project"
    over = "month" if (form.elapsed_end - base.first).days > MONTHS_AFTER_DAYS else "day"
    report = ask(base, "costs", of)
    by_project = report if of == "project" else ask(base, "costs", "project")
    context = {
        "title": "Costs",
        "form": form,
        "chart": costs_chart(ask(base, "costs", of, over).rows, of, over, settings.ESTATE_CURRENCY),
        "table": _table(request, report, of),
        "sides": [(key, name, narrowed(request.GET, of=key)) for key, name in SIDES.items()],
        "of": of,
        "table_total": report.total["total_cost"],
        "sum": reconcile(by_project.rows, by_project.total["total_cost"]),
        "unpriced": report.quality.get("unpriced_gpu_seconds"),
        "exports": exports(form, "costs", of),
    }
    return render(request, "accounting/costs.html", context)


def _table(request: HttpRequest, report: Report, of: str) -> tables.Table:
    def below(row: tables.Row) -> str | None:
        return None if row[of] == IDLE else _below(request, of, row[of])

    spec = tables.TableSpec(
        columns=(tables.Column(of, SIDES.get(of, of).removeprefix("by ").capitalize(), link=below), *AMOUNTS),
        caption=f"Costs {SIDES.get(of, of)}",
        sort="-total_cost",
        aside=lambda row: row[of] in {IDLE, UNATTRIBUTED},
    )
    return tables.build(spec, report.rows, request.GET, report.total)


def _below(request: HttpRequest, of: str, name: Any) -> str | None:
    """Where a name leads: a project to its accounts, an account to its users (of the project in scope), a model to its share."""
    if of == "project":
        return narrowed(request.GET, project=name, of="account")
    if of == "gpu_model":
        return narrowed(request.GET, gpu_model=name, of="project") if name else None
    return narrowed(request.GET, of=LEVELS[of]) if LEVELS[of] else None
