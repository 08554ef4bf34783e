"""The data parser versions that can be read, newest first. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from collectors.slurm.rest import v0_0_38, v0_0_39, v0_0_40, v0_0_41, v0_0_42, v0_0_43, v0_0_44
from collectors.slurm.rest.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (
    v0_0_44.DIALECT,
    v0_0_43.DIALECT,
    v0_0_42.DIALECT,
    v0_0_41.DIALECT,
    v0_0_40.DIALECT,
    v0_0_39.DIALECT,
    v0_0_38.DIALECT,
)
READABLE = tuple(dialect.version for dialect in DIALECTS)
# As the openapi document of slurmrestd writes it, with or without escaped slashes.
_JOBS_PATH = re.compile(r"/slurmdb\\?/(v0\.0\.\d{1,3})\\?/jobs\b")


def dialect_of(version: str) -> Dialect:
    """Raises ValueError for a version that no reader knows."""
    for dialect in DIALECTS:
        if dialect.version == version:
            return dialect
    raise ValueError(f"data parser {version[:40]!r} cannot be read; those that can: {', '.join(READABLE)}")


def offered_in(openapi: str) -> frozenset[str]:
    """Data parser versions under which an openapi document (or a piece of it) offers the jobs of slurmdbd."""
    return frozenset(_JOBS_PATH.findall(openapi))


def newest_readable(offered: Iterable[str]) -> str | None:
    """The newest of `offered` that can be read, None when there is none."""
    known = frozenset(offered)
    return next((version for version in READABLE if version in known), None)
