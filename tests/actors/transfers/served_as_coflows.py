"""The same coflows as a workload of coflows: what tasks fetch under a coordinator must come as these are served."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby, islice, permutations, product
from typing import Any, NamedTuple

import numpy as np
from coflow_emulations import setting_of as coflow_setting

from actors.hosting.outcome import Outcome
from actors.setting import Costs
from tests.actors.transfers.network_simulator import NOWHERE, inputs_of, is_shuffle
from tests.actors.transfers.runs import GB, MACHINES
from tests.emulations import run_setting
from workloads.coflows import CoflowWorkload, make_coflow_workload

MOST_ORDERS = 200
Sizes = dict[tuple[int, int], float]  # bytes by source and sink


class Wave(NamedTuple):
    """A coflow: what is registered at one instant of one edge, for tasks that were launched together on their machines.

    It is fresh if they were launched then; else a task of the parent ended, and `layer` counts how many launches of the
    stage there were before theirs on a machine.
    """

    at_ns: int
    is_fresh: bool
    stage: int
    parent: int
    layer: int


class Fetched(NamedTuple):
    """A run of DAG jobs whose fetches are to be coflows: when tasks began to fetch, and from where they read."""

    arrays: Any
    tasks: dict[str, np.ndarray]
    begin_ns: np.ndarray
    origin: Mapping[int, int]
    is_pipelined: bool

    def needs(self) -> Iterator[tuple[int, int, int, int, Sizes | dict[int, float]]]:
        """Yield a task, its stage, a parent, its layer, and the bytes that it needs of each machine."""
        node, begin = self.tasks["node"].tolist(), self.begin_ns.tolist()
        first = self.arrays.stage_first_task
        for stage in range(first.size - 1):
            begins: dict[int, set[int]] = defaultdict(set)
            for task in range(*first[stage : stage + 2]):
                begins[node[task]].add(begin[task])
            for task, parent, needed in inputs_of(self.arrays, stage, self.tasks["node"], self.origin):
                yield task, stage, parent, sorted(begins[node[task]]).index(begin[task]), needed

    def comes_as_tasks_end(self, stage: int, parent: int) -> bool:
        return self.is_pipelined and is_shuffle(self.arrays, stage, parent)


def waves_of(run: Fetched) -> dict[Wave, Sizes]:
    """Return the coflows that cross the network."""
    node, begin, finish = (of.tolist() for of in (run.tasks["node"], run.begin_ns, run.tasks["finish_ns"]))
    found = defaultdict[Wave, Any](lambda: defaultdict(float))
    for task, stage, parent, layer, needed in run.needs():
        pieces = [(begin[task], source, size) for source, size in needed.items()]
        if run.comes_as_tasks_end(stage, parent):
            theirs = range(*run.arrays.stage_first_task[parent : parent + 2])
            each = sum(needed.values()) / len(theirs)
            pieces = [(max(begin[task], finish[of]), node[of], each) for of in theirs]
        for at_ns, source, size in pieces:
            is_fresh = at_ns == begin[task]
            if source != node[task]:
                wave = Wave(at_ns, is_fresh, stage, parent, 0 if is_fresh else layer)
                found[wave][source, node[task]] += size
    return found


def orders(arrays: Any, waves: Any) -> Iterator[list[Wave]]:
    """Yield the orders in which waves may have been registered: which stage was launched first is not known."""
    place = {
        (stage, int(arrays.parent[e])): e
        for stage in range(arrays.stage_first_task.size - 1)
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1])
    }

    def key(wave: Wave) -> Any:
        own = (wave.stage, place.get((wave.stage, wave.parent), len(place)))
        return wave.at_ns, wave.is_fresh, *(own if wave.is_fresh else (wave.parent, wave.stage)), wave.layer

    at_once = groupby(sorted(waves, key=key), key=lambda wave: (wave.at_ns, wave.is_fresh))
    parts = [
        [list(of) for _, of in groupby(group, key=lambda wave: wave.stage if wave.is_fresh else wave.parent)]
        for _, group in at_once
    ]
    for order in islice(product(*(permutations(of) for of in parts)), MOST_ORDERS):
        yield [wave for group in order for part in group for wave in part]


def workload_of(order: list[Wave], sizes: dict[Wave, Sizes]) -> CoflowWorkload:
    flows = [flow for wave in order for flow in sorted(sizes[wave].items())]
    columns = ([flow[0][0] for flow in flows], [flow[0][1] for flow in flows], [flow[1] for flow in flows])
    counts = [len(sizes[wave]) for wave in order]
    return make_coflow_workload(
        "of dags", [wave.at_ns / 1e9 for wave in order], counts, *columns, MACHINES.num_nodes
    )


def last_ends(run: Fetched, served: Outcome, order: list[Wave], work: CoflowWorkload) -> np.ndarray:
    """When each task has its input, by when the flows of the coflows ended, and its parents; -1: it needs none."""
    assert served.tasks is not None
    found, flows, ends = np.full(run.begin_ns.size, -1), work.arrays(), served.tasks["finish_ns"]
    finish, first = run.tasks["finish_ns"], run.arrays.stage_first_task
    for task, stage, parent, layer, _ in run.needs():
        begin = int(run.begin_ns[task])
        found[task] = max(found[task], begin)
        if run.comes_as_tasks_end(stage, parent):
            found[task] = max(found[task], finish[slice(*first[parent : parent + 2])].max())
        for number, wave in enumerate(order):
            is_of_it = wave.at_ns == begin if wave.is_fresh else wave.layer == layer and wave.at_ns > begin
            if (wave.stage, wave.parent) == (stage, parent) and is_of_it:
                own = slice(*flows.first_flow[number : number + 2])
                here = flows.egress[own] == run.tasks["node"][task]
                found[task] = max(found[task], ends[own][here].max(initial=0))
    return found


def is_served_as_coflows(
    coordinator: Any,
    arrays: Any,
    found: Outcome,
    *,
    begin_ns: np.ndarray | None = None,
    origin: Mapping[int, int] = NOWHERE,
    is_pipelined: bool = False,
    delay_s: float = 0.0,
    costs: Costs | None = None,
) -> Outcome | None:
    """Check that tasks had their input when the same coflows of a workload end, and return the outcome of that.

    `begin_ns`: when each task began to fetch, by default when it was launched. None: there are no coflows, or
    there are more orders in which they may have been registered than are tried, and none that was tried is right.
    """
    tasks = found.tasks
    assert tasks is not None
    run = Fetched(arrays, tasks, tasks["start_ns"] if begin_ns is None else begin_ns, origin, is_pipelined)
    sizes, tried = waves_of(run), 0
    if not sizes:  # nothing crosses the network
        assert found.series.coflows == 0
        return None
    for order in orders(arrays, sizes):
        work = workload_of(order, sizes)
        served = run_setting(coflow_setting(coordinator, work, speed=GB, delay_s=delay_s, costs=costs))
        mean_s = (served.finish_ns - work.arrays().arrival_ns).mean() / 1e9
        # Ends of coflows that no task waited for at last are in the mean alone.
        is_alike = (found.series.fetched_ns == last_ends(run, served, order, work)).all()
        if is_alike and np.isclose(found.series.mean_cct_s, mean_s):
            assert found.series.coflows == work.num_coflows
            return served
        tried += 1
    assert tried == MOST_ORDERS, "no order of registration gives the same times"
    return None
