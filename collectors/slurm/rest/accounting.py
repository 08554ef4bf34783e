"""A job of `slurmdb/vX/jobs` as the columns of sacct. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from collectors.slurm.rest.dialect import Dialect
from collectors.slurm.rest.values import (
    Json,
    cancelled_by,
    duration,
    moment,
    part,
    printed,
    text,
    tres,
    tres_count,
)


def columns_of(job: Mapping[str, Json], dialect: Dialect) -> dict[str, str]:
    """Column → what sacct prints there (times in epoch seconds). Raises ValueError for a value that cannot be."""
    number = dialect.number
    state = dialect.state(part(job, "state", "current"))
    allocated, requested = part(job, "tres", "allocated"), part(job, "tres", "requested")
    submit_line = text(job.get("submit_line"))
    return {
        "JobID": _display_id(job, dialect),
        "JobIDRaw": printed(number(job.get("job_id"))),
        "Cluster": text(job.get("cluster")),
        "JobName": text(job.get("name")),
        "User": text(job.get("user")) or text(part(job, "association", "user")),
        "Account": text(job.get("account")) or text(part(job, "association", "account")),
        "Partition": text(job.get("partition")),
        "QOS": text(job.get("qos")),
        "State": cancelled_by(state, text(job.get("kill_request_user"))),
        "ExitCode": dialect.exit_code(job.get("exit_code"), state),
        "Submit": moment(number(part(job, "time", "submission"))),
        "Eligible": moment(number(part(job, "time", "eligible"))),
        "Start": moment(number(part(job, "time", "start"))),
        "End": moment(number(part(job, "time", "end"))),
        "ElapsedRaw": printed(number(part(job, "time", "elapsed"))),
        "TimelimitRaw": printed(number(part(job, "time", "limit"))),
        "Suspended": duration(number(part(job, "time", "suspended"))),
        "ReqTRES": tres(requested),
        "AllocTRES": tres(allocated),
        "NNodes": printed(_node_count(job, dialect, allocated, requested)),
        "NCPUS": printed(tres_count(allocated, "cpu") or _waiting_cpus(job, dialect)),
        "NodeList": text(job.get("nodes")),
        "Priority": printed(number(job.get("priority"))),
        "Reservation": dialect.reservation(job),
        "Reason": text(part(job, "state", "reason")),
        "Comment": text(part(job, "comment", "job")),
        "Restarts": printed(number(job.get("restart_cnt"))),
        "WCKey": text(part(job, "wckey", "wckey")),
        "Container": text(job.get("container")),
        "SubmitLine": submit_line,
    }


def reservation_name(job: Mapping[str, Json]) -> str:
    """The name of the reservation that was used; empty without one."""
    return text(part(job, "reservation", "name"))


def _display_id(job: Mapping[str, Json], dialect: Dialect) -> str:
    """`48_5`, `95_[2-19%2]`, `54+1`, or the id itself."""
    number = dialect.number
    array = number(part(job, "array", "job_id"))
    het, offset = number(part(job, "het", "job_id")), number(part(job, "het", "job_offset"))
    if array:
        task, tasks = number(part(job, "array", "task_id")), text(part(job, "array", "task"))
        if task is not None:
            return f"{array}_{task}"
        if tasks:
            return f"{array}_[{tasks}]"
    if het and offset is not None:
        return f"{het}+{offset}"
    return printed(number(job.get("job_id")))


def _waiting_cpus(job: Mapping[str, Json], dialect: Dialect) -> int | str | None:
    return dialect.number(part(job, "required", "CPUs")) if dialect.counts_waiting_cpus else 0


def _node_count(job: Mapping[str, Json], dialect: Dialect, allocated: Json, requested: Json) -> int | str | None:
    """Nodes it held, else those it asked for: as sacct's NNodes."""
    return tres_count(allocated, "node") or dialect.number(job.get("allocation_nodes")) or tres_count(requested, "node")
