"""Who may see which projects' usage and cost."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from estate.models import User
from estate.permissions import visible_projects

__all__ = ["projects_in_report", "visible_projects"]

# Capacity says what the estate has and how full it is, not who uses it: whoever may sign in may see it.
FOR_EVERYONE = frozenset({"capacity"})


def projects_in_report(report: str, user: User | AnonymousUser) -> tuple[int, ...] | None:
    """Ids of the projects whose rows `user` gets in `report`; None for all of them."""
    return None if report in FOR_EVERYONE else visible_projects(user)
