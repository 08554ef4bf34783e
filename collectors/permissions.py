"""Who may see the collectors: those who answer for the whole estate. For all others the pages do not exist."""

from __future__ import annotations

from estate.permissions import answers_for_all as may_see_collectors
from estate.permissions import for_platform_leads

__all__ = ["for_platform_leads", "may_see_collectors"]
