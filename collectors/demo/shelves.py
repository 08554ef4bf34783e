"""What the invented estate is made of: clusters, shelves (equal nodes with one queue) and the streams of work that they serve. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

WHOLE_GPU = Fraction(1)
NO_GPU = Fraction(0)
MIG_3G = Fraction(3, 7)
QUARTER = Fraction(1, 4)


class Stream(NamedTuple):
    """Work of one sort: records a month, share of the shelf's capacity asked for, sizes in slots with weights, run times.

    `shape` is `batch`, `service`, `notebook` or `gang`; `longest_seconds` is the partition's limit, None where there is none.
    """

    partition: str
    records_a_month: int
    load: float
    sizes: dict[int, float]
    sigma: float
    longest_seconds: int | None
    shape: str = "batch"
    sweep_share: float = 0.0


class Shelf(NamedTuple):
    """`node_count` equal nodes with one queue. A node has `slots` slots, of `slot_gpus` GPUs and `slot_cpus` cores each."""

    prefix: str
    node_count: int
    model: str | None
    gpus: int
    slots: int
    slot_gpus: Fraction
    slot_cpus: int
    memory_mib: int
    pool: str
    streams: tuple[Stream, ...]

    def node_name(self, index: int) -> str:
        return f"{self.prefix}{index + 1:02d}"

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stream.partition for stream in self.streams))


class ClusterPlan(NamedTuple):
    name: str
    scheduler: str
    zone: str
    first_job: int
    shelves: tuple[Shelf, ...]


HOUR = 3600
DAY = 24 * HOUR
_TRAIN = {1: 0.42, 2: 0.14, 4: 0.16, 8: 0.16, 16: 0.07, 32: 0.037, 64: 0.013}
_LARGE = {1: 0.35, 2: 0.2, 4: 0.2, 8: 0.2, 16: 0.05}
_SMALL = {1: 0.7, 2: 0.2, 4: 0.1}
_CORES = {1: 0.5, 2: 0.2, 4: 0.15, 8: 0.1, 16: 0.05}

ALPHA = ClusterPlan(
    "alpha",
    "slurm",
    "Europe/Berlin",
    412_000,
    (
        Shelf("ag-h", 17, "h100", 8, 8, WHOLE_GPU, 16, 2_000_000, "training",
              (Stream("train", 2900, 0.78, _TRAIN, 1.7, 3 * DAY, sweep_share=0.03),)),
        Shelf("ag-a", 12, "a100", 8, 8, WHOLE_GPU, 16, 1_000_000, "training",
              (Stream("train", 2500, 0.52, _LARGE, 1.6, 3 * DAY, sweep_share=0.03),
               Stream("long", 220, 0.27, {1: 0.4, 2: 0.2, 4: 0.25, 8: 0.15}, 0.9, 10 * DAY))),
        Shelf("ag-i", 4, "a100", 4, 4, WHOLE_GPU, 16, 500_000, "interactive",
              (Stream("debug", 900, 0.05, _SMALL, 1.0, HOUR),
               Stream("interactive", 700, 0.3, {1: 0.85, 2: 0.1, 4: 0.05}, 0.9, 8 * HOUR))),
        Shelf("ac-", 8, None, 0, 32, NO_GPU, 4, 512_000, "cpu",
              (Stream("cpu", 1500, 0.5, _CORES, 1.6, 7 * DAY, sweep_share=0.04),)),
    ),
)  # fmt: skip

BOREALIS = ClusterPlan(
    "borealis",
    "slurm",
    "America/New_York",
    88_000,
    (
        Shelf("bv-", 20, "v100", 4, 4, WHOLE_GPU, 10, 384_000, "training",
              (Stream("batch", 1700, 0.73, {1: 0.5, 2: 0.2, 4: 0.2, 8: 0.08, 16: 0.02}, 1.7, 4 * DAY, sweep_share=0.04),)),
        Shelf("bl-", 12, "l40s", 8, 8, WHOLE_GPU, 16, 768_000, "training",
              (Stream("train", 1500, 0.77, _LARGE, 1.6, 4 * DAY, sweep_share=0.03),)),
        Shelf("bd-", 2, "v100", 4, 4, WHOLE_GPU, 10, 384_000, "interactive",
              (Stream("debug", 500, 0.15, _SMALL, 1.0, 2 * HOUR),)),
        Shelf("bc-", 4, None, 0, 24, NO_GPU, 4, 384_000, "cpu",
              (Stream("cpu", 600, 0.4, _CORES, 1.5, 7 * DAY),)),
    ),
)  # fmt: skip

HELIOS = ClusterPlan(
    "helios",
    "kubernetes",
    "UTC",
    1,
    (
        Shelf("serving-h100-", 4, "NVIDIA-H100-80GB-HBM3", 8, 8, WHOLE_GPU, 16, 2_000_000, "serving",
              (Stream("serving-h100", 30, 0.62, {1: 0.5, 2: 0.3, 4: 0.2}, 0.8, None, "service"),)),
        Shelf("batch-a100-", 6, "NVIDIA-A100-SXM4-80GB", 8, 8, WHOLE_GPU, 16, 1_000_000, "training",
              (Stream("batch-a100", 1800, 0.52, {1: 0.6, 2: 0.15, 4: 0.15, 8: 0.07, 16: 0.03}, 1.6, None, "gang"),)),
        Shelf("notebook-mig-", 3, "NVIDIA-A100-SXM4-80GB", 4, 8, MIG_3G, 8, 500_000, "interactive",
              (Stream("notebooks", 520, 0.4, {1: 0.9, 2: 0.1}, 1.0, None, "notebook"),)),
        Shelf("shared-l4-", 8, "NVIDIA-L4", 4, 16, QUARTER, 4, 256_000, "serving",
              (Stream("shared-l4", 750, 0.18, {1: 0.8, 2: 0.15, 4: 0.05}, 1.3, None, "gang"),
               Stream("shared-l4", 40, 0.25, {1: 0.8, 2: 0.2}, 0.8, None, "service"))),
        Shelf("general-", 3, None, 0, 16, NO_GPU, 4, 128_000, "cpu",
              (Stream("general", 300, 0.3, {1: 0.7, 2: 0.2, 4: 0.1}, 1.3, None, "gang"),)),
    ),
)  # fmt: skip

CLUSTERS = (ALPHA, BOREALIS, HELIOS)

# How Kubernetes nodes name their devices, and the one row that each belongs to.
ALIASES = {"NVIDIA-H100-80GB-HBM3": "h100", "NVIDIA-A100-SXM4-80GB": "a100"}
MEMORY_GIB = {"h100": 80, "a100": 80, "v100": 32, "l40s": 48, "NVIDIA-L4": 24}
# A node that joins and a node that leaves, by prefix and index; the shelves above count both.
JOINING = ("alpha", "ag-h", 16)
LEAVING = ("borealis", "bv-", 19)
