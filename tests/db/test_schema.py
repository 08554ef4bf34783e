"""The tables of an embedded database are there when a command first needs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_commands_on_a_fresh_folder_make_the_tables_once_and_wait_for_each_other(tmp_path: Path) -> None:
    environment = {**os.environ, "ESTATE_DATA": str(tmp_path)}
    for name in ("DATABASE_URL", "REDIS_URL"):
        environment.pop(name, None)
    command = [sys.executable, "manage.py"]
    try:
        both = [
            subprocess.Popen(
                [*command, "collect", "source", "list"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        for process in both:
            out, _ = process.communicate(timeout=120)
            assert process.returncode == 0
            assert out.startswith("name")
    finally:
        subprocess.run([*command, "down"], cwd=ROOT, env=environment, check=True, capture_output=True)
