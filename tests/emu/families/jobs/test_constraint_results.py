"""What the user sees of constraints: figures by hand, tables as printed, files, pictures."""

# ruff: noqa: RUF001 (the sign for "times" is what is printed)

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.schedulers.jobs.pressure import Pressure
from emu.columns import make_table, null_unless
from emu.directories import run_directory as rd
from emu.disk import sha256_of
from emu.families.jobs.metrics import MOST_KINDS, OTHER_KINDS, SPLIT, describe_jobs
from emu.families.jobs.plots import BINS, crv_figure, wait_figure, wait_over_time_figure
from emu.families.jobs.results import CRV, JOBS, TABLES, TIMELINE, crv_table
from emu.families.jobs.tables import further_tables, kind_tables
from emu.report.drawing import to_svg
from emu.report.report import render_report
from emu.results.comparison import Comparison
from emu.results.paired_comparison import compare_group
from emu.results.result import Result, read_result
from emu.results.summary_text import render_summary
from emu.results.text_tables import TIMES, ratio, with_error
from emu.running.runs import compare
from workloads.catalogue import save_workload
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload

Kinds = Sequence[str | None]
SERIES = Pressure(
    time_ns=np.array([5, 10]) * 10**9,
    names=["isa", "cores"],
    demand=np.array([[0, 6], [0, 3]]),
    supply=np.array(
        [[np.nan, 4.0], [np.nan, 4.0]]
    ),  # the monitor does not know that of a resource without demand
    crv=np.array([[0.0, 1.5], [0.0, 0.75]]),
)


def jobs_of(
    wait_s: Sequence[float], kinds: Kinds, run_s: Sequence[float] | None = None, long: Sequence[int] = ()
) -> pa.Table:
    """Jobs that arrive every second and run after their wait; NaN for one that never starts."""
    wait = np.array(wait_s, np.float64)
    ideal = np.ones(len(wait)) if run_s is None else np.array(run_s, np.float64)
    submit = np.arange(len(wait), dtype=float)
    ran = np.isfinite(wait)
    classes = ["long" if i in long else "short" for i in range(len(wait))]
    return make_table(
        JOBS,
        {
            "job_id": np.arange(len(wait)),
            "submit_s": submit,
            "start_s": null_unless(ran, submit + wait),
            "finish_s": null_unless(ran, submit + wait + ideal),
            "jct_s": null_unless(ran, wait + ideal),
            "wait_s": null_unless(ran, wait),
            "ideal_s": ideal,
            "slowdown": null_unless(ran, (wait + ideal) / ideal),
            "num_tasks": np.ones(len(wait), np.int64),
            "mean_task_s": ideal,
            "job_class": pa.array(classes, pa.string()),
            "constraint": pa.array(kinds, pa.string()),
            "tenant": pa.nulls(len(wait), pa.string()),
        },
    )


def run_of(scheduler: str, jobs: pa.Table, seed: int = 1, **more: Any) -> Result:
    timeline = make_table(TIMELINE, {c.name: np.zeros(0, c.type.to_pandas_dtype()) for c in TIMELINE})
    engine = dict.fromkeys(("wall_s", "load_s", "compile_s", "peak_rss_mb", "tasks_per_s"), 1.0)
    summary = {"scheduler": scheduler, "workload": "w", "nodes": 10, "seed": seed, "clock": "virtual"}
    summary |= {"jobs": describe_jobs(jobs), "engine": engine | {"events": 8, "tasks": 1}, "counters": {}}
    manifest = {"config": {"warmup": "0.0 s"}, "inputs": [], "versions": {}}
    tables = {"jobs": jobs, "timeline": timeline, **more}
    return Result(tables, summary, {"probes": 7, "rejections": seed}, "", manifest)


KINDS = ("cores", None, "isa", None, "cores", None)


