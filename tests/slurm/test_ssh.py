"""sacct over a real SSH to a real sshd on loopback, with a key of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from accounting.models import UsageRecord
from collectors import collecting, surveys
from collectors.models import Run, RunStatus, Source
from estate.models import Cluster
from tests.slurm.conftest import TestBed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="session")
def sshd() -> Iterator[dict[str, str]]:
    """Options with which ssh gets in as root on loopback: an sshd with keys of its own, that allows nothing else."""
    if os.geteuid() != 0:
        pytest.skip("an sshd of its own needs root")
    program = _sshd()
    folder = Path(tempfile.mkdtemp(prefix="sshd-"))
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True, timeout=20)
    (folder / "allowed").write_bytes((folder / "client.pub").read_bytes())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/allowed\nPidFile none\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin prohibit-password\nStrictModes no\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen([program, "-D", "-e", "-f", folder / "config"], stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield {"Port": str(port), "IdentityFile": f"{folder}/client", "UserKnownHostsFile": f"{folder}/known"}
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def _sshd() -> str:
    if shutil.which("sshd", path="/usr/sbin") is None or shutil.which("ssh") is None:
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "openssh-server", "openssh-client"]
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=300)
        if done.returncode and not os.environ.get("CI"):
            pytest.skip("openssh-server is not installed and cannot be had")
    return "/usr/sbin/sshd"


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("sshd does not listen")


@pytest.fixture
def source(transactional_db: None, sshd: dict[str, str], slurm_bed: TestBed) -> Source:
    return Source.objects.create(
        name="lab-ssh",
        cluster=Cluster.objects.create(name="lab", scheduler="slurm", zone="UTC"),
        kind="sacct",
        ssh_host="127.0.0.1",
        ssh_user="root",
        ssh_options="\n".join(f"{key}={value}" for key, value in sshd.items()),
        slurm_conf=str(slurm_bed.slurm_conf),
    )


def test_over_ssh_the_same_records_come_in_as_here(
    source: Source, mixed_jobs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended() -> set[tuple[str, object, int]]:
        rows = UsageRecord.objects.filter(ended_at__lt=before).values_list("external_id", "submitted_at", "row_hash")
        return set(rows)

    monkeypatch.setattr(surveys, "survey", lambda *_: [])
    before = timezone.now()
    assert collecting.collect(source.pk, only_due=False).failures == []
    over_ssh = ended()
    UsageRecord.objects.all().delete()
    here = Source.objects.create(name="here", cluster=source.cluster, kind="sacct", slurm_conf=source.slurm_conf)
    assert collecting.collect(here.pk, only_due=False).failures == []

    assert over_ssh == ended()
    assert len(over_ssh) > 80
    run = Run.objects.filter(source=source, kind="sacct").first()
    assert run is not None
    assert run.rejected_count == 0


def test_a_host_key_that_is_not_known_is_refused_without_a_question(source: Source, tmp_path: Path) -> None:
    (tmp_path / "none").write_text("")
    kept = [line for line in source.ssh_options.splitlines() if not line.startswith("UserKnownHostsFile")]
    Source.objects.update(ssh_options="\n".join([*kept, f"UserKnownHostsFile={tmp_path}/none"]))

    done = collecting.collect(source.pk, only_due=False)

    assert "Host key verification failed" in done.failures[0]
    assert Run.objects.get().status == RunStatus.FAILED
