"""Slurm's own commands, here or on another host over SSH: the only place of the collectors that starts a process.

No shell of ours is involved: every command is a list of words. Over SSH the remote side necessarily gets one string; it is quoted with
`shlex.join`, and words with control characters (but for the separator of fields) are refused. Nothing can be asked on a terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread, Timer
from typing import IO, BinaryIO, cast

from collectors.slurm.reader import bounded_lines

TOOLS = frozenset({"sacct", "sacctmgr", "scontrol", "sdiag", "sinfo", "sprio", "squeue", "sshare"})
# What our own calls print does not depend on anybody's profile.
PINNED = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
# A tool gets nothing else of our environment, which holds secrets.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "KRB5CCNAME", "LD_LIBRARY_PATH", "SLURM_CONF")

# The first mention of an option counts, so nobody's configuration changes these.
SSH_FIXED = (
    "BatchMode=yes",
    "ConnectTimeout=15",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RequestTTY=no",
)
# What a source may set: nothing that would run a command on our side.
SSH_OPTIONS = {
    *("AddressFamily", "BindAddress", "CertificateFile", "Ciphers", "Compression", "ControlMaster", "ControlPath"),
    *("ControlPersist", "HostKeyAlgorithms", "HostKeyAlias", "IdentitiesOnly", "IdentityFile", "KexAlgorithms", "MACs"),
    *("Port", "ProxyJump", "PubkeyAcceptedAlgorithms", "StrictHostKeyChecking", "UserKnownHostsFile"),
}
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,253}[A-Za-z0-9])?", re.ASCII)
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?", re.ASCII)
# All but the unit separator, which our calls of sacct put between fields.
_CONTROL = re.compile(r"[\x00-\x1e\x7f-\x9f\ud800-\udfff]")
# What slurmdbd says beyond its MaxQueryTimeRange and its largest message.
_TOO_MUCH = re.compile(r"too wide of a date range|result.*too large|query.*too large", re.IGNORECASE)

COMPLAINT_BYTES = 4_000
MOST_BYTES = 256 * 1024 * 1024


class CommandError(Exception):
    """A command could not be run, failed, or took too long; the message says which, why, and what to do."""


class TooMuchError(CommandError):
    """More was asked for than the command answers, or answers in time: ask for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Where commands run: here if `ssh_host` is empty. `ssh_options` are `Key=Value` of ssh_config, `slurm_conf` a path or empty.

    Raises ValueError for what is no host, user or allowed option.
    """

    ssh_host: str = ""
    ssh_user: str = ""
    ssh_options: tuple[str, ...] = ()
    slurm_conf: str = ""

    def __post_init__(self) -> None:
        if self.ssh_host and _HOST.fullmatch(self.ssh_host) is None:
            raise ValueError(f"{self.ssh_host[:80]!r} is no host name")
        if self.ssh_user and _USER.fullmatch(self.ssh_user) is None:
            raise ValueError(f"{self.ssh_user[:80]!r} is no user name")
        for option in self.ssh_options:
            key, _, value = option.partition("=")
            if key not in SSH_OPTIONS or not value.strip():
                raise ValueError(f"{option[:80]!r} is no Key=Value with a Key of: {', '.join(sorted(SSH_OPTIONS))}")
        _refuse_control([*self.ssh_options, self.slurm_conf])

    def __str__(self) -> str:
        return f"{self.ssh_user}@{self.ssh_host}".removeprefix("@") or "this host"


class Answer:
    """What a running command prints. `warnings` are its last words on stderr, complete once `lines` has ended."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self._name, self._process = name, process
        self._tail = _Tail(cast(IO[bytes], process.stderr))
        self.is_late = False

    def lines(self) -> Iterator[bytes]:
        """Physical lines as they come, with flat memory. Raises CommandError at the end if the command failed: what came is then not
        the whole answer."""
        yield from bounded_lines(cast(BinaryIO, self._process.stdout))
        self._finish()

    def text(self) -> bytes:
        """The whole of a small answer (at most 256 MiB). Raises CommandError."""
        data = cast(BinaryIO, self._process.stdout).read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise CommandError(f"{self._name} printed more than {MOST_BYTES:,} bytes")
        self._finish()
        return data

    @property
    def warnings(self) -> str:
        return self._tail.text

    def stop(self) -> None:
        """End the command and whatever it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def stop_late(self) -> None:
        """End it because its time is up."""
        self.is_late = True
        self.stop()

    def close(self) -> None:
        """Leave no process and no open pipe behind."""
        if self._process.poll() is None:
            self.stop()
        self._process.wait()
        self._tail.join()
        cast(BinaryIO, self._process.stdout).close()

    def _finish(self) -> None:
        code = self._process.wait()
        self._tail.join()
        if self.is_late:
            raise TooMuchError(f"{self._name} did not end within its time limit and was stopped; raise the limit or ask for less")
        if code:
            kind = TooMuchError if _TOO_MUCH.search(self.warnings) else CommandError
            how = f"signal {-code}" if code < 0 else f"exit {code}"
            raise kind(f"{self._name} failed ({how}): {self.warnings or 'it said nothing on stderr'}")


class _Tail:
    """Drains stderr and keeps the end of it, in one line."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._chunks: deque[bytes] = deque(maxlen=COMPLAINT_BYTES // 80)
        self._thread = Thread(target=self._drain, name="stderr", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    @property
    def text(self) -> str:
        words = b" / ".join(line.strip() for line in self._chunks if line.strip())
        return words[-COMPLAINT_BYTES:].decode("utf-8", "backslashreplace")

    def _drain(self) -> None:
        with self._stream as stream:
            while line := stream.readline(1_000):
                self._chunks.append(line)


@contextmanager
def running(host: Host, words: Sequence[str], *, limit_seconds: float) -> Iterator[Answer]:
    """The answer of a command, whose process ends with this block at the latest. Raises CommandError when it cannot be started."""
    line = argv(host, words)
    try:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(host),
            start_new_session=True,
        )
    except OSError as exc:
        raise CommandError(f"{line[0]} cannot be started: {(exc.strerror or str(exc)).lower()}; {_cure(line[0])}") from exc
    answer = Answer(f"{words[0]} on {host}", process)
    timer = Timer(limit_seconds, answer.stop_late)
    timer.daemon = True
    timer.start()
    try:
        yield answer
    finally:
        timer.cancel()
        answer.close()


