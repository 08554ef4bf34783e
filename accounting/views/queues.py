"""How long requests waited."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounting.charts.waits import waits_chart
from accounting.forms import ReportForm
from accounting.queries.asking import ask
from accounting.queries.waiting import waiting_now, with_waiting
from accounting.views.pages import exports, narrowed, report_page
from accounting.views.utilisation import MONTHS_AFTER_DAYS
from estate.views import tables

FIGURES = (
    tables.Column("record_count", "Submitted", "count"),
    tables.Column(
        "censored_count", "Not started", "count", help="Waiting, or cancelled while waiting: counted as “at least this long”"
    ),
    tables.Column("p50_wait_seconds", "Median", "duration"),
    tables.Column("p90_wait_seconds", "p90", "duration"),
    tables.Column("p95_wait_seconds", "p95", "duration"),
    tables.Column("max_wait_seconds", "Longest", "duration"),
    tables.Column("mean_wait_seconds", "Mean", "duration"),
    tables.Column("p50_submit_to_start_seconds", "Median from submission", "duration", help="Dependencies and holds included"),
)


@report_page("Queues")
def queues(request: HttpRequest, form: ReportForm) -> HttpResponse:
    base = form.request("waits")
    over = "month" if (form.elapsed_end - base.first).days > MONTHS_AFTER_DAYS else "day"
    partitions = ask(base, "waits", "cluster", "partition")
    sizes = ask(base, "waits", "gpu_size")
    waiting = waiting_now(base.scope)
    waiting_count = sum(row.record_count for row in waiting.values())
    total = partitions.total | {"waiting_count": waiting_count}
    context = {
        "title": "Queues",
        "form": form,
        "waiting_count": waiting_count,
        "total": partitions.total,
        "chart": waits_chart(ask(base, "waits", over).rows, over),
        "tables": [
            tables.build(_partitions(request), with_waiting(partitions.rows, waiting), request.GET, total),
            tables.build(SIZES, _ranked(sizes.rows), request.GET, sizes.total),
        ],
        "exports": exports(form, "waits", "cluster", "partition"),
    }
    return render(request, "accounting/queues.html", context)


def _partitions(request: HttpRequest) -> tables.TableSpec:
    def below(row: tables.Row) -> str:
        return narrowed(request.GET, cluster=row["cluster"], partition=row["partition"])

    waiting = tables.Column("waiting_count", "Waiting now", "count")
    columns = (tables.Column("partition", "Partition", link=below), tables.Column("cluster", "Cluster"), waiting, *FIGURES)
    return tables.TableSpec(columns=columns, caption="Waits by partition", sort="-record_count")


SIZES = tables.TableSpec(
    columns=(tables.Column("gpu_size", "GPUs", order="rank"), *FIGURES),
    caption="Waits by number of GPUs",
    sort="gpu_size",
    name="sizes",
)


def _ranked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"rank": rank} for rank, row in enumerate(rows)]
