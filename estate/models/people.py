"""People who sign in, and the tokens of their scripts."""

from __future__ import annotations

import hashlib
import secrets
from typing import Self

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone


class User(AbstractUser):
    """A person. `sees_whole_estate` is for the platform lead and finance; others see the projects they are members of."""

    sees_whole_estate = models.BooleanField(default=False, help_text="May see the usage and cost of every project.")

    @property
    def may_see_everything(self) -> bool:
        return self.is_superuser or self.sees_whole_estate


class ApiToken(models.Model):
    """A bearer token, kept as its SHA-256 only; the text is shown once, when it is made."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    label = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.label} of {self.user}"

    @staticmethod
    def digest_of(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def issue(cls, user: User, label: str) -> tuple[Self, str]:
        """A new token and its text."""
        text = secrets.token_urlsafe(32)
        return cls.objects.create(user=user, label=label, digest=cls.digest_of(text)), text
