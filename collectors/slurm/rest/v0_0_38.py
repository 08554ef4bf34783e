"""Data parser 0.0.38 (Slurm 22.05): plain numbers or null, a state is a word. Pure.

It writes a number that means nothing where the name of a reservation belongs (its own fault), so the name is not known; it has
no submit line, no restart count, and no exit code but 0 (see exits.terse).
"""

from __future__ import annotations

from collectors.slurm.rest import exits
from collectors.slurm.rest.dialect import Dialect
from collectors.slurm.rest.values import plain_number, state_word

DIALECT = Dialect(
    version="v0.0.38",
    number=plain_number,
    state=state_word,
    exit_code=exits.terse,
    live_exit_code=exits.wait_status,
    reservation=lambda _job: "",
    counts_waiting_cpus=True,
)
