"""What recording events costs: engine time with and without, and the time to write `events.parquet`.

How to run: `python -m benchmarks.recording [--jobs 25000] [--nodes 15000] [--repeats 5]`
For debugging: `--jobs 500 --repeats 1`. Ratios are of CPU time, of runs in turn in one process.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from actors.hosting.partition import Observe, Partition
from actors.hosting.recording import Recording
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Setting
from clusters.cluster import load_cluster
from emu import disk
from emu.results.events import SCHEMA, batches
from workloads.catalogue import load_workload

SCHEDULERS = ("sparrow", "hawk", "eagle", "central-lwl")


def setting_of(name: str, jobs: int, nodes: int) -> Setting:
    """Return the setting that is measured."""
    scheduler = find_scheduler(name)
    workload = load_workload("yahoo", seed=0, options={"jobs": jobs, "nodes": nodes})
    share = (workload.long_partition or 1.0) if scheduler.hybrid else 1.0
    cutoff_s = workload.short_cutoff_s or float("inf")
    parameters = resolve_parameters(scheduler, {})
    return Setting(
        scheduler, parameters, workload, load_cluster("homogeneous", nodes), cutoff_s, share, seed=1
    )


def engine_s(setting: Setting, recording: Recording | None) -> tuple[float, Partition]:
    """Return CPU seconds from the first event to the last."""
    partition = Partition(setting, Observe(events=recording))
    partition.start()
    begin = time.process_time()
    assert partition.run(3600.0).done, "no end within an hour"
    return time.process_time() - begin, partition


def main() -> int:
    """Print a row for each scheduler; whether recording all events takes at most twice the engine time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=25_000)
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    names = ("engine s", "all", "20 jobs", "write s", "MB")
    print(f"{'':12s} {'tasks':>10s} {'rows':>12s} " + " ".join(f"{name:>8s}" for name in names))
    met = True
    for name in SCHEDULERS:
        setting = setting_of(name, options.jobs, options.nodes)
        plain, every, few = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.repeats):
                plain.append(engine_s(setting, None)[0])
                took, partition = engine_s(setting, Recording(Path(folder) / "all"))
                every.append(took / plain[-1])
                rows = partition.share().recorded
                few.append(
                    engine_s(setting, Recording(Path(folder) / "few", tuple(range(20))))[0] / plain[-1]
                )
            begin, path = time.process_time(), Path(folder) / "events.parquet"
            disk.write_batches(path, SCHEMA, batches(Recording(Path(folder) / "all"), setting, None))
            write_s, size = time.process_time() - begin, os.path.getsize(path) / 1e6
        ratio = statistics.median(every)
        met &= ratio <= 2.0
        figures = (statistics.median(plain), ratio, statistics.median(few), write_s)
        print(
            f"{name:12s} {setting.num_tasks:10,d} {rows:12,d} "
            + " ".join(f"{x:8.2f}" for x in figures)
            + f" {size:8.0f}"
        )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
