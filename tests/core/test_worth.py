"""What a limit is worth follows from how the scheduler is set up."""

from __future__ import annotations

import pytest

from estate.domain.worth import Setup, tracks_gpus, warnings_of, worth_of

TRACKED = ("cpu", "mem", "gres/gpu", "gres/gpu:a100")


@pytest.mark.parametrize(
    ("enforces", "tracked", "tres", "plain", "level"),
    [
        (("associations", "limits"), TRACKED, "gres/gpu", None, "enforced"),
        (("safe",), TRACKED, "", None, "enforced"),
        (("all",), TRACKED, "cpu", None, "enforced"),
        (("associations", "qos"), TRACKED, "gres/gpu", None, "not enforced"),
        ((), TRACKED, "", None, "not enforced"),
        (("limits",), ("cpu",), "gres/gpu", None, "not enforced"),
        (("limits",), TRACKED, "gres/gpu:a100", None, "bypassable"),
        (("limits",), TRACKED, "gres/gpu:a100", 16, "bypassable"),
        (("limits",), TRACKED, "gres/gpu:h100", None, "not enforced"),
    ],
)
def test_a_limit_is_worth_what_the_scheduler_enforces(
    enforces: tuple[str, ...], tracked: tuple[str, ...], tres: str, plain: int | None, level: str
) -> None:
    worth = worth_of(tres, Setup(enforces, tracked), plain)
    assert worth.level == level
    assert (str(plain) in worth.why) == (plain is not None)


def test_without_a_reading_nothing_is_said_of_a_limit() -> None:
    assert worth_of("gres/gpu", None).level == "unknown"


@pytest.mark.parametrize(
    ("tracked", "models", "expected"),
    [
        (("cpu", "gres/gpu:tesla"), ("tesla",), ["without a type are not accounted"]),
        (("cpu",), ("tesla",), ["not tracked"]),
        (("cpu",), (), []),
        (("gres/gpu",), ("tesla", "a100"), []),
        (("gres/gpu", "gres/gpu:a100"), ("l40s", "a100"), ["l40s are counted, but not by model"]),
    ],
)
def test_a_set_up_that_leaves_gpus_uncounted_is_warned_of(
    tracked: tuple[str, ...], models: tuple[str, ...], expected: list[str]
) -> None:
    """C3-43."""
    found = warnings_of(Setup(("limits",), tracked), models)
    assert len(found) == len(expected)
    assert all(words in gap.what for words, gap in zip(expected, found, strict=True))


@pytest.mark.parametrize(("tracked", "expected"), [(("cpu",), False), (("gres/gpu",), True), (("gres/gpu:a100",), True)])
def test_a_cluster_tracks_gpus_when_any_is_counted(tracked: tuple[str, ...], expected: bool) -> None:
    assert tracks_gpus(Setup((), tracked)) is expected
