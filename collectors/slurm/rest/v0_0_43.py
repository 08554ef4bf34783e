"""Data parser 0.0.43 (Slurm 25.05): nothing that is read here differs from 0.0.42. Pure."""

from __future__ import annotations

from collectors.slurm.rest.v0_0_42 import DIALECT as BEFORE

DIALECT = BEFORE._replace(version="v0.0.43")
