"""The `demo` command: loads once, changes nothing the second time, keeps out of real estates."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounting.models import ClusterCoverage, DirtyDay, Rate, UsageDay, UsageRecord
from accounting.rates import set_rate
from collectors.demo import people
from collectors.models import Run
from estate.models import AccountMapping, Cluster, GpuModel, NodeInventory, NodeState, Project, ProjectMember, User

UNTIL = date(2026, 11, 10)


def run_demo(**options: Any) -> str:
    out = StringIO()
    call_command("demo", months=1, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def table_counts() -> dict[str, int]:
    kinds = (UsageRecord, UsageDay, Rate, Run, AccountMapping, NodeInventory, NodeState, Project, ProjectMember, User)
    return {kind.__name__: kind._default_manager.count() for kind in kinds}


@pytest.mark.django_db
@pytest.mark.slow
def test_the_demo_loads_and_a_second_run_changes_nothing() -> None:
    said = run_demo(until=UNTIL)
    assert "demo made" in said
    before, sums = table_counts(), checksum()
    assert before["UsageRecord"] > 10_000
    assert not DirtyDay.objects.exists()
    end = datetime(2026, 11, 10, tzinfo=UTC)
    assert not UsageRecord.objects.filter(ended_at=None).exclude(last_seen_at=end).exists()
    again = run_demo(until=UNTIL)
    assert "nothing changed" in again
    assert (table_counts(), checksum()) == (before, sums)
    without_until = run_demo()
    assert "nothing changed" in without_until
    assert (table_counts(), checksum()) == (before, sums)
    with pytest.raises(CommandError, match=r"another seed.*--seed"):
        run_demo(seed=2)
    assert (table_counts(), checksum()) == (before, sums)
    check_governance()


def checksum() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(row_hash::numeric), sum(extract(epoch FROM last_seen_at)) FROM accounting_usagerecord")
        return cursor.fetchone()


def check_governance() -> None:
    assert not AccountMapping.objects.filter(account=people.UNMAPPED_ACCOUNT).exists()
    assert AccountMapping.objects.filter(cluster__name="alpha", account="nlp").count() == 2
    assert Rate.objects.filter(gpu_model__name="h100").count() == 2
    assert not Rate.objects.filter(gpu_model__name="NVIDIA-L4").exists()
    owner = User.objects.get(username="owner-vision")
    assert not owner.has_usable_password()
    assert not owner.may_see_everything
    assert set(ProjectMember.objects.values_list("project__code", "user__username", "role")) == {
        ("P-VISION", "owner-vision", "owner"),
        ("P-VISION", "member-vision", "member"),
    }
    assert NodeInventory.objects.filter(node__name="bv-20", valid_during__upper_inf=False).exists()
    assert NodeInventory.objects.filter(node__name="ag-h17", valid_during__lower_inf=False).exists()
    assert NodeState.objects.filter(valid_during__upper_inf=True).count() == 1


@pytest.mark.django_db
def test_the_demo_refuses_to_mix_with_usage_of_another_cluster() -> None:
    real = Cluster.objects.create(name="graham", scheduler="slurm")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ClusterCoverage.objects.create(cluster=real, first_at=now, through_at=now)
    with pytest.raises(CommandError, match=r"graham.*--force"):
        run_demo()
    assert not UsageRecord.objects.exists()
    assert not Project.objects.exists()


@pytest.mark.django_db
def test_a_real_cluster_with_a_name_of_the_demo_is_left_alone_even_with_force() -> None:
    real = Cluster.objects.create(name="alpha", scheduler="slurm")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ClusterCoverage.objects.create(cluster=real, first_at=now, through_at=now)
    with pytest.raises(CommandError, match="alpha holds other usage"):
        run_demo(force=True)
    assert not UsageRecord.objects.exists()


@pytest.mark.django_db
class TestSettingARate:
    """A new rate closes the one in force and leaves the past and the future alone."""

    def rates(self) -> list[tuple[str, date | None, date | None]]:
        rows = Rate.objects.order_by("valid_during").values_list("price", "valid_during")
        return [(f"{price:.0f}", span.lower, span.upper) for price, span in rows]

    def put(self, price: str, since: date) -> bool:
        model = GpuModel.objects.get_or_create(name="h100")[0]
        return set_rate(model, price=Decimal(price), cost=Decimal(1), since=since)

    def test_a_new_rate_closes_the_one_in_force(self) -> None:
        assert self.put("2", date(2026, 1, 1))
        assert self.put("3", date(2026, 6, 1))
        assert self.rates() == [("2", date(2026, 1, 1), date(2026, 6, 1)), ("3", date(2026, 6, 1), None)]

    def test_setting_what_is_so_changes_nothing(self) -> None:
        self.put("2", date(2026, 1, 1))
        self.put("3", date(2026, 6, 1))
        assert not self.put("2", date(2026, 1, 1))
        assert not self.put("3", date(2026, 6, 1))
        assert not self.put("3", date(2026, 7, 1))
        assert len(self.rates()) == 2

    def test_a_rate_inside_a_span_leaves_the_later_rate_alone(self) -> None:
        self.put("2", date(2026, 1, 1))
        self.put("3", date(2026, 6, 1))
        assert self.put("5", date(2026, 3, 1))
        spans = [(since, until) for _, since, until in self.rates()]
        assert spans == [
            (date(2026, 1, 1), date(2026, 3, 1)),
            (date(2026, 3, 1), date(2026, 6, 1)),
            (date(2026, 6, 1), None),
        ]

    def test_a_rate_before_the_first_known_one_ends_where_that_begins(self) -> None:
        self.put("3", date(2026, 6, 1))
        assert self.put("2", date(2026, 1, 1))
        assert self.rates() == [("2", date(2026, 1, 1), date(2026, 6, 1)), ("3", date(2026, 6, 1), None)]

    def test_a_price_of_the_same_first_day_is_corrected(self) -> None:
        self.put("2", date(2026, 1, 1))
        assert self.put("4", date(2026, 1, 1))
        assert self.rates() == [("4", date(2026, 1, 1), None)]
