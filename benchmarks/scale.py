"""Scale: a million nodes, and how the time per task grows with the nodes at constant load.

How to run: `python -m benchmarks.scale [--tasks 10000000] [--repeats 3]`
For debugging: `--tasks 200000 --repeats 1`
Each run is a process of its own, so that its peak memory is its own. Targets: 1,000,000 nodes and 10,000,000 tasks
within 120 s and 6 GiB, all included; time per task at 150,000 nodes at most 2.2 times, at 1,000,000 at most 4 times
that at 15,000.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

SIZES = (15_000, 150_000, 1_000_000)
LIMITS = {150_000: 2.2, 1_000_000: 4.0}
LOAD = 0.8
PROCESS = """
import json, sys
from actors.hosting.partition import peak_rss_mb
from benchmarks.speed import engine_s
from workloads.catalogue import load_workload
name, nodes, tasks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
jobs = tasks // {per_job}
workload = load_workload("yahoo", seed=0, options={{"jobs": jobs, "nodes": nodes, "load": {load}}})
wall_s = engine_s(workload, name, nodes)
print(json.dumps({{"tasks": workload.num_tasks, "wall_s": wall_s, "rss_mb": peak_rss_mb()}}))
"""


def run(name: str, nodes: int, tasks: int) -> dict[str, float]:
    """One emulation in a process of its own: tasks, engine seconds, seconds in all, peak memory."""
    begin = time.perf_counter()
    code = PROCESS.format(per_job=40, load=LOAD)
    done = subprocess.run(
        [sys.executable, "-c", code, name, str(nodes), str(tasks)], check=True, capture_output=True, text=True
    )
    return {**json.loads(done.stdout), "process_s": time.perf_counter() - begin}


def main() -> int:
    """Print a table for sparrow and eagle."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=10_000_000, help="tasks of every run, about")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    met = True
    for name in ("sparrow", "eagle"):
        print(f"\n{name}, load {LOAD}, {options.tasks:,} tasks")
        print(
            f"{'nodes':>10s} {'engine s':>9s} {'process s':>10s} {'GiB':>6s} {'µs/task':>8s} {'ratio':>6s} limit"
        )
        per_task: dict[int, list[float]] = {nodes: [] for nodes in SIZES}
        last: dict[int, dict[str, float]] = {}
        for _ in range(options.repeats):
            for nodes in SIZES:
                last[nodes] = run(name, nodes, options.tasks)
                per_task[nodes].append(last[nodes]["wall_s"] / last[nodes]["tasks"])
        for nodes in SIZES:
            # Ratios within a round: what else the machine does then falls on both alike.
            ratio = statistics.median(a / b for a, b in zip(per_task[nodes], per_task[SIZES[0]], strict=True))
            result, limit = last[nodes], LIMITS.get(nodes)
            met &= limit is None or ratio <= limit
            print(
                f"{nodes:10,d} {result['wall_s']:9.1f} {result['process_s']:10.1f} {result['rss_mb'] / 1024:6.2f}"
                f" {statistics.median(per_task[nodes]) * 1e6:8.2f} {ratio:6.2f} {limit or ''}"
            )
        met &= last[SIZES[-1]]["process_s"] <= 120 and last[SIZES[-1]]["rss_mb"] <= 6 * 1024
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
