"""Tables, run directories, and the Python interface."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import emu
from actors.hosting.outcome import Outcome
from actors.kernel.cost import COST, SERVER
from actors.kernel.histogram import BUCKETS
from actors.kernel.records import records
from emu.directories import run_directory as rd
from emu.families.jobs.results import JOBS, TABLES, jobs_table, tasks_table
from emu.results.result import Result, read_result
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload

NS = 10**9
WRITTEN = {
    f"{name}.parquet": table.columns
    for name, table in TABLES.items()
    if name not in ("attempts", "costs", "crv", "resources", "tenants")
}


def outcome(start: list[int], finish: list[int], long: list[bool]) -> Outcome:
    return Outcome(
        start_ns=np.array(start),
        finish_ns=np.array(finish),
        is_long=np.array(long),
        timeline={},
        tasks=None,
        counters={},
        servers=records(SERVER, 0),
        costs=records(COST, 0),
        waits=np.zeros(BUCKETS, np.int64),
        delayed=(0, 0, 0),
        events=0,
        wall_s=0.0,
        compile_s=0.0,
        peak_rss_mb=0.0,
    )


def test_columns_of_jobs_by_hand() -> None:
    workload = make_workload("w", [1.0, 2.0, 3.0], [2, 1, 1], [4.0, 5.0, 0.0, 7.0], [4.5, 0.0, 7.0])
    table = jobs_table(workload, outcome([2 * NS, 2 * NS, -1], [8 * NS, 3 * NS, -1], [False, False, True]))
    rows = table.to_pylist()
    assert table.column_names == [c.name for c in JOBS]
    assert rows[0] == {
        "job_id": 0,
        "submit_s": 1.0,
        "start_s": 2.0,
        "finish_s": 8.0,
        "jct_s": 7.0,
        "wait_s": 1.0,
        "ideal_s": 5.0,
        "slowdown": 1.4,
        "num_tasks": 2,
        "mean_task_s": 4.5,
        "job_class": "short",
        "constraint": None,
        "tenant": None,
    }
    assert (rows[1]["ideal_s"], rows[1]["slowdown"], rows[1]["jct_s"]) == (0.0, None, 1.0)
    assert (rows[2]["start_s"], rows[2]["finish_s"], rows[2]["jct_s"], rows[2]["wait_s"]) == (None,) * 4
    assert (rows[2]["slowdown"], rows[2]["ideal_s"], rows[2]["job_class"]) == (None, 7.0, "long")


def test_columns_of_tasks_by_hand() -> None:
    workload = make_workload("w", [0.0, 1.0], [2, 1], [4.0, 5.0, 6.0], job_id=[7, 9])
    tasks = {
        "node": np.array([3, 4, -1]),
        "start_ns": np.array([0, NS, -1]),
        "finish_ns": np.array([4, 6, -1]) * NS,
    }
    tasks["finish_ns"][2] = -1
    assert tasks_table(workload, tasks).to_pylist() == [
        {"job_id": 7, "task": 0, "node": 3, "start_s": 0.0, "finish_s": 4.0, "duration_s": 4.0},
        {"job_id": 7, "task": 1, "node": 4, "start_s": 1.0, "finish_s": 6.0, "duration_s": 5.0},
        {"job_id": 9, "task": 0, "node": None, "start_s": None, "finish_s": None, "duration_s": 6.0},
    ]


@pytest.fixture(scope="module")
def result(workload: JobWorkload) -> Result:
    return emu.run("sparrow", workload, 8, seed=3, in_process=True, output_tasks=True)


def test_a_run_finishes_every_job_and_task(result: Result, workload: JobWorkload) -> None:
    jobs = result.jobs.to_pandas()
    assert len(jobs) == workload.num_jobs
    assert jobs.finish_s.notna().all()
    assert (jobs.jct_s >= jobs.ideal_s).all()
    assert (jobs.wait_s >= 0).all()
    assert np.allclose(jobs.jct_s, jobs.finish_s - jobs.submit_s)
    assert result.tasks is not None
    tasks = result.tasks.to_pandas()
    assert np.allclose(tasks.finish_s - tasks.start_s, tasks.duration_s, atol=1e-8)
    assert tasks.node.between(0, 7).all()
    last = tasks.groupby("job_id").finish_s.max()
    assert np.allclose(last.loc[jobs.job_id], jobs.finish_s, atol=0.01)


def test_the_summary_is_of_the_jobs(result: Result) -> None:
    jct_s = result.jobs["jct_s"].to_numpy()
    figures = result.summary["jobs"]["all"]
    assert figures["count"] == len(jct_s)
    assert [figures["p50"], figures["p90"], figures["p99"]] == np.percentile(jct_s, [50, 90, 99]).tolist()
    assert set(result.summary) == {
        "scheduler", "policy", "workload", "nodes", "seed", "drawn", "clock", "jobs", "decision_latency",
        "sustained_tasks_per_s", "utilisation", "offered_load", "engine", "counters",
    }  # fmt: skip
    assert set(result.summary["engine"]) == {
        "wall_s", "load_s", "compile_s", "events", "tasks", "tasks_per_s", "peak_rss_mb",
    }  # fmt: skip
    assert result.summary["engine"]["tasks"] == result.tasks.num_rows


def test_the_timeline_covers_the_run(result: Result) -> None:
    timeline = result.timeline.to_pandas()
    assert len(timeline) > 100
    assert timeline.utilisation.between(0, 1).all()
    assert np.allclose((timeline.running_short + timeline.running_long) / 8, timeline.utilisation)
    assert (timeline[["queued_short", "queued_long"]] >= 0).all().all()


def test_a_run_directory_holds_what_the_contract_says(result: Result, tmp_path: Path) -> None:
    out = result.save(tmp_path / "r")
    names = {"config.toml", "manifest.json", "summary.json", "workload", *WRITTEN}
    assert {p.name for p in out.iterdir()} == names
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert manifest["config"] == tomllib.loads((out / "config.toml").read_text())
    assert manifest["config"]["parameters"]["sparrow"]
    assert {"python", "numpy", "numba", "pyarrow"} <= set(manifest["versions"])
    for name, digest in manifest["results"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert set(WRITTEN) < set(manifest["results"])
    assert json.loads((out / "summary.json").read_text()) == result.summary


def test_files_have_schemas_with_units(result: Result, tmp_path: Path) -> None:
    out = result.save(tmp_path / "r")
    for name, columns in WRITTEN.items():
        schema = pq.read_schema(out / name)
        assert schema.names == [c.name for c in columns]
        assert b"pandas" not in (schema.metadata or {})
        for column in columns:
            field = schema.field(column.name)
            assert (field.type, field.nullable) == (column.type, column.nullable)
            assert field.metadata[b"unit"].decode() == column.unit


def test_what_was_saved_reads_back(result: Result, tmp_path: Path) -> None:
    again = read_result(result.save(tmp_path / "r"))
    assert again.jobs.equals(result.jobs)
    assert again.timeline.equals(result.timeline)
    assert again.tasks is not None
    assert again.tasks.equals(result.tasks)
    assert again.summary == result.summary
    assert again.counters == result.counters


def test_equal_runs_give_equal_bytes_and_other_seeds_do_not(
    result: Result, workload: JobWorkload, tmp_path: Path
) -> None:
    def saved(name: str, seed: int, **more: object) -> bytes:
        emu.run("sparrow", workload, 8, seed=seed, in_process=True, out=tmp_path / name, **more)
        return (tmp_path / name / "jobs.parquet").read_bytes()

    first = (result.save(tmp_path / "a") / "jobs.parquet").read_bytes()
    assert saved("b", 3, timeline_period="1 s") == first
    assert saved("c", 4) != first


def test_a_directory_that_is_not_empty_is_refused(result: Result, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"--out: .*not empty"):
        result.save(tmp_path / "mine")
    out = result.save(tmp_path / "r")
    with pytest.raises(InputError, match=r"--out: .*holds a run that is finished"):
        result.save(out)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--out: .*cannot be written"):
        result.save(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert result.save(tmp_path / "empty")


def test_a_run_that_ends_early_never_looks_finished(tmp_path: Path) -> None:
    for error, status in ((KeyboardInterrupt, "interrupted"), (MemoryError, "failed")):
        out = tmp_path / status

        def fail(out: Path = out, error: type[BaseException] = error) -> None:
            with rd.claimed(out, {"config": {}}, ""):
                assert rd.read_manifest(out)["status"] == "running"
                raise error

        with pytest.raises(error):
            fail()
        assert rd.read_manifest(out)["status"] == status
        with pytest.raises(InputError, match=status):
            read_result(out)


def test_default_directories_do_not_collide(tmp_path: Path) -> None:
    for expected in ("a-b-C-d", "a-b-C-d-2", "a-b-C-d-3"):
        with rd.claimed_new("a/b:C d", {}, "", tmp_path / "runs") as out:
            assert out.name == expected
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="--out"), rd.claimed_new("x", {}, "", tmp_path / "file"):
        pass


def test_damaged_directories_are_named(result: Result, tmp_path: Path) -> None:
    out = result.save(tmp_path / "r")
    (out / "tasks.parquet").unlink()
    assert read_result(out).tasks is None
    (out / "timeline.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(
        InputError, match=r"timeline\.parquet is not as it was written .* --overwrite runs it again"
    ):
        read_result(out)
    (out / "jobs.parquet").unlink()
    with pytest.raises(InputError, match=r"jobs\.parquet is missing"):
        read_result(out)
    (out / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json: line 1: is not JSON"):
        read_result(out)
    with pytest.raises(InputError, match="not a run directory"):
        read_result(tmp_path)


def test_run_takes_one_scheduler(workload: JobWorkload) -> None:
    with pytest.raises(
        InputError, match=r"^scheduler: emu\.run takes one scheduler; emu\.compare takes several"
    ):
        emu.run(["sparrow", "random"], workload, 8, in_process=True)
