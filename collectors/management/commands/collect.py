"""`collect`: bring facts in by hand, or run and configure sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.urls import reverse
from django.utils import timezone
from tqdm import tqdm

from accounting import rollups
from collectors import asking, backfills, collecting, files, inventories, replaying, runs, surveys
from collectors.clusters import cluster_for, made_for
from collectors.files import InputError, Meter
from collectors.management.arguments import in_zone_of, instant, interval, zone_name
from collectors.models import LIVE_KINDS, Run, Source, SourceKind
from collectors.queries.runaways import runaways
from collectors.slurm.command import CommandError as ToolError
from collectors.slurm.live import probe
from collectors.slurm.rest.client import Slurmrestd
from collectors.slurm.rest.question import token_ends_at
from collectors.windows import Span
from estate.models import Cluster, Scheduler


class Command(BaseCommand):
    """Exit 0: done (rejected lines are told and kept); 1: failed, or nothing could be taken in; 2: bad usage."""

    help = "Bring facts in: import saved dumps, run a configured source, add or list sources."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="import|run|backfill|replay|runaways|source")
        self._add_import(verbs.add_parser("import", help="take in saved dumps"))
        run = verbs.add_parser("run", help="run one configured source, once")
        run.add_argument("source", help="name of the source; `collect source list` shows them")
        run.add_argument(
            "--from", dest="first", type=instant, metavar="T", help="read again what was changed (live: was there) from T on"
        )
        run.add_argument(
            "--to", dest="last", type=instant, metavar="T", help="read again what was changed (live: was there) before T"
        )
        run.add_argument("--dry-run", action="store_true", help="read and count, write nothing")
        run.set_defaults(act=self.run_source)
        self._add_backfill(verbs.add_parser("backfill", help="have the past of a live source read, in chunks of a week"))
        lost = verbs.add_parser(
            "runaways", help="list what runs or waits by the books but is in no answer of its cluster any more"
        )
        lost.add_argument("--cluster", metavar="NAME", help="of this cluster only")
        lost.set_defaults(act=self.list_runaways)
        replay = verbs.add_parser("replay", help="read refused lines again from their kept text, after a fix")
        replay.add_argument("runs", nargs="*", type=int, metavar="RUN", help="number of a run; default: all that have such lines")
        replay.set_defaults(act=self.replay)
        self._add_source(verbs.add_parser("source", help="configure sources"))

    def _add_import(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar="sacct|nodes|policy")
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
        policy = kinds.add_parser(
            "policy", help="what scontrol, sacctmgr -P and sshare -P print of limits, reservations, accounts, …"
        )
        policy.add_argument("--cluster", required=True, metavar="NAME", help="made when new")
        policy.add_argument("--as-of", type=instant, metavar="T", help="when this was so (ISO 8601, cluster's zone); default now")
        policy.add_argument("files", nargs="+", metavar="FILE", help="each of a kind of its own; `-` is standard input")
        policy.set_defaults(act=self.import_policy)

    def _add_backfill(self, parser: CommandParser) -> None:
        parser.add_argument("source", help="name of the source; `collect source list` shows them")
        parser.add_argument(
            "--from", dest="first", type=instant, required=True, metavar="T", help="the beginning (cluster's zone)"
        )
        parser.add_argument("--to", dest="last", type=instant, metavar="T", help="the end, excluded; default now")
        parser.add_argument("--again", action="store_true", help="also what has been read before")
        parser.add_argument("--now", action="store_true", help="read here and now instead of leaving it to the worker")
        parser.set_defaults(act=self.backfill)

    def _add_source(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="what", required=True, metavar="add|list")
        add = verbs.add_parser("add", help="watch a folder of dumps, or ask sacct here or over SSH")
        add.add_argument("name")
        add.add_argument("--cluster", required=True, metavar="NAME", help="made when new")
        add.add_argument("--zone", type=zone_name, help="zone in which its tools print times (a new cluster: UTC)")
        add.add_argument("--kind", choices=SourceKind.values, default=SourceKind.SACCT_FILES)
        add.add_argument("--location", metavar="DIR", help="the folder to watch (sacct_files), or slurmrestd's address")
        add.add_argument("--interval", type=interval, default=300, metavar="S", help="seconds between collections (default 300)")
        live = add.add_argument_group("sacct")
        live.add_argument("--ssh-host", default="", metavar="HOST", help="where sacct runs; default: the worker's own host")
        live.add_argument("--ssh-user", default="", metavar="USER")
        live.add_argument("--ssh-option", action="append", default=[], metavar="KEY=VALUE", help="of ssh_config; may be repeated")
        live.add_argument("--slurm-conf", default="", metavar="PATH", help="SLURM_CONF for the commands")
        live.add_argument("--slurm-cluster", default="", metavar="NAME", help="for -M, and where Slurm's name of it is another")
        live.add_argument("--time-limit", type=int, default=600, metavar="S", help="a command that takes longer is stopped")
        live.add_argument("--no-check", action="store_true", help="do not ask it for its version before the source is kept")
        rest = add.add_argument_group(
            "slurmrestd (--location https://HOST:6820 or unix:/PATH; also --slurm-cluster, --time-limit)"
        )
        rest.add_argument(
            "--token", default="", metavar="REF", help="where its JWT is kept: env:NAME or file:/PATH, never the JWT itself"
        )
        rest.add_argument("--rest-user", default="", metavar="USER", help="who asks, where the token does not say")
        rest.add_argument("--ca-file", default="", metavar="FILE", help="certificates to trust in place of the system's")
        add.set_defaults(act=self.add_source)
        verbs.add_parser("list", help="one source a line").set_defaults(act=self.list_sources)

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            options["act"](options)
        except (InputError, ToolError) as exc:
            raise CommandError(str(exc)) from exc
        except DatabaseError as exc:
            raise CommandError(f"the database refused: {str(exc).strip().splitlines()[0]}") from exc

    def import_sacct(self, options: dict[str, Any]) -> None:
        for path in options["files"]:
            files.size_of(path)
        with made_for(options["cluster"], Scheduler.SLURM, options["zone"]) as cluster:

            def load(path: str) -> runs.Outcome:
                with self._meter(path) as meter:
                    return runs.import_sacct(cluster, path, meter=meter)

            self._load_all(cluster, options["files"], load, "records")

    def import_nodes(self, options: dict[str, Any]) -> None:
        inputs = {path: files.bytes_of(path) for path in options["files"]}
        kinds = {inventories.is_kubernetes(data) for data in inputs.values()}
        if len(kinds) > 1:
            raise InputError("the files are of both Slurm and Kubernetes; import them one cluster at a time")
        with made_for(options["cluster"], Scheduler.KUBERNETES if kinds.pop() else Scheduler.SLURM, None) as cluster:
            as_of = in_zone_of(cluster, options["as_of"])

            def load(path: str) -> runs.Outcome:
                return runs.import_nodes(cluster, files.name_of(path), inputs[path], as_of=as_of, complete=options["complete"])

            self._load_all(cluster, options["files"], load, "lines")

    def import_policy(self, options: dict[str, Any]) -> None:
        texts = surveys.saved_texts(options["files"])
        with made_for(options["cluster"], Scheduler.SLURM, None) as cluster:
            as_of = in_zone_of(cluster, options["as_of"])
            name = ", ".join(text.name for text in texts)
            self._load_all(cluster, [name], lambda _name: surveys.import_policy(cluster, texts, as_of), "entries")

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

    def backfill(self, options: dict[str, Any]) -> None:
        source = self._source(options["source"])
        if source.kind not in LIVE_KINDS:
            raise CommandError(f"source {source} reads files; put older dumps into its folder, or use `collect import sacct`")
        now = timezone.now()
        first, last = in_zone_of(source.cluster, options["first"]), in_zone_of(source.cluster, options["last"])
        span = Span(first or now, min(last or now, now))
        if span.first >= span.last:
            raise CommandError("nothing lies between --from and --to; --to must be later, and the past ends now")
        new = backfills.request(source, span, again=options["again"])
        self._say(f"{new:,} chunks of up to a week are asked for{'' if new else ' (all of it was asked for before; --again)'}")
        if options["now"]:
            self._backfill_now(source)
        else:
            self._say(
                "a worker reads them, the newest first, while nothing else is due; `collect source list` shows the progress"
            )

    def _backfill_now(self, source: Source) -> None:
        began, progress = time.perf_counter(), backfills.progress_by_source()[source.pk]
        with tqdm(
            total=progress.chunk_count, initial=progress.done_count, desc="backfill", unit=" chunks", leave=False, disable=None
        ) as bar:
            done = collecting.backfill(source.pk, in_front=True, progress=bar.update)
        self._summary(done.outcomes, done.day_count, time.perf_counter() - began, "records")
        if done.failures:
            raise CommandError("; ".join(dict.fromkeys(done.failures)))

    def replay(self, options: dict[str, Any]) -> None:
        chosen = Run.objects.filter(pk__in=options["runs"]) if options["runs"] else replaying.open_runs()
        if missing := sorted(set(options["runs"]) - set(chosen.values_list("pk", flat=True))):
            raise CommandError(f"there is no run {missing[0]}; the page Collectors shows them")
        began = time.perf_counter()
        outcomes = [replaying.replay(run) for run in chosen.select_related("cluster", "source__cluster").order_by("pk")]
        self._summary(outcomes, rollups.rebuild() if outcomes else 0, time.perf_counter() - began, "records")
        if not outcomes:
            self._say("no refused line is left whose whole text is kept")

    def list_runaways(self, options: dict[str, Any]) -> None:
        self.stdout.write("cluster\tjob\tstate\tuser\taccount\tpartition\tgpus\tstarted_at\tlast_seen_at")
        for row in runaways(options["cluster"]):
            times = (row.started_at.isoformat() if row.started_at else "", row.last_seen_at.isoformat())
            words = (row.cluster, row.display_id, row.state, row.user, row.account, row.partition, row.gpus, *times)
            self.stdout.write("\t".join("" if word is None else str(word) for word in words))

    def add_source(self, options: dict[str, Any]) -> None:
        kind = options["kind"]
        wanted: dict[str, Any] = {"kind": kind, "interval_seconds": options["interval"]}
        if kind == SourceKind.SACCT_FILES:
            wanted["location"] = self._folder(options["location"])
        elif kind == SourceKind.SLURMRESTD:
            wanted |= {name: options[name] for name in ("rest_user", "ca_file", "slurm_cluster")}
            wanted |= {"location": options["location"] or "", "token_reference": options["token"]}
            wanted["time_limit_seconds"] = options["time_limit"]
            self._check_rest(Source(name=options["name"], **wanted), skip=options["no_check"])
        else:
            wanted |= {name: options[name] for name in ("ssh_host", "ssh_user", "slurm_conf", "slurm_cluster")}
            wanted |= {"ssh_options": "\n".join(options["ssh_option"]), "time_limit_seconds": options["time_limit"]}
            self._check(Source(name=options["name"], **wanted), skip=options["no_check"])
        cluster = cluster_for(options["cluster"], Scheduler.SLURM, options["zone"])
        wanted["cluster"] = cluster
        source, is_new = Source.objects.get_or_create(name=options["name"], defaults=wanted)
        if not is_new and any(getattr(source, field) != value for field, value in wanted.items()):
            raise CommandError(f"source {source} exists with other settings; choose another name, or change it in the admin")
        where = asking.place(source)
        self._say(f"source {source}: {where} every {source.interval_seconds} s{'' if is_new else ' (unchanged)'}")

    def _folder(self, location: str | None) -> str:
        if not location:
            raise InputError("--location is missing: the folder to watch")
        folder = str(Path(location).resolve())
        files.scan(folder, time.time_ns())
        return folder

    def _check(self, source: Source, *, skip: bool) -> None:
        host = asking.host_of(source)
        if not skip:
            able = probe(host)
            self._say(f"sacct {able.version} on {host} answers{'; ' + able.warning if able.warning else ''}")

    def _check_rest(self, source: Source, *, skip: bool) -> None:
        access = asking.access_of(source)
        if access.address.is_plain:
            self._say("warning: over plain http the token can be read on the way; use https or a Unix socket")
        if not skip:
            with Slurmrestd(access) as rest:
                version = rest.version()
            self._say(f"slurmrestd at {access.address} answers with data parser {version}; {_token_words(token_ends_at(access))}")

    def list_sources(self, _options: dict[str, Any]) -> None:
        self.stdout.write("name\tcluster\tkind\tlocation\tinterval_seconds\tenabled\tnext_due_at\tfailure_count\tbackfill")
        progress = backfills.progress_by_source()
        for source in Source.objects.select_related("cluster"):
            words = (source.name, source.cluster, source.kind, asking.place(source), source.interval_seconds)
            due = source.next_due_at.isoformat(timespec="seconds")
            past = progress.get(source.pk)
            done = f"{past.done_count}/{past.chunk_count}" if past else ""
            self.stdout.write("\t".join(str(word) for word in (*words, source.enabled, due, source.failure_count, done)))

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


def _token_words(end: datetime | None) -> str:
    return f"the token ends {end:%Y-%m-%d %H:%M} UTC" if end else "the token does not say when it ends"
