"""Speed of probing schedulers in plain Python: tasks a second, and calls to Python, beside the built-in ones.

How to run: `python -m benchmarks.own_probing [--jobs 25000] [--nodes 15000] [--repeats 3]`
For debugging: `--jobs 500 --repeats 1`. Runs take turns; speeds are of CPU time from the first event to the last.
"""

import argparse
import statistics
import sys
import time

from actors.hosting.partition import Observe, Partition
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Setting
from clusters.cluster import load_cluster
from examples.pigeon import Pigeon
from examples.probing_schedulers import Hawk, RefusesBehindLong, Sparrow
from workloads.catalogue import load_workload

WANTED = 50_000  # tasks/s of each in Python


def main() -> int:
    """Print a row for each scheduler; whether those in Python are as fast as they should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=25_000)
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    workload = load_workload("yahoo", seed=0, options={"jobs": options.jobs, "nodes": options.nodes})
    cluster = load_cluster("homogeneous", options.nodes)
    speeds: dict[str, list[float]] = {}
    calls: dict[str, int] = {}
    for _ in range(options.repeats):
        for own in ("sparrow", Sparrow, "hawk", Hawk, "eagle", RefusesBehindLong, Pigeon):
            scheduler = find_scheduler(own)
            share = (workload.long_partition or 1.0) if scheduler.hybrid else 1.0
            cutoff_s = workload.short_cutoff_s or float("inf")
            parameters = resolve_parameters(scheduler, {})
            setting = Setting(scheduler, parameters, workload, cluster, cutoff_s, share, seed=1)
            partition = Partition(setting, Observe())
            partition.start()
            begin, progress = time.process_time(), partition.run(3600.0)
            assert progress.done, "no end within an hour"
            speed = workload.num_tasks / (time.process_time() - begin)
            speeds.setdefault(scheduler.name, []).append(speed)
            calls[scheduler.name] = progress.asked.times if progress.asked else 0
    print(f"{workload.num_tasks:,} tasks of {workload.num_jobs:,} jobs on {options.nodes:,} nodes")
    print(f"{'':20s} {'tasks/s':>12s} {'calls of Python':>16s}")
    for name, found in speeds.items():
        print(f"{name:20s} {statistics.median(found):12,.0f} {calls[name]:16,d}")
    return 0 if min(map(statistics.median, speeds.values())) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
