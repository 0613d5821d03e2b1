"""Small sources that state large workloads: refused before the memory is taken, and let in by an option."""

import gzip
import json
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workloads import limits
from workloads.catalogue import convert_workload, load_workload
from workloads.errors import InputError
from workloads.generators import clustered
from workloads.limits import Limits, limited, take_limits
from workloads.transform import replicate

MANY = 20_000_000


@pytest.fixture(autouse=True)
def _half_a_gigabyte(monkeypatch):
    """Let half a gigabyte of memory be free, which holds five million tasks."""
    monkeypatch.setattr(limits, "free_bytes", lambda: 500_000_000)


def refused(source, **options) -> str:
    with pytest.raises(InputError) as caught:
        load_workload(source, options=options)
    return str(caught.value)


def alibaba(folder, instances: int):
    folder.mkdir()
    (folder / "batch_task.csv").write_text(f"M1,{instances},j_1,1,Terminated,100,200,100,1\n")
    return folder


def parquet_folder(folder, tasks: int, tenant: str = "a"):
    folder.mkdir()
    jobs = {"job_id": [0], "submit_s": [0.0], "num_tasks": [tasks], "mean_task_s": [1.0], "tenant": [tenant]}
    pq.write_table(pa.table(jobs), folder / "jobs.parquet")
    own = pa.table({"job_id": pa.array([0] * tasks, pa.int64()), "duration_s": pa.array([1.0] * tasks)})
    pq.write_table(own, folder / "tasks.parquet", compression="zstd")
    return folder


def test_instances_that_a_trace_only_states(tmp_path):
    source = alibaba(tmp_path / "a", MANY)
    found = refused(source)
    assert "makes 20,000,000 tasks, more than 5,000,000, what 0.5 GiB of free memory hold" in found
    assert found.endswith("--set workload_options.max_tasks=20000000 allows them")
    with pytest.raises(InputError, match="max_tasks"):
        convert_workload(str(source), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_line_of_swim(tmp_path):
    (tmp_path / "one.tsv").write_text(f"job0\t0\t0\t{MANY << 26}\t0\t0\n")
    assert "line 1: makes 20,000,001 tasks" in refused(tmp_path / "one.tsv")


def test_a_shuffle_of_many_by_many(tmp_path):
    racks = range(4500)
    line = f"1 0 4500 {' '.join(map(str, racks))} 4500 {' '.join(f'{r}:1' for r in racks)}"
    (tmp_path / "one.txt").write_text(f"4500 1\n{line}\n")
    assert "line 2: field reducers: makes 20,250,000 flows" in refused(tmp_path / "one.txt")


HUGE = 1 << 62
FINISHED = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:10:00Z", "succeeded": HUGE}
CREATED = {"creationTimestamp": "2026-01-01T00:00:00Z"}
STATED = {
    "job-table": "arrival,duration,tasks\n" + f"1,5,{HUGE}\n" * 4,
    "kubernetes": json.dumps(
        {
            "items": [
                {"kind": "Job", "metadata": CREATED, "spec": {"parallelism": HUGE}, "status": FINISHED},
            ]
            * 4
        }
    ),
    "swf": f"1 0 0 9 {10**15 - 1} -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n" * 18_448,
    "sacct": "JobID|Submit|Elapsed|AllocCPUS\n"
    + "".join(f"{i}|2026-01-01T00:00:00|00:05|{10**15 - 1}\n" for i in range(18_448)),
}


@pytest.mark.slow("input as large as the limits")
@pytest.mark.parametrize("format", STATED)
@pytest.mark.parametrize("max_tasks", [None, limits.MOST_TASKS])
def test_counts_whose_sum_does_not_fit_an_integer(tmp_path, format, max_tasks):
    (tmp_path / "log").write_text(STATED[format])
    options = {"tasks": "tasks"} if format == "job-table" else {}
    with pytest.raises(InputError, match="makes more than 281,474,976,710,656 tasks"):
        load_workload(tmp_path / "log", format=format, options={**options, "max_tasks": max_tasks})


def test_no_limit_lets_in_what_no_memory_holds(tmp_path):
    (tmp_path / "log").write_text("tasks,arrival,duration\n50000000000000,0,10\n")
    wrong = (
        r"makes 50,000,000,000,000 tasks.*, more than 62,500,000, what .* free memory hold at 8 bytes each$"
    )
    with pytest.raises(InputError, match=wrong):
        load_workload(tmp_path / "log", format="job-table", options={"tasks": "tasks", "max_tasks": "1e14"})
    with pytest.raises(InputError, match=wrong):
        load_workload("synthetic", options={"jobs": 10**6, "tasks_per_job": 5 * 10**7, "max_tasks": "1e14"})
    with pytest.raises(InputError, match=r"does not fit in memory \(Unable to allocate"), limited(Limits()):
        np.empty(10**17)


def test_rows_of_parquet(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "free_bytes", lambda: 10_000_000)
    source = parquet_folder(tmp_path / "w", 200_000)
    assert "tasks.parquet: makes 200,000 rows, more than 100,000" in refused(source)
    assert load_workload(source, options={"max_tasks": "200,000"}).num_tasks == 200_000


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "{"])
def test_metadata_that_no_parser_was_made_for(tmp_path, text):
    source = parquet_folder(tmp_path / "w", 3)
    table = pq.read_table(source / "jobs.parquet").replace_schema_metadata({"metadata": text})
    pq.write_table(table, source / "jobs.parquet")
    assert "jobs.parquet: field metadata: " in refused(source)


