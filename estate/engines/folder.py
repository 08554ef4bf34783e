"""The data folder `ESTATE_DATA`: who owns it, what lies in it, and where the sockets of its services are."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from estate import env
from estate.engines.processes import EngineError

SOCKET_PATH_LIMIT = 100
PLAIN_PATH = re.compile(r"[\w/.+~@-]+", re.ASCII)
POSTGRES_SOCKET = ".s.PGSQL.5432"


def prepare() -> Path:
    """The data folder, made if missing. Raises ConfigurationError if it, or something in it, belongs to another user."""
    folder = env.data_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [path for path in (folder, *folder.iterdir()) if path.lstat().st_uid != os.geteuid()]
    except OSError as exc:
        raise env.ConfigurationError(f"ESTATE_DATA={folder}: {exc.strerror}; name a folder that you may write") from exc
    if foreign and os.geteuid() != 0:
        raise env.ConfigurationError(
            f"ESTATE_DATA: {foreign[0]} belongs to {user_name(foreign[0].lstat().st_uid)}, not to {user_name(os.geteuid())}; "
            f"set ESTATE_DATA to a folder of your own, or (with its services stopped) run chown -R {os.geteuid()} {folder}"
        )
    return folder


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def private_text(name: str, make: Callable[[], str]) -> str:
    """Content of the file `name` of the data folder; made once by `make`, whole or not at all, readable by its owner alone."""
    path = prepare() / name
    if not path.exists():
        draft = path.with_name(f".{name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        draft.write_text(make(), encoding="utf-8")
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text(encoding="utf-8")


def socket_dir() -> Path:
    """Where the sockets live: `ESTATE_DATA/run`, or a short private folder where that path is too long or odd for a socket.

    The short one is below `/tmp` whatever TMPDIR says: every process must come to the same place.
    """
    inside = env.data_dir() / "run"
    if len(str(inside)) + len(f"/{POSTGRES_SOCKET}") < SOCKET_PATH_LIMIT and PLAIN_PATH.fullmatch(str(inside)):
        return inside
    digest = hashlib.sha256(str(env.data_dir()).encode()).hexdigest()[:12]
    return Path("/tmp") / f"gpu-estate-{os.geteuid()}-{digest}"  # noqa: S108 (its owner and mode are checked in prepare_socket_dir)


def prepare_socket_dir(owner: tuple[int, int] | None) -> None:
    """Make the folder of the sockets, for `owner` (uid, gid) and nobody else. Raises EngineError if a stranger made it first."""
    folder = socket_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mine = {os.geteuid(), owner[0] if owner else os.geteuid()}
    if folder.is_symlink() or folder.stat().st_uid not in mine:
        raise EngineError(f"{folder} belongs to another user; set ESTATE_DATA to a shorter path of your own")
    if owner:
        os.chown(folder, *owner)
    folder.chmod(0o700)


def broker_socket() -> Path:
    return socket_dir() / "broker.sock"
