"""Collection in real processes: the command's exit codes, a killed import, a worker and a beat."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from accounting.models import UsageRecord
from collectors.models import Run, RunStatus, Source
from estate.models import Cluster
from tests.db.dumps import BROKEN, dump, job, write

pytestmark = pytest.mark.django_db(transaction=True)

# A database of the broker that no other installation uses.
BROKER_DATABASE = 9


@pytest.fixture
def environment() -> dict[str, str]:
    """Where a child process finds the test database and a broker of its own."""
    facts = connection.settings_dict
    host = quote(str(facts["HOST"] or facts["OPTIONS"].get("host", "")), safe="")
    user = f"{quote(facts['USER'])}:{quote(facts['PASSWORD'])}"
    broker: str = settings.CELERY_BROKER_URL
    if broker.startswith("redis+socket:"):
        broker += f"?virtual_host={BROKER_DATABASE}"
    return os.environ | {
        "DATABASE_URL": f"postgresql://{user}@/{facts['NAME']}?host={host}&port={facts['PORT'] or 5432}",
        "REDIS_URL": broker,
        "DJANGO_SETTINGS_MODULE": "estate.config.settings",
        "INSECURE_HTTP": "true",
    }


def collect(environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "collect", *map(str, words)]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@contextmanager
def running(environment: dict[str, str], *command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=settings.BASE_DIR,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)
        if process.stdin is not None:
            process.stdin.close()


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def test_the_exit_code_says_how_it_ended_and_messages_go_to_stderr(environment: dict[str, str], tmp_path: Path) -> None:
    sacct = ("import", "sacct", "--cluster", "alpha")
    endings = {
        0: collect(environment, *sacct, write(tmp_path / "a.txt", job(1), BROKEN)),
        1: collect(environment, *sacct, tmp_path / "missing.txt"),
        2: collect(environment, *sacct),
    }

    for code, ending in endings.items():
        assert (ending.returncode, ending.stdout) == (code, ""), ending.stderr
    assert "rejected 1" in endings[0].stderr
    assert "\r" not in endings[0].stderr, "no progress bar where nobody looks"
    assert endings[1].stderr.count("\n") == 1
    assert "missing.txt: no such file or directory" in endings[1].stderr
    assert "FILE" in endings[2].stderr


def test_a_killed_import_leaves_nothing_and_the_next_one_says_so(environment: dict[str, str], tmp_path: Path) -> None:
    with running(environment, "manage.py", "collect", "import", "sacct", "--cluster", "alpha", "-") as process:
        assert process.stdin is not None
        process.stdin.write(dump(job(1), job(2)).encode())
        process.stdin.flush()
        assert wait_for(lambda: Run.objects.filter(status=RunStatus.RUNNING).exists(), 20)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    killed = Run.objects.get()
    assert killed.status == RunStatus.RUNNING

    assert collect(environment, "import", "sacct", "--cluster", "alpha", write(tmp_path / "a.txt", job(3))).returncode == 0

    killed.refresh_from_db()
    assert (killed.status, killed.message) == (
        RunStatus.FAILED,
        "the process ended before the run did; nothing of it was written",
    )
    assert list(UsageRecord.objects.values_list("external_id", flat=True)) == ["3"]


@pytest.mark.slow
def test_a_dump_that_is_dropped_into_the_folder_is_collected_on_schedule(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    cluster = Cluster.objects.create(name="alpha", scheduler="slurm")
    source = Source.objects.create(name="nightly", cluster=cluster, kind="sacct_files", location=str(folder), interval_seconds=10)
    celery = ("-m", "celery", "-A", "estate.config.celery")
    worker = (*celery, "worker", "--pool", "solo", "--without-gossip", "--without-mingle")
    beat = (*celery, "beat", "--schedule", tmp_path / "beat", "--pidfile", "")

    with running(environment, *worker), running(environment, *beat):
        write(folder / "a.gz", job(1), job(2))
        collected = wait_for(lambda: UsageRecord.objects.count() == 2, 35)

    assert collected
    run = Run.objects.get(source=source)
    assert (run.status, run.accepted_count) == (RunStatus.DONE, 2)
