"""One and the same job as each data parser writes it, cut down to what is read. Shapes after SchedMD's data parsers."""

from __future__ import annotations

from typing import Any

VERSIONS = ("v0.0.38", "v0.0.39", "v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44")
TERSE = ("v0.0.38", "v0.0.39")
UNSET = {"set": False, "infinite": False, "number": 0}


def number(version: str, value: int | None) -> Any:
    """An optional number; -1 is infinite."""
    if version == "v0.0.38":
        return None if value in {None, -1} else value
    return {"set": value not in {None, -1}, "infinite": value == -1, "number": value if value not in {None, -1} else 0}


def exit_code(version: str, code: int, signal: int = 0) -> Any:
    if version in TERSE:
        if signal:
            return {"status": "SIGNALED", "return_code": None, "signal": {"signal_id": signal, "name": "Killed"}}
        return {"status": "SUCCESS", "return_code": 0}
    return {
        "status": ["SIGNALED" if signal else "ERROR" if code else "SUCCESS"],
        "return_code": number(version, None if signal else code),
        "signal": {"id": number(version, signal or None), "name": ""},
    }


def state(version: str, *words: str) -> Any:
    return words[-1] if version in TERSE else list(words)


def stored_job(version: str, **changed: Any) -> dict[str, Any]:
    """As `slurmdb/vX/jobs` has it; `changed` replaces whole values at the top."""
    none = None if version == "v0.0.38" else ""
    job: dict[str, Any] = {
        "account": "vision",
        "comment": {"administrator": none, "job": "paper", "system": none},
        "allocation_nodes": 1,
        "array": {"job_id": 0, "task_id": number(version, None), "task": none},
        "association": {"account": "vision", "cluster": "lab", "partition": none, "user": "alice"},
        "cluster": "lab",
        "container": none,
        "exit_code": exit_code(version, 0),
        "het": {"job_id": 0, "job_offset": number(version, None)},
        "job_id": 7,
        "name": "train",
        "nodes": "gpu[01-02]",
        "partition": "train",
        "priority": number(version, 4321),
        "qos": "normal",
        "required": {"CPUs": 4},
        "kill_request_user": none,
        "reservation": {"id": 0, "name": 0 if version == "v0.0.38" else ""},
        "state": {"current": state(version, "COMPLETED"), "reason": "None"},
        "steps": [{"step": {"id": "7.batch"}}],
        "time": {
            "elapsed": 3600, "eligible": 1_772_352_000, "end": 1_772_356_200, "start": 1_772_352_600, "submission": 1_772_352_000,
            "suspended": 0, "limit": number(version, 120),
        },
        "tres": {"allocated": tres(("energy", "", None if version == "v0.0.38" else -2)), "requested": tres()},
        "user": "alice",
        "wckey": {"wckey": "", "flags": []},
    }  # fmt: skip
    if version not in TERSE[:1]:
        job["submit_line"] = "sbatch --gres=gpu:a100:2 train.sh"
    if version >= "v0.0.42":
        job["restart_cnt"] = 0
    if version >= "v0.0.44":
        job["reservation"]["requested"] = ""
    return job | changed


def tres(*more: tuple[str, str, int | None]) -> list[dict[str, Any]]:
    counts = [
        ("cpu", "", 4),
        ("mem", "", 2000),
        ("node", "", 2),
        ("billing", "", 32),
        ("gres", "gpu", 2),
        ("gres", "gpu:a100", 2),
    ]
    return [{"type": kind, "name": name, "id": 1, "count": count} for kind, name, count in [*counts, *more]]


def live_job(version: str, **changed: Any) -> dict[str, Any]:
    """A job that waits, as `slurm/vX/jobs` has it."""
    timed = version not in TERSE

    def moment(value: int) -> Any:
        return number(version, value) if timed else value

    status = 0 if version == "v0.0.38" else number(version, 0) if version == "v0.0.39" else exit_code(version, 0)
    job: dict[str, Any] = {
        "account": "vision", "array_job_id": number(version, 0), "array_task_id": number(version, None), "array_task_string": "",
        "cluster": "lab", "comment": "", "container": "", "cpus": number(version, 4), "eligible_time": moment(0),
        "end_time": moment(1_772_999_999), "exit_code": status, "het_job_id": number(version, 0), "het_job_offset": number(version, 0),
        "job_id": 8, "job_state": state(version, "PENDING"), "name": "train", "node_count": number(version, 2), "nodes": "",
        "partition": "train", "priority": number(version, 0), "qos": "normal", "restart_cnt": 0, "resv_name": "",
        "start_time": moment(1_772_900_000), "state_reason": "JobHeldUser", "submit_time": moment(1_772_352_000),
        "time_limit": number(version, 60), "tres_alloc_str": "", "tres_req_str": "cpu=4,mem=2000M,node=2,gres/gpu=2", "user_id": 26001,
        "user_name": "alice", "wckey": "",
    }  # fmt: skip
    return job | changed
