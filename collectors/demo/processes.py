"""Clusters of the demo made in processes of their own, so that loading one does not wait for inventing the next.

A child knows neither settings nor database: it sends how far it is, then its cluster, then ends.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Collection, Generator
from contextlib import ExitStack
from datetime import datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait

from collectors.demo.generate import DemoCluster, Progress, generate_cluster
from collectors.demo.shelves import CLUSTERS, ClusterPlan


class ChildLostError(Exception):
    """A child ended without its cluster: killed, or out of memory."""


def made_beside(
    names: Collection[str], seed: int, start: datetime, until: datetime, *, progress: Progress
) -> Generator[DemoCluster, None, None]:
    """The clusters of `names`, each as soon as it is ready. Raises ChildLostError.

    `progress(done, of)` counts shelves. Whatever happens, no child outlives the iteration.
    """
    plans = [plan for plan in CLUSTERS if plan.name in names]
    shelf_count, done = sum(len(plan.shelves) for plan in plans), 0
    with ExitStack() as stack:
        waiting = {_begin(stack, plan, seed, start, until): plan for plan in plans}
        while waiting:
            ready = set(wait(list(waiting)))
            for pipe in [each for each in waiting if each in ready]:
                made = _next_from(pipe, waiting[pipe])
                if made is None:
                    done += 1
                    progress(done, shelf_count)
                else:
                    del waiting[pipe]
                    yield made


def _begin(stack: ExitStack, plan: ClusterPlan, seed: int, start: datetime, until: datetime) -> Connection:
    # A fresh interpreter: a fork would share this process's connection to the database.
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    stack.enter_context(ours)
    child = context.Process(target=_make, args=(theirs, plan.name, seed, start, until), daemon=True)
    child.start()
    theirs.close()
    stack.callback(child.join)
    stack.callback(child.terminate)
    return ours


def _next_from(pipe: Connection, plan: ClusterPlan) -> DemoCluster | None:
    """None: one more shelf is done."""
    try:
        message = pipe.recv()
    except EOFError as exc:
        raise ChildLostError(
            f"the process that makes {plan.name} was lost; is there enough memory? Run the command again"
        ) from exc
    return message if isinstance(message, DemoCluster) else None


def _make(pipe: Connection, name: str, seed: int, start: datetime, until: datetime) -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone decides, and ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nothing here is garbage before the end: the collector would only walk a growing heap.
    gc.disable()
    plan = next(each for each in CLUSTERS if each.name == name)
    pipe.send(generate_cluster(plan, seed, start, until, simulated=lambda: pipe.send(None)))
