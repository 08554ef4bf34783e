"""Invented projects, accounts and users: a tree, dated rules from accounts to it, and who works for whom. Pure."""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import NamedTuple

from collectors.demo.draws import weighted

ORGANISATION = ("ORG-LUMEN", "Lumen Research")
UNMAPPED_ACCOUNT = "guest"
USER_COUNT = 120

COST_CENTRES = {
    "CC-PERCEPT": "Perception",
    "CC-LANG": "Language",
    "CC-SCI": "Scientific computing",
    "CC-PROD": "Products and serving",
    "CC-CORE": "Platform and core research",
}
# account: (project name, cost centre, weight on each of alpha, borealis and helios)
PROJECTS: dict[str, tuple[str, str, tuple[float, float, float]]] = {
    "vision": ("Vision", "CC-PERCEPT", (9, 2, 3)),
    "lidar": ("Lidar fusion", "CC-PERCEPT", (3, 2, 0)),
    "video": ("Video understanding", "CC-PERCEPT", (5, 0, 1)),
    "robotics": ("Robot control", "CC-PERCEPT", (2, 4, 1)),
    "maps": ("Map building", "CC-PERCEPT", (0, 2, 1)),
    "llm": ("Foundation language models", "CC-LANG", (12, 0, 4)),
    "nlp": ("Text analytics", "CC-LANG", (4, 3, 1)),
    "speech": ("Speech", "CC-LANG", (3, 3, 2)),
    "translate": ("Translation", "CC-LANG", (2, 2, 2)),
    "retrieval": ("Retrieval", "CC-LANG", (1, 2, 2)),
    "climate": ("Climate downscaling", "CC-SCI", (2, 5, 0)),
    "proteins": ("Protein folding", "CC-SCI", (3, 3, 0)),
    "materials": ("Materials screening", "CC-SCI", (1, 4, 0)),
    "fluids": ("Fluid dynamics", "CC-SCI", (1, 3, 0)),
    "astro": ("Sky surveys", "CC-SCI", (0, 3, 1)),
    "genomics": ("Genomics", "CC-SCI", (1, 2, 0)),
    "assistant": ("Assistant", "CC-PROD", (2, 0, 9)),
    "search": ("Search ranking", "CC-PROD", (1, 1, 6)),
    "ads": ("Catalogue matching", "CC-PROD", (0, 1, 4)),
    "moderation": ("Moderation", "CC-PROD", (0, 0, 3)),
    "docs": ("Document understanding", "CC-PROD", (1, 1, 3)),
    "compilers": ("Compilers and kernels", "CC-CORE", (2, 2, 1)),
    "benchmarks": ("Benchmarks", "CC-CORE", (1, 1, 1)),
    "teaching": ("Teaching", "CC-CORE", (1, 2, 2)),
    "optim": ("Optimisation", "CC-CORE", (2, 1, 0)),
}
# Accounts that change hands half-way, and to which project.
MOVES = {("alpha", "nlp"): "llm", ("borealis", "materials"): "proteins", ("helios", "ads"): "search"}
GUEST_WEIGHT = 1.0

_HEADS = ("ta", "mo", "ri", "ke", "su", "vel", "na", "ori", "bru", "fen", "ha", "ilo", "jen", "lu", "pa", "zor")
_TAILS = ("vo", "rin", "la", "dek", "mira", "son", "ti", "quell", "bas", "ny", "rok", "the", "wyn", "xi")


class Person(NamedTuple):
    name: str
    weight: float


class Crowd:
    """Who submits: an account by its weight on the cluster, then one of its people by theirs (few do most)."""

    def __init__(self, rng: Random) -> None:
        names = _names(rng, USER_COUNT)
        self.names = names
        accounts = [*PROJECTS, UNMAPPED_ACCOUNT]
        members: dict[str, list[Person]] = {account: [] for account in accounts}
        for index, name in enumerate(names):
            homes = [accounts[index % len(accounts)], *rng.sample(accounts, k=rng.choice((0, 0, 1)))]
            for account in dict.fromkeys(homes):
                members[account].append(Person(name, rng.paretovariate(1.1)))
        self._members = members
        self._up_to = {account: list(accumulate(person.weight for person in people)) for account, people in members.items()}

    def draw(self, rng: Random, cluster_index: int) -> tuple[str, str]:
        """An account and a user of it."""
        accounts, weights = _ACCOUNTS[cluster_index]
        account = weighted(rng, accounts, weights)
        return account, weighted(rng, self._members[account], self._up_to[account]).name


def project_code(account: str) -> str:
    return f"P-{account.upper()}"


def _accounts(cluster_index: int) -> tuple[list[str], list[float]]:
    weights = {account: project[2][cluster_index] for account, project in PROJECTS.items() if project[2][cluster_index]}
    weights[UNMAPPED_ACCOUNT] = GUEST_WEIGHT
    return list(weights), list(accumulate(weights.values()))


_ACCOUNTS = tuple(_accounts(index) for index in range(3))


def _names(rng: Random, count: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        names[f"{rng.choice(_HEADS)}{rng.choice(_TAILS)}.{rng.choice(_HEADS)}{rng.choice(_TAILS)}"] = None
    return list(names)
