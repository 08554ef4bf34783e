"""Settings come from the environment, and a bad one is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from estate import env


def test_a_secret_is_read_from_the_file_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("hidden\n")
    monkeypatch.setenv("THING_FILE", str(tmp_path / "secret"))
    assert env.text("THING") == "hidden"


def test_a_value_and_a_file_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("THING", "open")
    with pytest.raises(env.ConfigurationError, match="THING and THING_FILE"):
        env.text("THING")


def test_a_missing_secret_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING_FILE", "/nowhere/secret")
    with pytest.raises(env.ConfigurationError, match="THING_FILE=/nowhere/secret: No such file"):
        env.text("THING")


@pytest.mark.parametrize(
    ("given", "meant"), [("true", True), ("YES", True), ("1", True), ("off", False), ("0", False), ("", False)]
)
def test_a_flag_is_read_in_any_spelling(given: str, meant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", given)
    assert env.flag("THING") is meant


@pytest.mark.parametrize("given", ["maybe", "2", "tru"])
def test_a_flag_is_not_guessed(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", given)
    with pytest.raises(env.ConfigurationError, match="write true or false"):
        env.flag("THING")


@pytest.mark.parametrize("given", ["0", "-1", "2.5", "two", "²"])
def test_a_number_must_be_whole_and_large_enough(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", given)
    with pytest.raises(env.ConfigurationError, match="write a whole number, 1 or more"):
        env.number("THING", 4)


def test_words_are_split_at_commas_without_empty_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", " a, ,b,")
    assert env.words("THING") == ["a", "b"]


BAD = [
    ("ESTATE_ZONE", "Mars/Base"),
    ("ESTATE_CURRENCY", "euro"),
    ("DATABASE_URL", "mysql://u:sesame@db/x"),
    ("DATABASE_URL", "postgresql://u:sesame@db:port/x"),
    ("DATABASE_URL", "postgresql://u:sesame@db"),
    ("REDIS_URL", "amqp://u:sesame@broker"),
    ("SECRET_KEY", "sesame"),
    ("DEBUG", "perhaps"),
    ("LOG_LEVEL", "loud"),
    ("WEB_THREADS", "none"),
    ("CSRF_TRUSTED_ORIGINS", "estate.example.org"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_setting_stops_every_command_with_one_line_that_names_it(name: str, value: str, tmp_path: Path) -> None:
    environment = {key: text for key, text in os.environ.items() if key not in {key for key, _ in BAD}}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=env.ROOT,
        env=environment | {"ESTATE_DATA": str(tmp_path), name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {name}")
    assert done.stderr.count("\n") == 1
    assert "sesame" not in done.stderr
