import gzip
import random
import tempfile

import pytest

from tests.workloads.alibaba_files import JOB_A, archive, folder_of, refused, stage
from workloads import limits
from workloads.readers import alibaba_2018
from workloads.readers.alibaba_2018 import convert_alibaba_2018


def test_too_little_memory_is_said(tmp_path):
    source = folder_of(tmp_path / "in", JOB_A)
    assert refused(source, tmp_path / "out", memory="x").startswith("memory: 'x' is not a size")
    assert refused(source, tmp_path / "out", memory="1 kB").startswith("field memory: 0MiB do not suffice")


def test_what_is_missing_or_twice_is_named(tmp_path):
    source = folder_of(tmp_path / "in", JOB_A)
    assert "in: holds no batch_instance.csv" in refused(source, tmp_path / "out", instances=True)
    assert "field shortest_s: -1 is not a duration" in refused(source, tmp_path / "out", shortest_s=-1)
    (source / "batch_task.csv.gz").write_bytes(gzip.compress(JOB_A.encode()))
    assert "holds batch_task, and so does" in refused(source, tmp_path / "out")
    empty = folder_of(tmp_path / "empty", "")
    assert "empty: batch_task is empty: it has no rows" in refused(empty, tmp_path / "out")
    (empty / "batch_task.csv").unlink()
    assert "empty: holds no batch_task, such as batch_task.csv" in refused(empty, tmp_path / "out")
    assert "cannot be read: No such file" in refused(tmp_path / "nowhere", tmp_path / "out")


def test_times_and_counts_that_cannot_be_are_refused(tmp_path, monkeypatch):
    source = folder_of(tmp_path / "in", JOB_A + stage("j_8", "M\x1b", end=5_000_000_000))
    assert refused(source, tmp_path / "out").startswith(
        f"{source / 'batch_task.csv'}: line 6: field end_time: '5000000000'; are the times in seconds?"
    )
    folder_of(source, stage("j_8", "M1", number=10**11))
    assert refused(source, tmp_path / "out").startswith(
        f"{source}: field instance_num: makes 100,000,000,000 tasks"
    )
    folder_of(source, stage("j_8", "M1", number=1.5))
    assert refused(source, tmp_path / "out").startswith(
        f"{source / 'batch_task.csv'}: line 1: field instance_num: '1.5'; want a whole number"
    )
    monkeypatch.setattr(limits, "free_bytes", lambda: 7 * limits.TASK_BYTES)
    monkeypatch.setattr(alibaba_2018, "size_of", lambda source: 0)
    assert "makes 8 tasks" in refused(folder_of(source, JOB_A), tmp_path / "out")


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_):
        raise RuntimeError("Query interrupted")  # as DuckDB says it

    monkeypatch.setattr(alibaba_2018, "resolve_edges", interrupted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with pytest.raises(KeyboardInterrupt):
        convert_alibaba_2018(folder_of(tmp_path / "in", JOB_A), tmp_path / "out")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["batch_task.csv", "in", "temporary"]


def test_a_truncated_archive_is_named(tmp_path):
    rows = "".join(stage(f"j_{i}", f"task_{random.Random(i).random()}") for i in range(5000))
    path = archive(tmp_path / "batch_task.tar.gz", {"batch_task.csv": rows})
    path.write_bytes(path.read_bytes()[:-5000])
    assert refused(path, tmp_path / "out") == (
        f"{path}: the gzip stream ends too early; the file is truncated"
    )
