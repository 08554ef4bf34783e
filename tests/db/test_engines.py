"""The embedded services start from nothing and after every kind of kill, and touch nothing that is not theirs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from estate import engines, env
from estate.engines import broker, folder, postgres
from estate.engines.processes import EngineError


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with both services running; tests may kill them."""
    with pytest.MonkeyPatch.context() as patch:
        data = tmp_path_factory.mktemp("data")
        patch.setenv("ESTATE_DATA", str(data))
        for name in ("DATABASE_URL", "DATABASE_URL_FILE", "REDIS_URL", "REDIS_URL_FILE"):
            patch.delenv(name, raising=False)
        engines.ensure()
        yield data
        engines.stop()


@pytest.fixture
def data(started: Path) -> Path:
    engines.ensure()
    return started


def both_answer() -> bool:
    with psycopg.connect(host=str(folder.socket_dir()), port=5432, user="estate", dbname="estate") as connection:
        return connection.execute("SELECT 1").fetchone() == (1,) and broker.answers()


def running(pid: int | None) -> psutil.Process:
    assert pid is not None
    return psutil.Process(pid)


def test_a_second_start_leaves_running_services_alone(data: Path) -> None:
    before = postgres.pid(), broker.pid()
    engines.ensure()
    assert (postgres.pid(), broker.pid()) == before
    assert both_answer()


def test_no_port_is_opened(data: Path) -> None:
    for pid in (postgres.pid(), broker.pid()):
        assert [line for line in running(pid).net_connections("inet") if line.status == psutil.CONN_LISTEN] == []


def test_both_come_back_after_everything_was_killed(data: Path) -> None:
    server = running(postgres.pid())
    for process in (server, *server.children(), running(broker.pid())):
        process.kill()
    engines.ensure()
    assert both_answer()


def test_a_backend_that_outlives_its_killed_server_does_not_block_the_next_start(data: Path) -> None:
    with psycopg.connect(host=str(folder.socket_dir()), port=5432, user="estate", dbname="estate") as connection:
        backend = psutil.Process(connection.info.backend_pid)
        backend.suspend()
        server = running(postgres.pid())
        server.kill()
        server.wait(5)
        try:
            engines.ensure()
        finally:
            connection.close()
    assert both_answer()
    assert not backend.is_running() or backend.status() == psutil.STATUS_ZOMBIE


def test_pid_files_that_name_a_stranger_are_forgotten_and_the_stranger_lives(data: Path) -> None:
    notes = data / "postgres" / "postmaster.pid"
    words = notes.read_text().splitlines()
    engines.stop()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        notes.write_text("\n".join([str(stranger.pid), *words[1:]]))
        (folder.socket_dir() / f"{folder.POSTGRES_SOCKET}.lock").write_text("\n".join([str(stranger.pid), *words[1:]]))
        (data / "broker.pid").write_text(f"{stranger.pid}\n")
        assert postgres.pid() is None
        assert broker.pid() is None
        engines.ensure()
        assert both_answer()
        assert stranger.poll() is None
        stranger.kill()


def test_a_broker_whose_pid_file_was_lost_is_found_by_its_socket(data: Path) -> None:
    before = broker.pid()
    (data / "broker.pid").unlink()
    engines.ensure()
    assert broker.pid() == before


def test_a_broker_that_hangs_is_replaced(data: Path) -> None:
    before = running(broker.pid())
    before.suspend()
    engines.ensure()
    assert broker.pid() != before.pid
    assert broker.answers()


def test_starts_at_the_same_time_make_one_server(data: Path) -> None:
    engines.stop()
    command = [sys.executable, "-c", "from estate import engines; engines.ensure(); print(engines.postgres.pid())"]
    with ThreadPoolExecutor() as pool:
        starts = [
            pool.submit(subprocess.run, command, cwd=env.ROOT, stdout=subprocess.PIPE, text=True, check=True) for _ in range(3)
        ]
        pids = {start.result().stdout for start in starts}
    assert len(pids) == 1
    assert both_answer()


def test_what_an_interrupted_initdb_left_is_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTATE_DATA", str(tmp_path))
    (tmp_path / "postgres.new-cut").mkdir()
    (tmp_path / "postgres.new-cut" / "PG_VERSION").write_text("18\n")
    monkeypatch.setattr(postgres, "command_as", lambda _account, _command: ["true"])
    postgres._init(None)
    assert [path.name for path in tmp_path.iterdir()] == ["postgres"]


def test_data_of_another_major_version_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTATE_DATA", str(tmp_path))
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(EngineError, match="was made by PostgreSQL 12"):
        postgres.ensure()


def test_nothing_starts_where_servers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTATE_DATA", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/estate")
    monkeypatch.setenv("REDIS_URL", "redis://broker")
    engines.ensure()
    assert list(tmp_path.iterdir()) == []


def test_a_long_data_folder_gets_a_short_private_socket_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTATE_DATA", str(tmp_path / ("long" * 30)))
    with socket.socket(socket.AF_UNIX) as line:
        folder.prepare_socket_dir(None)
        line.bind(str(folder.socket_dir() / folder.POSTGRES_SOCKET))
    assert folder.socket_dir().stat().st_mode & 0o777 == 0o700
    (folder.socket_dir() / folder.POSTGRES_SOCKET).unlink()
    folder.socket_dir().rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of somebody else")
def test_an_ordinary_user_is_told_whose_folder_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    data = tmp_path / "data"
    data.mkdir()
    code = (
        f"import os; os.environ['ESTATE_DATA'] = {str(data)!r}\n"
        "from estate import engines, env\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: engines.ensure()\n"
        "except env.ConfigurationError as exc: print(exc)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=env.ROOT, capture_output=True, text=True, check=False)
    assert "belongs to root, not to nobody" in done.stdout or "Permission denied" in done.stdout
    assert done.stderr == ""
