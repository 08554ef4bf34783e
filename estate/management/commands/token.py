"""`manage.py token`: a new API token."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from estate.models import ApiToken, User


class Command(BaseCommand):
    help = "Print a new API token of USER. It is shown this once: only its digest is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", metavar="USER", help="who the token acts as")
        parser.add_argument("label", metavar="LABEL", help="what it is for, up to 100 characters")
        parser.add_argument("--days", type=_days, help="days until it expires (default: never)")

    def handle(self, *_: Any, user: str, label: str, days: int | None, **__: Any) -> None:
        owner = User.objects.filter(username=user, is_active=True).first()
        if owner is None:
            raise CommandError(f"there is no active user {user}; make one with createsuperuser, or in the admin pages")
        if not 0 < len(label) <= 100:
            raise CommandError("LABEL must have 1 to 100 characters")
        token, text = ApiToken.issue(owner, label)
        if days is not None:
            token.expires_at = timezone.now() + timedelta(days=days)
            token.save(update_fields=["expires_at"])
        self.stdout.write(text)


def _days(value: str) -> int:
    if not value.isdigit() or not 0 < int(value) <= 36500:
        raise ArgumentTypeError(f"{value}: write a number of days from 1 to 36500")
    return int(value)
