"""Who may see which projects, and who answers for the whole estate."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse

from estate.models import Project, ProjectMember, User

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def answers_for_all(user: object) -> bool:
    return isinstance(user, User) and (user.is_staff or user.may_see_everything)


def for_platform_leads(view: View[P]) -> Callable[..., HttpResponse]:
    """Signed out: to the sign-in page; signed in without the right: 404."""

    @wraps(view)
    def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not answers_for_all(request.user):
            raise Http404
        return view(request, *args, **kwargs)

    return login_required(checked)


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
