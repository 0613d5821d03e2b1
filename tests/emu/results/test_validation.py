"""Run directories whose hashes fit and whose files are not what a run writes: one line names the file and field."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu.directories.manifest import read_manifest, results_of, write_manifest
from emu.results.result import read_result
from tests.emu.conftest import small_workload
from tests.mutations import change_file
from workloads.catalogue import save_workload
from workloads.errors import InputError

Cli = Callable[..., Any]


def fit_hashes(place: Path) -> None:
    """Let the manifests of run directories hold the hashes of the files beside them."""
    for path in sorted(place.rglob("manifest.json"), key=lambda path: -len(path.parts)):
        manifest = read_manifest(path.parent)
        kept = {name: value for name, value in manifest.items() if name != "sha256"}
        write_manifest(path.parent, kept | results_of(path.parent, manifest.get("results", [])))


def not_utf8(rows: int) -> pa.Array:
    """Return a column of strings whose bytes are not UTF-8."""
    return pa.array([b"long\xff"] * rows).view(pa.string())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison of two schedulers."""
    from emu.cli import main

    folder = tmp_path_factory.mktemp("whole")
    save_workload(small_workload(), folder / "small")
    out = folder / "compare"
    on = ("--workload", str(folder / "small"), "--nodes", "20", "--in-process", "--out", str(out))
    assert main(["compare", "--schedulers", "random,sparrow", *on]) == 0
    return out


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """One of its runs, to be changed."""
    return Path(shutil.copytree(whole / "scheduler=random" / "seed=1", tmp_path / "run"))


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (("scheduler",), ["x"], "field scheduler: want a text, not"),
        (("nodes",), "20", "field nodes: want a number, not"),
        (("nodes",), 10**30, "field nodes: want a number below 1.84467e+19, not"),
        (("nodes",), float("nan"), "field nodes: want a number below 1.84467e+19, not"),
        (("jobs",), 5, "field jobs: want names and values, not '5'"),
        (("jobs",), None, "field jobs: want names and values"),
        (("jobs", "all"), {}, "field jobs.all.count: is not there"),
        (("jobs", "all", "p50"), {"a": 1}, "field jobs.all.p50: want a number, not"),
        (("counters",), [], "field counters: want names and values"),
        (("counters",), {"all": "x"}, "field counters.all: want a number"),
        (("bottlenecks",), [1], "field bottlenecks: want a list of texts"),
    ],
)
def test_a_summary_of_another_form_is_refused(
    run: Path, place: tuple[str, ...], value: Any, expected: str
) -> None:
    summary = part = json.loads((run / "summary.json").read_text())
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    (run / "summary.json").write_text(json.dumps(summary))
    fit_hashes(run)
    with pytest.raises(InputError) as caught:
        read_result(run)
    assert str(caught.value).startswith(f"{run / 'summary.json'}: {expected}")


def test_what_runs_write_has_their_form(tmp_path: Path, emu: Cli) -> None:
    """Also where messages cost something, with a quantum, and of coflows; `test_live_runs` reads a live run back."""
    save_workload(small_workload(), "small")
    jobs = ("--scheduler", "central-fifo", "--workload", "small", "--nodes", 20)
    costs = ("--set", "cost.model=fixed", "--set", "cost.per_message=5 ms", "--set", "output.tasks=true")
    coflows = (
        "--scheduler",
        "philae",
        "--workload",
        "synthetic-coflows",
        "--set",
        "workload_options.coflows=8",
        "--set",
        "workload_options.ports=5",
    )
    windows = (*jobs, "--clock", "windows", "--quantum", "1 ms")
    for command, part in (((*jobs, *costs), "schedulers"), (windows, "windows"), (coflows, "coordinator")):
        assert emu("run", *command, "--in-process", "--out", "r", "--overwrite").code == 0
        summary = read_result("r").summary
        assert summary == json.loads(Path("r/summary.json").read_text())
        assert summary[part]


def test_what_is_asked_for_and_not_there_is_the_fault_of_the_file(run: Path) -> None:
    summary = read_result(run).summary
    assert summary["jobs"].get("learning") is None
    with pytest.raises(InputError, match=r"summary.json: field jobs.learning: is not there$"):
        summary["jobs"]["learning"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.drop_columns(["wait_s"]), "field wait_s: is not there"),
        (lambda t: t.append_column("wait_s", t["wait_s"]), "field wait_s: is there 2 times"),
        (lambda t: t.set_column(1, "submit_s", pa.nulls(len(t), pa.float64())), "field submit_s: is null"),
        (
            lambda t: t.set_column(1, "submit_s", t["submit_s"].cast(pa.string())),
            "field submit_s: is of type string",
        ),
        (lambda t: t.set_column(6, "ideal_s", pa.array([np.inf] * len(t))), "field ideal_s: is not finite"),
        (
            lambda t: t.set_column(t.column_names.index("job_class"), "job_class", not_utf8(len(t))),
            "field job_class: is not UTF-8 text",
        ),
        (lambda t: t.slice(0, 0), "has no jobs"),
    ],
)
def test_a_table_with_other_columns_is_refused(
    run: Path, change: Callable[[pa.Table], pa.Table], expected: str
) -> None:
    pq.write_table(change(pq.read_table(run / "jobs.parquet")), run / "jobs.parquet")
    fit_hashes(run)
    with pytest.raises(InputError) as caught:
        read_result(run)
    assert str(caught.value).startswith(f"{run / 'jobs.parquet'}: {expected}")


def test_runs_of_other_jobs_are_not_compared(whole: Path, tmp_path: Path, emu: Cli) -> None:
    changed = Path(shutil.copytree(whole, tmp_path / "changed"))
    file = changed / "scheduler=sparrow" / "seed=1" / "jobs.parquet"
    pq.write_table(pq.read_table(file).slice(1), file)
    fit_hashes(changed)
    ended = emu("report", changed)
    assert ended.code == 2
    assert "jobs, and" in ended.line()


def test_a_forged_directory_is_refused_and_one_that_is_only_hashed_again_is_not(
    whole: Path, tmp_path: Path, emu: Cli
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "forged"))
    fit_hashes(folder)
    assert emu("report", folder, "--out", tmp_path / "report.html").code == 0
    (folder / "scheduler=random" / "seed=1" / "summary.json").write_text("{}")
    fit_hashes(folder)
    assert emu("report", folder, "--out", tmp_path / "report.html").code == 2


@settings(
    max_examples=max(16, settings().max_examples // 10),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_forged_directory_is_unexpected(
    whole: Path, tmp_path: Path, emu: Cli, data: st.DataObject
) -> None:
    folder = tmp_path / "forged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    run = folder / f"scheduler={data.draw(st.sampled_from(('random', 'sparrow')))}" / "seed=1"
    file = run / data.draw(st.sampled_from(("summary.json", "jobs.parquet", "timeline.parquet")))
    change_file(file, random.Random(data.draw(st.integers(0, 2**32))))
    fit_hashes(folder)
    ended = emu("report", folder, "--out", tmp_path / "report.html", "--debug")
    assert ended.code in (0, 2), ended
