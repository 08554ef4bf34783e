"""The drill: a worker is killed at random moments of a backfill, the database is cut off, and it ends as if nothing had been.

`DRILL_KILLS` says how often; `make drill` does it twenty times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings

from tests.db.fake_sacct import FIELDS, FakeSlurm, a_job, made_in

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("DRILL_KILLS", "3"))
WEEKS = 6 + 5 * KILLS
DAY, WEEK = 86_400, 7 * 86_400
FIRST = 1_500_000_000 // WEEK * WEEK
CELERY = ("-m", "celery", "-A", "estate.config.celery")
WORKER = (*CELERY, "worker", "--pool", "prefork", "--concurrency", "1", "--without-gossip", "--without-mingle")
BEAT = (*CELERY, "beat", "--scheduler", "estate.config.beat:Pulse", "--pidfile", "")


class Estate:
    """An installation of its own, with services of its own, on which commands and pieces run."""

    def __init__(self, data: Path, slurm: FakeSlurm) -> None:
        ours = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
        own = {"ESTATE_DATA": str(data), "DJANGO_SETTINGS_MODULE": "tests.drill_settings", "INSECURE_HTTP": "true"}
        self.environment = ours | own | {"LEASE_SECONDS": "3", "PATH": f"{slurm.folder}:{ours['PATH']}"}
        self.data = data
        self.pieces: dict[str, subprocess.Popen[bytes]] = {}

    def manage(self, *words: str) -> str:
        command = [sys.executable, "manage.py", *words]
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def python(self, text: str) -> str:
        return self.manage("shell", "--no-imports", "-c", text).strip()

    def start(self, name: str, *command: str) -> None:
        with (self.data / f"{name}.out").open("ab") as log:
            self.pieces[name] = subprocess.Popen(
                [sys.executable, *command], cwd=settings.BASE_DIR, env=self.environment, stdout=log, stderr=log
            )

    def kill(self, name: str) -> None:
        self.pieces[name].kill()
        self.pieces[name].wait(10)

    def cut_database_off(self) -> None:
        """An immediate shutdown, as at a power cut, and a new start."""
        postmaster = int((self.data / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(postmaster, signal.SIGQUIT)
        for _ in range(100):
            with suppress(ProcessLookupError):
                os.kill(postmaster, 0)
                time.sleep(0.1)
                continue
            break
        self.python("")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.address) as connection:
            return connection.execute(statement).fetchall()

    @property
    def address(self) -> str:
        if not hasattr(self, "_address"):
            self._address = self.python(
                "from django.db import connection as c; s = c.settings_dict;"
                "print(f\"host={s['HOST']} port={s['PORT']} user={s['USER']} dbname={s['NAME']}\")"
            )
        return self._address

    def progress(self) -> tuple[int, int]:
        """Chunks done, and chunks in all, of the first source."""
        ((done, of),) = self.rows(
            "SELECT count(done_at), count(*) FROM collectors_backfillchunk JOIN collectors_source s ON s.id = source_id AND name = 'alpha'"
        )
        return done, of

    def state_of(self, cluster: str) -> tuple[Any, ...]:
        """Everything that figures come from."""
        of = f"(SELECT id FROM estate_cluster WHERE name = '{cluster}')"
        return (
            self.rows(
                f"SELECT external_id, submitted_at, ended_at, row_hash FROM accounting_usagerecord WHERE cluster_id = {of} ORDER BY 1, 2"
            ),
            self.rows(
                f"SELECT day, sum(record_count), sum(gpu_seconds) FROM accounting_usageday WHERE cluster_id = {of} GROUP BY 1 ORDER BY 1"
            ),
            self.rows(f"SELECT count(*) FROM accounting_dirtyday WHERE cluster_id = {of}"),
        )

    def stop(self) -> None:
        for piece in self.pieces.values():
            piece.terminate()
        for piece in self.pieces.values():
            piece.wait(20)
        self.manage("down")


@pytest.fixture
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    folder = tmp_path_factory.mktemp("drill")
    slurm = FakeSlurm(made_in(folder / "bin"))
    jobs = [
        a_job(number, at, start=at + 60, end=at + 60 + (number % 9 + 1) * DAY // 3)
        for number, at in enumerate(range(FIRST, FIRST + WEEKS * WEEK, DAY), 1)
    ]
    slurm.plan(jobs=jobs, cut=True, seconds=0.15, fields=[field for field in FIELDS if field != "Cluster"])
    estate = Estate(folder / "data", slurm)
    estate.data.mkdir()
    try:
        for name in ("alpha", "beta"):
            estate.manage("collect", "source", "add", name, "--cluster", name, "--kind", "sacct")
        # Nothing is due but the past.
        estate.python("from collectors.models import Source; Source.objects.update(next_due_at='2100-01-01T00:00Z')")
        yield estate
    finally:
        estate.stop()


def test_a_backfill_that_is_killed_again_and_again_ends_as_if_undisturbed(estate: Estate) -> None:
    chance = random.Random(20260301)
    span = ("--from", _day(FIRST), "--to", _day(FIRST + WEEKS * WEEK))
    estate.manage("collect", "backfill", "alpha", *span)
    estate.start("beat", *BEAT)
    struck = []
    for number in range(KILLS):
        before = estate.progress()[0]
        estate.start("worker", *WORKER)
        _until(lambda before=before: estate.progress()[0] > before, 60, estate)
        time.sleep(chance.uniform(0, 1.5))
        if number == KILLS // 2:
            estate.cut_database_off()
            time.sleep(chance.uniform(0, 1.5))
        estate.kill("worker")
        struck.append(estate.progress())
    estate.start("worker", *WORKER)
    _until(lambda: estate.progress()[0] == estate.progress()[1] and not estate.state_of("alpha")[2][0][0], 60 + WEEKS, estate)

    estate.manage("collect", "backfill", "beta", *span, "--now")

    assert all(done < of for done, of in struck), f"it was done before the last blow: {struck}"
    disturbed, undisturbed = estate.state_of("alpha"), estate.state_of("beta")
    assert len(undisturbed[0]) == WEEKS * 7
    assert disturbed == undisturbed
    ((running,),) = estate.rows(
        "SELECT count(*) FROM collectors_run r JOIN collectors_source s ON s.id = source_id WHERE s.name = 'alpha' AND status = 'running'"
    )
    assert running == 0, "runs that were killed are closed by those after them"


def _day(epoch: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(epoch))


def _until(condition: Any, seconds: float, estate: Estate) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        said = (estate.data / "worker.out").read_text(errors="replace")[-2000:]
        assert time.monotonic() < deadline, f"no progress for {seconds} s: {estate.progress()}\n{said}"
        time.sleep(0.1)
