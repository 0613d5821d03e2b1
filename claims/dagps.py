"""What DAGPS' plans gain for jobs alone, and whether runs follow them: lengths over that of breadth-first.

How to run: ``python -m claims.dagps [SECTION...] [--seeds 5] [--jobs 50] [--set NAME=VALUE,...]``

Each job of `query-dags` is alone on 1, 5, 10 and 20 machines of 20 cores, of which the plan may use all. A figure is
the mean over jobs of the ratio, and over seeds with its 95 % half-width; P5 is of the jobs of all seeds, for those that
gain most. `--set` gives options of the generator, such as ``diversity=0``.

- ``orders``: on one machine as large as all, without emulation: the bound by critical path and work, the plan, and what
  a job takes whose tasks start as soon as there is room, in an order. That of the plan goes by when the first tasks of
  a stage begin in it, or the last; backward, with precedence reversed, it is turned round, or by when the first end.
- ``runs``: emulated, on the machines; `carbyne` with plans by Tetris and by DAGPS, whose ends are renewed or kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from actors.machines.demands import needs_and_capacity
from actors.schedulers.dags.stage_orders import by_critical_path, by_level, critical_paths, make_job_plans
from benchmarks.measuring import run_sections, setting_of, show
from claims.carbyne import HEARTBEAT, pair, runs_of, seeds_and_options
from clusters.cluster import load_cluster
from workloads.catalogue import load_workload

MACHINES = (1, 5, 10, 20)
ALONE_S = 30_000.0  # between arrivals
WHOLE: Mapping[str, Any] = {"plan_share": 1.0}
RUNS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "breadth first": ("drf", {}),
    "critical path": ("cpm", {}),
    "DAGPS' order": ("drf", {"intra_job": "dagps", **WHOLE}),
    "dagps": ("dagps", WHOLE),
    "tetris": ("tetris", {}),
    "carbyne": ("carbyne", {}),
    "carbyne + DAGPS": ("carbyne", {"packing": "dagps", **WHOLE}),
    "kept": ("carbyne", {"completion": "kept"}),
    "kept + DAGPS": ("carbyne", {"packing": "dagps", "completion": "kept", **WHOLE}),
}


class Packer:
    """Packs the tasks of one job into a space as soon as there is room."""

    def __init__(self, workload: Any, demand: np.ndarray, room: np.ndarray, job: int) -> None:
        a = workload.arrays()
        self.first, self.end = int(a.first_stage[job]), int(a.first_stage[job + 1])
        self.tasks = np.diff(a.stage_first_task)[self.first : self.end]
        self.duration = a.stage_mean_ns[self.first : self.end]
        self.demand, self.room = demand[self.first : self.end].astype(float), room.astype(float)
        parents = np.repeat(np.arange(self.tasks.size), np.diff(a.first_child[self.first : self.end + 1]))
        children = a.child[a.first_child[self.first] : a.first_child[self.end]] - self.first
        self.edges = np.stack([parents, children], axis=1)

    def length(self, place: np.ndarray | None, backward: bool = False) -> float:
        """Return how long the job takes: the stage with the least place goes first, or what fits best (None)."""
        parent, child = self.edges[:, int(backward)], self.edges[:, int(not backward)]
        waits, free = np.bincount(child, minlength=self.tasks.size), self.room.copy()
        left, unfinished = self.tasks.copy(), self.tasks.copy()
        running: list[tuple[int, int, int]] = []  # ends, stages, tasks
        now: int = 0
        while True:
            ready = np.flatnonzero((left > 0) & (waits == 0) & (self.demand <= free).all(axis=1))
            if ready.size:
                fit = (self.demand / self.room**2) @ free if place is None else -place[self.first : self.end]
                stage = int(ready[fit[ready].argmax()])
                needs = self.demand[stage] > 0
                count = int(min(left[stage], (free[needs] // self.demand[stage][needs]).min(initial=np.inf)))
                left[stage] -= count
                free = free - count * self.demand[stage]
                heapq.heappush(running, (now + int(self.duration[stage]), stage, count))
            elif not running:
                return float(now)
            else:
                now, stage, count = heapq.heappop(running)
                free = free + count * self.demand[stage]
                unfinished[stage] -= count
                if unfinished[stage] == 0:
                    np.subtract.at(waits, child[parent == stage], 1)


def pooled(workload: Any, machines: int) -> dict[str, np.ndarray]:
    """Return how long each job takes in an order, [J] ns, and the bound and the plan."""
    setting = setting_of("dagps", workload, load_cluster("carbyne", machines), WHOLE)
    demand, capacity = needs_and_capacity(setting)
    room, a, plans = capacity.sum(axis=0), workload.arrays(), make_job_plans(setting)
    work = demand / room * (np.diff(a.stage_first_task) * a.stage_mean_ns)[:, None]
    bound = np.maximum(critical_paths(setting), np.add.reduceat(work, a.first_stage[:-1]).max(axis=1))
    packers = [Packer(workload, demand, room, job) for job in range(workload.num_jobs)]
    orders = {
        "breadth first": (by_level(setting), False),
        "critical path": (by_critical_path(setting), False),
        "packing": (None, False),
        "first tasks": (plans.start, False),
        "last tasks": (plans.last_start, False),
        "backward, last tasks": (-plans.last_start, True),
        "backward, first ends": (-plans.first_end, True),
    }
    found = {name: np.array([p.length(*order) for p in packers]) for name, order in orders.items()}
    return {**found, "bound": bound, "plan": np.maximum.reduceat(plans.end, a.first_stage[:-1])}


def table(title: str, of_machines: Mapping[int, list[dict[str, np.ndarray]]]) -> None:
    """Print means of ratios over breadth-first, and the 5th percentile."""
    rows = []
    for name in next(iter(of_machines.values()))[0]:
        row = [name]
        for seeds in of_machines.values():
            ratios = [lengths[name] / lengths["breadth first"] for lengths in seeds]
            row += [pair([r.mean() for r in ratios]), f"{np.percentile(np.concatenate(ratios), 5):.2f}"]
        rows.append(row)
    show(title, [["machines", *(text for n in of_machines for text in (str(n), "P5"))], *rows])


def orders(seeds: int, options: Mapping[str, Any]) -> None:
    """Orders in one space."""
    workloads = [load_workload("query-dags", options={"seed": k + 1, **options}) for k in range(seeds)]
    table("in one space", {n: [pooled(workload, n) for workload in workloads] for n in MACHINES})


def runs(seeds: int, options: Mapping[str, Any]) -> None:
    """Schedulers on machines."""
    found: dict[int, list[dict[str, np.ndarray]]] = {n: [{} for _ in range(seeds)] for n in MACHINES}
    given = {HEARTBEAT: 0.0, "mean_gap_s": ALONE_S, **options}
    for n, (title, (name, parameters)) in product(MACHINES, RUNS.items()):
        for seed, run in enumerate(runs_of([name], seeds, n, given, parameters=parameters)[name]):
            found[n][seed][title] = run.jct_s
    table("emulated", found)


def main() -> None:
    """Print the sections that are asked for."""
    run_sections(__doc__, {"orders": orders, "runs": runs}, (), seeds_and_options, seeds=5, jobs=50, set=())


if __name__ == "__main__":
    main()
