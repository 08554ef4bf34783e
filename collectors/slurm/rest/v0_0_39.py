"""Data parser 0.0.39 (Slurm 23.02): optional numbers come with flags; state and exit code are still those of 0.0.38. Pure."""

from __future__ import annotations

from collectors.slurm.rest import exits
from collectors.slurm.rest.accounting import reservation_name
from collectors.slurm.rest.dialect import Dialect
from collectors.slurm.rest.values import flagged_number, state_word

DIALECT = Dialect(
    version="v0.0.39",
    number=flagged_number,
    state=state_word,
    exit_code=exits.terse,
    live_exit_code=exits.wait_status,
    reservation=reservation_name,
    counts_waiting_cpus=False,
)
