"""What the user sees of priorities and of tenants: waits and shares by hand, tables as printed, files, pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import emu
from clusters.cluster import build_cluster
from emu.families.jobs.divisions import (
    BY_PRIORITY,
    BY_TENANT,
    MOST_GROUPS,
    jobs_of,
    priority_bands,
    tenant_groups,
)
from emu.families.jobs.metrics import in_group
from emu.families.jobs.plots import division_figure, tenants_figures, use_figures
from emu.families.jobs.tables import further_tables
from emu.results.comparison import Comparison
from emu.results.result import Result
from emu.results.summary_text import render_summary
from workloads.conversion import as_dags
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

EXACT = {"network_delay": 0.0, "short_cutoff": 100.0}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node of two cores."""
    file = tmp_path_factory.mktemp("cluster") / "cluster.parquet"
    pq.write_table(build_cluster("two cores", [1], cpu_cores=[2]).table, file)
    return file


def run(workload: JobWorkload, cluster: Path, scheduler: str = "central-lwl", **more: Any) -> Result:
    result = emu.run(scheduler, workload=workload, cluster=cluster, **EXACT, **more)
    assert isinstance(result, Result)
    return result


def banded() -> JobWorkload:
    """Five jobs of one task of both cores for 10 s; four arrive while the first runs, the last without a priority."""
    requests = Requests(demands={"cpu_cores": [2.0] * 5}, priority=[9, 1, 5, 1, None])
    return make_workload("four", [0.0, 1.0, 1.0, 1.0, 1.0], [1] * 5, [10.0] * 5, requests=requests)


def of_tenants() -> JobWorkload:
    """At 0 s ads takes a core and a quarter of the memory for 10 s, web half a core and half of the memory for 20 s.

    At 1 s ads and a job without tenant ask for all cores, for 5 s each: from 20 and from 25 s on.
    """
    demands = {"cpu_cores": [1.0, 0.5, 2.0, 2.0], "memory": [0.25, 0.5, 0.1, 0.1]}
    more = {"tenant": ["ads", "web", "ads", None], "requests": Requests(demands=demands)}
    return make_workload("four", [0.0, 0.0, 1.0, 1.0], [1] * 4, [10.0, 20.0, 5.0, 5.0], **more)


@pytest.fixture(scope="module")
def of_bands(cluster: Path) -> Result:
    return run(banded(), cluster)


