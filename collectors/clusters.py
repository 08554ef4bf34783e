"""The cluster an import belongs to: found by name, made when new, refused when it contradicts what is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from zoneinfo import available_timezones

from django.db import DatabaseError, transaction
from django.db.models import ProtectedError

from accounting.queries.freshness import coverage_by_cluster
from collectors.files import InputError
from collectors.models import Run, RunStatus, Source
from estate.models import Cluster, Scheduler

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def cluster_for(name: str, scheduler: Scheduler, zone: str | None) -> Cluster:
    """The cluster `name`, created with `zone` (UTC if None) when new. Raises InputError on a contradiction.

    The zone of a cluster may still be corrected while nothing has been taken in for it.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"{name[:80]!r} is no cluster name; write 1 to 64 letters, digits, dots, dashes or underscores")
    if zone is not None and zone not in available_timezones():
        raise InputError(f"{zone} is no IANA time zone; write one such as Europe/Berlin or UTC")
    cluster, is_new = Cluster.objects.get_or_create(name=name, defaults={"scheduler": scheduler, "zone": zone or "UTC"})
    if cluster.scheduler != scheduler:
        kinds = f"{cluster.get_scheduler_display()}, and this input is {scheduler.label}"
        raise InputError(f"cluster {name} is {kinds}; give another name with --cluster")
    if not is_new and zone is not None and zone != cluster.zone:
        _correct_zone(cluster, zone)
    return cluster


@contextmanager
def made_for(name: str, scheduler: Scheduler, zone: str | None) -> Iterator[Cluster]:
    """`cluster_for` an import; a cluster that was made for it goes again, with its failed runs, if the import fails and nothing came in."""
    is_new = not Cluster.objects.filter(name=name).exists()
    cluster = cluster_for(name, scheduler, zone)
    try:
        yield cluster
    except BaseException:
        if is_new:
            with suppress(DatabaseError):
                _forget_if_empty(cluster)
        raise


def _forget_if_empty(cluster: Cluster) -> None:
    runs = Run.objects.filter(cluster=cluster)
    if runs.exclude(status=RunStatus.FAILED).exists() or Source.objects.filter(cluster=cluster).exists():
        return
    with suppress(ProtectedError), transaction.atomic():
        runs.delete()
        cluster.delete()


def _correct_zone(cluster: Cluster, zone: str) -> None:
    if cluster.pk in coverage_by_cluster():
        raise InputError(
            f"cluster {cluster} prints times in {cluster.zone}, not {zone}, and its records are stored so; "
            f"leave out --zone, or import under another name with --cluster"
        )
    cluster.zone = zone
    cluster.save(update_fields=["zone"])
