"""Accounts, associations and QOS with their limits, as `sacctmgr -r -P show …` prints them (`-r`: it can change nothing). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from collectors.slurm.policy.text import NO_LIMIT, Reading, duration, names, needed, ratio, read, table, whole, word
from collectors.slurm.tres import memory_mib
from estate.domain.policy import AccountFact, AssociationFact, Limit, QosFact

ASSOCIATION_COMMAND = (
    "sacctmgr -r -P show assoc format=Cluster,Account,User,ParentName,Partition,Share,Priority,DefaultQOS,QOS,GrpJobs,GrpTRES,"
    "GrpSubmit,GrpWall,GrpTRESMins,GrpTRESRunMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins"
)
QOS_COMMAND = "sacctmgr -r -P show qos"
ACCOUNT_COMMAND = "sacctmgr -r -P show account format=Account,Org,Descr"

TRES_LIMITS = (
    "GrpTRES",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "MaxTRES",
    "MaxTRESPerNode",
    "MaxTRESMins",
    "MaxTRESPU",
    "MaxTRESPA",
    "MaxTRESRunMinsPU",
    "MaxTRESRunMinsPA",
    "MinTRES",
)
COUNT_LIMITS = (
    "GrpJobs",
    "GrpSubmit",
    "MaxJobs",
    "MaxSubmit",
    "MaxJobsPU",
    "MaxSubmitPU",
    "MaxJobsPA",
    "MaxSubmitPA",
    "GrpJobsAccrue",
    "MaxJobsAccrue",
)
TIME_LIMITS = ("GrpWall", "MaxWall")
PARENT_SHARES = "parent"
_BYTES = frozenset({"mem", "fs/disk", "bb/cray", "bb/datawarp", "vmem"})
_MULTIPLES = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_AMOUNT = re.compile(r"(\d{1,18})([KMGT]?)", re.ASCII)


def read_associations(data: bytes, cluster: str) -> Reading[AssociationFact]:
    """Associations of `cluster`; those of other clusters are ignored. Raises PolicyTextError."""
    entries = table(data, needs=("Cluster", "Account", "User"), free="", command=ASSOCIATION_COMMAND)
    return read(entries, lambda fields: _association(fields, cluster))


def parents_of(data: bytes, cluster: str) -> dict[str, str]:
    """Parent by account, from the same table; empty when it has no column `ParentName`. Bad lines are left to `read_associations`."""
    found: dict[str, str] = {}
    for entry in table(data, needs=("Cluster", "Account", "User"), free="", command=ASSOCIATION_COMMAND):
        if isinstance(entry.fields, str) or "ParentName" not in entry.fields:
            continue
        fields = entry.fields
        if fields["Cluster"].casefold() == cluster.casefold() and not fields["User"] and fields["Account"]:
            found[fields["Account"]] = fields["ParentName"]
    return found


def read_accounts(data: bytes, parents: Mapping[str, str]) -> Reading[AccountFact]:
    """Accounts with their words; which of them the cluster has, and where in its tree, is what `parents` says. Raises PolicyTextError."""
    entries = table(data, needs=("Account", "Org", "Descr"), free="Descr", command=ACCOUNT_COMMAND)
    return read(entries, lambda fields: _account(fields, parents))


def read_qos(data: bytes) -> Reading[QosFact]:
    """Raises PolicyTextError."""
    return read(table(data, needs=("Name", "Priority", "MaxWall"), free="", command=QOS_COMMAND), _qos)


def _association(fields: Mapping[str, str], cluster: str) -> AssociationFact | None:
    if fields["Cluster"].casefold() != cluster.casefold():
        return None
    share = fields.get("Share", "")
    return AssociationFact(
        account=_whole_name(needed(fields, "Account")),
        user=_whole_name(fields["User"]),
        partition=fields.get("Partition", ""),
        shares=None if share == PARENT_SHARES else whole("Share", share),
        default_qos=word(fields.get("Def QOS", "")),
        qos=tuple(sorted(names(fields.get("QOS", "")))),
        priority=whole("Priority", fields.get("Priority", "")),
        limits=limits_of(fields),
    )


def _account(fields: Mapping[str, str], parents: Mapping[str, str]) -> AccountFact | None:
    name = _whole_name(needed(fields, "Account"))
    if parents and name not in parents:
        return None
    return AccountFact(name, parents.get(name, ""), fields["Descr"][:255], fields["Org"][:255])


def _qos(fields: Mapping[str, str]) -> QosFact:
    return QosFact(
        name=_whole_name(needed(fields, "Name")),
        priority=whole("Priority", fields["Priority"]),
        flags=names(fields.get("Flags", "")),
        preempts=names(fields.get("Preempt", "")),
        preempt_mode=word(fields.get("PreemptMode", "")),
        usage_factor=ratio("UsageFactor", fields.get("UsageFactor", "")),
        limits=limits_of(fields),
    )


def limits_of(fields: Mapping[str, str]) -> tuple[Limit, ...]:
    """The limits of a line, each TRES one of its own. Raises ValueError."""
    found = [limit for kind in TRES_LIMITS if kind in fields for limit in _tres_limits(kind, fields[kind])]
    found += [Limit(kind, "", amount) for kind in COUNT_LIMITS if (amount := whole(kind, fields.get(kind, ""))) is not None]
    found += [Limit(kind, "", amount) for kind in TIME_LIMITS if (amount := duration(kind, fields.get(kind, ""))) is not None]
    return tuple(sorted(found))


def _tres_limits(kind: str, text: str) -> list[Limit]:
    limits = []
    for item in text.split(",") if text else ():
        tres, _, amount = item.partition("=")
        if not tres or not amount:
            raise ValueError(f"{kind}: {item[:40]!r} is no TRES=COUNT (was the column cut?)")
        if amount not in NO_LIMIT:
            limits.append(Limit(kind, tres.lower() if tres.islower() else tres, _amount(kind, tres, amount)))
    if len({limit.tres for limit in limits}) != len(limits):
        raise ValueError(f"{kind} names a TRES twice: {text[:60]!r}")
    return limits


def _amount(kind: str, tres: str, text: str) -> int:
    """A count; MiB for what is measured in bytes. Raises ValueError."""
    if tres in _BYTES:
        return memory_mib(text)
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"{kind}: {tres[:40]}={text[:40]!r} is no count")
    return int(found[1]) * _MULTIPLES.get(found[2], 1)


def _whole_name(name: str) -> str:
    """A name that a narrow column cut ends in a plus: two accounts would become one. Raises ValueError."""
    if name.endswith("+"):
        raise ValueError(f"the name {name[:60]!r} was cut; print it with -P")
    return name
