"""What Slurm's tools print of its rules: two real versions, odd shapes, and lines that are damaged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.slurm.policy import history, limits, partitions, queue, reservations
from collectors.slurm.policy.config import read_config
from collectors.slurm.policy.reading import Text, section_of, understand, without_titles
from collectors.slurm.policy.text import PolicyTextError, Reading, duration, instant
from estate.domain.policy import Limit

ZONE = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")
VERSIONS = ("slurm-22.05", "slurm-24.11")
ASSOCIATIONS = b"Cluster|Account|User|ParentName|Partition|Share|Priority|Def QOS|QOS|GrpTRES|MaxJobs|MaxWall\n"
EVENTS = b"Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n"


def fixture(shared: Path, version: str, name: str) -> bytes:
    return (shared / "fixtures" / version / name).read_bytes()


# real versions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_json_tells_the_same_partitions_as_text(shared: Path, version: str) -> None:
    text = partitions.read_partitions(fixture(shared, version, "scontrol-show-partition.txt"))
    told = partitions.read_partitions(fixture(shared, version, "restd-slurm-partitions.json"))
    assert text.rejections == told.rejections == ()
    # JSON of 0.0.38 does not say which is the default in its flags; preemption is told by other words.
    plain = [each._replace(preempt_mode="", is_default=False) for each in text.facts]
    assert [each._replace(is_default=False) for each in told.facts] == plain
    assert [each.max_time_seconds for each in text.facts] == [172_800, 1800, 28_800, 86_400, 86_400, None]
    assert [each.name for each in text.facts if each.is_default] == ["train"]


@pytest.mark.parametrize("version", VERSIONS)
def test_json_tells_the_same_reservations_as_text(shared: Path, version: str) -> None:
    text = reservations.read_reservations(fixture(shared, version, "scontrol-show-reservation.txt"), ZONE)
    told = reservations.read_reservations(fixture(shared, version, "restd-slurm-reservations.json"), ZONE)
    assert (text.facts, text.rejections) == (told.facts, told.rejections)
    assert [(each.name, each.is_maintenance) for each in text.facts] == [("course", False), ("maintenance", True)]


@pytest.mark.parametrize("version", VERSIONS)
def test_sdiag_tells_how_deep_the_scheduler_looked(shared: Path, version: str) -> None:
    told = queue.read_diagnosis(fixture(shared, version, "sdiag.txt"))
    assert told.at.date().isoformat() == "2026-11-30"
    assert None not in told.sample
    assert told.sample.backfill_depth != told.sample.backfill_cycle_microseconds


@pytest.mark.parametrize("version", VERSIONS)
def test_each_saved_output_is_known_by_what_it_says(shared: Path, version: str) -> None:
    expected = {
        "scontrol-show-partition.txt": "partitions",
        "restd-slurm-partitions.json": "partitions",
        "scontrol-show-reservation.txt": "reservations",
        "restd-slurm-reservations.json": "reservations",
        "sacctmgr-assoc.psv": "associations",
        "sacctmgr-qos.psv": "qos",
        "sacctmgr-account.psv": "accounts",
        "sacctmgr-event.psv": "events",
        "sacctmgr-reservation.psv": "past_reservations",
        "sshare.psv": "shares",
    }
    assert {name: section_of(fixture(shared, version, name)) for name in expected} == expected


# shapes ---------------------------------------------------------------------------------------------------------------


def test_how_the_scheduler_is_set_up_is_read_from_its_configuration() -> None:
    config = read_config(
        b"Configuration data as of 2026-12-01T05:37:12\nAccountingStorageEnforce = associations,limits,qos,safe\n"
        b"AccountingStorageTRES   = cpu,mem,gres/gpu,gres/gpu:a100\nGresTypes               = gpu,shard\n"
        b"PriorityDecayHalfLife   = 7-00:00:00\nPriorityType            = priority/multifactor\nPriorityFlags           = \n"
        b"PriorityWeightFairShare = 10000\nPriorityWeightTRES      = CPU=100,GRES/gpu=2000\nSLURM_VERSION           = 22.05.8\n"
        b"SlurmctldHost[0]        = vm(127.0.0.1)\n\nSlurmctld(primary) at vm is UP\n"
    )
    assert (config.version, config.half_life_seconds, config.priority_type) == ("22.05.8", 604_800, "priority/multifactor")
    assert config.enforces == ("associations", "limits", "qos", "safe")
    assert dict(config.weights) == {"FairShare": "10000", "TRES": "CPU=100,GRES/gpu=2000"}
    with pytest.raises(PolicyTextError, match="scontrol show config"):
        read_config(b"Configuration data as of 2026-12-01\nClusterName = lab\n")


def test_a_scheduler_that_enforces_nothing_says_none() -> None:
    assert read_config(b"AccountingStorageEnforce = none\nAccountingStorageTRES = cpu\n").enforces == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gres/gpu=28", [("GrpTRES", "gres/gpu", 28)]),
        ("gres/gpu:h100=8,gres/gpu=16", [("GrpTRES", "gres/gpu", 16), ("GrpTRES", "gres/gpu:h100", 8)]),
        ("cpu=100,mem=4000G", [("GrpTRES", "cpu", 100), ("GrpTRES", "mem", 4_096_000)]),
        ("gres/gpu=-1", []),
        ("", []),
        ("node=0", [("GrpTRES", "node", 0)]),
    ],
)
def test_each_tres_of_a_limit_is_a_limit_of_its_own(text: str, expected: object) -> None:
    """A limit of 0 is one; -1 is how Slurm says that there is none."""
    assert [tuple(limit) for limit in limits.limits_of({"GrpTRES": text})] == expected


@pytest.mark.parametrize("text", ["gres/gpu=", "gres/gpu", "gres/gpu=x", "gres/gpu=1,gres/gpu=2", "=4", "gres/gpu=1.5"])
def test_a_limit_that_was_cut_or_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="GrpTRES"):
        limits.limits_of({"GrpTRES": text})


def test_limits_on_jobs_and_time_have_no_tres() -> None:
    found = limits.limits_of({"MaxJobs": "6", "MaxWall": "1-00:00:00", "GrpWall": "90", "MaxSubmit": "", "GrpJobs": "0"})
    assert set(found) == {
        Limit("MaxJobs", "", 6),
        Limit("MaxWall", "", 86_400),
        Limit("GrpWall", "", 5400),
        Limit("GrpJobs", "", 0),
    }


def test_associations_of_other_clusters_are_ignored_and_cut_names_refused() -> None:
    """C1-10: two accounts that share nineteen letters would become one."""
    data = ASSOCIATIONS + (
        b"lab|vision|||  |30|||normal|gres/gpu=4||\n"
        b"other|vision||root||30|||normal|||\n"
        b"lab|dept-bioinformatics+||root||1|||normal|||\n"
        b"lab|vision|alice|||parent|||normal||2|\n"
        b"lab|short\n"
    )
    reading = limits.read_associations(data, "LAB")
    assert [(each.account, each.user, each.shares) for each in reading.facts] == [("vision", "", 30), ("vision", "alice", None)]
    assert (reading.ignored_count, [bad.line_number for bad in reading.rejections]) == (1, [4, 6])


def test_the_tree_of_accounts_comes_with_the_associations() -> None:
    data = ASSOCIATIONS + b"lab|research||root||1||||||\nlab|vision||research||1||||||\nlab|vision|bob|||1||||||\n"
    told = understand([Text("associations", "assoc", data)], "lab", ZONE).facts
    assert told.accounts is not None
    assert {(each.name, each.parent) for each in told.accounts} == {("research", "root"), ("vision", "research")}


def test_a_reason_may_hold_bars_and_an_event_of_the_cluster_is_none_of_a_node() -> None:
    data = EVENTS + (
        b"lab||2026-03-01T10:00:00|Unknown|||Cluster Registered TRES\n"
        b"lab|g1|2026-03-01T10:00:00|2026-03-01T11:00:00|DOWN*|root(0)|Not responding\n"
        b"lab|g2|1796103526|Unknown|DRAIN|al|ice(26001)|ECC | see ticket\n"
        b"lab|g3|2026-03-01T10:00:00|Unknown|IDLE|root(0)|\n"
        b"lab|g4|2026-03-01T10:00:00|2026-03-01T09:00:00|DOWN|root(0)|back in time\n"
        b"lab|g5|Unknown|Unknown|DOWN|root(0)|never\n"
    )
    reading = history.read_events(data, "lab", BERLIN)
    assert [(each.node, each.condition, each.started_at) for each in reading.facts] == [
        ("g1", "down", datetime(2026, 3, 1, 9, tzinfo=UTC)),
        ("g2", "down", datetime.fromtimestamp(1796103526, UTC)),
    ]
    assert reading.facts[0].author == "root"
    assert reading.facts[1].reason.endswith("ECC | see ticket")
    assert (reading.ignored_count, [bad.line_number for bad in reading.rejections]) == (2, [6, 7])


@pytest.mark.parametrize(
    ("flags", "starts", "reason"),
    [
        ("MAINT", "now+1hour", "StartTime"),
        ("MAINT", "0001-13-01T00:00:00", "StartTime"),
        ("MAINT", "Unknown", "no start"),
        ("MAINT", "2026-03-03T00:00:00", "ends before"),
    ],
)
def test_a_reservation_with_a_time_that_cannot_be_is_refused_and_its_neighbour_kept(flags: str, starts: str, reason: str) -> None:
    """C1-17: a date that did not parse was published as the year 1."""
    good = b"ReservationName=good StartTime=2026-03-01T00:00:00 EndTime=2026-03-02T00:00:00 Nodes=g[1-2] Flags=\n"
    bad = f"ReservationName=bad StartTime={starts} EndTime=2026-03-02T00:00:00 Nodes=g1 Flags={flags}\n".encode()
    reading = reservations.read_reservations(bad + good, ZONE)
    assert [(each.name, each.nodes) for each in reading.facts] == [("good", ("g1", "g2"))]
    assert reason in reading.rejections[0].reason


def test_no_reservation_is_an_answer_and_nonsense_is_none() -> None:
    assert reservations.read_reservations(b"No reservations in the system\n", ZONE).facts == ()
    assert reservations.read_reservations(b"", ZONE).facts == ()
    with pytest.raises(PolicyTextError, match="scontrol -o show reservation"):
        reservations.read_reservations(b"slurm_load_reservations error: Unable to contact slurm controller\n", ZONE)


def test_expectations_carry_what_their_priority_is_made_of() -> None:
    ranked = queue.read_priorities(b"111|train|9498|0|0|7500|63|100|500|-5\n").facts
    told = queue.read_queue(
        b"111|111|1796103526|1796104125|PENDING|9498|train|Resources\n"
        b"95|95_[2-19%2]|1796103525|N/A|PENDING|8043|cpu|JobArrayTaskLimit\n"
        b"115|115|1796103526|1796107141|PENDING|1|spare|ReqNodeNotAvail, May be | reserved\n"
        b"7|7|1796103526|1796103527|RUNNING|1|spare|None\n"
        b"8|8|N/A|N/A|PENDING|1|spare|None\n",
        ZONE,
        ranked,
    )
    first, array, odd = told.facts
    assert first.expected_at == datetime.fromtimestamp(1796104125, UTC)
    assert dict(first.priority_parts)["FairShare"] == 7500
    assert dict(first.priority_parts)["Nice"] == -5
    assert (array.external_id, array.expected_at) == ("95", None)
    assert odd.reason == "ReqNodeNotAvail, May be | reserved"
    assert (told.ignored_count, [bad.line_number for bad in told.rejections]) == (1, [5])


def test_fair_share_of_nobody_is_unknown_and_not_zero() -> None:
    reading = queue.read_shares(
        b"Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS\n"
        b"root|||0.000000|9448||1.000000||\n serving|erin|parent|0.5|0|0.000000|0.000000|0.625|inf\n"
    )
    root, erin = reading.facts
    assert (root.account, root.norm_usage, root.level_fs) == ("root", None, None)
    assert (erin.account, erin.raw_shares, erin.level_fs) == ("serving", None, None)


def test_runaway_jobs_are_found_among_the_words_around_them() -> None:
    data = (
        b"NOTE: Runaway jobs are jobs that don't exist in the controller but have a start time and no end time\n"
        b"42|lab|RUNNING|1796103526|1796103527|Unknown\n43|other|RUNNING|1|1|Unknown\n\nWould you like to fix these? (y/N)\n"
    )
    reading = history.read_runaways(data, "lab", ZONE)
    assert [(each.external_id, each.state) for each in reading.facts] == [("42", "RUNNING")]
    assert history.read_runaways(b"Runaway Jobs: No runaway jobs found on cluster lab\n", "lab", ZONE).facts == ()


def test_a_title_of_the_cluster_is_no_line() -> None:
    assert without_titles(b"CLUSTER: lab\n1|2\n") == b"1|2\n"


def test_tables_with_closing_bars_and_unit_separators_read_alike() -> None:
    """C1-5: `-p` closes every line with a further bar."""
    plain = b"Name|Priority|UsageFactor|MaxWall\nnormal|10|1.0|01:00:00\nlow|1|1.0|\n"
    closed = plain.replace(b"\n", b"|\n")
    separated = plain.replace(b"|", b"\x1f")
    assert limits.read_qos(plain) == limits.read_qos(closed) == limits.read_qos(separated)
    assert len(limits.read_qos(plain).facts) == 2


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2-00:00:00", 172_800), ("00:05:00", 300), ("05:00", 300), ("30", 1800), ("UNLIMITED", None), ("", None)],
)
def test_a_time_limit_is_days_hours_minutes_or_just_minutes(text: str, seconds: int | None) -> None:
    assert duration("MaxTime", text) == seconds


def test_a_wall_clock_is_that_of_the_cluster() -> None:
    assert instant("x", "2026-07-01T12:00:00", BERLIN) == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert instant("x", "2026-07-01T12:00:00+0000", BERLIN) == datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert instant("x", "0", BERLIN) is None


# damage ---------------------------------------------------------------------------------------------------------------

Reader = Callable[[bytes], Reading[Any]]
READERS: dict[str, Reader] = {
    "scontrol-show-partition.txt": partitions.read_partitions,
    "restd-slurm-partitions.json": partitions.read_partitions,
    "scontrol-show-reservation.txt": lambda data: reservations.read_reservations(data, ZONE),
    "sacctmgr-assoc.psv": lambda data: limits.read_associations(data, "lab"),
    "sacctmgr-qos.psv": limits.read_qos,
    "sacctmgr-event.psv": lambda data: history.read_events(data, "lab", ZONE),
    "sacctmgr-reservation.psv": lambda data: reservations.read_past_reservations(data, "lab", ZONE),
    "sshare.psv": queue.read_shares,
}
FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures"


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="the folder ../shared with real outputs is not here")
@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_damage_is_refused_and_never_an_exception(name: str, data: st.DataObject) -> None:
    text = bytearray((FIXTURES / data.draw(st.sampled_from(VERSIONS)) / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        damage = data.draw(
            st.sampled_from([b"\0", b"\xff", b"|", b"\n", b"=", b"-", b"99999999999999999999", b"[1-999999999]", b""])
        )
        text[at : at + data.draw(st.integers(0, 40))] = damage
        if not text:
            return
    try:
        reading = READERS[name](bytes(text))
    except PolicyTextError:
        return
    assert all(bad.reason for bad in reading.rejections)


@given(st.binary(max_size=300))
def test_what_is_nothing_known_is_said_so(data: bytes) -> None:
    with pytest.raises(PolicyTextError, match="none that is known"):
        section_of(b"?" + data.replace(b"|", b"").replace(b"\x1f", b""))


def test_lengths_are_bounded() -> None:
    far = b"ReservationName=far StartTime=2026-03-01T00:00:00 EndTime=2026-03-02T00:00:00 Nodes=g[1-99999999] Flags=\n"
    assert "more than" in reservations.read_reservations(far, ZONE).rejections[0].reason
