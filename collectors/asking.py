"""A configured live source as a question to its cluster."""

from __future__ import annotations

from datetime import datetime

from collectors.files import InputError
from collectors.models import Source, SourceKind
from collectors.slurm.command import Host
from collectors.slurm.live import Question
from collectors.slurm.rest.address import read_address
from collectors.slurm.rest.client import Access
from collectors.slurm.rest.question import RestQuestion
from collectors.slurm.rest.token import token_reference


def host_of(source: Source) -> Host:
    """Where the source's commands run. Raises InputError for what is no host, user or allowed ssh option."""
    options = tuple(line.strip() for line in source.ssh_options.splitlines() if line.strip())
    try:
        return Host(ssh_host=source.ssh_host, ssh_user=source.ssh_user, ssh_options=options, slurm_conf=source.slurm_conf)
    except ValueError as exc:
        raise InputError(f"source {source}: {exc}") from exc


def access_of(source: Source) -> Access:
    """How to get into the source's slurmrestd. Raises InputError for what is no address or no reference to a token."""
    try:
        address, token = read_address(source.location), token_reference(source.token_reference)
    except ValueError as exc:
        raise InputError(f"source {source}: {exc}") from exc
    return Access(address, token, source.rest_user, source.ca_file)


def question(source: Source, first: datetime, last: datetime, *, with_waiting: bool) -> Question | RestQuestion:
    """Ask `source` for `[first, last)`. Raises InputError when it is configured wrongly."""
    limit = float(source.time_limit_seconds)
    if source.kind == SourceKind.SLURMRESTD:
        return RestQuestion(access_of(source), cluster_name(source), first, last, with_waiting, limit)
    return Question(
        host=host_of(source),
        cluster=source.slurm_cluster,
        first=first,
        last=last,
        with_waiting=with_waiting,
        limit_seconds=limit,
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
