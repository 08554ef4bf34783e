"""C3-42: where GPUs are not counted, a record that names none is silent about them; that is not the same as none."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from zoneinfo import ZoneInfo

import pytest

from accounting.domain.records import UsageRecord
from collectors.slurm.blocks import SacctBlocks
from collectors.slurm.reader import SacctReader
from collectors.slurm.rest.reader import RestReader
from collectors.slurm.rest.versions import dialect_of
from tests.core.slurm_rest.jobs import VERSIONS, live_job, state, stored_job

NOW = datetime(2026, 3, 2, tzinfo=UTC)
LATER = datetime(2026, 12, 1, tzinfo=UTC)
HEADER = b"JobID|Submit|Eligible|Start|End|State|AllocTRES|NodeList|ReqTRES\n"
ON_A_GPU_NODE = (
    b"1|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T01:00:00|COMPLETED|cpu=8,node=1|g1|cpu=8\n"
)
WAITED = b"2|2026-03-01T00:00:00|2026-03-01T00:00:00|None|2026-03-01T01:00:00|CANCELLED||None assigned|cpu=8\n"
NAMED = ON_A_GPU_NODE.replace(b"1|2026", b"3|2026", 1).replace(b"cpu=8,node=1", b"cpu=8,gres/gpu=2,node=1")


def read(tracks_gpus: bool, *lines: bytes) -> dict[str, Decimal | None]:
    reader = SacctReader([HEADER, *lines], cluster="alpha", zone=ZoneInfo("UTC"), now=NOW, tracks_gpus=tracks_gpus)
    records: list[UsageRecord] = list(reader)
    assert reader.rejections == []
    return {record.external_id: record.gpus for record in records}


@pytest.mark.parametrize(("tracks_gpus", "expected"), [(True, Decimal(0)), (False, None)])
def test_what_is_not_counted_is_unknown_and_not_zero(tracks_gpus: bool, expected: Decimal | None) -> None:
    assert read(tracks_gpus, ON_A_GPU_NODE) == {"1": expected}


def test_a_record_that_never_started_held_none_and_one_that_names_gpus_held_them() -> None:
    assert read(False, WAITED, NAMED) == {"2": Decimal(0), "3": Decimal(2)}


def test_many_lines_at_a_time_are_read_alike() -> None:
    dump = BytesIO(b"".join([HEADER, ON_A_GPU_NODE, WAITED, NAMED]))
    blocks = SacctBlocks(dump, cluster="alpha", zone=ZoneInfo("UTC"), now=NOW, tracks_gpus=False)
    told = {
        name: block.holdings[place].gpus
        for block in blocks
        for name, place in block.frame.select("external_id", "holding").iter_rows()
    }
    assert told == {"1": None, "2": Decimal(0), "3": Decimal(2)}
    assert blocks.rejected_count == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_books_do_not_count_is_told_by_the_gres_detail_of_what_runs(version: str) -> None:
    counted = [{"type": "cpu", "name": "", "id": 1, "count": 4}, {"type": "node", "name": "", "id": 4, "count": 2}]
    stored = stored_job(version, state={"current": state(version, "RUNNING"), "reason": "None"})
    stored |= {"tres": {"allocated": counted, "requested": counted}, "time": stored["time"] | {"end": 0}}
    submitted = live_job(version)["submit_time"]
    live = live_job(
        version,
        job_id=7,
        job_state=state(version, "RUNNING"),
        nodes="gpu[01-02]",
        start_time=submitted,
        tres_alloc_str="cpu=4,node=2",
        gres_detail=["gpu:h100:1(IDX:0)", "gpu:h100:2(IDX:1-2)"],
    )
    for waiting, expected in (((live,), Decimal(3)), ((), None)):
        reader = RestReader([stored], waiting, dialect=dialect_of(version), cluster="lab", now=LATER, tracks_gpus=False)
        assert [(record.external_id, record.gpus) for record in reader] == [("7", expected)]
        assert reader.rejections == []
