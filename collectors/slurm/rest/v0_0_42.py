"""Data parser 0.0.42 (Slurm 24.11): adds the restart count and the requested QOS. Pure."""

from __future__ import annotations

from collectors.slurm.rest.v0_0_41 import DIALECT as BEFORE

DIALECT = BEFORE._replace(version="v0.0.42")
