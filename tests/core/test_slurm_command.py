"""Command lines for Slurm: no shell, quoted for the other side, nothing that could be smuggled in."""

from __future__ import annotations

import shlex
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.slurm import command, sacct
from collectors.slurm.columns import COLUMNS
from collectors.slurm.command import CommandError, Host, TooMuchError

REMOTE = Host(ssh_host="login1.example.org", ssh_user="estate", ssh_options=("Port=2222",))
# What a shell would act upon, and ordinary text; no control characters.
WORDS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("$`\"'\\;&|<>(){}*?[]!#~\x1f \n"[:-1]), max_size=30
)


@given(words=st.lists(WORDS, max_size=6))
def test_what_the_other_side_s_shell_reads_is_what_we_meant(words: list[str]) -> None:
    *_, host, line = command.argv(REMOTE, ["sacct", *words])

    assert host == REMOTE.ssh_host
    read = shlex.split(line)
    assert read[:4] == ["env", "SLURM_TIME_FORMAT=%s", "TZ=UTC", "LC_ALL=C.UTF-8"]
    assert read[4:] == ["sacct", *words]


@pytest.mark.parametrize("evil", ["a; touch /tmp/x", "$(id)", "`id`", "a'b\"c", "x\\", "-", "é 训练", "--delimiter=\x1f"])
def test_a_real_shell_hands_every_word_on_as_it_is(evil: str) -> None:
    line = command.argv(REMOTE, ["sacct", evil])[-1]
    show = f"{shlex.quote(sys.executable)} -c 'import sys; sys.stdout.buffer.write(sys.argv[-1].encode())'"

    said = subprocess.run(["sh", "-c", line.replace(" sacct ", f" {show} ", 1)], capture_output=True, check=True)

    assert said.stdout.decode() == evil


@pytest.mark.parametrize("control", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\x1e"])
def test_control_characters_are_refused(control: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        command.argv(REMOTE, ["sacct", f"--name=a{control}b"])


@pytest.mark.parametrize("tool", ["sh", "rm", "/usr/bin/sacct", "sacct;id", ""])
def test_nothing_but_slurm_s_own_tools_is_run(tool: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        command.argv(Host(), [tool])


@pytest.mark.parametrize(
    "facts",
    [
        {"ssh_host": "-oProxyCommand=id"},
        {"ssh_host": "host name"},
        {"ssh_host": "a", "ssh_user": "-l"},
        {"ssh_host": "a", "ssh_user": "x;id"},
        {"ssh_options": ("ProxyCommand=id",)},
        {"ssh_options": ("LocalCommand=id",)},
        {"ssh_options": ("-v",)},
        {"ssh_options": ("Port=",)},
        {"ssh_options": ("IdentityFile=/a\nProxyCommand=id",)},
        {"slurm_conf": "/etc/slurm.conf\n"},
    ],
)
def test_a_host_that_could_run_something_here_is_refused(facts: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"no host name|no user name|Key=Value|control character"):
        Host(**facts)  # type: ignore[arg-type]


def test_ssh_asks_nobody_and_knows_where_options_end() -> None:
    words = command.argv(REMOTE, ["sacct", "--version"])

    assert words[0] == "ssh"
    assert "BatchMode=yes" in words
    assert words.index("BatchMode=yes") < words.index("Port=2222"), "the first mention of an option counts"
    assert words[-5:-1] == ["-l", "estate", "--", "login1.example.org"]


def test_a_command_sees_nothing_of_our_secrets_and_pinned_times() -> None:
    ours = {
        "PATH": "/bin",
        "SECRET_KEY": "x",
        "DATABASE_URL": "x",
        "SLURM_TIME_FORMAT": "relative",
        "SACCT_FORMAT": "jobid",
        "TZ": "Asia/Tokyo",
    }

    seen = command.environment(Host(slurm_conf="/etc/other.conf"), ours)

    assert seen == {
        "PATH": "/bin",
        "SLURM_TIME_FORMAT": "%s",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "SLURM_CONF": "/etc/other.conf",
    }


def test_a_tool_that_is_not_there_is_told_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(CommandError, match="sacct cannot be started: no such file or directory; install Slurm's client tools"):
        command.output(Host(), ["sacct", "--version"])


# Which fields


@given(known=st.sets(st.sampled_from(sorted({way for ways in COLUMNS.values() for way in ways}))))
def test_only_fields_that_exist_are_asked_for(known: set[str]) -> None:
    names = frozenset(name.lower() for name in known)
    try:
        fields, lacking = sacct.wanted_fields(names)
    except ValueError:
        return
    assert {field.lower() for field in fields} <= names
    assert len(fields) == len(set(fields))
    assert fields[-1] == "State", "no free text stands last"
    assert all(any(way.lower() in names for way in COLUMNS[name]) != (name in lacking) for name in COLUMNS)


def test_a_sacct_without_the_tres_of_jobs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no AllocTRES; Slurm 20\.11 or newer"):
        sacct.wanted_fields(frozenset({"jobid", "submit", "state", "start", "end"}))


def test_a_window_names_states_and_both_ends_in_utc() -> None:
    words = sacct.window(["JobID"], datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, 12, 30, tzinfo=UTC), "lab")

    assert words[-3:] == [f"--state={sacct.STATES}", "--starttime=2026-03-01T00:00:00", "--endtime=2026-03-02T12:30:00"]
    assert {"--allusers", "--duplicates", "--parsable2", "--delimiter=\x1f", "--clusters=lab", "--format=JobID"} <= set(words)


def test_jobs_that_no_window_lists_are_those_not_eligible_yet() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    at = int(now.timestamp())
    queue = f"CLUSTER: lab\n  7   {at - 60}\n  8   N/A\n  8   N/A\n  9   {at + 60}\n 10\n".encode()

    assert sacct.not_yet_eligible(queue, now) == ["8", "9"]


# Processes


def test_what_comes_before_a_failure_is_not_taken_for_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TOOLS", {"sh"})
    seen: list[bytes] = []

    def read() -> None:
        with command.running(Host(), ["sh", "-c", "echo one; echo broken >&2; exit 3"], limit_seconds=20) as answer:
            seen.extend(answer.lines())

    with pytest.raises(CommandError, match=r"sh on this host failed \(exit 3\): broken"):
        read()
    assert seen == [b"one\n"]


def test_a_command_that_takes_too_long_is_stopped_with_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TOOLS", {"sh"})
    with (
        pytest.raises(TooMuchError, match="did not end within its time limit"),
        command.running(Host(), ["sh", "-c", "sleep 60 & sleep 60"], limit_seconds=0.2) as answer,
    ):
        list(answer.lines())


def test_a_range_that_slurmdbd_refuses_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TOOLS", {"sh"})

    with pytest.raises(TooMuchError):
        command.output(Host(), ["sh", "-c", "echo 'sacct: error: Too wide of a date range in query' >&2; exit 1"])


def test_a_reader_that_stops_early_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TOOLS", {"yes"})
    with command.running(Host(), ["yes"], limit_seconds=20) as answer:
        assert next(answer.lines()) == b"y\n"
        process = answer._process
    assert process.returncode is not None