def test_text_of_parquet_that_a_dictionary_repeats(tmp_path, monkeypatch):
    """Ten thousand rows of one long name are a few bytes on disk."""
    monkeypatch.setattr(limits, "FREE_TEXT_BYTES", 1 << 20)
    folder = tmp_path / "w"
    folder.mkdir()
    rows = 10_000
    jobs = pa.table(
        {
            "job_id": pa.array(range(rows), pa.int64()),
            "submit_s": [0.0] * rows,
            "num_tasks": [1] * rows,
            "mean_task_s": [1.0] * rows,
            "tenant": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 100_000]),
        }
    )
    pq.write_table(jobs, folder / "jobs.parquet", store_schema=False, compression="zstd")
    tasks = {"job_id": pa.array(range(rows), pa.int64()), "duration_s": [1.0] * rows}
    pq.write_table(pa.table(tasks), folder / "tasks.parquet")
    tracemalloc.start()
    try:
        assert "field tenant: unpacks to more than" in refused(folder)
        assert pa.total_allocated_bytes() < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("yahoo", {"jobs": 300_000}),
        ("google", {"jobs": 500_000}),
        ("synthetic", {"jobs": 1_000_000, "tasks_per_job": 20}),
        ("synthetic", {"jobs": 1_000_000, "tasks_per_job": 20, "task_counts": "uniform"}),
        ("poisson", {"jobs": 10**12}),
        ("synthetic-coflows", {"coflows": 1000, "ports": 10_000, "mean_width": 50_000.0}),
    ],
)
def test_what_generators_make(name, options):
    found = refused(name, **options)
    assert "max_tasks" in found or "is not a whole number from 1 to 10000000" in found


def test_tasks_are_estimated_before_all_are_drawn(monkeypatch):
    draw, drawn = clustered._draw, []

    def noted(rng, trace, jobs):
        drawn.append(jobs)
        return draw(rng, trace, jobs)

    monkeypatch.setattr(clustered, "_draw", noted)
    for name in ("yahoo", "google", "cloudera-c"):
        assert "tasks in expectation, more than 10,000,000" in refused(name, jobs=10_000_000)
    assert drawn == [clustered._SAMPLE] * 3
    drawn.clear()
    assert load_workload("yahoo", options={"jobs": 30_000}).num_jobs == 30_000
    assert drawn == [30_000]


def test_copies(tmp_path):
    made = load_workload("poisson", options={"jobs": 1000})
    with pytest.raises(InputError, match=r"makes 1,000,000,000,000 tasks, more than 10,000,000$"):
        replicate(made, copies=10**9)
    with limited(Limits(max_tasks=1500)), pytest.raises(InputError, match="more than 1,500"):
        replicate(made, copies=2)


@pytest.mark.slow("input as large as the limits")
def test_gzip_that_unpacks_to_far_more(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 2 << 20)
    (tmp_path / "a.tr.gz").write_bytes(gzip.compress(b"0 1 1 1\n" * (1 << 20)))
    assert "unpacks to more than 2 MiB" in refused(tmp_path / "a.tr.gz")
    found = refused(tmp_path / "a.tr.gz", max_bytes="1 MiB")
    assert "unpacks to more than 1 MiB" in found
    assert "max_bytes" in found


