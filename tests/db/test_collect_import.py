"""`collect import`: saved dumps by hand."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounting.models import DirtyDay, Intake, UsageDay, UsageRecord
from collectors.models import Rejection, Run, RunStatus
from estate.models import Cluster
from tests.db.dumps import BROKEN, dump, job, step, write

pytestmark = pytest.mark.django_db


def collect(*words: str | Path) -> str:
    """Run the command; returns what it said on stderr. On stdout it may say nothing."""
    out, err = io.StringIO(), io.StringIO()
    call_command("collect", *map(str, words), stdout=out, stderr=err)
    assert out.getvalue() == ""
    return err.getvalue()


def sacct(*words: str | Path, cluster: str = "alpha") -> str:
    return collect("import", "sacct", "--cluster", cluster, *words)


def test_a_dump_goes_in_with_its_cluster_its_run_and_its_rollups(tmp_path: Path) -> None:
    said = sacct("--zone", "Europe/Berlin", write(tmp_path / "jobs.txt", job(1), job(2), step(2)))

    assert Cluster.objects.get().zone == "Europe/Berlin"
    assert UsageRecord.objects.count() == 2
    run = Run.objects.get()
    assert (run.status, run.line_count, run.accepted_count, run.rejected_count, run.ignored_count) == (RunStatus.DONE, 3, 2, 0, 1)
    assert run.changed_count == 2
    assert not DirtyDay.objects.exists()
    assert sum(day.gpu_seconds for day in UsageDay.objects.all()) == 2 * 2 * 3600
    assert "lines 3 = accepted 2 + rejected 0 + ignored 1; changed rows 2, rebuilt days 1;" in said


def test_the_same_dump_again_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.txt", job(1), job(2))
    sacct(path)
    before = list(UsageRecord.objects.order_by("external_id").values())

    said = sacct(path)

    assert "changed rows 0, rebuilt days 0;" in said
    assert list(UsageRecord.objects.order_by("external_id").values()) == before
    assert Run.objects.filter(status=RunStatus.DONE).count() == 2


def test_gzip_is_read_as_it_is_and_several_files_at_once(tmp_path: Path) -> None:
    said = sacct(write(tmp_path / "a.gz", job(1)), write(tmp_path / "b.txt", job(2)))

    assert UsageRecord.objects.count() == 2
    assert "lines 2 = accepted 2 +" in said


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_is_standard_input_packed_or_not(pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pack(dump(job(1)).encode()))))

    sacct("-")

    assert Run.objects.get().input_name == "standard input"
    assert UsageRecord.objects.count() == 1


def test_refused_lines_are_told_kept_and_counted_while_the_others_go_in(tmp_path: Path) -> None:
    said = sacct(write(tmp_path / "jobs.txt", job(1), BROKEN, job(2), "a\x00b"))

    assert UsageRecord.objects.count() == 2
    assert list(Rejection.objects.values_list("line_number", flat=True)) == [3, 5]
    assert Rejection.objects.get(line_number=3).raw == BROKEN
    assert "\x00" not in Rejection.objects.get(line_number=5).raw
    assert Intake.objects.get().rejected_count == 2
    assert "line 3: " in said
    assert f"/collectors/runs/{Run.objects.get().pk}/" in said


def test_only_the_first_five_refused_lines_are_told(tmp_path: Path) -> None:
    said = sacct(write(tmp_path / "jobs.txt", job(1), *[BROKEN] * 7))

    assert sum(line.startswith("line ") for line in said.splitlines()) == 5
    assert "7 lines were rejected" in said


def test_of_very_many_refused_lines_all_are_counted_and_a_bounded_number_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collectors.runs.KEPT_REJECTIONS", 10)
    lines = [line for number in range(8) for line in (BROKEN, BROKEN, job(number + 1))]

    said = sacct(write(tmp_path / "jobs.txt", *lines))

    assert Rejection.objects.count() == 10
    assert Run.objects.get().rejected_count == 16
    assert "16 lines were rejected; the first 10 are kept." in said


def test_a_dump_of_which_nothing_can_be_taken_in_fails(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nothing could be taken in"):
        sacct(write(tmp_path / "jobs.txt", BROKEN))

    assert Rejection.objects.count() == 1


def test_an_empty_dump_with_a_header_is_no_failure(tmp_path: Path) -> None:
    assert "lines 0 = accepted 0 +" in sacct(write(tmp_path / "jobs.txt"))


def truncated(path: Path) -> None:
    path.write_bytes(gzip.compress(dump(*map(job, range(1, 2000))).encode())[:-400])


def damaged(path: Path) -> None:
    data = bytearray(gzip.compress(dump(job(1)).encode()))
    data[-6] ^= 0xFF
    path.write_bytes(data)


BAD_FILES = {
    "missing": (lambda path: None, "no such file or directory"),
    "a folder": (lambda path: path.mkdir(), "is a folder"),
    "no gzip": (lambda path: path.write_text(dump(job(1))), "is called .gz but is not gzip"),
    "empty": (lambda path: path.write_bytes(b""), "is called .gz but is not gzip"),
    "truncated": (truncated, "ends early"),
    "damaged": (damaged, "damaged"),
    "no header": (lambda path: path.write_bytes(gzip.compress(job(1).encode())), "header"),
}


@pytest.mark.parametrize(("make", "words"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_fails_in_one_clear_line_and_leaves_no_record(
    make: Callable[[Path], object], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.gz"
    make(path)

    with pytest.raises(CommandError, match=words) as failure:
        sacct(path)

    assert "\n" not in str(failure.value)
    assert str(path) in str(failure.value)
    assert not UsageRecord.objects.exists()
    assert not Run.objects.exclude(status=RunStatus.FAILED).exists()


def test_a_missing_file_does_not_even_make_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        sacct(tmp_path / "missing.txt")

    assert not Cluster.objects.exists()


def test_one_broken_file_does_not_hold_up_the_others(tmp_path: Path) -> None:
    broken = tmp_path / "a.gz"
    truncated(broken)

    with pytest.raises(CommandError, match="ends early"):
        sacct(broken, write(tmp_path / "b.txt", job(1)))

    assert UsageRecord.objects.count() == 1
    assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.DONE, RunStatus.FAILED}


def test_a_cluster_whose_records_are_in_keeps_its_zone(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.txt", job(1))
    sacct("--zone", "Europe/Berlin", path)

    with pytest.raises(CommandError, match=r"prints times in Europe/Berlin, not UTC.*leave out --zone"):
        sacct("--zone", "UTC", path)

    sacct(path)
    assert Cluster.objects.get().zone == "Europe/Berlin"


def test_the_zone_can_be_corrected_while_nothing_is_in(tmp_path: Path) -> None:
    headless = tmp_path / "bad.txt"
    headless.write_text(job(1))
    with pytest.raises(CommandError, match="header"):
        sacct(headless)

    sacct("--zone", "Europe/Berlin", write(tmp_path / "jobs.txt", job(1)))

    assert Cluster.objects.get().zone == "Europe/Berlin"


def test_a_zone_that_does_not_exist_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Mars is no IANA time zone"):
        sacct("--zone", "Mars", write(tmp_path / "jobs.txt", job(1)))


def test_a_slurm_dump_does_not_go_into_a_kubernetes_cluster(tmp_path: Path) -> None:
    Cluster.objects.create(name="alpha", scheduler="kubernetes")

    with pytest.raises(CommandError, match=r"cluster alpha is Kubernetes.*another name with --cluster"):
        sacct(write(tmp_path / "jobs.txt", job(1)))


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "../x", "a b", "'; drop table x", "x" * 65, "-x"])
def test_a_name_that_is_no_cluster_name_is_refused_and_nothing_is_made(tmp_path: Path, name: str) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text("JobID|Submit\n")
    with pytest.raises(CommandError, match="is no cluster name; write 1 to 64"):
        call_command("collect", "import", "sacct", f"--cluster={name}", str(dump))
    assert not Cluster.objects.exists()


def test_a_first_import_that_fails_leaves_no_cluster_behind(tmp_path: Path) -> None:
    (tmp_path / "no.txt").write_text("this is no header\n")

    with pytest.raises(CommandError):
        call_command("collect", "import", "sacct", "--cluster", "brandnew", str(tmp_path / "no.txt"), stderr=io.StringIO())

    assert not Cluster.objects.filter(name="brandnew").exists()
    assert not Run.objects.exists()


@pytest.mark.parametrize("lines", [[job(1)], [BROKEN]])
def test_a_cluster_stays_once_anything_of_it_was_read(lines: list[str], tmp_path: Path) -> None:
    good = write(tmp_path / "good.txt", *lines)
    (tmp_path / "no.txt").write_text("this is no header\n")

    with pytest.raises(CommandError):
        call_command(
            "collect", "import", "sacct", "--cluster", "brandnew", str(good), str(tmp_path / "no.txt"), stderr=io.StringIO()
        )

    assert Run.objects.filter(cluster__name="brandnew").count() == 2


def test_a_failed_import_leaves_a_cluster_that_was_there(slurm: Cluster, tmp_path: Path) -> None:
    (tmp_path / "no.txt").write_text("this is no header\n")

    with pytest.raises(CommandError):
        call_command("collect", "import", "sacct", "--cluster", slurm.name, str(tmp_path / "no.txt"), stderr=io.StringIO())

    assert Run.objects.get().status == "failed"
