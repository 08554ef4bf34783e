"""`Authorization: Bearer …` for scripts."""

from __future__ import annotations

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from estate.models import ApiToken, User


class TokenAuthentication(BaseAuthentication):
    """A bearer token of an active user that has not expired."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        words = get_authorization_header(request).split()
        if len(words) != 2 or words[0].lower() != b"bearer":
            return None
        digest = ApiToken.digest_of(words[1].decode("latin-1"))
        unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
        token = ApiToken.objects.select_related("user").filter(unexpired, digest=digest, user__is_active=True).first()
        if token is None:
            raise AuthenticationFailed("this token is unknown or has expired; make a new one with `manage.py token`")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - the framework's signature
        return "Bearer"
