"""The test bed itself: what the other tests of this folder stand on."""

from __future__ import annotations

from tests.slurm.conftest import TestBed


def test_a_real_slurm_answers(slurm_bed: TestBed) -> None:
    assert slurm_bed.run("sacct", "--version").startswith("slurm")
    assert "gpu01" in slurm_bed.run("scontrol", "-o", "show", "node")
