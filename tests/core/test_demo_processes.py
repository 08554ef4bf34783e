"""Clusters made in processes of their own: the same as at home, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.demo.draws import weighted
from collectors.demo.generate import generate
from collectors.demo.processes import ChildLostError, made_beside

START = datetime(2026, 11, 1, tzinfo=UTC)
UNTIL = datetime(2026, 12, 1, tzinfo=UTC)


def nothing(_done: int, _of: int) -> None: ...


def test_a_cluster_made_in_a_process_of_its_own_is_the_one_made_at_home() -> None:
    told: list[tuple[int, int]] = []
    made = {
        each.plan.name: each
        for each in made_beside(["helios", "borealis"], 3, START, UNTIL, progress=lambda done, of: told.append((done, of)))
    }
    assert made == {each.plan.name: each for each in generate(3, 1, UNTIL).clusters[1:]}
    assert told == [(number, 9) for number in range(1, 10)]
    assert not multiprocessing.active_children()


def test_a_lost_child_is_an_error_that_names_its_cluster() -> None:
    made = made_beside(["alpha"], 1, START, START + timedelta(days=200), progress=lambda _done, _of: kill_children())
    with pytest.raises(ChildLostError, match="alpha"):
        list(made)


def kill_children() -> None:
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGKILL)


def test_no_child_outlives_a_load_that_fails() -> None:
    made = made_beside(["alpha", "helios"], 1, START, UNTIL, progress=nothing)
    next(made)
    made.close()
    assert not multiprocessing.active_children()


@given(seed=st.integers(0, 2**32), weights=st.lists(st.floats(0.001, 1000), min_size=1, max_size=30))
def test_a_weighted_draw_is_that_of_random_choices(seed: int, weights: list[float]) -> None:
    ours, theirs = Random(seed), Random(seed)
    up_to = [sum(weights[: number + 1]) for number in range(len(weights))]
    options = range(len(weights))
    drawn = [weighted(ours, options, up_to) for _ in range(20)]
    assert drawn == [theirs.choices(options, cum_weights=up_to)[0] for _ in range(20)]
