"""Tasks with cores and memory: what slots in their place get wrong, and what resources cost the engine.

    python -m benchmarks.resources [waits|speed] [--trace google-2011] [--machines 400] [--seeds 3]

`waits` runs the first shard of Google's trace of 2011 on 400 of its 12,477 machines, a random sample, or the excerpt
of Alibaba's of 2018 on 30 of its 4,034 (`traces/real` in the folder that EMU_SHARED names): with a number of slots for
each machine, which is a guess, with the cores that tasks request, with cores and memory, and so on. Waits are until a
job's first task starts, of short jobs, in seconds; means over samples of machines; `--only` TEXT chooses rows by name.
`speed` is the engine's CPU time with two resources over that with slots, on `yahoo` at 15,000 nodes, medians of runs
in turn; a node has the cores of the largest task, or as many slots as mean tasks have these cores.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import emu
from benchmarks.measuring import SHARED, Choice, engine_times, in_turn, run_sections, setting_of, show
from clusters.cluster import build_cluster
from workloads.catalogue import convert_workload, load_workload
from workloads.transform.requests import demands

SCHEDULERS = ("sparrow", "hawk", "eagle", "central-lwl")
NODES = 15_000
TRACES: dict[str, tuple[dict[str, Any], dict[str, Any], int, tuple[int, ...]]] = {
    "google-2011": ({}, {"unfinished": "ran"}, 400, (8, 12, 16)),
    "alibaba-2018": ({"short_cutoff": "90%"}, {}, 30, (64, 96, 128)),
}
"""Keys of a run, options of the reader, machines, and guesses of slots by trace."""
MODES: dict[str, dict[str, Any]] = {
    "cores": {"resources_use": "cpu_cores"},
    "cores, memory": {},
    "cores, memory; what fits passes": {"resources_passing": 5.0},
}
OF_PRIORITIES: dict[str, dict[str, Any]] = {
    "cores, memory, priorities": {"priorities": True},
    "cores, memory, priorities; what fits passes": {"priorities": True, "resources_passing": 5.0},
    "cores, memory, preemption": {"priorities": True, "preemption_mode": "restart"},
    "cores, memory, preemption; checkpoints": {"priorities": True, "preemption_mode": "checkpoint"},
}
"""What is tried of a trace that states priorities besides."""


def waits(asked: argparse.Namespace) -> None:
    """Print mean and 99th percentile of the waits of short jobs by mode and scheduler, and the mean use."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        own, options, default, guesses = TRACES[asked.trace]
        convert_workload(SHARED / "traces/real" / asked.trace, trace, options=options, format=asked.trace)
        machines = pq.read_table(trace / "cluster.parquet")
        asked.machines = asked.machines or default
        has_priorities = "priority" in pq.read_schema(trace / "jobs.parquet").names
        slots = {f"{n} slots a machine": {"slots": n, "resources_use": "slots"} for n in guesses}
        rows = [["", *SCHEDULERS, "mean use of cores, memory"]]
        for mode, keys in {**slots, **MODES, **(OF_PRIORITIES if has_priorities else {})}.items():
            if asked.only not in mode:
                continue
            found = [_run(trace, machines, asked, own | keys, seed) for seed in range(1, asked.seeds + 1)]
            cells = []
            for name in SCHEDULERS:
                of = [run[name]["short"]["wait"] for run in found]
                mean, p99 = (statistics.fmean(wait[what] for wait in of) for what in ("mean", "p99"))
                cells.append(f"{mean:,.0f}, {p99:,.0f}")
            used = found[0]["sparrow"].get("used", {})
            rows.append([mode, *cells, ", ".join(f"{share:.0%}" for share in used.values())])
        show(f"short jobs on {asked.machines} machines: wait (s), mean and 99th percentile", rows)


def _run(trace: Path, machines: pa.Table, asked: argparse.Namespace, keys: dict[str, Any], seed: int) -> Any:
    """Return the figures of jobs by scheduler, on a sample of the machines."""
    chosen = np.sort(np.random.default_rng(seed).permutation(machines.num_rows)[: asked.machines])
    sample = machines.take(pa.array(chosen)).drop_columns(["node_id"])
    path = trace.parent / f"machines-{seed}.parquet"
    pq.write_table(sample, path)
    given = {"priorities": False, "in_process": True, "seed": seed, **keys}
    compared = emu.compare(SCHEDULERS, trace, cluster=path, progress=False, **given)
    return {name: results[0].summary["jobs"] for name, results in compared.results.items()}


def speed(asked: argparse.Namespace) -> None:
    """Print the ratio of CPU time by scheduler."""
    workload = load_workload("yahoo", seed=0, options={"nodes": NODES})
    asking = demands(workload)
    found = asking.demands()
    tasks = np.diff(asking.arrays().first_task)
    cores, memory = (tasks @ found.vector[found.of_job] / tasks.sum()).tolist()
    most = float(found.vector[:, 0].max())
    slots = int(most / cores)
    cluster = build_cluster("as the largest task", [slots] * NODES, cpu_cores=most)
    rows = [["", f"{slots} slots, s of CPU", "two resources", "ratio"]]
    for name in (*SCHEDULERS, "central-fifo", "dist-lwl", "yacc-d", "phoenix"):
        plain = setting_of(name, workload, cluster)
        with_resources = setting_of(name, asking, cluster, resources=asking.resources)
        times = in_turn(
            asked.repeats,
            {
                "slots": lambda setting=plain: engine_times(setting).cpu_s,
                "resources": lambda setting=with_resources: engine_times(setting).cpu_s,
            },
        )
        before, after = (statistics.median(times[what]) for what in ("slots", "resources"))
        rows.append([name, f"{before:.3f}", f"{after:.3f}", f"{after / before:.2f}"])
    show(
        f"yahoo at {NODES:,} nodes; a task takes {cores:.2f} cores and {memory:.3f} of the memory on average",
        rows,
    )


if __name__ == "__main__":
    options: dict[str, Any] = {"trace": Choice(tuple(TRACES)), "machines": int, "only": ""}
    run_sections(__doc__, {"waits": waits, "speed": speed}, seeds=3, repeats=5, **options)
