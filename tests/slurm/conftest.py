"""A real Slurm for these tests: the test bed of the shared folder, brought up once per session.

`SLURM_TESTBED_STATE` names a test bed that is already up; it is then used as it is and left up.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

UP_SECONDS = 420
MIXED_SECONDS = 300
COMMAND_SECONDS = 60


@dataclass(frozen=True)
class TestBed:
    """A Slurm that is up. `state` is its folder; `rest` the address of its slurmrestd; `cluster` its name."""

    __test__ = False

    scripts: Path
    state: Path
    rest: str
    cluster: str = "lab"

    @property
    def slurm_conf(self) -> Path:
        return self.state / "etc" / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """Where Slurm's commands find this cluster."""
        return os.environ | {"SLURM_CONF": str(self.slurm_conf)}

    def run(self, *command: str, user: str | None = None, seconds: float = COMMAND_SECONDS) -> str:
        """Output of a Slurm command, as root or as a unix user of the test bed. Fails the test when it fails."""
        prefix = ["runuser", "-u", user, "--"] if user else []
        done = subprocess.run(
            [*prefix, *command], cwd="/", env=self.environment, capture_output=True, text=True, check=False, timeout=seconds
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def submit(self, user: str, *words: str) -> str:
        """Submit a batch job with `sbatch WORDS` as `user`; its id."""
        return self.run("sbatch", "--parsable", "--output=/dev/null", *words, user=user).strip().split(";")[0]


@pytest.fixture(scope="session")
def slurm_bed(shared: Path) -> Iterator[TestBed]:
    """The test bed, up. Where it cannot be had the tests are skipped, but not in CI."""
    scripts = shared / "testbeds" / "slurm"
    if not scripts.is_dir():
        pytest.skip("the test bed ../shared/testbeds/slurm is not here")
    given = os.environ.get("SLURM_TESTBED_STATE")
    if given:
        yield _bed(scripts, Path(given))
        return
    if os.geteuid() != 0:
        pytest.skip("the Slurm test bed needs root: its jobs run as several users")
    state = Path(tempfile.mkdtemp(prefix="slurm-bed-"))
    state.chmod(0o755)
    try:
        _bring_up(scripts, state)
        yield _bed(scripts, state)
    finally:
        subprocess.run([scripts / "down", state], check=False, timeout=120, stdout=subprocess.DEVNULL)
        shutil.rmtree(state, ignore_errors=True)


@pytest.fixture(scope="session")
def mixed_jobs(slurm_bed: TestBed) -> dict[str, str]:
    """Job id by case of the test bed's `submit-mixed`, run once per session (95 s): every end and every reason to wait."""
    table = slurm_bed.state / "mixed.tsv"
    if not table.exists():
        subprocess.run(
            [slurm_bed.scripts / "submit-mixed", slurm_bed.state], check=True, timeout=MIXED_SECONDS, stdout=subprocess.DEVNULL
        )
    cases: dict[str, str] = {}
    for line in table.read_text().splitlines():
        case, job_id = line.split("\t")
        cases.setdefault(case, job_id)
    return cases


def _bring_up(scripts: Path, state: Path) -> None:
    done = subprocess.run([scripts / "up", state], capture_output=True, text=True, check=False, timeout=UP_SECONDS)
    if done.returncode == 0:
        return
    last = (done.stderr or done.stdout).strip().splitlines()[-1:]
    if "could not install" in done.stderr and not os.environ.get("CI"):
        pytest.skip(f"Slurm's Debian packages cannot be had: {last}")
    pytest.fail(f"the Slurm test bed did not come up: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _bed(scripts: Path, state: Path) -> TestBed:
    facts = (state / "env").read_text()
    rest = re.search(r"SLURM_TESTBED_REST=(\S+)", facts)
    assert rest is not None, facts
    return TestBed(scripts, state, rest[1])
