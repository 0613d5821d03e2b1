"""Speed of schedulers of DAG jobs: CPU time of the engine, one core.

How to run: ``python -m benchmarks.dag_speed [CASE...] [--schedulers drf,carbyne]``

- ``facebook``: 7,000 MapReduce jobs with 650,000 tasks over six hours, 3,000 machines.
- ``microsoft``: 30,000 DAGs with 3,000,000 tasks at half load, 10,000 machines, matching on events.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Setting
from clusters.cluster import load_cluster
from emu.families.dags.plan import at_load, slots_equal_to
from workloads.catalogue import load_workload
from workloads.dags import DagWorkload

CASES: dict[str, tuple[str, dict[str, Any], int, float | None]] = {
    "facebook": ("facebook-mapreduce", {}, 3_000, None),
    "microsoft": ("query-dags", {"jobs": 30_000, "mix": "microsoft"}, 10_000, 0.5),
}


def main() -> None:
    """Print a line for each case and scheduler."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--schedulers", default=",".join(scheduler_names("dags")))
    arguments = parser.parse_args()
    for case in arguments.cases or CASES:
        name, options, nodes, load = CASES[case]
        workload = load_workload(name, seed=1, options=options)
        assert isinstance(workload, DagWorkload)
        cluster = load_cluster("carbyne", nodes)
        if load is not None:
            workload = at_load(workload, slots_equal_to(workload, cluster), load)
        for scheduler in arguments.schedulers.split(","):
            found = find_scheduler(scheduler)
            setting = Setting(found, resolve_parameters(found, {}), workload, cluster, seed=1)
            begin = time.process_time()
            partition = Partition(setting, Observe())
            built_s = time.process_time() - begin
            partition.start()
            begin = time.process_time()
            with np.errstate(over="ignore"):
                partition.run(float("inf"))
            took_s = time.process_time() - begin
            mean_s = float((partition.outcome().finish_ns - workload.arrays().submit_ns).mean()) / 1e9
            print(
                f"{case:10} {scheduler:12} {workload.num_tasks:>9,} tasks: {took_s:6.2f} s, and {built_s:5.2f} s "
                f"before the run; mean JCT {mean_s:,.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
