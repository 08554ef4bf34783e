"""`collect`: bring facts in by hand, or run and configure sources."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.urls import reverse
from tqdm import tqdm

from accounting import rollups
from collectors import collecting, files, inventories, runs
from collectors.clusters import cluster_for
from collectors.files import InputError, Meter
from collectors.models import Source, SourceKind
from estate.models import Cluster, Scheduler

SHORTEST_INTERVAL_SECONDS = 10


def zone_name(text: str) -> str:
    if text not in available_timezones():
        raise argparse.ArgumentTypeError(f"{text} is no IANA time zone; write one such as Europe/Berlin or UTC")
    return text


def instant(text: str) -> datetime:
    """A date or time; without an offset it is meant in the zone of the cluster."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text} is no time; write one such as 2026-03-01T12:00") from exc


def interval(text: str) -> int:
    if not text.isdigit() or int(text) < SHORTEST_INTERVAL_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of seconds from {SHORTEST_INTERVAL_SECONDS} on")
    return int(text)


def in_zone_of(cluster: Cluster, at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=cluster.zone_info) if at is not None and at.tzinfo is None else at


class Command(BaseCommand):
    """Exit 0: done (rejected lines are told and kept); 1: failed, or nothing could be taken in; 2: bad usage."""

    help = "Bring facts in: import saved dumps, run a configured source, add or list sources."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="import|run|source")
        self._add_import(verbs.add_parser("import", help="take in saved dumps"))
        run = verbs.add_parser("run", help="run one configured source, once")
        run.add_argument("source", help="name of the source; `collect source list` shows them")
        run.add_argument("--from", dest="first", type=instant, metavar="T", help="read again what was changed at or after T")
        run.add_argument("--to", dest="last", type=instant, metavar="T", help="read again what was changed before T")
        run.add_argument("--dry-run", action="store_true", help="read and count, write nothing")
        run.set_defaults(act=self.run_source)
        self._add_source(verbs.add_parser("source", help="configure sources"))

    def _add_import(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar="sacct|nodes")
        sacct = kinds.add_parser("sacct", help="dumps of `sacct --parsable2` with their header; gzip is read as it is")
        sacct.add_argument("--cluster", required=True, metavar="NAME", help="made when new")
        sacct.add_argument("--zone", type=zone_name, help="zone in which sacct printed times (a new cluster: UTC)")
        sacct.add_argument("files", nargs="+", metavar="FILE", help="`-` is standard input")
        sacct.set_defaults(act=self.import_sacct)
        nodes = kinds.add_parser("nodes", help="`scontrol show node`, `sinfo -N` with header, or `kubectl get nodes -o json`")
        nodes.add_argument("--cluster", required=True, metavar="NAME", help="made when new")
        nodes.add_argument("--as-of", type=instant, metavar="T", help="when this was so (ISO 8601, cluster's zone); default now")
        nodes.add_argument("--complete", action="store_true", help="nodes that are not in it are gone")
        nodes.add_argument("files", nargs="+", metavar="FILE", help="`-` is standard input")
        nodes.set_defaults(act=self.import_nodes)

    def _add_source(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="what", required=True, metavar="add|list")
        add = verbs.add_parser("add", help="watch a folder of dumps")
        add.add_argument("name")
        add.add_argument("--cluster", required=True, metavar="NAME", help="made when new")
        add.add_argument("--zone", type=zone_name, help="zone in which its tools print times (a new cluster: UTC)")
        add.add_argument("--kind", choices=SourceKind.values, default=SourceKind.SACCT_FILES)
        add.add_argument("--location", required=True, metavar="DIR")
        add.add_argument("--interval", type=interval, default=300, metavar="S", help="seconds between collections (default 300)")
        add.set_defaults(act=self.add_source)
        verbs.add_parser("list", help="one source a line").set_defaults(act=self.list_sources)

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            options["act"](options)
        except InputError as exc:
            raise CommandError(str(exc)) from exc
        except DatabaseError as exc:
            raise CommandError(f"the database refused: {str(exc).strip().splitlines()[0]}") from exc

    def import_sacct(self, options: dict[str, Any]) -> None:
        for path in options["files"]:
            files.size_of(path)
        cluster = cluster_for(options["cluster"], Scheduler.SLURM, options["zone"])

        def load(path: str) -> runs.Outcome:
            with self._meter(path) as meter:
                return runs.import_sacct(cluster, path, meter=meter)

        self._load_all(cluster, options["files"], load, "records")

    def import_nodes(self, options: dict[str, Any]) -> None:
        inputs = {path: files.bytes_of(path) for path in options["files"]}
        kinds = {inventories.is_kubernetes(data) for data in inputs.values()}
        if len(kinds) > 1:
            raise InputError("the files are of both Slurm and Kubernetes; import them one cluster at a time")
        cluster = cluster_for(options["cluster"], Scheduler.KUBERNETES if kinds.pop() else Scheduler.SLURM, None)
        as_of = in_zone_of(cluster, options["as_of"])

        def load(path: str) -> runs.Outcome:
            return runs.import_nodes(cluster, files.name_of(path), inputs[path], as_of=as_of, complete=options["complete"])

        self._load_all(cluster, options["files"], load, "lines")

    def run_source(self, options: dict[str, Any]) -> None:
        source = self._source(options["source"])
        cluster = source.cluster
        window = in_zone_of(cluster, options["first"]), in_zone_of(cluster, options["last"])
        modified = None if window == (None, None) else window
        if options["dry_run"]:
            self._preview(source, modified)
            return
        began = time.perf_counter()
        with self._days() as progress:
            done = collecting.collect(source.pk, only_due=False, modified=modified, progress=progress)
        if not done.is_held:
            raise CommandError(f"source {source} is being collected by another process; wait for it to end")
        self._summary(done.outcomes, done.day_count, time.perf_counter() - began, "records")
        if done.failures:
            raise CommandError("; ".join(done.failures))

    def add_source(self, options: dict[str, Any]) -> None:
        location = str(Path(options["location"]).resolve())
        files.scan(location, time.time_ns())
        cluster = cluster_for(options["cluster"], Scheduler.SLURM, options["zone"])
        wanted = {"cluster": cluster, "kind": options["kind"], "location": location, "interval_seconds": options["interval"]}
        source, is_new = Source.objects.get_or_create(name=options["name"], defaults=wanted)
        if not is_new and any(getattr(source, field) != value for field, value in wanted.items()):
            raise CommandError(f"source {source} exists with other settings; choose another name, or change it in the admin")
        self._say(f"source {source}: {location} every {source.interval_seconds} s{'' if is_new else ' (unchanged)'}")

    def list_sources(self, _options: dict[str, Any]) -> None:
        self.stdout.write("name\tcluster\tkind\tlocation\tinterval_seconds\tenabled\tnext_due_at\tfailure_count")
        for source in Source.objects.select_related("cluster"):
            words = (source.name, source.cluster, source.kind, source.location, source.interval_seconds)
            due = source.next_due_at.isoformat(timespec="seconds")
            self.stdout.write("\t".join(str(word) for word in (*words, source.enabled, due, source.failure_count)))

    def _source(self, name: str) -> Source:
        source = Source.objects.select_related("cluster").filter(name=name).first()
        if source is None:
            known = ", ".join(Source.objects.values_list("name", flat=True)) or "none yet; `collect source add` makes one"
            raise CommandError(f"there is no source {name} (known: {known})")
        return source

    def _preview(self, source: Source, modified: collecting.Window | None) -> None:
        self.stdout.write("file\tlines\taccepted\trejected\tignored")
        for name, counts in collecting.preview(source, modified):
            self.stdout.write("\t".join([name, *map(str, counts)]))

    def _load_all(self, cluster: Cluster, paths: Sequence[str], load: Callable[[str], runs.Outcome], unit: str) -> None:
        """Load each input; a failed one does not hold up the others, but is told at the end with exit 1."""
        began = time.perf_counter()
        outcomes, failures = [], []
        for path in paths:
            try:
                outcomes.append(load(path))
            except InputError as exc:
                failures.append(str(exc))
        with self._days() as progress:
            day_count = rollups.rebuild(cluster.pk, progress)
        self._summary(outcomes, day_count, time.perf_counter() - began, unit)
        if failures:
            raise CommandError("; ".join(failures))
        if any(outcome.rejected_count for outcome in outcomes) and not any(outcome.accepted_count for outcome in outcomes):
            raise CommandError("nothing could be taken in: every line was rejected, for the reasons above")

    def _summary(self, outcomes: Sequence[runs.Outcome], day_count: int, seconds: float, unit: str) -> None:
        if not outcomes:
            return
        lines, accepted, rejected, ignored, changed = (
            sum(column) for column in zip(*(each[1:6] for each in outcomes), strict=True)
        )
        rate = accepted / max(seconds, 0.001)
        for outcome in outcomes:
            self._tell_rejections(outcome)
        self._say(
            f"lines {lines:,} = accepted {accepted:,} + rejected {rejected:,} + ignored {ignored:,}; "
            f"changed rows {changed:,}, rebuilt days {day_count:,}; {seconds:.1f} s, {rate:,.0f} {unit}/s"
        )

    def _tell_rejections(self, outcome: runs.Outcome) -> None:
        for line in outcome.first_rejections:
            self._say(f"line {line.line_number}: {line.reason}")
        if outcome.rejected_count:
            page = reverse("collectors-run", args=[outcome.run_id])
            self._say(f"{outcome.rejected_count:,} lines were rejected; their text and the reasons are on the page {page}")
        if outcome.message:
            self._say(outcome.message)

    def _say(self, words: str) -> None:
        self.stderr.write(words, lambda text: text)

    @contextmanager
    def _meter(self, path: str) -> Iterator[Meter]:
        with tqdm(total=files.size_of(path), desc=files.short(path), unit="B", unit_scale=True, leave=False, disable=None) as bar:
            yield bar.update

    @contextmanager
    def _days(self) -> Iterator[rollups.Progress]:
        with tqdm(desc="rollups", unit=" days", leave=False, disable=None) as bar:

            def show(done: int, of: int) -> None:
                bar.total = of
                bar.update(done - bar.n)

            yield show
