"""Months of two clusters that are loaded at once: nobody waits for each other in a circle."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest
from django.db import connection, transaction

from accounting.ingest import ingest_records
from accounting.models import UsageRecord
from estate.models import Cluster
from tests.records import at, record

MONTH = 31 * 24


@pytest.mark.django_db(transaction=True)
def test_two_loads_that_each_need_new_months_after_writing_do_not_deadlock() -> None:
    met = Barrier(2)
    failures: list[BaseException] = []

    def load(name: str, months: tuple[int, int]) -> None:
        cluster = Cluster.objects.create(name=name, scheduler="slurm")
        try:
            with transaction.atomic():
                for step, month in enumerate(months):
                    began = at(month * MONTH)
                    made = record(
                        f"{name}{step}", submitted_at=began, eligible_at=began, started_at=began, ended_at=at(month * MONTH + 1)
                    )
                    ingest_records(cluster, [made])
                    if step == 0:
                        met.wait(20)
        except BaseException as exc:
            failures.append(exc)
        finally:
            connection.close()

    # Both months of the first step exist, so both loads have written when they come to need new ones.
    seed = Cluster.objects.create(name="seed", scheduler="slurm")
    with transaction.atomic():
        ingest_records(seed, [record("s1")])
    threads = [Thread(target=load, args=(name, months)) for name, months in (("left", (0, 14)), ("right", (0, 16)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert UsageRecord.objects.count() == 5
