"""`demo`: a year of an invented estate, the same for the same seed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from tqdm import tqdm

from accounting import rollups
from collectors.demo import writer
from collectors.demo.generate import DemoCluster, DemoEstate, generate, last_full_hour
from estate.domain.periods import midnight

LONGEST_MONTHS = 60


def month_count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= LONGEST_MONTHS:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of months from 1 to {LONGEST_MONTHS}")
    return int(text)


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text} is no date; write one such as 2026-03-01") from exc


class Command(BaseCommand):
    """Exit 0: the demo is there (made now or before); 1: refused or failed, nothing half-done in any cluster; 2: bad usage."""

    help = "Make a deterministic, invented estate: two Slurm clusters and one Kubernetes cluster, with every trap."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=1, help="another seed makes another estate (default 1)")
        parser.add_argument("--months", type=month_count, default=12, metavar="M", help="how long (default 12)")
        parser.add_argument(
            "--until", type=day, metavar="D", help="end before this day of the reporting zone (default: the last full hour)"
        )
        parser.add_argument("--force", action="store_true", help="add the demo although other clusters hold usage")
        parser.add_argument("--quiet", action="store_true", help="say nothing but errors")

    def handle(self, *_args: Any, **options: Any) -> None:
        self._quiet = options["quiet"]
        try:
            self._make(options)
        except writer.AnotherDemoError as exc:
            raise CommandError(str(exc)) from exc
        except DatabaseError as exc:
            raise CommandError(f"the database refused: {str(exc).strip().splitlines()[0]}") from exc

    def _make(self, options: dict[str, Any]) -> None:
        others = writer.strangers()
        if others and not options["force"]:
            raise CommandError(
                f"this estate holds usage of {', '.join(others)}; invented records do not belong beside it. "
                "Use another ESTATE_DATA (or DATABASE_URL), or --force to add them all the same"
            )
        with self._stage("generate"):
            estate = generate(options["seed"], options["months"], _end(options["until"]))
        fresh = [demo for demo in estate.clusters if not writer.is_loaded(demo)]
        with self._stage("projects, rates, people"):
            writer.write_governance(estate)
        for demo in estate.clusters:
            writer.write_cluster(demo)
        for demo in fresh:
            with self._stage(f"records of {demo.plan.name} ({len(demo.records):,})"):
                writer.write_records(demo)
        with self._stage("rollups"):
            self._rebuild()
        if not self._quiet:
            self.stdout.write(_summary(estate, fresh))

    def _rebuild(self) -> None:
        with tqdm(unit=" days", leave=False, disable=self._quiet or not sys.stderr.isatty()) as bar:

            def progress(done: int, of: int) -> None:
                bar.total = of
                bar.update(done - bar.n)

            rollups.rebuild(progress=progress)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        if not self._quiet:
            self.stderr.write(f"{name}: {time.monotonic() - began:.1f} s")


def _end(until: date | None) -> datetime:
    """The end asked for; else that of the demo which is here already, else the last full hour."""
    if until is not None:
        return midnight(until, ZoneInfo(settings.ESTATE_ZONE))
    known = writer.known_end()
    return last_full_hour(datetime.now(UTC)) if known is None else known.through_at


def _summary(estate: DemoEstate, fresh: list[DemoCluster]) -> str:
    made = "made" if fresh else "already here, nothing changed"
    lines = [
        f"demo {made}: seed {estate.seed}, {estate.start:%Y-%m-%d} to {estate.until:%Y-%m-%d %H:%M} UTC, "
        f"{estate.record_count:,} usage records"
    ]
    for demo in estate.clusters:
        shelves = demo.plan.shelves
        gpus = sum(shelf.node_count * shelf.gpus for shelf in shelves)
        nodes = sum(shelf.node_count for shelf in shelves)
        lines.append(f"  {demo.plan.name}: {len(demo.records):,} records, {nodes} nodes, {gpus} GPUs ({demo.plan.zone})")
    lines.append(f"  project members: {writer.OWNER} (owner) and {writer.MEMBER} of Vision, without passwords")
    return "\n".join(lines)
