"""What was used and what it costs."""

from accounting.models.forecasts import RunawayRecord, SchedulerSample, StartEstimate
from accounting.models.rates import Rate
from accounting.models.rollups import DirtyDay, NodeDay, QueueDay, RollupZone, UsageDay, UsageKey, UserDay
from accounting.models.usage import ClusterCoverage, Intake, UsageRecord

__all__ = [
    "ClusterCoverage",
    "DirtyDay",
    "Intake",
    "NodeDay",
    "QueueDay",
    "Rate",
    "RollupZone",
    "RunawayRecord",
    "SchedulerSample",
    "StartEstimate",
    "UsageDay",
    "UsageKey",
    "UsageRecord",
    "UserDay",
]
