"""Figures for programs: JSON and CSV of comparisons and sweeps against pandas on the runs' own Parquet files."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from coflow_cases import four_coflows, outcome_of, result_of
from sweep_grids import write

import emu as package
from emu.results.comparison import Comparison
from emu.results.result import read_result
from emu.sweeps.sweep import sweep
from workloads.jobs import JobWorkload

T_ONE_DEGREE = 12.7062


@pytest.fixture(scope="module")
def folder(workload: JobWorkload, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a comparison over two seeds."""
    out = tmp_path_factory.mktemp("records") / "c"
    package.compare(["sparrow", "random"], workload, 12, seeds=2, in_process=True, out=out)
    return out


@pytest.fixture
def jobs(folder: Path) -> dict[tuple[str, int], pd.DataFrame]:
    """Of each run, what its jobs did."""
    return {
        (name, seed): pd.read_parquet(folder / f"scheduler={name}/seed={seed}/jobs.parquet")
        for name in ("sparrow", "random")
        for seed in (1, 2)
    }


def pair(values: list[float]) -> list[float]:
    """Mean and half-width of two values."""
    return [float(np.mean(values)), T_ONE_DEGREE * float(np.std(values, ddof=1)) / math.sqrt(2)]


def of_csv(table: pd.DataFrame, *place: str) -> pd.Series:
    """The one row of a scheduler, group, metric and statistic."""
    columns = ["scheduler", "group", "metric", "statistic"]
    rows = table[(table[columns] == list(place)).all(axis=1)]
    assert len(rows) == 1, place
    return rows.iloc[0]


@pytest.mark.slow("whole runs with their figures")
def test_csv_and_json_are_what_pandas_says_of_the_files(
    folder: Path, jobs: dict[tuple[str, int], pd.DataFrame]
) -> None:
    table = pd.read_csv(
        folder / "comparison.csv", keep_default_na=False, na_values={"value": "", "ratio": ""}
    )
    summaries = {s["scheduler"]: s for s in json.loads((folder / "summary.json").read_text())}

    def of_job(frame: pd.DataFrame, metric: str) -> pd.Series:
        bounded = (frame.jct_s / frame.ideal_s.clip(lower=10.0)).clip(lower=1.0)
        return bounded if metric == "bounded_slowdown" else frame[metric]

    for job_class in ("short", "long", "all"):
        for metric, statistic, share in (
            ("jct_s", "p99.9", 0.999),
            ("jct_s", "max", 1.0),
            ("wait_s", "p95", 0.95),
            ("slowdown", "p99", 0.99),
            ("bounded_slowdown", "mean", None),
        ):
            found: dict[str, list[float]] = {}
            for (name, _), frame in jobs.items():
                own = of_job(frame if job_class == "all" else frame[frame.job_class == job_class], metric)
                found.setdefault(name, []).append(own.mean() if share is None else own.quantile(share))
            row = of_csv(table, "random", job_class, metric, statistic)
            assert [row.value, float(row.half_95)] == pytest.approx(pair(found["random"]))
            ratios = [
                b / a if a else math.nan for a, b in zip(found["sparrow"], found["random"], strict=True)
            ]
            if all(math.isfinite(r) for r in ratios):
                assert [row.ratio, float(row.ratio_half_95)] == pytest.approx(pair(ratios))
            group, figures = summaries["random"]["jobs"][job_class], summaries["random"]["ratios"][job_class]
            inner = metric.removesuffix("_s")
            if inner != "jct":
                group, figures = group[inner], figures[inner]
            assert group[statistic] == pytest.approx(row.value)
            if all(math.isfinite(r) for r in ratios):
                assert [figures[statistic]["mean"], figures[statistic]["half_95"]] == pytest.approx(
                    pair(ratios)
                )
    assert not table.duplicated(["scheduler", "group", "metric", "statistic"]).any()


def test_better_equal_and_worse_are_in_all_of_them(
    folder: Path, jobs: dict[tuple[str, int], pd.DataFrame]
) -> None:
    table = pd.read_csv(folder / "comparison.csv")
    summary = json.loads((folder / "summary.json").read_text())[1]
    found: dict[str, list[float]] = {"better": [], "equal": [], "worse": [], "improved": []}
    for seed in (1, 2):
        first, other = jobs["sparrow", seed].jct_s, jobs["random", seed].jct_s
        near = (first - other).abs() <= np.maximum(0.01, 0.001 * np.maximum(first, other))
        found["better"].append((~near & (other < first)).mean())
        found["equal"].append(near.mean())
        found["worse"].append((~near & (other > first)).mean())
        found["improved"].append((other < first).mean())
    assert found["improved"] != found["better"]  # the example has ties that are no improvement
    for name in ("better", "equal", "worse"):
        row = of_csv(table, "random", "all", "share", name)
        assert [row.value, row.half_95] == pytest.approx(pair(found[name]))
        assert summary[name]["all"]["mean"] == pytest.approx(np.mean(found[name]))
    assert summary["improved"]["all"] == pytest.approx(
        np.mean(found["improved"])
    )  # what the key has always meant
    assert summary["baseline"] == "sparrow"


