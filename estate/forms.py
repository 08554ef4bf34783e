"""Forms of estate."""

from __future__ import annotations

from django.contrib.auth.forms import AuthenticationForm


class SignInForm(AuthenticationForm):
    """User name and password; the message does not say which of them was wrong."""

    error_messages = {
        "invalid_login": "This user name and password do not match. Both are case-sensitive.",
        "inactive": "This account is closed. Ask whoever runs this dashboard.",
    }
