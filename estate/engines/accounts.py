"""Under whose name PostgreSQL runs. It refuses root: root hands over to a system user, anyone else runs it as themselves."""

from __future__ import annotations

import os
import pwd
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

from estate.engines.processes import EngineError, run

SERVER_USER = "embedded_postgres"
ELSE_DO = "run as an ordinary user, or set DATABASE_URL to a server"

Account = tuple[int, int]
"""User and group id."""


def account_for(folder: Path) -> Account | None:
    """None for an ordinary user. For root: who owns `folder` already, else the system user (made at first need)."""
    if os.geteuid() != 0:
        return None
    if folder.exists() and folder.stat().st_uid != 0:
        return folder.stat().st_uid, folder.stat().st_gid
    return _system_user()


def _system_user() -> Account:
    """Raises EngineError where no such user can be made."""
    with suppress(KeyError):
        return _ids(SERVER_USER)
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER]
    try:
        run(command, f"making the system user {SERVER_USER}")
    except EngineError as exc:
        with suppress(KeyError):
            return _ids(SERVER_USER)  # another start was a moment faster
        raise EngineError(f"{exc}; {ELSE_DO}") from exc
    return _ids(SERVER_USER)


def _ids(name: str) -> Account:
    entry = pwd.getpwnam(name)
    return entry.pw_uid, entry.pw_gid


def command_as(account: Account | None, command: list[str]) -> list[str]:
    return [*_handover(account), *command] if account else command


@cache
def _handover(account: Account) -> tuple[str, ...]:
    """The words before a command that run it as `account`.

    Where the machine allows, it may still pass folders that are closed to it (a checkout below a home of mode 0700); nothing is opened up
    for that. A container may withhold that capability; then such folders must be passable for all.
    """
    plain = ("setpriv", f"--reuid={account[0]}", f"--regid={account[1]}", "--clear-groups")
    for prefix in ((*plain, "--inh-caps=+dac_override", "--ambient-caps=+dac_override"), plain):
        if _works((*prefix, "true")):
            return prefix
    raise EngineError(f"root may not act as another user here (setpriv refuses); {ELSE_DO}")


def _works(command: tuple[str, ...]) -> bool:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    except OSError as exc:
        raise EngineError(f"setpriv is missing (package util-linux): install it; or {ELSE_DO}") from exc