@pytest.fixture
def pair() -> dict[str, list[Result]]:
    """A scheduler that ignores constraints, one that respects them, two seeds; the last job is long."""
    waits = {
        "plain": [[1, 1, 1, 3, 1, 9], [1, 1, 3, 3, 1, 9]],
        "aware": [[3, 1, 5, 3, 5, 9], [1, 1, 3, 1, 1, 9]],
    }
    return {
        name: [run_of(name, jobs_of(wait, KINDS, long=(5,)), seed) for seed, wait in enumerate(of_seed, 1)]
        for name, of_seed in waits.items()
    }


def test_figures_with_and_without_constraints_by_hand() -> None:
    jobs = jobs_of([0, 2, 4, 2, 3, np.nan], KINDS, run_s=[2, 2, 1, 1, 4, 1], long=(4,))
    figures = describe_jobs(jobs)
    short = figures["constrained"]["short"]
    assert (short["count"], short["mean"], short["p50"]) == (2, 3.5, 3.5)  # 2 and 5 s
    assert [short["wait"][s] for s in ("count", "mean", "p50", "max")] == [2, 2.0, 2.0, 4.0]
    assert [short["wait"][s] for s in ("p90", "p99")] == pytest.approx([3.6, 3.96])
    assert short["slowdown"]["mean"] == pytest.approx((2 / 2 + 5 / 1) / 2)
    assert figures["constrained"]["long"]["mean"] == 7.0
    assert figures["constrained"]["all"]["count"] == 3
    assert figures["unconstrained"]["short"]["mean"] == 3.5  # 4 and 3 s; the last never started
    assert set(figures["unconstrained"]) == {"all", "short"}
    assert list(figures["by_constraint"]) == ["cores", "isa"]
    cores, isa = figures["by_constraint"].values()
    assert (cores["all"]["mean"], cores["short"]["mean"]) == (4.5, 2.0)
    # Cores take 2 s for 2 s, isa 5 s for 1 s, the unconstrained 4 + 3 s for 2 + 1 s.
    assert cores["slowdown_vs_unconstrained"] == pytest.approx(1 / (7 / 3))
    assert isa["slowdown_vs_unconstrained"] == pytest.approx(5 / (7 / 3))


def test_a_workload_without_constraints_has_none_of_it() -> None:
    jobs = jobs_of([1, 2, 3], [None] * 3)
    assert {"constrained", "unconstrained", "by_constraint"}.isdisjoint(describe_jobs(jobs))
    plain = {"a": [run_of("a", jobs)], "b": [run_of("b", jobs)]}
    assert list(further_tables(plain, [], 0.0)) == []
    assert wait_figure(plain, "short") is wait_over_time_figure(plain, "short") is None
    assert {row.group for row in Comparison(plain, "", {}).rows()} == {"all"}


@given(st.lists(st.tuples(st.sampled_from([None, *"abc"]), st.booleans(), st.booleans()), min_size=1))
def test_every_job_that_counts_is_in_one_part(rows: list[tuple[str | None, bool, bool]]) -> None:
    waits = [1.0 if ran else np.nan for _, _, ran in rows]
    jobs = jobs_of(waits, [k for k, _, _ in rows], long=[i for i, (_, long, _) in enumerate(rows) if long])
    warmup_s = 1.0 if len(rows) > 1 else 0.0
    figures = describe_jobs(jobs, warmup_s)
    if not any(kind for kind, _, _ in rows):
        assert "constrained" not in figures
        return
    for name in ("all", "short", "long"):
        halves = [figures[side].get(name, {"count": 0})["count"] for side in ("constrained", "unconstrained")]
        assert sum(halves) == figures.get(name, {"count": 0})["count"]
    by_kind = sum(of_kind["all"]["count"] for of_kind in figures["by_constraint"].values())
    assert by_kind == figures["constrained"]["all"]["count"]


