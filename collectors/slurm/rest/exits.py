"""Exit codes of slurmrestd by the generation of its data parser. Pure."""

from __future__ import annotations

from typing import Any

from collectors.slurm.rest.values import exit_text, flagged_number, part, refuse

NOT_ENDED_BADLY = frozenset({"COMPLETED", "PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING", "CONFIGURING"})


def terse(value: Any, state: str) -> str:
    """0.0.38 and 0.0.39 write SUCCESS and 0 for every process that ended by itself, whatever its code; only the signal is told.

    So their 0 is believed of a job that did not fail, and the exit code of one that did is unknown (empty), not 0.
    """
    signal = part(value, "signal", "signal_id")
    if signal is not None:
        return exit_text(0, _int(signal))
    code = part(value, "return_code")
    if code is None or (not _int(code) and state not in NOT_ENDED_BADLY):
        return ""
    return exit_text(_int(code), 0)


def verbose(value: Any, _state: str) -> str:
    """Since 0.0.40: `return_code` and `signal.id`, both with flags."""
    code, signal = flagged_number(part(value, "return_code")), flagged_number(part(value, "signal", "id"))
    if code is None and signal is None:
        return "0:0" if value else ""
    return exit_text(_int(code or 0), _int(signal or 0))


def wait_status(value: Any, _state: str) -> str:
    """What slurmctld's jobs carry up to 0.0.39: the status of wait(2), plain or with flags."""
    status = flagged_number(value)
    return "" if status is None else exit_text(_int(status) >> 8 & 0xFF, _int(status) & 0x7F)


def _int(number: int | str) -> int:
    if not isinstance(number, int):
        refuse(f"exit_code: {number!r:.40} is no number")
    return number
