"""Every case of the table has a test that carries its number in its id."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
# Nothing reads metrics of devices yet (DCGM, Prometheus): there is no sum over devices and no device number that could be wrong.
NOT_YET = {51, 54}


def test_every_case_of_the_table_is_tested_by_its_number(shared: Path) -> None:
    rows = re.findall(r"^\| (\d+) \|", (shared / "cases" / "slurm.md").read_text(), re.MULTILINE)
    sources = "\n".join(path.read_text() for path in TESTS.rglob("*.py"))
    written = " ".join(re.findall(r'\bid=f?"([^"]+)"', sources))
    ids = set(map(int, re.findall(r"\bC(\d{1,3})\b", written)))
    for numbers in re.findall(r"@case\(([\d, ]+)\)", sources):
        ids |= {int(number) for number in numbers.split(",")}
    cases = set(map(int, rows))
    assert len(cases) > 70
    assert cases - ids == NOT_YET
