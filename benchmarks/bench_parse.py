"""Lines per second on one core: bytes → typed row, and bytes → usage record.

    python -m benchmarks.bench_parse [DUMP] [--cluster NAME] [--rounds N] [--profile]

DUMP is a saved `sacct --parsable2` text, plain or gzip; without one, 100,000 made lines are read. The best of the rounds is
printed: a shared machine only ever makes a run slower.
"""

from __future__ import annotations

import argparse
import cProfile
import gzip
import pstats
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from collectors.slurm.columns import read_header
from collectors.slurm.parse import SacctParser
from collectors.slurm.reader import SacctReader
from tests.core.badlines import HEADER, good_line

MADE_LINES = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", nargs="?", type=Path)
    parser.add_argument("--cluster", default="alpha")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="show where the time of the second stage goes")
    options = parser.parse_args()
    lines = _lines(options.dump)
    for stage, run in (("row", _to_rows), ("record", _to_records)):
        seconds = min(_seconds(run, lines, options.cluster) for _ in range(options.rounds))
        print(f"{stage:8}{len(lines) / seconds:>12,.0f} lines/s {seconds / len(lines) * 1e6:>8.1f} µs/line")
    if options.profile:
        with cProfile.Profile() as profile:
            _to_records(lines, options.cluster)
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)


def _lines(dump: Path | None) -> list[bytes]:
    if dump is None:
        return [HEADER.encode() + b"\n", *map(good_line, range(MADE_LINES))]
    data = dump.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).splitlines(keepends=True)


def _seconds(run: Callable[[list[bytes], str], None], lines: list[bytes], cluster: str) -> float:
    begun = time.process_time()
    run(lines, cluster)
    return time.process_time() - begun


def _to_rows(lines: list[bytes], cluster: str) -> None:
    parser = SacctParser(read_header(lines[0]), cluster=cluster, zone=ZoneInfo("UTC"))
    deque(map(parser.parse, lines[1:], range(2, len(lines) + 1)), maxlen=0)


def _to_records(lines: list[bytes], cluster: str) -> None:
    deque(SacctReader(lines, cluster=cluster, zone=ZoneInfo("UTC"), now=datetime.now(UTC)), maxlen=0)


if __name__ == "__main__":
    main()
