"""`doctor` finds what is wrong and says how to mend it; `token` gives a key to a script."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounting.models import RollupZone
from estate.engines import folder
from estate.models import ApiToken, User
from estate.queries import vitals
from estate.services.doctor import Finding, examine

pytestmark = pytest.mark.django_db


def findings(level: str) -> Iterator[Finding]:
    return (finding for finding in examine() if finding.level == level)


def test_a_sound_installation_has_nothing_bad() -> None:
    assert list(findings("bad")) == []


def test_a_changed_reporting_zone_is_found(settings: LazySettings) -> None:
    RollupZone.objects.update_or_create(id=1, defaults={"zone": "UTC"})
    settings.ESTATE_ZONE = "Europe/Berlin"
    assert any("cut in UTC" in finding.text and "ESTATE_ZONE" in finding.mend for finding in findings("warning"))


def test_pending_migrations_are_bad_and_the_command_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vitals, "pending_migrations", lambda: ["estate.0002_more"])
    with pytest.raises(SystemExit) as exit_:
        call_command("doctor")
    assert exit_.value.code == 1
    assert "1 migrations are pending, first estate.0002_more" in capsys.readouterr().out


def test_a_secret_that_others_can_read_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret_key").touch(mode=0o644)
    (tmp_path / "secret_key").chmod(0o644)
    monkeypatch.setattr(folder, "prepare", lambda: tmp_path)
    assert any(finding.mend.startswith("chmod 600") for finding in findings("bad"))


def test_a_broker_that_is_gone_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "broker_fault", lambda: "connection refused")
    assert any("connection refused" in finding.text for finding in findings("bad"))


def test_a_token_is_printed_once_and_kept_as_a_digest(charlie: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("token", "charlie", "nightly export", days=7)
    text = capsys.readouterr().out.strip()
    token = ApiToken.objects.get(user=charlie)
    assert token.digest == ApiToken.digest_of(text)
    assert token.expires_at is not None
    assert timedelta(days=6) < token.expires_at - timezone.now() <= timedelta(days=7)


def test_an_expired_token_opens_nothing(client: Client, charlie: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("token", "charlie", "old", days=1)
    text = capsys.readouterr().out.strip()
    headers = {"Authorization": f"Bearer {text}"}
    assert client.get("/api/v1/schema", headers=headers).status_code == 200
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get("/api/v1/schema", headers=headers).status_code == 401


def test_a_token_of_nobody_is_refused() -> None:
    with pytest.raises(CommandError, match="no active user nobody"):
        call_command("token", "nobody", "label")
