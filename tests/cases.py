"""The number of a case of the table of Slurm cases, in the id of a test that stands alone."""

from __future__ import annotations

import pytest


def case(*numbers: int) -> pytest.MarkDecorator:
    """Gives the test an argument `case` that it need not use, and the id `C7` (or `C7-C8`)."""
    return pytest.mark.parametrize("case", [pytest.param(numbers, id="-".join(f"C{number}" for number in numbers))])
