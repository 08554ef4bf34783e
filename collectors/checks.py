"""System checks of the collectors; `doctor` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core import checks
from django.db import Error
from django.utils import timezone

from collectors.asking import access_of
from collectors.files import InputError
from collectors.models import Source, SourceKind
from collectors.slurm.rest.question import WARN_BEFORE_END
from collectors.slurm.rest.token import TokenError, expires_at

RENEW = "renew it where it is kept: scontrol token username=USER lifespan=SECONDS"


@checks.register(checks.Tags.database)
def tokens_for_slurmrestd_are_good(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Whether the tokens can be read from here and last for a while. Elsewhere (other hosts) they may be right all the same."""
    now = timezone.now()
    found = (_token_message(source, now) for source in (_sources() if databases else []))
    return [message for message in found if message is not None]


def _sources() -> list[Source]:
    """None where the schema is not there yet (`migrate` runs this check before it begins)."""
    try:
        return list(Source.objects.filter(kind=SourceKind.SLURMRESTD, enabled=True).select_related("cluster"))
    except Error:
        return []


def _token_message(source: Source, now: datetime) -> checks.CheckMessage | None:
    try:
        access = access_of(source)
        end = expires_at(access.token.read())
    except (InputError, TokenError) as exc:
        return checks.Warning(f"source {source}: {exc}", hint="put a token there, or name another place", id="collectors.W001")
    if end is None or end - now >= WARN_BEFORE_END:
        return None
    when = "ended" if end <= now else "ends"
    text = f"source {source}: the token in {access.token} {when} {end:%Y-%m-%d %H:%M} UTC"
    # A warning even then: an error would keep `migrate` from running.
    return checks.Warning(text, hint=RENEW, id="collectors.W002")
