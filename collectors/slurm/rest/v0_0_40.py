"""Data parser 0.0.40 (Slurm 23.11): states are lists, exit codes have a code and a signal with flags. Pure."""

from __future__ import annotations

from collectors.slurm.rest import exits
from collectors.slurm.rest.accounting import reservation_name
from collectors.slurm.rest.dialect import Dialect
from collectors.slurm.rest.values import flagged_number, state_list

DIALECT = Dialect(
    version="v0.0.40",
    number=flagged_number,
    state=state_list,
    exit_code=exits.verbose,
    live_exit_code=exits.verbose,
    reservation=reservation_name,
    counts_waiting_cpus=False,
)
