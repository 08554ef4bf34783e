"""What Slurm's own books say: sreport's figures, the records of sacct, and the differences between the two that have a name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from tests.slurm.conftest import TestBed

GPU, CPU = "gres/gpu", "cpu"
FIELDS = "JobIDRaw,Submit,Start,End,ElapsedRaw,Suspended,State,Account,User,Reservation,AllocTRES"
HOUR = timedelta(hours=1)
STATES = "BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,RS,RV,S,TO"
MIG_SHARE = Decimal(1) / 7
Who = tuple[str, str]


class Hours(NamedTuple):
    """Whole hours `[first, last)`: the last may be the hour under way, which Slurm rolls up as if it were over."""

    first: datetime
    last: datetime


class Held(NamedTuple):
    """A record of sacct that held something, as Slurm's roll-up sees it. `end` is None while it runs; counts are Slurm's own."""

    job_id: str
    submit: int
    start: int
    end: int | None
    suspended: int
    state: str
    who: Who
    reservation: str
    gpus: int
    mig_slices: int
    shards: int
    cpus: int

    @property
    def gpus_here(self) -> Decimal:
        """GPUs by our definitions: a MIG slice (1g of 7) is a seventh, and a shard is a part of a GPU (16 shards over 4)."""
        return self.gpus - self.mig_slices * (1 - MIG_SHARE) + Decimal(self.shards) / 4


def hours_of(bed: TestBed) -> Hours:
    """The hours since the cluster registered, the one under way included."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return Hours(registered_at(bed).replace(minute=0, second=0), now + HOUR)


def registered_at(bed: TestBed) -> datetime:
    """When the cluster told slurmdbd its resources; the books begin there."""
    answer = _run(bed, "sacctmgr", "-nP", "show", "event", "all_clusters", "start=2020-01-01", "format=NodeName,Start,Reason")
    starts = [line.split("|")[1] for line in answer.splitlines() if line.startswith("|") and "Registered" in line]
    return min(_instant(start) for start in starts)


def roll_up(bed: TestBed, hours: Hours) -> None:
    _run(bed, "sacctmgr", "-i", "roll", *(f"{at:%Y-%m-%dT%H:%M:%S}" for at in hours))


def utilisation_by_user(bed: TestBed, hours: Hours) -> dict[str, dict[Who, int]]:
    """TRES → (account, user) → seconds of `sreport cluster AccountUtilizationByUser`; a row of an account alone has the user ''."""
    found: dict[str, dict[Who, int]] = defaultdict(dict)
    for account, user, _, tres, used in _sreport(bed, hours, "AccountUtilizationByUser", "Accounts,Login,Proper,TresName,Used"):
        found[tres].setdefault((account, user), 0)
        found[tres][account, user] += int(used)
    return found


def cluster_utilisation(bed: TestBed, hours: Hours) -> dict[str, int]:
    """Seconds of GPUs by part of `sreport cluster Utilization`. `PLND Down` is the first of two columns with one name since 23.02."""
    columns = "TresName,Allocated,Down,PlannedDown,Idle,Reserved,Reported"
    rows = [map(int, row[1:]) for row in _sreport(bed, hours, "Utilization", columns) if row[0] == GPU]
    names = ("allocated", "down", "planned_down", "idle", "planned", "reported")
    return dict(zip(names, map(sum, zip(*rows, strict=True)), strict=True))


def held(bed: TestBed) -> list[Held]:
    """Every record of sacct that held something."""
    words = ["sacct", "-anXPD", "-S", "2020-01-01", "-E", "now+1hour", "-s", STATES, f"--format={FIELDS}"]
    rows = (line.split("|") for line in _run(bed, *words).splitlines())
    return [_held(row) for row in rows if row[10] and row[2].isdigit()]


def _run(bed: TestBed, *words: str) -> str:
    """In UTC, times of sacct in epoch seconds."""
    return bed.run("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", *words)


def unended(records: Iterable[Held]) -> set[tuple[str, str]]:
    return {(record.job_id, record.state) for record in records if record.end is None}


def account_tree(bed: TestBed) -> dict[str, str]:
    """Account → the account above it."""
    answer = _run(bed, "sacctmgr", "-nP", "show", "assoc", "format=Account,ParentName,User")
    return {account: parent for account, parent, user in (line.split("|") for line in answer.splitlines()) if not user}


def reservation_shares(bed: TestBed, hours: Hours, records: Iterable[Held]) -> Counter[Who]:
    """CPU-seconds of reservations that no job used: Slurm books them in even parts on the accounts and users that may use it."""
    owners = _associations(bed)
    shares: Counter[Who] = Counter()
    words = [
        "sacctmgr",
        "-nP",
        "show",
        "reservation",
        f"start={hours.first:%Y-%m-%dT%H:%M:%S}",
        "format=Name,TRES,Start,End,Assoc,Flags",
    ]
    for line in _run(bed, *words).splitlines():
        name, tres, start, end, assocs, flags = line.split("|")
        seconds = (min(_instant(end), hours.last) - max(_instant(start), hours.first)).total_seconds()
        used = (
            0
            if "IGNORE_JOBS" in flags
            else sum((record.end or 0) - record.start for record in records if record.reservation == name)
        )
        names = [owners[number] for number in assocs.split(",")]
        for who in names:
            shares[who] += round((seconds - used) * _amounts(tres)["cpu"] / len(names))
    return shares


def _associations(bed: TestBed) -> dict[str, Who]:
    answer = _run(bed, "sacctmgr", "-nP", "show", "assoc", "format=ID,Account,User")
    return {number: (account, user) for number, account, user in (line.split("|") for line in answer.splitlines())}


def _sreport(bed: TestBed, hours: Hours, report: str, columns: str) -> list[list[str]]:
    """Rows of every hour by itself: of a longer span sreport leaves out the hour under way without a word."""
    rows = []
    at = hours.first
    while at < hours.last:
        span = [f"Start={at:%Y-%m-%dT%H:%M:%S}", f"End={at + HOUR:%Y-%m-%dT%H:%M:%S}"]
        words = ["sreport", "-nP", "-t", "seconds", f"--tres={GPU},{CPU}", "cluster", report, *span, f"format={columns}"]
        rows += [line.split("|") for line in _run(bed, *words).splitlines()]
        at += HOUR
    return rows


def _held(row: list[str]) -> Held:
    job_id, submit, start, end, _, suspended, state, account, user, reservation, tres = row
    amounts = _amounts(tres)
    return Held(
        job_id=job_id,
        submit=int(submit),
        start=int(start),
        end=int(end) if end.isdigit() else None,
        suspended=_seconds(suspended),
        state=state.split()[0],
        who=(account, user),
        reservation=reservation,
        gpus=amounts[GPU],
        mig_slices=sum(count for name, count in amounts.items() if name.startswith(f"{GPU}:1g.")),
        shards=amounts["gres/shard"],
        cpus=amounts[CPU],
    )


def _amounts(tres: str) -> Counter[str]:
    pairs = (item.partition("=") for item in tres.split(",") if item)
    return Counter({name: int(count) for name, _, count in pairs if count.isdigit()})


def _seconds(clock: str) -> int:
    days, _, rest = clock.rpartition("-")
    hours, minutes, seconds = (int(part) for part in rest.split(":"))
    return int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds


def _instant(text: str) -> datetime:
    return datetime.fromtimestamp(int(text), UTC) if text.isdigit() else datetime.fromisoformat(text).replace(tzinfo=UTC)
