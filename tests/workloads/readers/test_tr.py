import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given

from tests.workloads.strategies import workloads
from workloads.errors import InputError, printable
from workloads.jobs import make_workload
from workloads.readers.tr import read_tr, write_tr

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")


@pytest.mark.reference
@pytest.mark.parametrize(
    ("name", "jobs", "tasks", "cutoff", "partition"),
    [("YH1_sub", 2910, 122878, 90.5811, 0.98), ("GOOG_subtrace", 10000, 312558, 1129.532, 0.83)],
)
def test_real_traces(name, jobs, tasks, cutoff, partition):
    path = SHARED / "traces" / f"{name}.tr"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    workload = read_tr(path)
    assert (workload.name, workload.num_jobs, workload.num_tasks) == (name, jobs, tasks)
    assert (workload.short_cutoff_s, workload.long_partition) == (cutoff, partition)
    assert workload.notes == ()
    lines = path.read_text().split("\n")
    for row in (0, jobs // 2, jobs - 1):
        fields = [float(x) for x in lines[row].split()]
        first = workload.arrays().first_task
        assert workload.jobs["submit_s"][row].as_py() == fields[0]
        assert workload.jobs["mean_task_s"][row].as_py() == fields[2]
        assert workload.tasks["duration_s"][int(first[row]) : int(first[row + 1])].to_pylist() == fields[3:]


@given(workloads())
def test_a_round_trip_is_exact(tmp_path_factory, workload):
    folder = tmp_path_factory.mktemp("tr")
    for name in ("w.tr", "w.tr.gz"):
        write_tr(workload, folder / name)
        again = read_tr(folder / name)
        assert again.name == "w"
        assert again.fingerprint() == workload.fingerprint()
    assert gzip.decompress((folder / "w.tr.gz").read_bytes()) == (folder / "w.tr").read_bytes()


def test_the_same_workload_gives_the_same_bytes(tmp_path):
    workload = make_workload("w", [0.0, 1.0], [1, 2], [1.0, 2.0, 3.0])
    for name in ("a.tr.gz", "b.tr.gz"):
        write_tr(workload, tmp_path / name)
    assert (tmp_path / "a.tr.gz").read_bytes() == (tmp_path / "b.tr.gz").read_bytes()
    assert (tmp_path / "a.tr.gz").read_bytes()[4:8] == bytes(4)  # the header's time


def test_gzip_is_known_by_content_and_blank_lines_are_ignored(tmp_path):
    text = b"\n0 1 2.5 2\r\n\n  1.5\t2.0 3 1e0 .5  \n\n7 1 1 1"
    (tmp_path / "plain.tr").write_bytes(text)
    (tmp_path / "packed.tr").write_bytes(gzip.compress(text))
    plain, packed = read_tr(tmp_path / "plain.tr"), read_tr(tmp_path / "packed.tr")
    assert plain.fingerprint() == packed.fingerprint()
    assert plain.jobs["mean_task_s"].to_pylist() == [2.5, 3.0, 1.0]
    assert plain.jobs["num_tasks"].to_pylist() == [1, 2, 1]
    assert plain.tasks["duration_s"].to_pylist() == [2.0, 1.0, 0.5, 1.0]


def test_what_is_no_file_is_named(tmp_path):
    for path in (tmp_path, tmp_path / "none.tr", tmp_path / ("x" * 300), tmp_path / "a\0b"):
        with pytest.raises(InputError) as caught:
            read_tr(path)
        assert str(caught.value).startswith(f"{printable(str(path))}: ")


def test_a_truncated_gzip_is_named(tmp_path):
    path = tmp_path / "w.tr.gz"
    path.write_bytes(gzip.compress(b"0 1 1 1\n" * 1000)[:-10])
    with pytest.raises(InputError, match=r"w\.tr\.gz: line \d+: the gzip stream ends too early"):
        read_tr(path)


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    workload = make_workload("w", [0.0], [1], [1.0], tenant=["a"])
    with pytest.raises(InputError, match="has no tenant"):
        write_tr(workload, tmp_path / "w.tr")
    assert not (tmp_path / "w.tr").exists()