def test_many_kinds_are_summed_up() -> None:
    names = [f"k{i:02}" for i in range(MOST_KINDS + 3)]
    kinds = [*names, *names[2:], names[-1]]
    figures = describe_jobs(jobs_of(np.arange(len(kinds)), kinds))["by_constraint"]
    assert len(figures) == MOST_KINDS + 1
    # The last kind has 3 jobs, others 2, and k00 and k01 one each: those two and the last in name with 2.
    assert list(figures)[:2] == [names[-1], "k02"]
    assert list(figures)[-1] == OTHER_KINDS
    assert figures[OTHER_KINDS]["all"]["count"] == 1 + 1 + 2
    assert {"k00", "k01", names[-2]}.isdisjoint(figures)


def test_a_class_is_split_where_it_has_both(pair: dict[str, list[Result]]) -> None:
    rows = {(r.scheduler, r.group): r for r in Comparison(pair, "", {}).rows()}
    assert {group for _, group in rows} == {"short", "long", "all", *SPLIT[:2]}  # no long job is constrained
    aware = rows["aware", "constrained short"]
    assert aware.count == 3
    assert aware.figures["mean"][0] == pytest.approx((16 / 3 + 8 / 3) / 2)
    assert aware.ratios["mean"][0] == pytest.approx((16 / 6 + 1) / 2)
    assert aware.improved == 0.0
    # All three take longer with seed 1, and as long as before with seed 2.
    assert [aware.shares[s][0] for s in ("better", "equal", "worse")] == [0.0, 0.5, 0.5]
    free = rows["aware", "unconstrained short"]
    assert free.improved == pytest.approx((0 + 1 / 2) / 2)
    assert compare_group(pair, "constrained long", 0.0) == []


def test_kinds_are_compared_with_the_same_jobs_of_the_first(pair: dict[str, list[Result]]) -> None:
    in_text, on_page = kind_tables(pair)
    assert on_page.head == ["constraint", "jobs", "plain", "slowdown", "aware", TIMES, "slowdown"]
    (cores, isa), several = on_page.rows, 12.7062 / 2  # times what two values differ by: half of the interval
    # Unconstrained short jobs are slowed down 3 times in the first run of "aware", 2 times in the second.
    values = {
        4: (with_error, (5 + 2) / 2, several * (5 - 2)),
        5: (ratio, (5 / 2 + 2 / 2) / 2, several * (5 / 2 - 1)),
        6: (ratio, (5 / 3 + 2 / 2) / 2, several * (5 / 3 - 1)),
    }
    assert cores[:2] == ["cores", "2"]
    assert {at: cores[at] for at in values} == {
        at: write(mean, half) for at, (write, mean, half) in values.items()
    }
    assert isa[:2] == ["isa", "1"]
    assert isa[5] == ratio((6 / 2 + 4 / 4) / 2, several * (6 / 2 - 1))
    assert [list(row) for row in in_text.rows] == [[*row[:3], *row[4:6]] for row in on_page.rows]


def test_the_tables_as_printed(pair: dict[str, list[Result]]) -> None:
    one = {name: runs[:1] for name, runs in pair.items()}
    text = Comparison(one, "", {}).to_text()
    assert text[text.index("constrained short") :] == (
        "constrained short jobs (3)\n"
        "          mean         p50         p90         p99         better  equal   worse\n"
        "  plain      2           2           2           2\n"
        "  aware  5.333  2.67×    6  3.00×    6  3.00×    6  3.00×    0.0%   0.0%  100.0%\n"
        "\n"
        "unconstrained short jobs (2)\n"
        "         mean         p50         p90          p99         better   equal  worse\n"
        "  plain     3           3         3.8         3.98\n"
        "  aware     3  1.00×    3  1.00×  3.8  1.00×  3.98  1.00×    0.0%  100.0%   0.0%\n"
        "\n"
        "better, equal, worse: share of the jobs by completion time, against plain; equal is within 10 ms or 0.1 %\n"
        "\n"
        "queueing delay in seconds, until a job's first task starts\n"
        "                                    mean  p50  p90   p99\n"
        "  plain  constrained short jobs        1    1    1     1\n"
        "  aware  constrained short jobs    4.333    5    5     5\n"
        "  plain  unconstrained short jobs      2    2  2.8  2.98\n"
        "  aware  unconstrained short jobs      2    2  2.8  2.98\n"
        "\n"
        "short jobs by kind of constraint: mean completion time in seconds, and × that of plain, "
        "below a tenth as 1/20×\n"
        "         jobs  plain  aware\n"
        "  cores     2      2      5  2.50×\n"
        "  isa       1      2      6  3.00×\n"
    )


