"""Fixtures that every kind of test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.test import Client

from estate import engines
from estate.models import AccountMapping, Cluster, Project, ProjectMember, Role, User

# Playwright runs an event loop in the test's thread; Django's own guard against that does not apply here.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real traces beside the checkout; tests that need it are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared with real traces is not here")
    return SHARED


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """Start the embedded services (or use those of the environment) before the test database is made."""
    engines.ensure()


@pytest.fixture
def lead(db: None) -> User:
    """The platform lead: sees the whole estate."""
    return User.objects.create_user("lead", password="lead", sees_whole_estate=True)


@pytest.fixture
def slurm(db: None) -> Cluster:
    return Cluster.objects.create(name="alpha", scheduler="slurm", zone="UTC")


@pytest.fixture
def vision(slurm: Cluster) -> Project:
    """A project to which the account `vision` of cluster alpha maps, with an owner (alice) and a member (bob)."""
    project = Project.objects.create(code="P-VISION", name="Vision")
    AccountMapping.objects.create(cluster=slurm, account="vision", project=project, valid_during=(None, None))
    for name, role in (("alice", Role.OWNER), ("bob", Role.MEMBER)):
        ProjectMember.objects.create(project=project, user=User.objects.create_user(name, password=name), role=role)
    return project


@pytest.fixture
def charlie(db: None) -> User:
    """A stranger: signed in, member of nothing."""
    return User.objects.create_user("charlie", password="charlie")


@pytest.fixture
def as_lead(client: Client, lead: User) -> Client:
    client.force_login(lead)
    return client
