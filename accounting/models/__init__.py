"""What was used and what it costs."""

from accounting.models.rates import Rate
from accounting.models.usage import ClusterCoverage, DirtyDay, Intake, NodeHour, RollupZone, UsageDay, UsageHour, UsageRecord

__all__ = ["ClusterCoverage", "DirtyDay", "Intake", "NodeHour", "Rate", "RollupZone", "UsageDay", "UsageHour", "UsageRecord"]
