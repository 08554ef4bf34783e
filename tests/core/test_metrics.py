"""The registry of figures: complete, in the order of the interface, and quoted by the documentation."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.domain import answers
from accounting.domain.metrics import COSTS, DIMENSIONS, REPORTS, USAGE, Kind

DOCS = Path(__file__).resolve().parents[2] / "docs"
INTERFACE = {
    "usage": (
        "cluster scheduler partition pool project account namespace user gpu_model gpu_size qos state workload workload_kind "
        "day week month",
        "record_count started_count gpu_seconds cpu_seconds wall_seconds",
    ),
    "waits": (
        "cluster scheduler partition project account user gpu_model gpu_size qos day week month",
        "record_count started_count censored_count p50_wait_seconds p90_wait_seconds p95_wait_seconds p99_wait_seconds "
        "max_wait_seconds mean_wait_seconds p50_submit_to_start_seconds",
    ),
    "capacity": (
        "cluster scheduler partition pool gpu_model node day hour month",
        "reported_gpu_seconds allocated_gpu_seconds reserved_idle_gpu_seconds idle_gpu_seconds stranded_gpu_seconds "
        "planned_down_gpu_seconds down_gpu_seconds unknown_gpu_seconds occupancy_ratio activity_ratio activity_coverage_ratio "
        "effective_ratio contended_occupancy_ratio",
    ),
    "costs": (
        "cluster project cost_centre account user gpu_model pool day month",
        "gpu_seconds usage_cost idle_cost shared_cost adjustment total_cost",
    ),
}


@pytest.mark.parametrize("name", INTERFACE)
def test_a_report_has_the_dimensions_and_figures_of_the_interface_in_order(name: str) -> None:
    dimensions, figures = INTERFACE[name]
    assert REPORTS[name].dimension_ids == tuple(dimensions.split())
    assert [each.id for each in REPORTS[name].figures if each.id in figures.split()] == figures.split()


@pytest.mark.parametrize("name", REPORTS)
def test_every_figure_and_dimension_is_defined_word_for_word_in_the_documentation(name: str) -> None:
    page = (DOCS / "definitions.md").read_text()
    quoted = [(each.id, each.definition) for each in REPORTS[name].figures] + [
        (each.id, each.definition) for each in REPORTS[name].dimensions
    ]
    for identifier, definition in quoted:
        assert f"| `{identifier}` " in page
        assert definition in page


def test_units_in_names_agree_with_units_in_words() -> None:
    for report in REPORTS.values():
        for figure in report.figures:
            assert figure.id.endswith("_ratio") == (figure.kind is Kind.RATIO)
            assert figure.id.endswith("_count") == (figure.kind is Kind.COUNT)
            assert figure.id.endswith("gpu_seconds") == (figure.unit == "GPU-seconds")
            assert figure.id.endswith("_seconds") == (figure.kind in {Kind.DURATION, Kind.RESOURCE_SECONDS})
            assert figure.definition.endswith(".")


def test_dimensions_are_named_by_their_ids() -> None:
    assert all(key == dimension.id for key, dimension in DIMENSIONS.items())


@given(st.decimals(-(10**12), 10**12, places=6))
def test_a_number_reads_back_exactly_and_is_whole_where_it_can_be(value: Decimal) -> None:
    written = answers.number(value)
    assert Decimal(written) == value
    assert isinstance(written, int) == (value == int(value))
    assert not isinstance(written, str) or not (written.endswith("0") or "E" in written)


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        (None, Kind.RATIO, None),
        (Fraction(1, 3), Kind.RATIO, 0.333333),
        (Decimal("1E+3"), Kind.MONEY, "1000"),
        (Decimal("-0.10"), Kind.MONEY, "-0.10"),
        (Decimal("3600.000"), Kind.RESOURCE_SECONDS, 3600),
        (Decimal("1E-6"), Kind.RESOURCE_SECONDS, "0.000001"),
        (Fraction(3, 2), Kind.RESOURCE_SECONDS, "1.5"),
        (7, Kind.COUNT, 7),
    ],
)
def test_figures_are_written_by_their_kind(value: Any, kind: Kind, written: answers.Json) -> None:
    assert answers.figure_value(value, kind) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (date(2026, 11, 2), "2026-11-02"),
        (datetime(2026, 11, 2, 1, tzinfo=UTC), "2026-11-02T01:00:00Z"),
        (datetime(2026, 11, 2, 1, tzinfo=timezone(timedelta(hours=2))), "2026-11-02T01:00:00+02:00"),
        ("=1+1", "=1+1"),
    ],
)
def test_dates_are_iso_8601_and_text_is_left_alone(value: Any, written: str) -> None:
    assert answers.scalar(value) == written


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no zone"):
        answers.instant(datetime(2026, 11, 2))  # noqa: DTZ001 - that is the point


def test_a_value_nobody_defined_is_refused_and_one_that_is_missing_is_unknown() -> None:
    assert answers.row({"user": "ann"}, USAGE, ("user",), "EUR") == {"user": "ann"} | dict.fromkeys(
        ("record_count", "started_count", "gpu_seconds", "cpu_seconds", "wall_seconds")
    )
    with pytest.raises(ValueError, match="without a definition: colour"):
        answers.row({"colour": 1}, USAGE, (), "EUR")


def test_a_row_that_names_its_currency_keeps_it() -> None:
    assert answers.row({"currency": "JPY"}, COSTS, (), "EUR")["currency"] == "JPY"
    assert answers.row({}, COSTS, (), "EUR")["currency"] == "EUR"
