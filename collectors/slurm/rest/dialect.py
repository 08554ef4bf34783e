"""What differs between the data parsers of slurmrestd, as far as it matters here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Dialect(NamedTuple):
    """One data parser version: how it writes an optional number, a state, an exit code, and the name of a reservation.

    `exit_code` and `live_exit_code` are given the value and the state word of the job. `counts_waiting_cpus`: sacct of
    that time prints the CPUs asked for as those of a job that holds none.
    """

    version: str
    number: Callable[[Any], int | str | None]
    state: Callable[[Any], str]
    exit_code: Callable[[Any, str], str]
    live_exit_code: Callable[[Any, str], str]
    reservation: Callable[[Mapping[str, Any]], str]
    counts_waiting_cpus: bool