def test_a_summary_as_printed(pair: dict[str, list[Result]]) -> None:
    lines = render_summary(pair["aware"][0].summary).splitlines()
    begin = lines.index("  constrained short         3  5.333    6    6     6")
    assert lines[begin : begin + 9] == [
        "  constrained short         3  5.333    6    6     6",
        "  unconstrained short       2      3    3  3.8  3.98",
        "",
        "queueing delay (s)     jobs   mean  p50  p90   p99",
        "  constrained short       3  4.333    5    5     5",
        "  unconstrained short     2      2    2  2.8  2.98",
        "",
        "short jobs by constraint (s)  jobs  mean  p50  p90   p99  relative slowdown",
        "  cores                          2     5    5  5.8  5.98              1.67×",
    ]
    together = Comparison({"aware": pair["aware"]}, "", {}).summaries[0]
    assert "  cores                          2  4±19  4±19" in render_summary(together)


def test_the_page_shows_delay_kinds_and_mechanisms(pair: dict[str, list[Result]]) -> None:
    page = render_report([r for runs in pair.values() for r in runs])
    for head in (
        "Constrained short jobs (3)",
        "Queueing delay and slowdown",
        "Short jobs by kind of constraint",
    ):
        assert f"<h3>{head}</h3>" in page
    assert '<th scope="row">rejections</th><td>2±6</td><td>2±6</td>' in page
    assert '<th scope="row">cores</th><td>2</td><td>2</td>' in page
    assert "Mean queueing delay of short jobs by their arrival" in page
    alone = render_report(pair["aware"][:1])
    head = "".join(f'<th scope="col">{name}</th>' for name in ("constraint", "jobs", "aware", "slowdown"))
    assert head in alone


def test_the_crv_table_by_hand(tmp_path: Path) -> None:
    table = crv_table(SERIES)
    assert table is not None
    assert table.to_pylist()[:2] == [
        {"time_s": 5.0, "resource": "isa", "demand": 0.0, "supply": None, "crv": 0.0},
        {"time_s": 5.0, "resource": "cores", "demand": 6.0, "supply": 4.0, "crv": 1.5},
    ]
    assert table["time_s"].to_pylist() == [5.0, 5.0, 10.0, 10.0]
    assert table.schema.names == [c.name for c in CRV] == [c.name for c in TABLES["crv"].columns]
    assert crv_table(None) is None
    result = run_of("p", jobs_of([1, 1], ["cores", None]), crv=table)
    out = result.save(tmp_path / "r")
    assert rd.read_manifest(out)["results"]["crv.parquet"] == sha256_of(out / "crv.parquet")
    assert pq.read_schema(out / "crv.parquet").field("time_s").metadata[b"unit"] == b"s"
    again = read_result(out).crv
    assert again is not None
    assert again.equals(table)


def test_the_crv_figure_shows_what_was_in_demand() -> None:
    jobs = jobs_of([1, 1], ["cores", None])
    figure = crv_figure(run_of("p", jobs, crv=crv_table(SERIES)))
    assert figure is not None
    (line,) = figure.axes[0].lines
    assert [axes.get_title() for axes in figure.axes] == ["cores"]
    assert np.array_equal(line.get_data(), [[5.0, 10.0], [1.5, 0.75]])
    many = np.arange(1.0, 11.0)
    of_many = Pressure(np.array([5]) * 10**9, [f"r{i}" for i in range(10)], *np.ones((2, 1, 10)), many[None])
    few = crv_figure(run_of("p", jobs, crv=crv_table(of_many)))
    assert few is not None
    assert few.get_supylabel() == "demand / supply (the 8 of 10 most in demand)"
    assert [axes.get_title() for axes in few.axes] == [f"r{i}" for i in range(9, 1, -1)]
    assert crv_figure(run_of("p", jobs)) is None
    assert crv_figure(run_of("p", jobs, crv=crv_table(SERIES._replace(crv=np.zeros((2, 2)))))) is None


