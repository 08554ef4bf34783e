"""Signing in and out."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import views

from estate.forms import SignInForm
from estate.models import User

DEMO_USER = "demo"


class SignIn(views.LoginView):
    """The sign-in page; it names the demo's user where there is one."""

    template_name = "estate/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        has_demo_user = User.objects.filter(username=DEMO_USER, is_active=True).exists()
        return super().get_context_data(**kwargs) | {"has_demo_user": has_demo_user}
