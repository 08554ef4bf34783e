"""The registry of every figure and dimension: names, units and the definitions that docs/definitions.md quotes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a figure is written. Storage and answers keep seconds; hours and percent are for people's eyes only."""

    COUNT = "count"
    DURATION = "duration"
    RESOURCE_SECONDS = "resource_seconds"
    RATIO = "ratio"
    MONEY = "money"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one report: `id` is its name in answers, `unit` that of its values, `definition` one sentence for users."""

    id: str
    unit: str
    label: str
    kind: Kind
    definition: str


@dataclass(frozen=True, slots=True)
class Dimension:
    """Something that a report can be cut by. `definition` says what a value of it is."""

    id: str
    label: str
    definition: str


@dataclass(frozen=True, slots=True)
class ReportDefinition:
    """A report: what it can be cut by and what it counts, both in the order of every answer."""

    name: str
    title: str
    dimensions: tuple[Dimension, ...]
    figures: tuple[Figure, ...]

    def figure(self, figure_id: str) -> Figure | None:
        """The figure of that id; None when the report has none."""
        return next((figure for figure in self.figures if figure.id == figure_id), None)

    @property
    def dimension_ids(self) -> tuple[str, ...]:
        return tuple(dimension.id for dimension in self.dimensions)


DIMENSIONS = {
    dimension.id: dimension
    for dimension in (
        Dimension("cluster", "Cluster", "One Slurm or Kubernetes cluster."),
        Dimension("scheduler", "Scheduler", "`slurm` or `kubernetes`."),
        Dimension("partition", "Partition", "A Slurm partition; on Kubernetes the queue, else the node pool."),
        Dimension("pool", "Pool", "A named set of nodes of one cluster with one purpose; pools do not overlap."),
        Dimension("project", "Project", "Who answers for the usage, by dated rules; `Unattributed` where no rule applies."),
        Dimension("cost_centre", "Cost centre", "The cost centre above the project in the tree of projects."),
        Dimension("account", "Account", "The Slurm account."),
        Dimension("namespace", "Namespace", "The Kubernetes namespace."),
        Dimension("user", "User", "The user that the scheduler names."),
        Dimension("gpu_model", "GPU model", "The GPU model under its one canonical name."),
        Dimension(
            "gpu_size", "GPUs of the record", "GPUs of the record: `0`, `<1`, `1`, `2`, `3-4`, `5-8`, `9-16`, `17-64` or `65+`."
        ),
        Dimension("qos", "QOS", "The Slurm QOS; on Kubernetes the priority class."),
        Dimension("state", "State", "How the record ended, or that it still runs or waits."),
        Dimension("workload", "Workload", "What the record belongs to: a job, an array, or the controller that owns the pods."),
        Dimension("workload_kind", "Kind of workload", "The kind of that workload, for example `array` or `PyTorchJob`."),
        Dimension("node", "Node", "One host."),
        Dimension("hour", "Hour", "The start of the hour, with its offset from UTC."),
        Dimension("day", "Day", "The reporting day, 23 to 25 hours long."),
        Dimension("week", "Week", "The Monday on which the week begins (ISO 8601)."),
        Dimension("month", "Month", "The calendar month, as `2026-11`."),
    )
}


def _dimensions(ids: str) -> tuple[Dimension, ...]:
    return tuple(DIMENSIONS[dimension] for dimension in ids.split())


def _count(figure_id: str, label: str, definition: str) -> Figure:
    return Figure(figure_id, "records", label, Kind.COUNT, definition)


def _wait(figure_id: str, label: str, definition: str) -> Figure:
    return Figure(figure_id, "seconds", label, Kind.DURATION, definition)


def _gpu_seconds(part: str, label: str, definition: str) -> Figure:
    return Figure(f"{part}_gpu_seconds", "GPU-seconds", label, Kind.RESOURCE_SECONDS, definition)


def _ratio(figure_id: str, label: str, definition: str) -> Figure:
    return Figure(figure_id, "ratio", label, Kind.RATIO, definition)


def _money(figure_id: str, label: str, definition: str) -> Figure:
    return Figure(figure_id, "currency", label, Kind.MONEY, definition)


def _wait_quantiles() -> Iterable[Figure]:
    for percent in (50, 90, 95, 99):
        yield _wait(
            f"p{percent}_wait_seconds",
            "Median wait" if percent == 50 else f"p{percent} wait",
            f"The wait that {percent} % of the records submitted in the period did not exceed: nearest rank, Kaplan–Meier where "
            "some never started; unknown where too many never started.",
        )


USAGE = ReportDefinition(
    "usage",
    "Usage",
    _dimensions(
        "cluster scheduler partition pool project account namespace user gpu_model gpu_size qos state "
        "workload workload_kind day week month"
    ),
    (
        _count("record_count", "Records", "Usage records submitted in the period."),
        _count("started_count", "Started", "Usage records that started in the period, whenever they were submitted."),
        Figure(
            "gpu_seconds",
            "GPU-seconds",
            "GPU time",
            Kind.RESOURCE_SECONDS,
            "GPUs held × the seconds of the period in which they were held; a suspended job keeps its GPUs.",
        ),
        Figure(
            "cpu_seconds",
            "CPU-seconds",
            "CPU time",
            Kind.RESOURCE_SECONDS,
            "CPU cores held × the seconds of the period in which they were held, without the time suspended.",
        ),
        Figure(
            "wall_seconds",
            "seconds",
            "Wall time",
            Kind.RESOURCE_SECONDS,
            "The seconds of the period in which the records ran, summed over the records.",
        ),
    ),
)

WAITS = ReportDefinition(
    "waits",
    "Waits",
    _dimensions("cluster scheduler partition project account user gpu_model gpu_size qos day week month"),
    (
        _count("record_count", "Records", "Usage records submitted in the period."),
        _count("started_count", "Started", "Those of the records submitted in the period that have started since."),
        _count(
            "censored_count",
            "Not started",
            "Those that still wait or were cancelled while waiting: they waited at least this long.",
        ),
        *_wait_quantiles(),
        _wait("max_wait_seconds", "Longest wait", "The longest wait of the records submitted in the period, started or not."),
        _wait("mean_wait_seconds", "Mean wait", "The mean wait of the records that started, in whole seconds."),
        _wait(
            "p50_submit_to_start_seconds",
            "Median submit to start",
            "The median of start − submit, which includes time held by a dependency, a begin time or a hold; a wait does not.",
        ),
    ),
)

CAPACITY = ReportDefinition(
    "capacity",
    "Capacity",
    _dimensions("cluster scheduler partition pool gpu_model node day hour month"),
    (
        _gpu_seconds(
            "reported", "Reported", "GPUs in the dated inventory × seconds: the sum of the parts that follow, stranded apart."
        ),
        _gpu_seconds("allocated", "Allocated", "Held by a usage record, at most as much as the node has."),
        _gpu_seconds(
            "reserved_idle", "Reserved, idle", "Inside a reservation or guarantee that nobody else may use, and not allocated."
        ),
        _gpu_seconds("idle", "Idle", "Neither allocated, reserved, planned down nor down."),
        _gpu_seconds(
            "stranded",
            "Stranded",
            "Idle that cannot serve the smallest waiting request or the pool's standard shape.",
        ),
        _gpu_seconds("planned_down", "Planned down", "Inside a maintenance window, or drained for one."),
        _gpu_seconds("down", "Down", "On a node that was down, failed, not ready, or drained for a fault."),
        _gpu_seconds(
            "unknown", "Unknown", "Reported, but nothing is known of its use: not collected (yet), or GPUs are not tracked."
        ),
        _gpu_seconds(
            "sharing", "Sharing", "Held on top of what a node has, by records that share its GPUs: beside the parts, not in them."
        ),
        _gpu_seconds(
            "unplaced", "Unplaced", "Held by records on nodes that the inventory does not know: beside the parts, not in them."
        ),
        _ratio("occupancy_ratio", "Occupancy", "Allocated ÷ (reported − planned down − unknown)."),
        _ratio("activity_ratio", "Activity", "Mean device activity while allocated, over the GPU-seconds that have telemetry."),
        _ratio("activity_coverage_ratio", "Activity coverage", "The share of the allocated GPU-seconds that has telemetry."),
        _ratio("effective_ratio", "Effective utilisation", "Occupancy × activity."),
        _ratio(
            "contended_occupancy_ratio",
            "Occupancy under contention",
            "Occupancy over only those hours in which at least one eligible request was waiting.",
        ),
    ),
)

COSTS = ReportDefinition(
    "costs",
    "Costs",
    _dimensions("cluster project cost_centre account user gpu_model pool day month"),
    (
        Figure(
            "gpu_seconds",
            "GPU-seconds",
            "GPU time",
            Kind.RESOURCE_SECONDS,
            "GPUs held × the seconds of the period in which they were held.",
        ),
        _money("usage_cost", "Usage cost", "GPU-hours × the price of the GPU model in force on the day they were used."),
        _money(
            "idle_cost",
            "Idle cost",
            "Capacity cost − usage cost, both at cost rates: what GPUs cost that were there and not used.",
        ),
        _money("shared_cost", "Shared cost", "The share of costs that all bear: storage, network, people."),
        _money("adjustment", "Adjustment", "Corrections to periods that are closed already."),
        _money("total_cost", "Total cost", "Usage cost + idle cost + shared cost + adjustment."),
    ),
)

REPORTS = {report.name: report for report in (USAGE, WAITS, CAPACITY, COSTS)}
