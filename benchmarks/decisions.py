"""Central against distributed scheduling at four sizes: sustained tasks/s and decision latency, as a table and a plot.

How to run: `emu sweep examples/decisions.toml`, then `python -m benchmarks.decisions runs/sweep-decisions`
For debugging: `emu sweep examples/decisions.toml --set workload_options.jobs=2000`
`--measure` fits what a job and a task cost the schedulers here: the CPU time of the handlers of one job against its
number of tasks, for jobs of 1, 10 and 100 tasks at 15,000 nodes (`cost.model=measured`).
`--live` runs the sizes that a laptop can emulate by the wall clock, side by side with virtual time: tasks of 2 s at
half load.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import emu
from emu.report.drawing import add_legend, figure_style, line_look, new_figure, plain_label, save_figure
from emu.results.text_tables import align, number
from workloads.generators.poisson import poisson

SCHEDULERS = ("central-fifo", "central-lwl", "sparrow", "eagle")
NODES = 15_000
SIZES = (1, 10, 100)  # tasks of a job
LIVE_NODES = (1_000, 5_000)
LIVE_S = 20.0


def measure() -> list[list[str]]:
    """What a job and each of its tasks cost, by scheduler."""
    rows = [["scheduler", *(f"{m} tasks, us a job" for m in SIZES), "per job, us", "per task, us"]]
    for name in SCHEDULERS:
        costs = []
        for tasks in SIZES:
            workload = poisson(
                jobs=200_000 // tasks, seed=0, load=0.8, nodes=NODES, tasks_per_job=tasks, mean_task_s=1.0
            )
            result = emu.run(
                name,
                workload,
                NODES,
                short_cutoff="3 s",
                long_partition=1.0,
                cost_model="measured",
                in_process=True,
            )
            found = result.summary["schedulers"]
            costs.append(found["cost_mean_s"] * found["messages"] / workload.num_jobs * 1e6)
        # Relative errors count alike at all sizes.
        design = np.stack([np.ones(len(SIZES)), np.array(SIZES)], axis=1) / np.array(costs)[:, None]
        per_job, per_task = np.linalg.lstsq(design, np.ones(len(SIZES)), rcond=None)[0]
        rows.append([name, *(f"{c:.2f}" for c in costs), f"{per_job:.2f}", f"{per_task:.2f}"])
    return rows


def table_of(sweep: Path) -> tuple[list[list[str]], dict[str, dict[str, list[tuple[float, float]]]]]:
    """The rows of a sweep's table, and by figure and scheduler its (nodes, value) points."""
    runs = pq.read_table(sweep / "results.parquet").to_pylist()
    rows = [["nodes", "scheduler", "offered/s", "sustained/s", "p50, ms", "p99, ms", "busiest scheduler"]]
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {"sustained": {}, "latency": {}}
    for run in sorted(runs, key=lambda r: (r["nodes"], SCHEDULERS.index(r["scheduler"]))):
        config = emu.read_result(sweep / run["path"])
        offered = offered_rate(config.jobs)
        p50, p99 = (1e3 * run[f"decision_latency.all.{q}"] for q in ("p50", "p99"))
        rows.append(
            [
                f"{run['nodes']:,.0f}",
                run["scheduler"],
                number(offered),
                number(run["sustained_tasks_per_s"]),
                number(p50),
                number(p99),
                f"{run['schedulers.busiest']:.1%}",
            ]
        )
        lines["sustained"].setdefault(run["scheduler"], []).append(
            (run["nodes"], run["sustained_tasks_per_s"])
        )
        lines["latency"].setdefault(run["scheduler"], []).append((run["nodes"], p99 / 1e3))
    return rows, lines


def lines_figure(lines: Mapping[str, list[tuple[float, float]]], x_label: str, y_label: str) -> Any:
    """Return (x, y) points of several schedulers as lines over two logarithmic axes."""
    with figure_style():
        figure, axes = new_figure()
        for index, (name, points) in enumerate(lines.items()):
            x, y = zip(*sorted(points), strict=True)
            axes.plot(x, y, marker="o", markersize=4, label=plain_label(name), **line_look(index))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        add_legend(figure, axes)
        return figure


def offered_rate(jobs: Any) -> float:
    """Tasks that arrive a second."""
    submit_s = jobs["submit_s"].to_numpy()
    return float(jobs["num_tasks"].to_numpy().sum() / (submit_s[-1] - submit_s[0]))


def live() -> list[list[str]]:
    """The same workload by the wall clock and in virtual time with measured costs."""
    rows = [["nodes", "scheduler", "clock", "offered/s", "sustained/s", "p50, ms", "p99, ms"]]
    for nodes in LIVE_NODES:
        mean_s, tasks = 2.0, 10
        count = int(0.5 * nodes / mean_s * LIVE_S / tasks)
        workload = poisson(jobs=count, seed=0, load=0.5, nodes=nodes, tasks_per_job=tasks, mean_task_s=mean_s)
        for name in SCHEDULERS:
            for clock in ("virtual", "live"):
                settings = {"clock": clock} | ({"cost_model": "measured"} if clock == "virtual" else {})
                result = emu.run(name, workload, nodes, short_cutoff="6 s", long_partition=1.0, **settings)
                found = result.summary
                latency = found["decision_latency"]["all"]
                rows.append(
                    [
                        f"{nodes:,}",
                        name,
                        clock,
                        number(offered_rate(result.jobs)),
                        number(found["sustained_tasks_per_s"]),
                        f"{1e3 * latency['p50']:.2f}",
                        f"{1e3 * latency['p99']:.2f}",
                    ]
                )
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sweep", nargs="?", type=Path, help="the directory of a finished sweep")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--live", action="store_true")
    options = parser.parse_args()
    if options.measure:
        print("\n".join(align(measure())))
    if options.live:
        print("\n".join(align(live())))
    if options.sweep:
        rows, lines = table_of(options.sweep)
        print("\n".join(align(rows)))
        for stem, y_label in (("sustained", "sustained tasks/s"), ("latency", "p99 decision latency (s)")):
            for path in save_figure(
                lines_figure(lines[stem], "nodes", y_label), options.sweep / f"decisions-{stem}"
            ):
                print(options.sweep / path)


if __name__ == "__main__":
    main()
