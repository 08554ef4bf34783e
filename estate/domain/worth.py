"""What a limit is worth: whether the scheduler enforces it, and whether a request can be put so that it passes by. Pure.

Sources: slurm.conf(5), AccountingStorageEnforce and AccountingStorageTRES; Slurm's "Resource Limits" and "TRES" pages: a limit on a
GPU type binds only requests that name the type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

GPU = "gres/gpu"
# AccountingStorageEnforce: `safe` sets `limits`, and `all` sets everything but nojobs and nosteps.
LIMITS_ENFORCED = frozenset({"limits", "safe", "all"})
ENFORCED, BYPASSABLE, UNENFORCED, UNKNOWN = "enforced", "bypassable", "not enforced", "unknown"


class Worth(NamedTuple):
    """`level` is one of enforced, bypassable, not enforced, unknown; `why` says so in a sentence."""

    level: str
    why: str


class Setup(NamedTuple):
    """As far as it decides what limits are worth: AccountingStorageEnforce and AccountingStorageTRES."""

    enforces: Collection[str]
    tracked_tres: Collection[str]


def worth_of(tres: str, setup: Setup | None, plain_amount: int | None = None) -> Worth:
    """Worth of a limit on `tres` (empty: on jobs or time). `plain_amount` is the limit of the same kind and owner on all GPUs, if any."""
    if setup is None:
        return Worth(UNKNOWN, "How this scheduler is set up was not read yet.")
    if not LIMITS_ENFORCED & set(setup.enforces):
        return Worth(UNENFORCED, "AccountingStorageEnforce has neither limits nor safe: Slurm lets every job pass.")
    if tres and tres not in setup.tracked_tres:
        return Worth(UNENFORCED, f"AccountingStorageTRES does not have {tres}: Slurm does not count it.")
    if tres.startswith(f"{GPU}:"):
        return _of_type(tres.removeprefix(f"{GPU}:"), plain_amount)
    return Worth(ENFORCED, "Slurm holds back jobs that would go beyond it.")


def _of_type(name: str, plain_amount: int | None) -> Worth:
    if plain_amount is None:
        return Worth(BYPASSABLE, f"A job that asks for GPUs without naming {name} passes by; set a limit on {GPU} too.")
    return Worth(
        BYPASSABLE, f"A job that asks for GPUs without naming {name} is only bound by the limit of {plain_amount} on {GPU}."
    )


class Gap(NamedTuple):
    """Something in the set-up that makes numbers or limits worth less than they look; `cure` is what to change."""

    what: str
    cure: str


def warnings_of(setup: Setup, models: Iterable[str]) -> list[Gap]:
    """What the set-up of a cluster whose nodes have GPUs of `models` leaves uncounted."""
    present = sorted(set(models))
    if not present:
        return []
    typed = sorted(each.removeprefix(f"{GPU}:") for each in setup.tracked_tres if each.startswith(f"{GPU}:"))
    found = []
    if GPU not in setup.tracked_tres and not typed:
        found.append(
            Gap(
                "GPUs are not tracked: no record says how many it held.",
                f"Add {GPU} to AccountingStorageTRES; it counts from then on.",
            )
        )
    elif GPU not in setup.tracked_tres:
        found.append(
            Gap(
                f"Only {GPU}:{f', {GPU}:'.join(typed)} is tracked: GPUs that are asked for without a type are not accounted.",
                f"Add {GPU} to AccountingStorageTRES beside the types.",
            )
        )
    unnamed = [model for model in present if model not in typed] if typed else []
    if GPU in setup.tracked_tres and unnamed:
        found.append(
            Gap(
                f"GPUs of {', '.join(unnamed)} are counted, but not by model.",
                f"Add {', '.join(f'{GPU}:{model}' for model in unnamed)} to AccountingStorageTRES.",
            )
        )
    if not LIMITS_ENFORCED & set(setup.enforces):
        found.append(Gap("Limits are not enforced.", "Set AccountingStorageEnforce to limits, or to safe."))
    return found


def tracks_gpus(setup: Setup) -> bool:
    """Whether records of this cluster say how many GPUs they held."""
    return any(each == GPU or each.startswith(f"{GPU}:") for each in setup.tracked_tres)
