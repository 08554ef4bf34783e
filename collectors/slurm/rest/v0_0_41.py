"""Data parser 0.0.41 (Slurm 24.05): nothing that is read here differs from 0.0.40. Pure."""

from __future__ import annotations

from collectors.slurm.rest.v0_0_40 import DIALECT as BEFORE

DIALECT = BEFORE._replace(version="v0.0.41")
