"""What the user sees of tenants: waits and shares of the cluster by hand, tables as printed, files, pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from emu.families.dags.terminal_text import render_summary as render_dags
from emu.families.jobs.divisions import BY_TENANT, MOST_GROUPS, tenant_groups
from emu.families.jobs.further_tables import further_tables
from emu.families.jobs.metrics import in_group
from emu.families.jobs.plots import division_figure, tenants_figures
from emu.families.jobs.terminal_text import render_summary
from emu.results.comparison import Comparison
from emu.results.result import Result
from workloads.conversion import as_dags
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests

EXACT = {"network_delay": 0.0, "short_cutoff": 100.0}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A node of two cores."""
    file = tmp_path / "cluster.parquet"
    pq.write_table(build_cluster("two cores", [1], cpu_cores=[2]).table, file)
    return file


@pytest.fixture
def workload() -> JobWorkload:
    """At 0 s ads takes a core and a quarter of the memory for 10 s, web half a core and half of the memory for 20 s.

    At 1 s ads and a job without tenant ask for all cores, for 5 s each: from 20 and from 25 s on.
    """
    demands = {"cpu_cores": [1.0, 0.5, 2.0, 2.0], "memory": [0.25, 0.5, 0.1, 0.1]}
    return make_workload(
        "four",
        [0.0, 0.0, 1.0, 1.0],
        [1] * 4,
        [10.0, 20.0, 5.0, 5.0],
        tenant=["ads", "web", "ads", None],
        requests=Requests(demands=demands),
    )


def run(workload: JobWorkload, cluster: Path, scheduler: str = "central-lwl", **more: Any) -> Result:
    result = emu.run(scheduler, workload=workload, cluster=cluster, **EXACT, **more)
    assert isinstance(result, Result)
    return result


def test_waits_and_shares_by_hand(workload: JobWorkload, cluster: Path, tmp_path: Path) -> None:
    """Of 30 s ads holds half of the cores for 10 s and all for 5 s, web half of the memory for 20 s."""
    result = run(workload, cluster, timeline_period="5 s", out=tmp_path / "run")
    tenants = result.summary["jobs"]["by_tenant"]
    assert list(tenants) == ["web", "ads", "(none)"]  # the most work first
    assert [of["count"] for of in tenants.values()] == [1, 2, 1]
    assert [of["wait"]["mean"] for of in tenants.values()] == pytest.approx([0.0, 9.5, 24.0], abs=1e-6)
    assert [of["slowdown"]["mean"] for of in tenants.values()] == pytest.approx([1.0, 2.9, 29 / 5], abs=1e-6)
    shares = [of["dominant_share"] for of in tenants.values()]
    assert shares == pytest.approx([10 / 30, 10 / 30, 5 / 30], abs=1e-6)
    table = pq.read_table(tmp_path / "run" / "tenants.parquet")
    rows = zip(*(table[name].to_pylist() for name in ("time_s", "tenant", "share")), strict=True)
    held = {(round(t), who): share for t, who, share in rows}
    assert [held[t, "ads"] for t in (5, 10, 15, 20, 25, 30)] == pytest.approx(
        [0.5, 0.5, 0, 0, 1, 0], abs=1e-6
    )
    assert [held[t, "web"] for t in (5, 20, 25)] == pytest.approx([0.5, 0.5, 0], abs=1e-6)
    assert held[30, "(none)"] == pytest.approx(1.0, abs=1e-6)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["jobs"]["by_tenant"] == tenants
    text = render_summary(result.summary)
    assert "queueing delay by tenant (s)" in text
    assert "33.3%" in text
    assert (
        emu.read_result(tmp_path / "run").summary["jobs"]["by_tenant"]["ads"]["dominant_share"] == shares[1]
    )


def test_of_slots_it_is_the_share_of_slots(workload: JobWorkload) -> None:
    """On four slots all four run at once: ads holds one of four for 10 and 5 of 20 s."""
    result = emu.run("sparrow", workload=workload, nodes=1, slots=4, **EXACT)
    tenants = result.summary["jobs"]["by_tenant"]
    assert tenants["ads"]["dominant_share"] == pytest.approx(15 / 20 / 4, abs=1e-6)
    assert tenants["web"]["dominant_share"] == pytest.approx(1 / 4, abs=1e-6)
    assert "decision_latency" not in result.summary  # its tasks are not written


def test_a_comparison_shows_tenants(workload: JobWorkload, cluster: Path) -> None:
    runs = {"a": [run(workload, cluster)], "b": [run(workload, cluster, scheduler="random")]}
    waits, _ = further_tables(runs)
    assert waits.head == ["scheduler", "jobs", "mean", "p50", "p90", "p99", *BY_TENANT.columns]
    rows = {(row[0], row[1]): list(row[2:]) for row in waits.rows}
    assert rows["a", "tenant ads (2 jobs)"][0] == "9.5"
    assert rows["a", "tenant ads (2 jobs)"][-3:] == ["17", "2.9", "33.3%"]
    assert [label for name, label in rows if name == "b"] == [
        "tenant web (1 job)",
        "tenant ads (2 jobs)",
        "tenant (none) (1 job)",
    ]
    records = [r for r in Comparison({"a": runs["a"]}, "", {}).records() if r["group"] == "tenant ads"]
    found = {(r["metric"], r["statistic"]): r["value"] for r in records}
    assert found["wait_s", "mean"] == pytest.approx(9.5, abs=1e-6)


def test_pictures_of_tenants(workload: JobWorkload, cluster: Path) -> None:
    runs = {"a": [run(workload, cluster, timeline_period="5 s")]}
    figure = division_figure(runs, BY_TENANT)
    assert figure is not None
    assert list(figure.axes[0].lines[0].get_ydata()) == pytest.approx([0.0, 9.5, 24.0], abs=1e-6)
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["web", "ads", "(none)"]
    (shown,) = tenants_figures(runs)
    assert shown.stem == "tenants-a"
    ads = shown.drawn.axes[0].lines[1]
    assert np.max(ads.get_ydata()) == pytest.approx(1.0, abs=1e-6)


def test_dag_jobs_have_it_too(workload: JobWorkload, cluster: Path) -> None:
    result = emu.run("capacity", workload=as_dags(workload), cluster=cluster, network_delay=0.0)
    tenants = result.summary["jobs"]["by_tenant"]
    assert sorted(tenants) == ["(none)", "ads", "web"]
    assert tenants["web"]["dominant_share"] > 0
    assert set(result.tables["tenants"]["tenant"].to_pylist()) == set(tenants)
    assert "queueing delay by tenant (s)" in render_dags(result.summary)


@pytest.mark.parametrize("tenant", [None, ["ads"] * 4])
def test_without_two_tenants_there_is_none_of_it(tenant: list[str] | None, cluster: Path) -> None:
    result = emu.run(
        "sparrow", workload=make_workload("one", [0.0] * 4, [1] * 4, [1.0] * 4, tenant=tenant), nodes=2
    )
    assert "by_tenant" not in result.summary["jobs"]
    assert result.tables.get("tenants") is None
    assert further_tables({"a": [result]}) == list(tenants_figures({"a": [result]})) == []
    assert division_figure({"a": [result]}, BY_TENANT) is None


def names() -> Iterator[str | None]:
    return st.one_of(st.none(), st.sampled_from(["(none)", "(others)", "all"]), st.text("abc", max_size=3))


@given(st.lists(names(), min_size=1, max_size=120))
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
