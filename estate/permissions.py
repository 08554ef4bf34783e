"""Who may see which projects."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from estate.models import Project, ProjectMember, User


def visible_projects(user: User | AnonymousUser) -> tuple[int, ...] | None:
    """Ids of the projects that `user` may see: those they are a member of and all below; None for the whole estate.

    One statement, and one for each level of the tree below.
    """
    if user.is_authenticated and user.may_see_everything:
        return None
    seen = set(ProjectMember.objects.filter(user_id=user.pk).values_list("project_id", flat=True)) if user.pk else set()
    frontier = seen
    while frontier:
        below = set(Project.objects.filter(parent_id__in=frontier).values_list("id", flat=True))
        frontier = below - seen
        seen = seen | below
    return tuple(sorted(seen))