@pytest.mark.drawn
def test_delays_of_nothing_lie_at_the_left_edge() -> None:
    jobs = jobs_of([0, 0, 2, 8, 4], ["isa", "isa", "isa", "isa", None])
    figure = wait_figure({"s": [run_of("s", jobs)]}, "short")
    assert figure is not None
    with_some, without = figure.axes[0].lines
    assert (with_some.get_label(), without.get_label()) == ("s, constrained", "s, unconstrained")
    assert with_some.get_xdata()[[0, -1]].tolist() == [2.0, 8.0]
    assert with_some.get_linestyle() != without.get_linestyle()
    assert to_svg(figure) == to_svg(wait_figure({"s": [run_of("s", jobs)]}, "short"))


def test_delays_over_time_are_means_over_jobs_that_arrive_together() -> None:
    kinds: list[str | None] = ["isa", None] * BINS
    waits = np.repeat(np.arange(BINS), 2)
    waits[1::2] = 7
    figure = wait_over_time_figure({"s": [run_of("s", jobs_of(waits, kinds))]}, "short")
    assert figure is not None
    with_some, without = figure.axes[0].lines
    assert without.get_ydata()[~np.isnan(without.get_ydata())].tolist() == [7.0] * BINS
    assert with_some.get_ydata().tolist() == list(range(BINS))
    none = jobs_of([np.nan, 1], ["isa", None])
    assert wait_over_time_figure({"s": [run_of("s", none)]}, "short") is None


@pytest.fixture
def constrained(workload: JobWorkload) -> JobWorkload:
    sets = [parse_constraint_set("cores >= 1"), parse_constraint_set("cores >= 1 and cpus >= 1")]
    return with_constraints(workload, sets, np.arange(workload.num_jobs) % 3 - 1)


@pytest.mark.slow("several whole runs")
def test_a_comparison_writes_what_its_report_reads(
    constrained: JobWorkload, tmp_path: Path, emu: Callable[..., Any]
) -> None:
    save_workload(constrained, "jobs")
    Path("two.toml").write_text("machines = [{ type = 'one', count = 12, cores = 4 }]\n")
    command = "compare --schedulers random,sparrow --workload jobs --cluster two.toml --in-process --out c"
    ended = emu(*command.split())
    assert ended.code == 0, ended.err
    assert "constrained short jobs (" in ended.out
    assert "  cores+cpus " in ended.out
    names = {p.name for p in Path("c").iterdir()}
    stems = ("cdf-short", "wait-short", "wait-over-time-short")
    assert {f"{s}.{end}" for s in stems for end in ("svg", "png")} <= names
    assert not any(name.startswith("crv") for name in names)
    for summary in json.loads(Path("c/summary.json").read_text()):
        assert set(summary["jobs"]["by_constraint"]) == {"cores", "cores+cpus"}
    before = Path("c/report.html").read_text()
    assert emu("report", "c").code == 0
    assert Path("c/report.html").read_text() == before
    assert emu("compare", "--resume", "c").out.strip() in ended.out


def test_seeds_have_intervals_of_the_parts(constrained: JobWorkload) -> None:
    comparison = compare(["random"], constrained, 12, seeds=2, in_process=True)
    summary = comparison.summaries[0]
    low, high = summary["confidence_95"]["jobs"]["constrained"]["short"]["mean"]
    assert low < summary["jobs"]["constrained"]["short"]["mean"] < high
    assert "slowdown_vs_unconstrained" in summary["jobs"]["by_constraint"]["cores"]
    frame = comparison.to_pandas()
    assert {"constrained short", "unconstrained short"} < set(frame.job_class)
