"""Machines ask without signing in, and learn no names."""

from __future__ import annotations

import pytest
from django.test import Client

from estate.queries import vitals


def test_alive_asks_no_database(client: Client) -> None:
    assert client.get("/healthz").content == b"ok\n"


@pytest.mark.django_db
def test_ready_when_the_database_has_the_schema(client: Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"database": True, "schema": True})


@pytest.mark.django_db
def test_not_ready_while_a_migration_is_pending(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "pending_migrations", lambda: ["estate.0002_more"])
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"database": True, "schema": False})


def test_not_ready_without_a_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "database_fault", lambda: "connection refused")
    assert client.get("/readyz").status_code == 503


@pytest.mark.django_db
def test_metrics_leave_out_what_is_unknown(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "broker_fault", lambda: "gone")
    monkeypatch.setattr(vitals, "scheduler_age_seconds", lambda: None)
    lines = client.get("/metrics").content.decode().splitlines()
    assert "gpu_estate_database_up 1" in lines
    assert "gpu_estate_broker_up 0" in lines
    assert not any("scheduler_age" in line for line in lines)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_health_routes_only_read(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
