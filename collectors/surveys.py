"""Asking a cluster for what it has and what it enforces: states of nodes and the queue's outlook often, its rules now and then.

Every command is optional: one that fails is a warning of the run, and what it would have told stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from accounting.domain.forecasts import Expectation, Sample
from accounting.domain.records import Rejected
from accounting.ingest import ingest_nodes
from accounting.policy import ingest_expectations, ingest_policy, ingest_runaways
from collectors import asking, files, leases, runs
from collectors.files import InputError
from collectors.models import Run, RunStatus, Source
from collectors.slurm.command import CommandError, Host, output
from collectors.slurm.nodes import InventoryHeaderError, NodeInventory, read_nodes
from collectors.slurm.policy import config, history, limits, partitions, queue, reservations
from collectors.slurm.policy.reading import Text, Understood, section_of, understand, without_titles
from collectors.slurm.policy.text import PolicyTextError
from estate.models import Cluster

STATES, RULES = "nodes", "policy"
STATES_EVERY = timedelta(minutes=5)
RULES_EVERY = timedelta(hours=1)
LOOK_BACK = timedelta(days=35)
COMMAND_SECONDS = 120.0
UTC_ZONE = ZoneInfo("UTC")


class Survey(NamedTuple):
    """A source that this process holds, where its commands run, and what it is asked since when (of its past)."""

    source: Source
    lease: leases.Lease
    host: Host
    now: datetime

    @property
    def cluster(self) -> Cluster:
        return self.source.cluster


def survey(source: Source, lease: leases.Lease) -> list[runs.Outcome]:
    """Ask what is due of `source`: its own clock is the last run of each kind. Raises InputError when it is configured wrongly."""
    asked = Survey(source, lease, asking.host_of(source), datetime.now(UTC))
    outcomes = []
    if _is_due(asked, STATES, STATES_EVERY):
        outcomes.append(ask_states(asked))
    if _is_due(asked, RULES, RULES_EVERY):
        outcomes.append(ask_rules(asked))
    return outcomes


def _is_due(asked: Survey, kind: str, every: timedelta) -> bool:
    last = Run.objects.filter(source=asked.source, kind=kind).exclude(status=RunStatus.RUNNING).order_by("-started_at").first()
    # A collection that starts a little early must not wait for a whole further interval.
    return last is None or asked.now - last.started_at >= every * 0.9


def ask_states(asked: Survey) -> runs.Outcome:
    """Nodes, reservations, and what the scheduler expects of the jobs that wait."""
    failures: list[str] = []
    data = _ask(asked, ["scontrol", "--all", "--oneliner", "show", "node"], failures)
    nodes = _nodes(data, asked, failures) if data is not None else None
    texts = _texts(asked, [("reservations", ["scontrol", "--all", "--oneliner", "show", "reservation"])], failures)
    understood = understand(texts, asking.cluster_name(asked.source), UTC_ZONE)
    waiting, sample = _outlook(asked, understood, failures)
    with runs.recorded(asked.cluster, STATES, f"scontrol on {asked.host} ({asked.source})", asked.source) as run:
        if nodes is not None:
            complete = not nodes.rejections
            result = ingest_nodes(asked.cluster, nodes.nodes, as_of=asked.now, complete=complete)
            run.changed_count += result.changed_count
        run.changed_count += ingest_policy(asked.cluster, understood.facts, as_of=asked.now).changed_count
        if waiting is not None:
            run.changed_count += ingest_expectations(asked.cluster, waiting, sample, estimated_at=asked.now).new_count
        kept = _account(run, understood, nodes)
        _end(run, asked, [*failures, *understood.failures])
    return runs.outcome_of(run, kept)


def ask_rules(asked: Survey) -> runs.Outcome:
    """What the scheduler enforces, fair-share, and what its accounting database tells of the past."""
    failures: list[str] = []
    texts = _texts(asked, _rules(asked), failures)
    understood = understand(texts, asking.cluster_name(asked.source), UTC_ZONE)
    with runs.recorded(asked.cluster, RULES, f"sacctmgr on {asked.host} ({asked.source})", asked.source) as run:
        run.changed_count = ingest_policy(asked.cluster, understood.facts, as_of=asked.now).changed_count
        if understood.runaways is not None:
            ingest_runaways(asked.cluster, understood.runaways, seen_at=asked.now)
        kept = _account(run, understood, None)
        _end(run, asked, [*failures, *understood.failures])
    return runs.outcome_of(run, kept)


def saved_texts(paths: Sequence[str]) -> list[Text]:
    """Saved outputs of one moment, each of a kind of its own. Raises InputError."""
    texts = []
    for path in paths:
        data, name = files.bytes_of(path), files.short(path)
        try:
            texts.append(Text(section_of(data), name, data))
        except PolicyTextError as exc:
            raise InputError(f"{name}: {exc}") from exc
    if len({text.section for text in texts}) != len(texts):
        raise InputError("two of the files tell the same kind of thing; import them one after the other, the older first")
    return texts


def import_policy(cluster: Cluster, texts: Sequence[Text], as_of: datetime | None) -> runs.Outcome:
    """Take in `texts` as one run. Raises InputError."""
    understood = understand(texts, cluster.name, cluster.zone_info)
    if understood.failures:
        raise InputError("; ".join(understood.failures))
    with runs.recorded(cluster, RULES, ", ".join(text.name for text in texts), None) as run:
        moment = as_of or datetime.now(UTC)
        change = ingest_policy(cluster, understood.facts, as_of=moment)
        if understood.runaways is not None:
            ingest_runaways(cluster, understood.runaways, seen_at=moment)
        run.changed_count = change.changed_count
        kept = _account(run, understood, None)
        if change.refused:
            run.message = f"{', '.join(change.refused)}: a newer reading is known; nothing of this was taken"
    return runs.outcome_of(run, kept)


def _rules(asked: Survey) -> list[tuple[str, list[str]]]:
    since = f"start={asked.now - LOOK_BACK:%Y-%m-%dT%H:%M:%S}"
    listed = {
        "associations": limits.ASSOCIATION_COMMAND,
        "accounts": limits.ACCOUNT_COMMAND,
        "qos": limits.QOS_COMMAND,
        "shares": queue.SHARE_COMMAND,
        "events": history.EVENT_COMMAND.replace("start=…", since),
        "past_reservations": reservations.HISTORY_COMMAND.replace("start=…", since),
        "runaways": history.RUNAWAY_COMMAND,
        "config": config.COMMAND,
        "partitions": partitions.COMMAND,
    }
    return [(section, command.split()) for section, command in listed.items()]


def _texts(asked: Survey, commands: Sequence[tuple[str, list[str]]], failures: list[str]) -> list[Text]:
    texts = []
    for section, words in commands:
        data = _ask(asked, words, failures)
        if data is not None:
            texts.append(Text(section, " ".join(words[:4]), data))
    return texts


def _ask(asked: Survey, words: list[str], failures: list[str]) -> bytes | None:
    """What a command printed, None when it failed. Tools of the controller are told which cluster is meant; sacctmgr knows all."""
    chosen = asked.source.slurm_cluster
    if chosen and words[0] in {"scontrol", "squeue", "sprio", "sshare", "sdiag"}:
        words = [words[0], f"--cluster={chosen}" if words[0] != "squeue" else f"--clusters={chosen}", *words[1:]]
    try:
        return without_titles(output(asked.host, words, limit_seconds=COMMAND_SECONDS))
    except CommandError as exc:
        failures.append(f"{' '.join(words[:4])}: {exc}")
        return None


def _nodes(data: bytes, asked: Survey, failures: list[str]) -> NodeInventory | None:
    try:
        return read_nodes(data.splitlines(keepends=True), cluster=asking.cluster_name(asked.source), zone=UTC_ZONE)
    except InventoryHeaderError as exc:
        failures.append(f"scontrol show node: {exc}")
        return None


def _outlook(asked: Survey, understood: Understood, failures: list[str]) -> tuple[Sequence[Expectation] | None, Sample | None]:
    """What waits and when it is expected to start, with the state of the scheduler; None when it was not told."""
    data = _ask(asked, ["squeue", "--all", "--noheader", "--start", "-o", queue.QUEUE_FORMAT], failures)
    if data is None:
        return None, None
    ranked = _ask(asked, ["sprio", "--noheader", "-o", queue.PRIORITY_FORMAT], failures)
    priorities = queue.read_priorities(ranked).facts if ranked is not None else ()
    waiting = queue.read_queue(data, UTC_ZONE, priorities)
    understood.count(Text("queue", "squeue --start", data), waiting)
    said = _ask(asked, ["sdiag"], failures)
    try:
        return waiting.facts, queue.read_diagnosis(said).sample if said is not None else None
    except PolicyTextError as exc:
        failures.append(f"sdiag: {exc}")
        return waiting.facts, None


def _account(run: Run, understood: Understood, nodes: NodeInventory | None) -> list[Rejected]:
    """Counts of entries into the run, and the refused ones; those of the nodes come first."""
    kept = list(nodes.rejections) if nodes is not None else []
    behind = max((each.line_number for each in kept), default=0)
    kept += [each._replace(line_number=each.line_number + behind) for each in understood.rejections]
    run.accepted_count = understood.accepted_count + (nodes.accepted_count if nodes is not None else 0)
    run.ignored_count = understood.ignored_count + (nodes.ignored_count if nodes is not None else 0)
    run.line_count = run.accepted_count + run.ignored_count + len(kept)
    runs.keep_rejections(run, kept, len(kept))
    return kept


def _end(run: Run, asked: Survey, failures: Sequence[str]) -> None:
    run.asked_at = asked.now
    run.message = " ".join([*(f"Not told: {failure}." for failure in failures), run.message]).strip()
    leases.check(asked.lease)
