"""Configuring sources in the admin: what could run something here is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.forms import SourceForm
from estate.models import Cluster

pytestmark = pytest.mark.django_db


def errors(cluster: Cluster, **facts: object) -> dict[str, list[str]]:
    usual = {"name": "x", "cluster": cluster.pk, "time_limit_seconds": 600, "interval_seconds": 300, "next_due_at": "2026-03-01"}
    form = SourceForm(data=usual | facts)
    form.is_valid()
    return {field: [str(error) for error in found] for field, found in form.errors.items()}


def test_a_folder_must_be_readable_and_a_host_must_be_one(slurm: Cluster, tmp_path: Path) -> None:
    assert errors(slurm, kind="sacct_files", location=str(tmp_path)) == {}
    assert "no such file" in errors(slurm, kind="sacct_files", location=str(tmp_path / "no"))["location"][0]
    assert errors(slurm, kind="sacct") == {}
    assert errors(slurm, kind="sacct", ssh_host="login1", ssh_options="Port=22\nIdentityFile=/k") == {}
    assert "no host name" in errors(slurm, kind="sacct", ssh_host="-oProxyCommand=id")["ssh_host"][0]
    assert "ProxyCommand" in errors(slurm, kind="sacct", ssh_host="a", ssh_options="ProxyCommand=id")["ssh_host"][0]


def test_slurmrestd_needs_an_address_and_a_place_for_its_token(slurm: Cluster) -> None:
    place = {"location": "https://slurm.example.org:6820", "token_reference": "env:SLURM_JWT"}
    assert errors(slurm, kind="slurmrestd", **place) == {}
    assert "address of slurmrestd" in errors(slurm, kind="slurmrestd", **place | {"location": "slurm"})["location"][0]
    pasted = errors(slurm, kind="slurmrestd", **place | {"token_reference": "aaaa.bbbb.cccc"})
    assert "env:NAME or file:/absolute/path" in pasted["location"][0]
    assert "aaaa" not in str(pasted)
