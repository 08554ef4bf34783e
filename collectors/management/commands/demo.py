"""`demo`: a year of an invented estate, the same for the same seed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any, NoReturn, TypeAlias
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from tqdm import tqdm

from accounting import rollups
from collectors.demo import writer
from collectors.demo.generate import last_full_hour, start_of
from collectors.demo.processes import ChildLostError, made_beside
from collectors.demo.shelves import CLUSTERS
from estate.domain.periods import midnight

LONGEST_MONTHS = 60
Bar: TypeAlias = "tqdm[NoReturn]"


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
        except (writer.OtherUsageError, ChildLostError) as exc:
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
        label = writer.Label(options["seed"], options["months"], _end(options["until"]))
        missing = writer.missing(label)
        if missing:
            self._load(label, missing)
        with self._stage("rollups"), self._bar("days") as bar:
            rollups.rebuild(progress=_moved(bar))
        if not self._quiet:
            self.stdout.write(_summary(label, missing))

    def _load(self, label: writer.Label, names: list[str]) -> None:
        """One cluster is loaded while the next is still being invented."""
        start = start_of(label.until, label.months)
        with self._stage("projects, rates, people"):
            writer.write_governance(start, label.until)
        with self._stage("all records"), self._bar("shelves") as bar:
            for demo in made_beside(names, label.seed, start, label.until, progress=_moved(bar)):
                with self._stage(f"  {demo.plan.name}, {len(demo.records):,} records"):
                    writer.write_cluster(demo)
                    writer.write_records(demo, label)

    def _bar(self, unit: str) -> Bar:
        return tqdm(unit=f" {unit}", leave=False, disable=self._quiet or not sys.stderr.isatty())

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        if not self._quiet:
            self.stderr.write(f"{name}: {time.monotonic() - began:.1f} s")


def _moved(bar: Bar) -> Callable[[int, int], None]:
    def progress(done: int, of: int) -> None:
        bar.total = of
        bar.update(done - bar.n)

    return progress


def _end(until: date | None) -> datetime:
    """The end asked for; else that of the demo which is here already, else the last full hour."""
    if until is not None:
        return midnight(until, ZoneInfo(settings.ESTATE_ZONE))
    return writer.known_end() or last_full_hour(datetime.now(UTC))


def _summary(label: writer.Label, made: list[str]) -> str:
    start = start_of(label.until, label.months)
    what = f"made: {', '.join(made)}" if made else "is here already, nothing changed"
    lines = [f"demo {what} (seed {label.seed}, {start:%Y-%m-%d} to {label.until:%Y-%m-%d %H:%M} UTC)"]
    for plan in CLUSTERS:
        gpus = sum(shelf.node_count * shelf.gpus for shelf in plan.shelves)
        nodes = sum(shelf.node_count for shelf in plan.shelves)
        lines.append(f"  {plan.name}: {plan.scheduler}, {nodes} nodes, {gpus} GPUs, {plan.zone}")
    lines.append(f"  project members: {writer.OWNER} (owner) and {writer.MEMBER} of Vision, without passwords")
    return "\n".join(lines)
