"""A report whose values try to break every format, and a door that answers it instead of the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.http import StreamingHttpResponse

from accounting.domain.reports import Report, ReportRequest, Value
from accounting.queries import reports

HOSTILE = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "Jörg, “Ü”",
    'a"b',
    "two\r\nlines",
    "<img src=x onerror=alert(1)>",
    "http://a.example/",
    "",
)
FIGURES: dict[str, dict[str, Value]] = {
    "usage": {
        "record_count": 3,
        "started_count": 2,
        "gpu_seconds": Decimal("-1234567890.125"),
        "cpu_seconds": Decimal(7200),
        "wall_seconds": None,
    },
    "costs": {
        "gpu_seconds": 3600,
        "usage_cost": Decimal("12345678.90"),
        "idle_cost": Decimal("-0.10"),
        "shared_cost": Decimal("0.00"),
        "adjustment": None,
        "total_cost": Decimal("12345678.80"),
    },
    "capacity": {"reported_gpu_seconds": 448 * 3600, "occupancy_ratio": 2 / 3},
    "waits": {"record_count": 3, "p50_wait_seconds": 60, "p99_wait_seconds": None},
}

Door = Callable[[], ReportRequest]


def body(response: object) -> bytes:
    """All of a streamed answer."""
    assert isinstance(response, StreamingHttpResponse)
    return response.getvalue()


def _dimensions(request: ReportRequest, text: str) -> dict[str, Value]:
    return {name: date(2026, 11, 2) if name == "day" else text for name in request.by}


def report(request: ReportRequest) -> Report:
    """One row for every hostile text, in every dimension asked for."""
    figures = FIGURES[request.name]
    rows = [_dimensions(request, text) | figures for text in HOSTILE]
    return Report(
        request=request,
        rows=rows,
        total=figures,
        quality={"coverage_ratio": 1 / 3, "unattributed_gpu_seconds": Decimal("0.50"), "rejected_count": 0},
        data_through=datetime(2026, 11, 3, 12, tzinfo=UTC),
    )


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    """Answers every request with `report`; calling it gives the last request that came through."""
    asked: list[ReportRequest] = []

    def run(request: ReportRequest) -> Report:
        asked.append(request)
        return report(request)

    monkeypatch.setattr(reports, "run", run)
    return lambda: asked[-1]
