"""One job of up to a million tasks: engine time, which is to grow with the tasks and not with their square.

How to run: `python -m benchmarks.one_job [SCHEDULER...] [--nodes 100,1000,15000] [--tasks 1000000] [--timeout 240]`
For debugging: `python -m benchmarks.one_job eagle --nodes 100 --tasks 40000`
A job of a quarter, half and all of the tasks, with a small one behind it. For schedulers of coflows it is a coflow,
and its tasks are flows between two of the nodes. Engine time is without loading, set-up and compiling. The last column
is what the whole job takes over what its half takes: 2 is linear. A line, compiling included, has `--timeout` seconds.
Limits: 30 s, and a ratio of 3.
"""

import json
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np

from actors.schedulers.registry import built_in_schedulers, find_scheduler
from actors.setting import Network, Setting
from benchmarks.measuring import engine_times, options, setting_of, show
from clusters.cluster import build_cluster
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload, make_workload

BOTH = tuple(s.name for s in built_in_schedulers() if s.family != "dags")
LIMIT_S, LIMIT_RATIO = 30.0, 3.0
CUTOFF_S = 60.0
PROCESS = """
import json, sys
from benchmarks.one_job import engine_s
name, nodes, mean_s, *tasks = sys.argv[1:]
engine_s(name, int(nodes), 10, float(mean_s))
for count in tasks:
    print(json.dumps(engine_s(name, int(nodes), int(count), float(mean_s))), flush=True)
"""


def jobs_of(tasks: int, mean_s: float, constrained: bool) -> JobWorkload:
    """One large job, and a small one one second later."""
    draws = np.random.default_rng(0)
    large = draws.uniform(0.1 * mean_s, 1.9 * mean_s, tasks)
    durations = np.concatenate([large, draws.uniform(1, 10, 10)])
    workload = make_workload("one job", [0.0, 1.0], [tasks, 10], durations)
    if not constrained:
        return workload
    asked = parse_constraint_set("cores >= 8 soft 1.5")
    return with_constraints(workload, [asked], [0, -1])


def coflow_of(flows: int, ports: int) -> CoflowWorkload:
    """One large coflow, and a small one; as many flows as there are pairs of ports at the most."""
    draws = np.random.default_rng(0)
    pair = draws.permutation(ports * ports)[:flows]
    few = draws.permutation(ports)[:10]
    ingress = np.concatenate([pair // ports, few])
    egress = np.concatenate([pair % ports, few[::-1]])
    size = draws.uniform(1e6, 1e8, ingress.size)
    return make_coflow_workload("one coflow", [0.0, 1.0], [pair.size, few.size], ingress, egress, size, ports)


def setting_for(name: str, nodes: int, tasks: int, mean_s: float) -> Setting:
    """The emulation of one job, or coflow, and another one."""
    scheduler = find_scheduler(name)
    cluster = build_cluster("half of them large", [1] * nodes, cpu_cores=[4, 8] * (nodes // 2))
    if scheduler.family == "coflows":
        return setting_of(name, coflow_of(tasks, nodes), cluster, network=Network(delay_s=0.0), seed=0)
    workload = jobs_of(tasks, mean_s, scheduler.constrained)
    return setting_of(name, workload, cluster, short_cutoff_s=CUTOFF_S, long_partition=0.9, seed=0)


def engine_s(name: str, nodes: int, tasks: int, mean_s: float) -> float:
    """Seconds from the first event to the last."""
    return engine_times(setting_for(name, nodes, tasks, mean_s)).wall_s


def measure(name: str, nodes: int, mean_s: float, counts: list[int], timeout_s: float) -> list[float | None]:
    """The seconds of each count, in a process of its own; None for those that were not done in time."""
    argv = [sys.executable, "-c", PROCESS, name, str(nodes), str(mean_s), *map(str, counts)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
    found: list[float | None] = [json.loads(line) for line in printed.splitlines()]
    return found + [None] * (len(counts) - len(found))


def main() -> None:
    """Print a line for each scheduler, number of nodes and length of tasks."""
    given: dict[str, Any] = {"nodes": (100, 1_000, 15_000), "tasks": 1_000_000, "timeout": 240.0}
    asked = options(__doc__, "schedulers", schedulers=BOTH, **given)
    counts = [asked.tasks // 4, asked.tasks // 2, asked.tasks]
    rows = [["scheduler", "nodes", "job", *(f"{n:,}" for n in counts), "ratio", ""]]
    for name, nodes in product(asked.schedulers, asked.nodes):
        coflows = find_scheduler(name).family == "coflows"
        for kind, mean_s in [("coflow", 10.0)] if coflows else [("short", 10.0), ("long", 200.0)]:
            found = measure(name, nodes, mean_s, counts, asked.timeout)
            half, whole = found[-2:]
            ratio = float("nan") if whole is None or not half else whole / half
            met = whole is not None and whole <= LIMIT_S and not ratio > LIMIT_RATIO
            texts = ["-" if s is None else f"{s:.2f}" for s in found]
            rows.append([name, f"{nodes}", kind, *texts, f"{ratio:.1f}", "met" if met else "missed"])
            print("  ".join(rows[-1]), flush=True)
    show("seconds of the engine", rows)


if __name__ == "__main__":
    main()
