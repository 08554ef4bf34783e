"""Answers kept for a minute: pages ask the same again and again, and facts change when something was taken in.

An answer is used again only while nothing was taken in, rebuilt, priced or mapped since (`STAMP`), and for at most
`REPORT_MEMORY_SECONDS` (a setting; 0 turns this off), because the present moves and because a changed rate has no new row.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar, cast

from django.conf import settings
from django.db import connection

P = ParamSpec("P")
R = TypeVar("R")

MOST_ANSWERS = 128

STAMP = """
SELECT (SELECT array_agg(ROW(cluster_id, first_at, through_at)::text ORDER BY cluster_id) FROM accounting_clustercoverage),
       (SELECT count(*) FROM accounting_dirtyday),
       (SELECT ROW(count(*), max(id), sum(price), sum(cost))::text FROM accounting_rate),
       (SELECT ROW(count(*), max(id), sum(project_id))::text FROM estate_accountmapping),
       (SELECT ROW(count(*), max(id), count(*) FILTER (WHERE upper_inf(valid_during)))::text FROM estate_nodestate),
       (SELECT ROW(count(*), max(id), count(*) FILTER (WHERE upper_inf(valid_during)))::text FROM estate_nodeinventory),
       (SELECT ROW(count(*), max(id), count(*) FILTER (WHERE upper_inf(valid_during)))::text FROM estate_nodepartition),
       (SELECT ROW(count(*), max(id))::text FROM estate_project),
       (SELECT sum(rejected_count)::text FROM accounting_intake)
"""


class Memory:
    """The newest answers, by question and stamp; shared by the threads of a process."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, tuple[float, object]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, now: float) -> object | None:
        with self._lock:
            found = self._answers.get(key)
            return found[1] if found is not None and found[0] > now else None

    def keep(self, key: Hashable, answer: object, until: float) -> None:
        with self._lock:
            self._answers[key] = (until, answer)
            self._answers.move_to_end(key)
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)


MEMORY = Memory()


def stamp() -> Hashable:
    """What changes when something was taken in: two equal stamps mean the same facts."""
    with connection.cursor() as cursor:
        cursor.execute(STAMP)
        coverage, *rest = cursor.fetchone()
    return tuple(coverage or ()), *rest


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of hashable arguments whose answer nobody changes, asked at most once a minute while the facts stay the same."""

    @wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        seconds = settings.REPORT_MEMORY_SECONDS
        if not seconds:
            return function(*args, **kwargs)
        key = (function.__module__, function.__qualname__, args, tuple(sorted(kwargs.items())), stamp())
        found = MEMORY.get(key, time.monotonic())
        if found is None:
            found = function(*args, **kwargs)
            MEMORY.keep(key, found, time.monotonic() + seconds)
        return cast(R, found)

    return asked
