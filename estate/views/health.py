"""For machines: alive, ready, and a few figures. No sign-in, no names of clusters or people."""

from __future__ import annotations

from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from estate.queries import vitals

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@require_safe
@never_cache
def healthz(_: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked, so that a database outage does not restart the web."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(_: HttpRequest) -> HttpResponse:
    """Pages can be served: the database answers and has this release's schema. The broker is not needed for that."""
    states = _states()
    return JsonResponse(states, status=200 if all(states.values()) else 503)


@require_safe
@never_cache
def metrics(_: HttpRequest) -> HttpResponse:
    """Prometheus text."""
    states = _states()
    lines = [
        *_gauge("gpu_estate_database_up", "1 if the database answers", float(states["database"])),
        *_gauge("gpu_estate_schema_up_to_date", "1 if no migration is pending", float(states["schema"])),
        *_gauge("gpu_estate_broker_up", "1 if the broker answers", float(vitals.broker_fault() is None)),
        *_gauge(
            "gpu_estate_scheduler_age_seconds",
            "seconds since the scheduler of this data folder sent something",
            vitals.scheduler_age_seconds(),
        ),
    ]
    return HttpResponse("\n".join(lines) + "\n", content_type=METRICS_TYPE)


def _states() -> dict[str, bool]:
    if vitals.database_fault() is not None:
        return {"database": False, "schema": False}
    try:
        return {"database": True, "schema": not vitals.pending_migrations()}
    except Error:
        return {"database": False, "schema": False}


def _gauge(name: str, meaning: str, value: float | None) -> list[str]:
    """An unknown value has no line at all."""
    return [] if value is None else [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {value:g}"]
