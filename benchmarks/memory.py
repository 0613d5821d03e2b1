"""The memory of a partition's world, resident, beside that of one process: each partition has nodes of its own alone.

    python -m benchmarks.memory [--nodes 1000000,10000000] [--partitions 1,2,4] [--schedulers sparrow]

Each partition is built in a process of its own, and joins the others. Printed is by how much its
resident memory grew, of the first partition and of all, and what a process with workload and cluster took before. Linux
only (/proc).
"""

from __future__ import annotations

import multiprocessing
import resource
from itertools import product
from pathlib import Path

import numpy as np

from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.hosting.windows import divide, lookahead_ns
from actors.setting import Setting
from benchmarks.measuring import options, setting_of, show
from workloads.jobs import make_workload

MIB = 2**20


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def make_setting(scheduler: str, nodes: int) -> Setting:
    """Return an emulation of 2,000 jobs, with the columns of its cluster that a partition reads."""
    workload = make_workload("tasks", np.arange(2_000.0), [10] * 2_000, np.ones(20_000))
    setting = setting_of(scheduler, workload, nodes)
    setting.cluster.slots()
    return setting


def make_partition(setting: Setting, partitions: int, k: int) -> Partition:
    """Return a partition that has joined the others, if there are any."""
    partition = Partition(setting, Observe(), whole=partitions == 1)
    if partitions > 1:
        partition.join(divide(setting, partition.cast(), partitions), k, lookahead_ns(setting))
    return partition


def grown_mib(scheduler: str, nodes: int, partitions: int, k: int) -> tuple[float, float]:
    """Return the resident memory with a setting, and what one of its partitions adds to that."""
    make_partition(make_setting(scheduler, 1_000), partitions, k)  # loads compiled code
    setting = make_setting(scheduler, nodes)
    before = resident_mib()
    partition = make_partition(setting, partitions, k)
    grown = resident_mib() - before
    assert partition.world.nodes.size == nodes  # it is there until now
    return before, grown


def main() -> None:
    """Run the benchmark."""
    asked = options(__doc__, nodes=(1_000_000, 10_000_000), partitions=(1, 2, 4), schedulers=("sparrow",))
    lines = [["scheduler", "nodes", "partitions", "setting, MiB", "one partition, MiB", "all, MiB"]]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for scheduler, nodes, partitions in product(asked.schedulers, asked.nodes, asked.partitions):
            rows = [(scheduler, nodes, partitions, k) for k in range(partitions)]
            found = pool.starmap(grown_mib, rows, chunksize=1)
            (setting, first), worlds = found[0], [grown for _, grown in found]
            sizes = [f"{size:,.0f}" for size in (setting, first, sum(worlds))]
            lines.append([scheduler, f"{nodes:,}", str(partitions), *sizes])
    show("memory", lines)


if __name__ == "__main__":
    main()