def output(host: Host, words: Sequence[str], *, limit_seconds: float = 60.0) -> bytes:
    """All that a command prints. Raises CommandError."""
    with running(host, words, limit_seconds=limit_seconds) as answer:
        return answer.text()


def argv(host: Host, words: Sequence[str]) -> list[str]:
    """The command line that is started on this host. Raises ValueError for another tool than Slurm's, and for control characters."""
    if words[0] not in TOOLS:
        raise ValueError(f"{words[0]!r} is none of {', '.join(sorted(TOOLS))}")
    _refuse_control(words)
    if not host.ssh_host:
        return list(words)
    pinned = PINNED | ({"SLURM_CONF": host.slurm_conf} if host.slurm_conf else {})
    remote = ["env", *(f"{name}={value}" for name, value in pinned.items()), *words]
    options = [word for option in (*SSH_FIXED, *host.ssh_options) for word in ("-o", option)]
    user = ["-l", host.ssh_user] if host.ssh_user else []
    return ["ssh", "-T", *options, *user, "--", host.ssh_host, shlex.join(remote)]


def environment(host: Host, ours: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a command sees of our environment, with times and language pinned."""
    kept = {name: ours[name] for name in INHERITED if name in ours}
    return kept | PINNED | ({"SLURM_CONF": host.slurm_conf} if host.slurm_conf else {})


def _refuse_control(words: Sequence[str]) -> None:
    for word in words:
        if _CONTROL.search(word):
            raise ValueError(f"{word[:80]!r} has a control character")


def _cure(tool: str) -> str:
    if tool == "ssh":
        return "install OpenSSH's client"
    return "install Slurm's client tools on the worker's host, or name a host to be asked over SSH"
