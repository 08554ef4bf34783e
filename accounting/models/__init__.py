"""What was used and what it costs."""

from accounting.models.forecasts import RunawayRecord, SchedulerSample, StartEstimate
from accounting.models.rates import Rate
from accounting.models.usage import ClusterCoverage, DirtyDay, Intake, NodeHour, RollupZone, UsageDay, UsageHour, UsageRecord

__all__ = [
    "ClusterCoverage",
    "DirtyDay",
    "Intake",
    "NodeHour",
    "Rate",
    "RollupZone",
    "RunawayRecord",
    "SchedulerSample",
    "StartEstimate",
    "UsageDay",
    "UsageHour",
    "UsageRecord",
]
