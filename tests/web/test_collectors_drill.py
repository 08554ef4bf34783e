"""The bad-line drill: 10,000 lines of which 100 are broken in ten ways, from the command to the page."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from accounting.models import UsageRecord
from collectors.models import Run
from tests.core.badlines import drill

pytestmark = pytest.mark.django_db


def test_9900_lines_go_in_and_100_are_on_the_page_with_line_and_reason(as_lead: Client, tmp_path: Path) -> None:
    lines, broken = drill()
    path = tmp_path / "jobs.txt"
    path.write_bytes(b"".join(lines))
    err = io.StringIO()

    call_command("collect", "import", "sacct", "--cluster", "alpha", str(path), stderr=err)

    assert "lines 10,000 = accepted 9,900 + rejected 100 + ignored 0" in err.getvalue()
    assert UsageRecord.objects.count() == 9_900
    url = f"/collectors/runs/{Run.objects.get().pk}/"
    pages = [as_lead.get(url, {"page": number}).content.decode() for number in (1, 2)]
    shown = [
        (line, reason)
        for page in pages
        for line, reason in re.findall(r'<th scope="row" class="num">(\S+)</th><td>(.+?)</td>', page)
    ]
    assert [int(line.replace(",", "")) for line, _ in shown] == sorted(broken)
    assert all(reason for _, reason in shown)
    assert "10,000 = 9,900 accepted + 100 rejected + 0 ignored" in pages[0]
