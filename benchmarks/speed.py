"""Speed: tasks a second of engine time, on one core, beside a bare heapq loop in plain Python in the same run.

How to run: `python -m benchmarks.speed [--repeats 5] [--tasks 5000000] [--nodes 15000] [--trace PATH]`
For debugging: `--tasks 100000 --repeats 1`
The ratio to the bare loop is what counts when machines differ; the targets are of a 2-core machine.
"""

import argparse
import itertools
import os
import statistics
import sys
import time
from pathlib import Path

from actors.hosting.partition import Observe, Partition
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Setting
from benchmarks.bare_loop import bare_sparrow
from clusters.cluster import load_cluster
from workloads.catalogue import load_workload
from workloads.jobs import JobWorkload

SHARED = Path(os.environ.get("EMU_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TARGETS = {  # tasks/s
    "sparrow": 1_000_000,
    "hawk": 800_000,
    "eagle": 600_000,
    "central-lwl": 300_000,
    "dist-lwl": 300_000,
}
BARE_TASKS = 200_000  # the bare loop runs the first jobs of a workload, up to about so many tasks


def engine_s(workload: JobWorkload, name: str, nodes: int) -> float:
    """Seconds from the first event to the last; compilation and set-up are not in it."""
    scheduler = find_scheduler(name)
    setting = Setting(
        scheduler,
        resolve_parameters(scheduler, {}),
        workload,
        load_cluster("homogeneous", nodes),
        workload.short_cutoff_s or float("inf"),
        (workload.long_partition or 1.0) if scheduler.hybrid else 1.0,
        seed=1,
    )
    partition = Partition(setting, Observe())
    partition.start()
    assert partition.run(3600.0).done, "no end within an hour"
    return partition.wall_s


def bare_tasks_per_s(workload: JobWorkload, nodes: int) -> float:
    """Speed of the bare loop on the first jobs of a workload."""
    arrays = workload.arrays()
    jobs = max(int((arrays.first_task <= BARE_TASKS).sum()) - 1, 1)
    first = arrays.first_task[: jobs + 1].tolist()
    duration = (arrays.duration_ns[: first[-1]] / 1e9).tolist()
    tasks = [duration[a:b] for a, b in itertools.pairwise(first)]
    submit = (arrays.submit_ns[:jobs] / 1e9).tolist()
    begin = time.perf_counter()
    bare_sparrow(submit, tasks, nodes)
    return len(duration) / (time.perf_counter() - begin)


def measure(workload: JobWorkload, nodes: int, repeats: int) -> bool:
    """Print a table for one workload; whether every target is met by the median."""
    print(f"\n{workload.name}: {workload.num_jobs:,} jobs, {workload.num_tasks:,} tasks, {nodes:,} nodes")
    # In turn, so that a slow spell of the machine does not fall on one of them alone.
    speeds: dict[str, list[float]] = {name: [] for name in ("bare loop", *TARGETS)}
    for _ in range(repeats):
        speeds["bare loop"].append(bare_tasks_per_s(workload, nodes))
        for name in TARGETS:
            speeds[name].append(workload.num_tasks / engine_s(workload, name, nodes))
    bare = statistics.median(speeds["bare loop"])
    print(f"{'':12s} {'median':>12s} {'best':>12s} {'target':>12s} {'x bare loop':>12s}   tasks/s")
    all_met = True
    for name, values in speeds.items():
        median, target = statistics.median(values), TARGETS.get(name)
        wanted = f"{target:12,d}" if target else f"{'':12s}"
        verdict = "" if target is None else ("met" if median >= target else "missed")
        all_met &= verdict != "missed"
        print(f"{name:12s} {median:12,.0f} {max(values):12,.0f} {wanted} {median / bare:12.1f}   {verdict}")
    return all_met


def main() -> int:
    """Measure the trace, if it is there, and a generated workload."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=5_000_000, help="tasks of the generated workload, about")
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--trace", type=Path, default=SHARED / "traces" / "GOOG_subtrace.tr")
    options = parser.parse_args()
    met = True
    if options.trace.exists():
        met &= measure(load_workload(str(options.trace)), options.nodes, options.repeats)
    else:
        print(f"{options.trace} is not there: the generated workload alone")
    jobs = max(options.tasks // 40, 8)  # about 40 tasks a job
    generated = load_workload("yahoo", seed=0, options={"jobs": jobs, "nodes": options.nodes})
    met &= measure(generated, options.nodes, options.repeats)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