@pytest.fixture(scope="module")
def by_tenant(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(of_tenants(), cluster, timeline_period="5 s", out=tmp_path_factory.mktemp("runs") / "run")


# Priorities


def test_waits_by_priority_by_hand(of_bands: Result) -> None:
    """The node runs them in the order 9, 5, 1, 1, and the job without a priority last: at 0, 10, 20, 30 and 40 s."""
    assert of_bands.jobs["priority"].to_pylist() == [9, 1, 5, 1, None]
    bands = of_bands.summary["jobs"]["by_priority"]
    assert list(bands) == ["9", "5", "1", "0"]
    assert [of["count"] for of in bands.values()] == [1, 1, 2, 1]
    assert [of["wait"]["mean"] for of in bands.values()] == pytest.approx([0.0, 9.0, 24.0, 39.0], abs=1e-6)
    assert bands["1"]["mean"] == pytest.approx(34.0)
    assert bands["1"]["wait"]["p50"] == pytest.approx((19.0 + 29.0) / 2)
    text = render_summary(of_bands.summary)
    for part in ("queueing delay by priority (s)", "priority 1", "mean use of cpu_cores 100.0%"):
        assert part in text


def test_a_comparison_shows_priorities_and_use(of_bands: Result, cluster: Path) -> None:
    runs = {"a": [of_bands], "b": [run(banded(), cluster, priorities=False)]}
    waits, use = further_tables(runs, [], 0.0)
    rows = {(row[0], row[1]): list(row[2:]) for row in waits.rows}
    counts = {"9": "1 job", "5": "1 job", "1": "2 jobs", "0": "1 job"}
    assert [label for name, label in rows if name == "a"] == [
        f"priority {p} ({n})" for p, n in counts.items()
    ]
    # Without priorities they run as they came: those of priority 1 first and third, so that they wait 9 and 29 s.
    assert [rows[name, "priority 1 (2 jobs)"][0] for name in "ab"] == ["24", "19"]
    assert [list(row) for row in use.rows] == [["a", "100.0%"], ["b", "100.0%"]]
    text = Comparison(runs, "", {}).to_text()
    assert "queueing delay in seconds by priority" in text
    assert "mean use of resources, as a share of what all nodes have" in text
    found = of_group(runs["a"], "priority 1")
    assert found["count", ""] == 2
    assert found["wait_s", "mean"] == pytest.approx(24.0)


def of_group(runs: list[Result], group: str) -> dict[tuple[str, str], float]:
    """Return the records of a group in a comparison of one scheduler."""
    records = Comparison({"a": runs}, "", {}).records()
    return {(r["metric"], r["statistic"]): r["value"] for r in records if r["group"] == group}


def test_pictures_of_priorities_and_use(of_bands: Result) -> None:
    runs = {"a": [of_bands]}
    figure = division_figure(runs, BY_PRIORITY)
    assert figure is not None
    upper, lower = figure.axes
    assert list(upper.lines[0].get_ydata()) == pytest.approx([0.0, 9.0, 24.0, 39.0], abs=1e-6)
    assert [tick.get_text() for tick in lower.get_xticklabels()] == ["9", "5", "1", "0"]
    (shown,) = use_figures(runs, {"run": ("running_short", "running_long")})
    assert shown.stem == "resources-a"
    assert "all nodes" in shown.caption
    share, tasks = shown.drawn.axes
    assert np.max(share.lines[0].get_ydata()) == pytest.approx(1.0)
    assert np.max(tasks.lines[0].get_ydata()) == 1


# Tenants


def test_waits_and_shares_by_hand(by_tenant: Result) -> None:
    """Of 30 s ads holds half of the cores for 10 s and all for 5 s, web half of the memory for 20 s."""
    tenants = by_tenant.summary["jobs"]["by_tenant"]
    assert list(tenants) == ["web", "ads", "(none)"]  # the most work first
    assert [of["count"] for of in tenants.values()] == [1, 2, 1]
    assert [of["wait"]["mean"] for of in tenants.values()] == pytest.approx([0.0, 9.5, 24.0], abs=1e-6)
    assert [of["slowdown"]["mean"] for of in tenants.values()] == pytest.approx([1.0, 2.9, 29 / 5], abs=1e-6)
    shares = [of["dominant_share"] for of in tenants.values()]
    assert shares == pytest.approx([10 / 30, 10 / 30, 5 / 30], abs=1e-6)
    folder = Path(str(by_tenant.path))
    table = pq.read_table(folder / "tenants.parquet")
    rows = zip(*(table[name].to_pylist() for name in ("time_s", "tenant", "share")), strict=True)
    held = {(round(t), who): share for t, who, share in rows}
    of_ads = [held[t, "ads"] for t in (5, 10, 15, 20, 25, 30)]
    assert of_ads == pytest.approx([0.5, 0.5, 0, 0, 1, 0], abs=1e-6)
    assert [held[t, "web"] for t in (5, 20, 25)] == pytest.approx([0.5, 0.5, 0], abs=1e-6)
    assert held[30, "(none)"] == pytest.approx(1.0, abs=1e-6)
    assert json.loads((folder / "summary.json").read_text())["jobs"]["by_tenant"] == tenants
    text = render_summary(by_tenant.summary)
    assert "queueing delay by tenant (s)" in text
    assert "33.3%" in text


def test_of_slots_it_is_the_share_of_slots() -> None:
    """On four slots all four run at once: ads holds one of four for 10 and 5 of 20 s."""
    result = emu.run("sparrow", workload=of_tenants(), nodes=1, slots=4, **EXACT)
    tenants = result.summary["jobs"]["by_tenant"]
    assert tenants["ads"]["dominant_share"] == pytest.approx(15 / 20 / 4, abs=1e-6)
    assert tenants["web"]["dominant_share"] == pytest.approx(1 / 4, abs=1e-6)
    assert "decision_latency" not in result.summary  # its tasks are not written


def test_a_comparison_shows_tenants(by_tenant: Result, cluster: Path) -> None:
    runs = {"a": [by_tenant], "b": [run(of_tenants(), cluster, scheduler="random")]}
    waits, _ = further_tables(runs, [], 0.0)
    assert waits.head == ["scheduler", "jobs", "mean", "p50", "p90", "p99", *BY_TENANT.columns]
    rows = {(row[0], row[1]): list(row[2:]) for row in waits.rows}
    assert rows["a", "tenant ads (2 jobs)"][0] == "9.5"
    assert rows["a", "tenant ads (2 jobs)"][-3:] == ["17", "2.9", "33.3%"]
    labels = ["tenant web (1 job)", "tenant ads (2 jobs)", "tenant (none) (1 job)"]
    assert [label for name, label in rows if name == "b"] == labels
    assert of_group([by_tenant], "tenant ads")["wait_s", "mean"] == pytest.approx(9.5, abs=1e-6)


def test_pictures_of_tenants(by_tenant: Result) -> None:
    figure = division_figure({"a": [by_tenant]}, BY_TENANT)
    assert figure is not None
    assert list(figure.axes[0].lines[0].get_ydata()) == pytest.approx([0.0, 9.5, 24.0], abs=1e-6)
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["web", "ads", "(none)"]
    (shown,) = tenants_figures({"a": [by_tenant]})
    assert shown.stem == "tenants-a"
    assert np.max(shown.drawn.axes[0].lines[1].get_ydata()) == pytest.approx(1.0, abs=1e-6)


def test_dag_jobs_have_it_too(cluster: Path) -> None:
    result = emu.run("capacity", workload=as_dags(of_tenants()), cluster=cluster, network_delay=0.0)
    tenants = result.summary["jobs"]["by_tenant"]
    assert sorted(tenants) == ["(none)", "ads", "web"]
    assert tenants["web"]["dominant_share"] > 0
    assert set(result.tables["tenants"]["tenant"].to_pylist()) == set(tenants)
    assert "queueing delay by tenant (s)" in render_summary(result.summary)


# Neither of them, and which group a job is in


@pytest.mark.parametrize("tenant", [None, ["ads"] * 2])
def test_a_workload_without_priorities_demands_or_two_tenants_has_none_of_it(
    tenant: list[str] | None,
) -> None:
    plain = make_workload("plain", [0.0, 1.0], [1, 1], [1.0, 1.0], tenant=tenant)
    result = emu.run("sparrow", workload=plain, nodes=2)
    assert isinstance(result, Result)
    runs = {"a": [result]}
    assert "priority" not in result.jobs.column_names
    assert not {"by_priority", "by_tenant"} & set(result.summary["jobs"])
    assert result.tables.get("tenants") is None
    assert (
        list(further_tables(runs, [], 0.0))
        == list(use_figures(runs, {}))
        == list(tenants_figures(runs))
        == []
    )
    assert division_figure(runs, BY_PRIORITY) is division_figure(runs, BY_TENANT) is None


def test_large_priorities_stay_apart() -> None:
    """Neighbours that float64 does not tell apart, beside a job that states none."""
    jobs = pa.table({"priority": pa.array([2**53, 2**53 + 1, None], pa.int64())})
    assert [*priority_bands(jobs)] == [str(2**53 + 1), str(2**53), "0"]
    assert jobs_of(jobs, f"priority:{2**53 + 1}").tolist() == [False, True, False]


@given(st.lists(st.one_of(st.none(), st.integers(-20, 20)), min_size=1, max_size=200))
def test_every_job_is_in_one_band(priorities: list[int | None]) -> None:
    jobs = pa.table({"priority": pa.array(priorities, pa.int64())})
    bands = priority_bands(jobs)
    assert len(bands) <= MOST_GROUPS
    assert np.all(sum(mask.astype(int) for mask in bands.values()) == 1)
    known = np.array([p or 0 for p in priorities])
    lows = [int(known[mask].min()) for mask in bands.values()]
    highs = [int(known[mask].max()) for mask in bands.values()]
    assert all(low > high for low, high in zip(lows, highs[1:], strict=False))
    for name, low, high in zip(bands, lows, highs, strict=True):
        assert name == (str(low) if low == high else f"{low} to {high}")
        assert np.array_equal(in_group(jobs, f"priority {name}"), bands[name])
    if len(set(known.tolist())) <= MOST_GROUPS:
        assert len(bands) == len(set(known.tolist()))


NAMES = st.one_of(st.none(), st.sampled_from(["(none)", "(others)", "all"]), st.text("abc", max_size=3))


@given(st.lists(NAMES, min_size=1, max_size=120))
def test_every_job_is_in_one_group(tenants: list[str | None]) -> None:
    columns = {"num_tasks": np.arange(1, len(tenants) + 1), "mean_task_s": np.ones(len(tenants))}
    jobs = pa.table({"tenant": pa.array(tenants, pa.string()), **columns})
    groups = tenant_groups(jobs)
    if len({*tenants}) < 2:
        assert not groups
        return
    assert len(groups) == min(len({*tenants}), MOST_GROUPS + 1)
    assert np.all(sum(mask.astype(int) for mask in groups.values()) == 1)
    work = [int(columns["num_tasks"][mask].sum()) for mask in groups.values()][:MOST_GROUPS]
    assert work == sorted(work, reverse=True)
    for name, mask in list(groups.items())[:MOST_GROUPS]:
        owners = {tenant for tenant, own in zip(tenants, mask.tolist(), strict=True) if own}
        assert owners in ({name}, {None})
        assert np.array_equal(in_group(jobs, f"tenant {name}"), mask)
