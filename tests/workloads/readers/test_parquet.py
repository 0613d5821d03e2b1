import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from tests.workloads.strategies import workloads
from workloads.errors import InputError
from workloads.jobs import make_workload
from workloads.readers.parquet import read_parquet, write_parquet


@given(workloads(labelled=True))
def test_a_round_trip_keeps_everything(tmp_path_factory, workload):
    folder = tmp_path_factory.mktemp("w")
    write_parquet(workload, folder)
    again = read_parquet(folder)
    assert again.fingerprint() == workload.fingerprint()
    assert again.jobs.drop(["submit_s", "mean_task_s"]).equals(
        workload.jobs.drop(["submit_s", "mean_task_s"])
    )
    assert again.metadata == workload.metadata
    assert again.short_cutoff_s == workload.short_cutoff_s
    assert again.long_partition == workload.long_partition
    assert again.name == folder.name
    assert again.notes == ()


def test_the_same_workload_gives_the_same_bytes(tmp_path):
    rng = np.random.default_rng(1)
    workload = make_workload("w", np.arange(100.0), [3] * 100, rng.random(300), metadata={"b": "1", "a": "2"})
    for name in "ab":
        write_parquet(workload, tmp_path / name)
    write_parquet(read_parquet(tmp_path / "a"), tmp_path / "c")
    for file in ("jobs.parquet", "tasks.parquet"):
        data = {(tmp_path / name / file).read_bytes() for name in "abc"}
        assert len(data) == 1


def test_units_are_in_the_files(tmp_path):
    write_parquet(make_workload("w", [0.0], [1], [1.0]), tmp_path)
    assert pq.read_schema(tmp_path / "tasks.parquet").field("duration_s").metadata[b"unit"] == b"s"


def test_tables_of_others_are_read(tmp_path):
    """Other widths, no optional columns, one column more, and arrivals out of order."""
    jobs = {
        "num_tasks": pa.array([1, 2], pa.int32()),
        "submit_s": pa.array([5, 1]),
        "mean_task_s": pa.array([1.5, 2.5], pa.float32()),
        "job_id": pa.array([70, 80], pa.uint64()),
        "user": ["x", "y"],
    }
    pq.write_table(pa.table(jobs), tmp_path / "jobs.parquet")
    tasks = pa.table({"job_id": [70, 80, 80], "duration_s": [1.0, 2.0, 3.0]})
    pq.write_table(tasks, tmp_path / "tasks.parquet", row_group_size=1)
    workload = read_parquet(tmp_path)
    assert workload.jobs["job_id"].to_pylist() == [80, 70]
    assert workload.tasks.to_pydict() == {"job_id": [80, 80, 70], "duration_s": [2.0, 3.0, 1.0]}
    assert "has columns that are not used: user" in workload.notes[0]
    assert "2 jobs moved" in workload.notes[1]
    assert (workload.short_cutoff_s, workload.metadata) == (None, {})


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"schema_version": "2"}, "field schema_version: has version '2', this Emu reads 1"),
        ({"short_cutoff_s": '"x"'}, "field short_cutoff_s: want a number or null"),
        ({"short_cutoff_s": "{"}, "field short_cutoff_s: is not JSON"),
        ({"long_partition": "98"}, "field long_partition: 98 is not a share"),
        ({"metadata": '{"a": 1}'}, "field metadata: want an object of strings"),
    ],
)
def test_wrong_metadata_is_named(tmp_path, metadata, message):
    write_parquet(make_workload("w", [0.0], [1], [1.0]), tmp_path)
    path = tmp_path / "jobs.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(InputError) as caught:
        read_parquet(tmp_path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file/w: cannot be written"):
        write_parquet(make_workload("w", [0.0], [1], [1.0]), tmp_path / "file" / "w")
