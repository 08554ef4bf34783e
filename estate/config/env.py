"""The only reader of the process environment. Every setting is documented in the README."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class ConfigurationError(Exception):
    """A setting is missing or malformed; the message says which one and how to mend it."""


def text(name: str, default: str = "") -> str:
    """Value of NAME, or the stripped content of the file that NAME_FILE names."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as exc:
            raise ConfigurationError(f"{name}_FILE={path}: {exc.strerror}; point it at a readable file") from exc
    return os.environ.get(name, default)


def flag(name: str, default: bool = False) -> bool:
    """A yes/no setting: 1, true, yes, on (any case) or their opposites."""
    value = text(name).lower()
    if value in {"", "1", "true", "yes", "on", "0", "false", "no", "off"}:
        return default if not value else value in {"1", "true", "yes", "on"}
    raise ConfigurationError(f"{name}={value}: write true or false")


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, without empty entries."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def data_dir() -> Path:
    """Folder of the embedded services and generated files (`ESTATE_DATA`, default `var/`)."""
    return Path(text("ESTATE_DATA") or ROOT / "var").expanduser().resolve()
