"""The parameters of a report, read alike for the command, the API and the exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from accounting.domain.metrics import REPORTS
from accounting.domain.reconciliation import UNATTRIBUTED
from accounting.domain.reports import ReportError, ReportRequest, Scope
from estate.models import Cluster, GpuModel, GpuModelAlias, Partition, Project

T = TypeVar("T")
Params = Mapping[str, list[str]]
Projects = tuple[int, ...] | None

EARLIEST, LATEST = date(1970, 1, 1), date(2199, 12, 31)
LISTED_NAMES = 20
SCOPE_PARAMETERS = ("cluster", "partition", "project", "gpu_model")
NOTHING: tuple[str, ...] = ()
PARAMETERS = ("from", "to", "by", *SCOPE_PARAMETERS, "zone")


class RequestError(ReportError):
    """What is wrong, by parameter; `unknown_names` says that all that is wrong are names that the estate does not know."""

    def __init__(self, errors: Mapping[str, list[str]], *, unknown_names: bool = False) -> None:
        super().__init__("; ".join(f"{name}: {message}" for name, messages in errors.items() for message in messages))
        self.errors = dict(errors)
        self.unknown_names = unknown_names


def report_request(name: str, params: Params, *, visible_projects: Projects, reporting_zone: ZoneInfo) -> ReportRequest:
    """The request for report `name` that `params` describe; parameters other than `PARAMETERS` are ignored.

    `by` may be repeated or hold commas. A GPU model may be an alias, a project a name or a code. `visible_projects` are the
    ids that the asker may see, None for all. Raises RequestError; names are only looked up when all else is right.
    """
    if name not in REPORTS:
        raise RequestError({"report": [f"“{name}” is no report; choose one of {', '.join(REPORTS)}"]})
    reader = _Reader(params)
    by = reader.read("by", lambda texts: _dimensions(name, texts), NOTHING)
    first, last = reader.read("from", _date, EARLIEST), reader.read("to", _date, LATEST)
    zone = reader.read("zone", lambda texts: _zone(texts, reporting_zone), reporting_zone)
    if first >= last and not reader.errors:
        reader.errors["to"] = [f"{last} is not after from ({first}); to is the first day that is not included"]
    reader.finish()
    return ReportRequest(name=name, first=first, last=last, zone=zone, by=by, scope=_scope(params, visible_projects))


class _Reader:
    """Reads parameters one by one and keeps what is wrong with each, so that all of it can be said at once."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.errors: dict[str, list[str]] = {}

    def read(self, name: str, parse: Callable[[list[str]], T], otherwise: T) -> T:
        try:
            return parse([text for text in self.params.get(name, ()) if text])
        except ValueError as exc:
            self.errors[name] = [str(exc)]
            return otherwise

    def finish(self, *, unknown_names: bool = False) -> None:
        if self.errors:
            raise RequestError(self.errors, unknown_names=unknown_names)


def _date(texts: list[str]) -> date:
    text = _only(texts)
    if text is None:
        raise ValueError("is missing; write a date such as 2026-11-30")
    try:
        on = date.fromisoformat(text)
    except ValueError:
        on = None
    if on is None or on.isoformat() != text:
        raise ValueError(f"“{text}” is no date; write it as 2026-11-30")
    if not EARLIEST <= on <= LATEST:
        raise ValueError(f"{text} is not between {EARLIEST} and {LATEST}")
    return on


def _zone(texts: list[str], otherwise: ZoneInfo) -> ZoneInfo:
    text = _only(texts)
    if text is None:
        return otherwise
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ValueError(f"“{text}” is no time zone; write an IANA name such as Europe/Berlin") from exc


def _only(texts: list[str]) -> str | None:
    if len(texts) > 1:
        raise ValueError(f"is given {len(texts)} times; give it once")
    return texts[0] if texts else None


def _dimensions(report: str, texts: list[str]) -> tuple[str, ...]:
    known = REPORTS[report].dimension_ids
    words = dict.fromkeys(word for text in texts for word in text.split(",") if word)
    for word in words:
        if word not in known:
            raise ValueError(f"“{word}” is no dimension of {report}; choose from {', '.join(known)}")
    return tuple(words)


def _scope(params: Params, visible: Projects) -> Scope:
    reader = _Reader(params)
    scope = Scope(
        clusters=reader.read("cluster", _clusters, NOTHING),
        partitions=reader.read("partition", _partitions, NOTHING),
        projects=reader.read("project", lambda texts: _projects(texts, visible), NOTHING),
        gpu_models=reader.read("gpu_model", _gpu_models, NOTHING),
        visible_projects=visible,
    )
    reader.finish(unknown_names=True)
    return scope


def _clusters(texts: list[str]) -> tuple[str, ...]:
    return _known("cluster", texts, lambda: Cluster.objects.values_list("name", "name"))


def _partitions(texts: list[str]) -> tuple[str, ...]:
    return _known("partition", texts, lambda: Partition.objects.order_by("name").values_list("name", "name").distinct())


def _gpu_models(texts: list[str]) -> tuple[str, ...]:
    aliases = GpuModelAlias.objects.values_list("alias", "gpu_model__name")
    return _known("GPU model", texts, lambda: GpuModel.objects.values_list("name", "name"), lambda: aliases)


def _projects(texts: list[str], visible: Projects) -> tuple[str, ...]:
    projects = Project.objects.all() if visible is None else Project.objects.filter(id__in=visible)
    bucket = [(UNATTRIBUTED, UNATTRIBUTED)] if visible is None else []
    codes = projects.values_list("code", "name")
    return _known("project", texts, lambda: [*projects.order_by("name").values_list("name", "name"), *bucket], lambda: codes)


Names = Callable[[], Iterable[tuple[str, str]]]


def _known(noun: str, texts: list[str], names: Names, aliases: Names = tuple) -> tuple[str, ...]:
    """The names that `texts` mean, without repetition. Texts are never sent to the database: they may hold anything."""
    if not texts:
        return ()
    listed = dict(names())
    meanings = {**dict(aliases()), **listed}
    for text in texts:
        if text not in meanings:
            raise ValueError(f"“{text}” is no known {noun}; known: {_listing(list(listed))}")
    return tuple(dict.fromkeys(meanings[text] for text in texts))


def _listing(names: list[str]) -> str:
    more = len(names) - LISTED_NAMES
    return ", ".join(names[:LISTED_NAMES]) + (f" and {more} more" if more > 0 else "") if names else "none"
