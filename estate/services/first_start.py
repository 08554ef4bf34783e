"""What a first start needs: the schema, the static files, the demo and a sign-in for it."""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from estate.engines import folder
from estate.engines.processes import EngineError
from estate.models import Cluster, User

DEMO_USER = "demo"
SIGN_IN_FILE = "demo-sign-in"
UNFINISHED_FILE = "demo-unfinished"
DEMO_STOP_SECONDS = 10
SCHEMA_LOCK = 7_110_003


class SignIn(NamedTuple):
    user: str
    password: str


def migrate() -> None:
    call_command("migrate", interactive=False, verbosity=0)


def ensure_schema() -> None:
    """Migrate a database that has never been migrated; an older schema is left to `migrate` and `up`.

    Of several processes on a fresh database one migrates and the others wait for it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [SCHEMA_LOCK])
        try:
            if not MigrationRecorder(connection).has_table():
                migrate()
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [SCHEMA_LOCK])


def collect_static() -> bool:
    """Bring STATIC_ROOT up to date; False if nothing had changed since the last time."""
    stamp = settings.STATIC_ROOT / ".collected"
    now = _fingerprint()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == now:
        return False
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(now, encoding="utf-8")
    return True


def _fingerprint() -> str:
    return hashlib.sha256("\n".join(sorted(_static_files())).encode()).hexdigest()


def _static_files() -> Iterator[str]:
    for finder in get_finders():
        for name, storage in finder.list([]):
            yield f"{name} {storage.size(name)} {storage.get_modified_time(name).timestamp()}"


def wants_demo() -> bool:
    """Is the estate empty, or was the making of its demo cut short?"""
    return (settings.DATA_DIR / UNFINISHED_FILE).exists() or not Cluster.objects.exists()


def make_demo() -> None:
    """Make the demo estate and its user. Cut short, it is made again at the next start."""
    mark = settings.DATA_DIR / UNFINISHED_FILE
    mark.touch()
    _in_a_process_of_its_own("demo")
    password = folder.private_text(SIGN_IN_FILE, lambda: secrets.token_urlsafe(12))
    user, _ = User.objects.get_or_create(username=DEMO_USER, defaults={"sees_whole_estate": True, "is_staff": True})
    user.set_password(password)
    user.save()
    mark.unlink()


def _in_a_process_of_its_own(command: str) -> None:
    """So that Ctrl-C ends it at any moment, and its memory is given back. Raises EngineError if it fails (it has said why)."""
    words = [sys.executable, "-m", "estate.services.tether", str(os.getpid()), sys.executable, "manage.py", command]
    with subprocess.Popen(words, cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(DEMO_STOP_SECONDS)
            process.kill()
            raise
    if code != 0:
        raise EngineError(f"`manage.py {command}` failed (exit {code}); mend that, or start with --no-demo")


def demo_sign_in() -> SignIn | None:
    """The demo's sign-in, while it still works; None if there is no demo or somebody changed the password."""
    if not (settings.DATA_DIR / SIGN_IN_FILE).exists():
        return None
    password = folder.private_text(SIGN_IN_FILE, str)
    user = User.objects.filter(username=DEMO_USER, is_active=True).first()
    return SignIn(DEMO_USER, password) if user is not None and user.check_password(password) else None
