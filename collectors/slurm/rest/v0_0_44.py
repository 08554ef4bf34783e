"""Data parser 0.0.44 (Slurm 25.11): adds the reservations that were asked for (`reservation.requested`); `name` is the one that was
used. Pure."""

from __future__ import annotations

from collectors.slurm.rest.v0_0_43 import DIALECT as BEFORE

DIALECT = BEFORE._replace(version="v0.0.44")
