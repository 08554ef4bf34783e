"""Who may see the collectors: those who answer for the whole estate. For all others the pages do not exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse

from estate.models import User

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def may_see_collectors(user: object) -> bool:
    return isinstance(user, User) and (user.is_staff or user.may_see_everything)


def for_platform_leads(view: View[P]) -> Callable[..., HttpResponse]:
    """Signed out: to the sign-in page; signed in without the right: 404."""

    @wraps(view)
    def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not may_see_collectors(request.user):
            raise Http404
        return view(request, *args, **kwargs)

    return login_required(checked)
