"""A configured live source as a question to its cluster."""

from __future__ import annotations

from datetime import datetime

from collectors.files import InputError
from collectors.models import Source
from collectors.slurm.command import Host
from collectors.slurm.live import Question


def host_of(source: Source) -> Host:
    """Where the source's commands run. Raises InputError for what is no host, user or allowed ssh option."""
    options = tuple(line.strip() for line in source.ssh_options.splitlines() if line.strip())
    try:
        return Host(ssh_host=source.ssh_host, ssh_user=source.ssh_user, ssh_options=options, slurm_conf=source.slurm_conf)
    except ValueError as exc:
        raise InputError(f"source {source}: {exc}") from exc


def question(source: Source, first: datetime, last: datetime, *, with_waiting: bool) -> Question:
    """Ask `source` for `[first, last)`. Raises InputError when it is configured wrongly."""
    return Question(
        host=host_of(source),
        cluster=source.slurm_cluster,
        first=first,
        last=last,
        with_waiting=with_waiting,
        limit_seconds=float(source.time_limit_seconds),
    )


def cluster_name(source: Source) -> str:
    """What Slurm calls the cluster."""
    return source.slurm_cluster or source.cluster.name


def place(source: Source) -> str:
    """Where a source reads, for people."""
    if source.location:
        return source.location
    return f"sacct on {source.ssh_user}@{source.ssh_host}".replace(" @", " ") if source.ssh_host else "sacct on the worker's host"


def input_name(source: Source) -> str:
    """How the answers of a source are called in runs."""
    return f"{place(source)} ({source.name})"