def test_in_python(folder: Path, jobs: dict[tuple[str, int], pd.DataFrame], tmp_path: Path) -> None:
    results = {
        name: [read_result(folder / f"scheduler={name}/seed={seed}") for seed in (1, 2)]
        for name in ("sparrow", "random")
    }
    comparison = Comparison(results, "", {})
    text = comparison.to_csv(tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").read_text() == text == (folder / "comparison.csv").read_text()
    frame = comparison.to_pandas().set_index(["scheduler", "job_class"])
    p999 = [jobs["random", seed].wait_s.quantile(0.999) for seed in (1, 2)]
    assert frame.loc[("random", "all"), "wait_p99.9_s"] == pytest.approx(np.mean(p999))
    assert {"mean_s", "p50_s", "p90_ratio", "improved", "better", "equal", "worse"} <= set(frame.columns)
    one = results["random"][0]
    again = pd.read_csv(io.StringIO(one.to_csv()))
    longest = of_csv(again, "random", "all", "jct_s", "max").value
    assert longest == pytest.approx(jobs["random", 1].jct_s.max())
    assert len(one.to_pandas()) == len(again)


def test_everything_a_summary_counts_is_in_the_csv(folder: Path) -> None:
    table = pd.read_csv(folder / "comparison.csv")
    summary = json.loads((folder / "summary.json").read_text())[1]

    def numbers(tree: dict[str, Any]) -> list[float]:
        found = []
        for value in tree.values():
            if isinstance(value, dict):
                found += numbers(value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                found.append(value)
        return found

    parts = ("jobs", "counters", "utilisation")
    values = table[table.scheduler == "random"].value.to_numpy()
    of_engine = {name: summary["engine"][name] for name in ("events", "tasks")}
    for number in numbers({part: summary[part] for part in parts} | of_engine):
        assert np.isclose(values, number, rtol=1e-12).any(), number


def test_a_sweep_writes_the_same_with_its_axes(trace: Path) -> None:
    text = 'workload = "small"\n[sweep]\nscheduler = ["random", "sparrow"]\nnodes = [12, 20]\nseed = [1, 2]\n'
    result = sweep(write(text + "[sweep.parameters]\nprobe_ratio = [2, 3]\n"), in_process=True)
    table = pd.read_csv(result.path / "comparison.csv")
    chosen = table[(table.nodes == 20) & (table.probe_ratio == 3) & (table.metric == "wait_s")]
    row = of_csv(chosen, "sparrow", "short", "wait_s", "p99")
    frames = [
        pd.read_parquet(result.path / f"scheduler=sparrow/nodes=20/probe_ratio=3/seed={seed}/jobs.parquet")
        for seed in (1, 2)
    ]
    waits = [f[f.job_class == "short"].wait_s.quantile(0.99) for f in frames]
    assert [row.value, row.half_95] == pytest.approx(pair(waits))
    assert row.baseline == "random"
    assert not table.duplicated(["scheduler", "nodes", "probe_ratio", "group", "metric", "statistic"]).any()
    point = result.summary["points"][1]
    assert (point["scheduler"], point["baseline"]) == ("sparrow", "random")
    assert [read_result(result.path / path).summary["seed"] for path in point["paths"]] == [1, 2]


def test_of_coflows_too() -> None:
    four = four_coflows()
    runs = {
        "philae": [result_of("philae", outcome_of(four, [4, 2, 200, 400], [None, 1, None, 8]))],
        "fair": [result_of("fair", outcome_of(four, [8, 2, 300, 500]))],
    }
    comparison = Comparison(runs, "", {})
    table = pd.read_csv(io.StringIO(comparison.to_csv()))
    assert of_csv(table, "fair", "all", "cct_s", "mean").ratio == pytest.approx(810 / 606)
    assert of_csv(table, "fair", "bin-1", "cct_s", "max").value == 8.0
    assert of_csv(table, "fair", "all", "speedup", "average").value == pytest.approx(810 / 606)
    assert of_csv(table, "fair", "all", "share", "equal").value == 0.25
    assert of_csv(table, "philae", "all", "learning", "latency.p50").value == 4.5
    figures = comparison.summaries[1]
    assert figures["speedup"]["all"]["average"]["mean"] == figures["ratios"]["all"]["mean"]["mean"]
    assert figures["worse"]["all"]["mean"] == 0.75
