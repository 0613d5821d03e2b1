"""Central against distributed scheduling at four sizes: sustained tasks/s and decision latency.

How to run: `emu sweep examples/decisions.toml`, then `python -m benchmarks.decisions runs/sweep-decisions`
For debugging: `emu sweep examples/decisions.toml --set workload_options.jobs=2000`
`--measure` fits what a job and a task cost the schedulers here: the CPU time of the handlers of one job against its
number of tasks, for jobs of 1, 10 and 100 tasks at 15,000 nodes (`cost.model=measured`).
`--live` runs the sizes that a laptop can emulate by the wall clock, side by side with virtual time: tasks of 2 s at
half load.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import emu
from benchmarks.measuring import options, show
from emu.results.text_tables import number
from workloads.generators.synthetic import poisson

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
            keys = {
                "short_cutoff": "3 s",
                "long_partition": 1.0,
                "cost_model": "measured",
                "in_process": True,
            }
            found = emu.run(name, workload, NODES, **keys).summary["schedulers"]
            costs.append(found["cost_mean_s"] * found["messages"] / workload.num_jobs * 1e6)
        # Relative errors count alike at all sizes.
        design = np.stack([np.ones(len(SIZES)), np.array(SIZES)], axis=1) / np.array(costs)[:, None]
        per_job, per_task = np.linalg.lstsq(design, np.ones(len(SIZES)), rcond=None)[0]
        rows.append([name, *(f"{c:.2f}" for c in costs), f"{per_job:.2f}", f"{per_task:.2f}"])
    return rows


def table_of(sweep: Path) -> list[list[str]]:
    """The rows of a sweep's table."""
    runs = pq.read_table(sweep / "results.parquet").to_pylist()
    rows = [["nodes", "scheduler", "offered/s", "sustained/s", "p50, ms", "p99, ms", "busiest scheduler"]]
    for run in sorted(runs, key=lambda r: (r["nodes"], SCHEDULERS.index(r["scheduler"]))):
        offered = offered_rate(emu.read_result(sweep / run["path"]).jobs)
        latency_ms = (1e3 * run[f"decision_latency.all.{q}"] for q in ("p50", "p99"))
        figures = map(number, (offered, run["sustained_tasks_per_s"], *latency_ms))
        rows.append([f"{run['nodes']:,.0f}", run["scheduler"], *figures, f"{run['schedulers.busiest']:.1%}"])
    return rows


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
                latency = result.summary["decision_latency"]["all"]
                rates = (offered_rate(result.jobs), result.summary["sustained_tasks_per_s"])
                milliseconds = [f"{1e3 * latency[q]:.2f}" for q in ("p50", "p99")]
                rows.append([f"{nodes:,}", name, clock, *map(number, rates), *milliseconds])
    return rows


def main() -> None:
    """Run the benchmark."""
    asked = options(__doc__, "sweeps", sweeps=(), measure=False, live=False)
    if asked.measure:
        show("what a job and each of its tasks cost", measure())
    if asked.live:
        show("by the wall clock and in virtual time", live())
    for sweep in map(Path, asked.sweeps):
        show(str(sweep), table_of(sweep))


if __name__ == "__main__":
    main()
