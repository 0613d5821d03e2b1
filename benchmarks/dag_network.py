"""DAG jobs whose shuffles share a network: how long a run takes, and what the network does to completion times.

    python -m benchmarks.dag_network [--jobs 7000] [--tasks 650000] [--nodes 3000] [--schedulers drf]
        [--networks fair,sebf,aalo,philae] [--gbps 1,10] [--scales 1,10]

Jobs of `facebook-mapreduce`, of which the bytes are scaled, on machines of Carbyne's evaluation, with ports of so many
Gbps: all flows share them max-min fairly (`fair`), or a coordinator serves shuffles as coflows. Beside them is the run
in which input takes no time. Each run has a process of its own, and one core. Printed are the time of the engine after
compilation, the share of it that the network's loop takes, the flows, and mean and P95 of completion times.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from actors.hosting.outcome import Observe, peak_rss_mb
from actors.hosting.runs import emulate
from actors.kernel.compiled import direct
from actors.kernel.turns import Turns, take_turns
from actors.schedulers.registry import find_scheduler
from actors.setting import Setting, Switch
from actors.transfers.joined import with_network
from benchmarks.measuring import options, setting_of, show
from clusters.cluster import load_cluster
from workloads.catalogue import load_workload
from workloads.dags import DagWorkload
from workloads.transform.primitives import with_tables


def make_setting(
    scheduler: str, jobs: int, tasks: int, nodes: int, network: str, gbps: float, scale: float
) -> Setting:
    """Return an emulation; with network "none" input takes no time. No demands for bandwidth are in any."""
    options = {"jobs": jobs, "tasks": tasks, "bytes_scale": scale}
    work = load_workload("facebook-mapreduce", options=options)
    assert isinstance(work, DagWorkload)
    work = with_tables(work, stages=work.stages.drop_columns(["network_in", "network_out"]))
    setting = setting_of(scheduler, work, load_cluster("carbyne", nodes))
    if network == "none":
        return setting
    switch = Switch(port_bytes_per_s=gbps * 1e9 / 8, scheduler=network)
    coordinator = None if network == "fair" else find_scheduler(network)
    return replace(setting, scheduler=with_network(setting.scheduler, coordinator), switch=switch)


class Timed(Turns):
    """Both loops, and how long each took, s: that of schedulers and machines, and that of the network."""

    def __init__(self, turns: Turns):
        super().__init__(*turns.loops)
        self.took_s = [0.0, 0.0]

    def direct(self, world: Any, state: Any, until: int, most: int) -> Callable[..., int]:
        """Compile both, as `Turns` does."""
        loops = [direct(loop, world, own, until, most) for loop, own in zip(self.loops, state, strict=True)]
        timed = tuple(partial(self._call, which, loop) for which, loop in enumerate(loops))
        return partial(take_turns, timed)

    def _call(self, which: int, loop: Callable[..., int], *given: Any) -> int:
        begin = perf_counter()
        why = loop(*given)
        self.took_s[which] += perf_counter() - begin
        return why


def line(
    scheduler: str, jobs: int, tasks: int, nodes: int, network: str, gbps: float, scale: float
) -> list[str]:
    """Run an emulation; return its line of the table."""
    emulate(
        make_setting(scheduler, 20, 1_000, 20, network, gbps, scale), Observe(), in_process=True
    )  # compiles
    setting = make_setting(scheduler, jobs, tasks, nodes, network, gbps, scale)
    share = ""
    if network != "none":
        timed = Timed(setting.scheduler.advance)
        setting = replace(setting, scheduler=replace(setting.scheduler, advance=timed))
    found = emulate(setting, Observe(), in_process=True)
    if network != "none":
        share = f"{timed.took_s[1] / sum(timed.took_s):.0%}"
    jct_s = (found.finish_ns - setting.workload.arrays().submit_ns) / 1e9
    moved = coflows = ""
    if network != "none":
        moved, coflows = f"{found.series.moved_bytes / 1e12:.3g}", f"{found.series.coflows:,}"
    times = [f"{jct_s.mean():.4g}", f"{np.percentile(jct_s, 95):.4g}"]
    network += f", {gbps:g} Gbps, bytes x {scale:g}" if gbps else ""
    flows = f"{found.counters.get('flows', 0):,}"
    used = [f"{found.wall_s:.1f}", share, f"{peak_rss_mb():,.0f}"]
    return [scheduler, network, moved, flows, coflows, *used, *times]


def main() -> None:
    """Run the benchmark."""
    networks = ("fair", "sebf", "aalo", "philae")
    given: dict[str, Any] = {"networks": networks, "gbps": (1.0, 10.0), "scales": (1.0, 10.0)}
    asked = options(__doc__, jobs=7_000, tasks=650_000, nodes=3_000, schedulers=("drf",), **given)
    titles = "scheduler, network, TB moved, flows, coflows, s, network's share, MiB, mean JCT (s), P95 (s)"
    lines = [titles.split(", ")]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for scheduler in asked.schedulers:
            runs = [("none", 0.0, 1.0), *product(asked.networks, asked.gbps, asked.scales)]
            cells = [(scheduler, asked.jobs, asked.tasks, asked.nodes, *run) for run in runs]
            lines += pool.starmap(line, cells, chunksize=1)
    show(f"{asked.jobs:,} jobs, {asked.tasks:,} tasks, {asked.nodes:,} machines", lines)


if __name__ == "__main__":
    main()
