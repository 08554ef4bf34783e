"""The only reader of the process environment. Every setting is documented in the README."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})


class ConfigurationError(Exception):
    """A setting is missing or malformed; the message says which one and how to mend it."""


def text(name: str, default: str = "") -> str:
    """Value of NAME, or the stripped content of the file that NAME_FILE names. Raises ConfigurationError if both are given."""
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "").strip() or default
    if os.environ.get(name):
        raise ConfigurationError(f"{name} and {name}_FILE are both set; keep one of them")
    try:
        return Path(path).read_text(encoding="utf-8").strip() or default
    except OSError as exc:
        raise ConfigurationError(f"{name}_FILE={path}: {exc.strerror}; point it at a readable file") from exc
    except UnicodeDecodeError as exc:
        raise ConfigurationError(f"{name}_FILE={path}: not UTF-8 text") from exc


def flag(name: str, default: bool = False) -> bool:
    """A yes/no setting: 1, true, yes, on (any case) or their opposites."""
    value = text(name).lower()
    if value and value not in YES | NO:
        raise ConfigurationError(f"{name}={value}: write true or false")
    return value in YES if value else default


def number(name: str, default: int, least: int = 1) -> int:
    """A whole number, at least `least`."""
    value = text(name)
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or int(value) < least:
        raise ConfigurationError(f"{name}={value}: write a whole number, {least} or more")
    return int(value)


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, without empty entries."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def one_of(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One word out of `allowed`, in any case."""
    value = text(name, default).upper()
    if value not in allowed:
        raise ConfigurationError(f"{name}={value}: write one of {', '.join(allowed)}")
    return value


def data_dir() -> Path:
    """Folder of the embedded services and generated files (`ESTATE_DATA`, default `var/`)."""
    return Path(text("ESTATE_DATA") or ROOT / "var").expanduser().resolve()