def test_blank_lines_are_no_trace(tmp_path):
    (tmp_path / "a.tr").write_bytes(b"0 1 1 1\n" + b"\n" * 1_100_000)
    assert "line 1000002: the 1,000,001st blank line" in refused(tmp_path / "a.tr")


@pytest.mark.slow("input as large as the limits")
def test_a_zip_of_zeros_is_not_held_in_memory(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(200 << 20))
    with pytest.raises(InputError, match="unpacks to more than"):
        load_workload(tmp_path / "a.zip", format="coflowlib")


@pytest.mark.slow("input as large as the limits")
def test_a_small_source_may_make_as_many_tasks_as_memory_holds(tmp_path, monkeypatch):
    """As SWIM's FB-2010, 17.6 million tasks in 0.9 MB; what is read can be written and read again."""
    (tmp_path / "one.tsv").write_text(f"job0\t0\t0\t{300_000 << 26}\t0\t0\n")
    monkeypatch.setattr(limits, "free_bytes", lambda: 100 * 300_001)
    assert load_workload(tmp_path / "one.tsv").num_tasks == 300_001
    convert_workload(tmp_path / "one.tsv", tmp_path / "own")
    assert load_workload(tmp_path / "own").num_tasks == 300_001
    monkeypatch.setattr(limits, "free_bytes", lambda: 100 * 300_000)
    for source in ("one.tsv", "own"):
        assert "max_tasks=310000 allows them" in refused(tmp_path / source)
        assert load_workload(tmp_path / source, options={"max_tasks": 310_000}).num_tasks == 300_001


@pytest.mark.slow("input as large as the limits")
def test_text_of_a_job_table_that_a_dictionary_repeats(tmp_path):
    """A kilobyte that states 65,536 rows of one text of 40 kB, 2.6 GB once they are spelt out."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 65_536, pa.int32()), ["x" * 40_000])
    rows = {"arrival": [0] * 65_536, "duration": [1] * 65_536, "who": text}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet", store_schema=False, compression="zstd")
    assert (tmp_path / "t.parquet").stat().st_size < 5000
    with pytest.raises(InputError, match="field who: unpacks to more than 152 MiB"):
        load_workload(tmp_path / "t.parquet", format="job-table", options={"user": "who"})
    assert load_workload(tmp_path / "t.parquet", format="job-table").num_jobs == 65_536


@pytest.mark.parametrize(
    ("format", "head", "line"),
    [
        ("sacct", "JobID|Submit|Elapsed\n", "{}|2026-01-01T00:00:00|00:01:00\n"),
        ("swf", "", "{} 0 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n"),
        ("job-table", "arrival,duration,id\n", "0,1,{}\n"),
        ("tr", "", "{} 1 9 9\n"),
        ("swim", "", "job{}\t0\t0\t1\t1\t1\n"),
    ],
)
def test_the_free_memory_is_not_asked_for_at_each_line(tmp_path, monkeypatch, format, head, line):
    asked = []
    monkeypatch.setattr(limits, "free_bytes", lambda: asked.append(1) or 500_000_000)
    (tmp_path / "log").write_text(head + "".join(map(line.format, range(1, 51))))
    load_workload(tmp_path / "log", format=format)
    assert len(asked) < 5


@pytest.mark.slow("input as large as the limits")
def test_rows_of_a_job_table_are_bounded_as_objects(tmp_path):
    pq.write_table(
        pa.table({"arrival": [0] * 2_000_000, "duration": [1] * 2_000_000}), tmp_path / "t.parquet"
    )
    with pytest.raises(InputError, match=r"makes 2,000,000 rows, more than 1,250,000"):
        load_workload(tmp_path / "t.parquet", format="job-table")


CGROUPS = {
    "2": {"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 9\ninactive_file 200\n"},
    "1": {
        "memory/memory.limit_in_bytes": "1000",
        "memory/memory.usage_in_bytes": "700",
        "memory/memory.stat": "inactive_file 3\ntotal_inactive_file 200\n",
    },
}


@pytest.mark.parametrize("version", CGROUPS)
def test_a_container_has_less_memory_than_its_machine(tmp_path, version):
    for name, text in CGROUPS[version].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert limits._of_container(tmp_path) == 500


def test_limits_are_taken_out_of_the_options():
    taken, rest = take_limits({"max_tasks": "30,000,000", "max_bytes": "1 GiB", "jobs": "5"})
    assert taken == Limits(30_000_000, 1 << 30)
    assert rest == {"jobs": "5"}
