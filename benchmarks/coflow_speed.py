"""Speed of coflow schedulers: engine time on the Facebook trace, on 900 ports, and on 15,000 with 10 million flows.

How to run: `python -m benchmarks.coflow_speed [SCHEDULER...] [--copies 6] [--scale] [--repeats 3]`
For debugging: `python -m benchmarks.coflow_speed aalo --repeats 1`
Engine time is without loading, set-up and compiling: wall, and CPU, which other work on the machine disturbs less.
`--copies 6` replicates the trace to 900 ports. `--scale` generates 50,000 coflows between 15,000 ports, 200 flows each.
"""

import argparse
import statistics
import sys
import time
from typing import NamedTuple

from actors.hosting.partition import Observe, Partition
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Network, Setting
from benchmarks.coflow_runs import TRACE, registered, show, workload_of
from clusters.cluster import load_cluster
from workloads.catalogue import load_workload
from workloads.coflows import CoflowWorkload

# Seconds of wall time that a run on the trace may take, by scheduler, and on larger ones.
LIMITS_S = {
    "fifo": 3, "scf": 3, "ncf": 3, "lcf": 3, "sebf": 3, "sincronia": 3, "aalo": 3, "aalo-oracle": 3, "philae": 3,
    "saath": 5, "pfp": 5, "fair": 8,
}  # fmt: skip
LIMIT_900_S, LIMIT_SCALE_S = 15, 300
SCALE = {"ports": 15_000, "coflows": 50_000, "mean_width": 200}
SCALE_SCHEDULERS = ("aalo", "philae")


class Times(NamedTuple):
    """Of one run."""

    wall_s: float
    cpu_s: float
    events: int


def engine_times(scheduler: str, workload: CoflowWorkload) -> Times:
    """What the engine takes from the first event to the last."""
    found = find_scheduler(scheduler)
    cluster = load_cluster("homogeneous", workload.num_ports, slots=1)
    parameters = resolve_parameters(found, {})
    setting = Setting(found, parameters, workload, cluster, float("inf"), network=Network(delay_s=0.0))
    partition = Partition(setting, Observe())
    partition.start()
    began_s = time.process_time()
    status = partition.run(3600.0)
    assert status.done, "no end within an hour"
    return Times(partition.wall_s, time.process_time() - began_s, status.at.events)


def measure(schedulers: list[str], workload: CoflowWorkload, limits_s: dict[str, int], repeats: int) -> bool:
    """Print a table for one workload; whether every limit is met by the median."""
    rows = [["scheduler", "wall, s", "best", "CPU, s", "limit, s", "", "million flows/s", "events a flow"]]
    runs: dict[str, list[Times]] = {name: [] for name in schedulers}
    # In turn, so that a slow spell of the machine does not fall on one of them alone.
    for _ in range(repeats):
        for name in schedulers:
            runs[name].append(engine_times(name, workload))
    met = True
    for name, found in runs.items():
        wall_s = statistics.median(t.wall_s for t in found)
        met &= wall_s <= limits_s[name]
        rows.append(
            [
                name,
                f"{wall_s:.2f}",
                f"{min(t.wall_s for t in found):.2f}",
                f"{statistics.median(t.cpu_s for t in found):.2f}",
                f"{limits_s[name]}",
                "met" if wall_s <= limits_s[name] else "missed",
                f"{workload.num_flows / wall_s / 1e6:.2f}",
                f"{found[0].events / workload.num_flows:.1f}",
            ]
        )
    show(f"{workload.name}: {workload.num_coflows:,} coflows, {workload.num_flows:,} flows", rows)
    return met


def main() -> int:
    """Measure; exit code 1 if a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("schedulers", nargs="*", metavar="SCHEDULER", help=", ".join(LIMITS_S))
    parser.add_argument("--copies", type=int, default=1, help="of the trace, each on 150 ports of its own")
    parser.add_argument("--scale", action="store_true", help="15,000 ports instead of the trace")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.scale:
        names = registered(options.schedulers or SCALE_SCHEDULERS)
        large = load_workload("synthetic-coflows", seed=0, options={**SCALE, "max_tasks": 20_000_000})
        assert isinstance(large, CoflowWorkload)
        return not measure(names, large, dict.fromkeys(names, LIMIT_SCALE_S), options.repeats)
    if not TRACE.exists():
        parser.error(f"{TRACE} is not there; name its folder with EMU_SHARED")
    names = registered(options.schedulers or list(LIMITS_S))
    workload = workload_of("facebook" if options.copies == 1 else f"ports-{150 * options.copies}")
    limits_s = LIMITS_S if options.copies == 1 else dict.fromkeys(names, LIMIT_900_S)
    return not measure(names, workload, limits_s, options.repeats)


if __name__ == "__main__":
    sys.exit(main())
