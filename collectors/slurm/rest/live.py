"""A job of `slurm/vX/jobs`, which slurmctld holds in memory, as the columns of sacct. Pure.

It is asked for what slurmdbd does not list in a window: jobs that wait for a hold, a dependency or a begin time. Of a job that waits
`start_time` and `end_time` are guesses of the scheduler, and of one that runs `end_time` is its limit, so they are not read as
facts. Jobs that have ended are left to slurmdbd.
"""

from __future__ import annotations

from collections.abc import Mapping

from collectors.slurm.gres import gpu_counts_of
from collectors.slurm.rest.dialect import Dialect
from collectors.slurm.rest.values import Json, moment, part, printed, state_list, text

WAITING = frozenset({"PENDING", "SPECIAL_EXIT", "REQUEUE_HOLD", "REQUEUED", "REQUEUE_FED", "RESV_DEL_HOLD"})
HOLDING = frozenset({"RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED", "SIGNALING", "COMPLETING"})
ENDED = frozenset(
    {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"}
)


def columns_of(job: Mapping[str, Json], dialect: Dialect) -> dict[str, str] | None:
    """Column → what sacct would print; None when the job has ended. Raises ValueError for a value that cannot be."""
    number = dialect.number
    base = _base_state(job)
    if base in ENDED:
        return None
    is_waiting = base in WAITING
    state = dialect.state(job.get("job_state"))
    return {
        "JobID": _display_id(job, dialect),
        "JobIDRaw": printed(number(job.get("job_id"))),
        "Cluster": text(job.get("cluster")),
        "JobName": text(job.get("name")),
        "User": text(job.get("user_name")) or printed(number(job.get("user_id"))),
        "Account": text(job.get("account")),
        "Partition": text(job.get("partition")),
        "QOS": text(job.get("qos")),
        "State": "PENDING" if is_waiting else state,
        "ExitCode": dialect.live_exit_code(job.get("exit_code"), state),
        "Submit": moment(number(job.get("submit_time"))),
        "Eligible": moment(number(job.get("eligible_time"))),
        "Start": "Unknown" if is_waiting else moment(number(job.get("start_time"))),
        "End": "Unknown",
        "TimelimitRaw": printed(number(job.get("time_limit"))),
        "ReqTRES": text(job.get("tres_req_str")),
        "AllocTRES": "" if is_waiting else _allocated(job),
        "NNodes": printed(number(job.get("node_count"))),
        "NCPUS": "0" if is_waiting and not dialect.counts_waiting_cpus else printed(number(job.get("cpus"))),
        "NodeList": "None assigned" if is_waiting else text(job.get("nodes")),
        "Priority": printed(number(job.get("priority"))),
        "Reservation": text(job.get("resv_name")),
        "Reason": text(job.get("state_reason")),
        "Comment": text(job.get("comment")),
        "Restarts": printed(number(job.get("restart_cnt"))),
        "WCKey": text(job.get("wckey")),
        "Container": text(job.get("container")),
    }


def _allocated(job: Mapping[str, Json]) -> str:
    """What the job holds; on a cluster that does not count GPUs those of its gres detail (`gpu:h100:1(IDX:0)`, one text a node)."""
    told, details = text(job.get("tres_alloc_str")), job.get("gres_detail")
    if "gres/gpu" in told or not isinstance(details, list):
        return told
    counts = gpu_counts_of(each for each in details if isinstance(each, str))
    return ",".join(
        [*([told] if told else []), *(f"gres/gpu:{model}={count}" if model else f"gres/gpu={count}" for model, count in counts)]
    )


def _base_state(job: Mapping[str, Json]) -> str:
    """The state without its flags: the first of a list, the word itself before 0.0.40."""
    value = job.get("job_state")
    return text(value[0]) if isinstance(value, list) and value else state_list(value)


def _display_id(job: Mapping[str, Json], dialect: Dialect) -> str:
    number = dialect.number
    array, het = number(job.get("array_job_id")), number(job.get("het_job_id"))
    if array:
        task, tasks = number(job.get("array_task_id")), text(job.get("array_task_string"))
        if task is not None:
            return f"{array}_{task}"
        if tasks:
            return f"{array}_[{tasks}]"
    if het:
        return f"{het}+{number(part(job, 'het_job_offset'))}"
    return printed(number(job.get("job_id")))
