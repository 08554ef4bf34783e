"""The one door to every report: `run(request)`."""

from __future__ import annotations

from accounting.domain.reports import Report, ReportRequest


def run(request: ReportRequest) -> Report:
    """Answer `request`; raises ReportError for an unknown report or dimension."""
    raise NotImplementedError
