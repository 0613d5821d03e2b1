"""Waves of shuffles that begin as tasks end, under coordinators: served as the same coflows of a workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, islice, permutations, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from coflow_emulations import setting_of as coflow_setting
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coordinated import COORDINATORS, under
from test_network import GB, MACHINES
from test_pipelined import check_order, pipelined

from actors.hosting.outcome import Outcome
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.actors.transfers.network_simulator import inputs_of, is_shuffle
from tests.emulations import run_setting
from workloads.coflows import CoflowWorkload, make_coflow_workload


class Wave(NamedTuple):
    """What is registered at one instant: of one edge, and of the fetches that come as this one on their machines."""

    at_ns: int
    is_fresh: bool
    stage: int
    parent: int
    layer: int


def waves_of(arrays: Any, tasks: dict[str, np.ndarray]) -> dict[Wave, dict[tuple[int, int], float]]:
    """Bytes between machines of each wave that crosses the network."""
    node, start, finish = (tasks[name].tolist() for name in ("node", "start_ns", "finish_ns"))
    first, found = arrays.stage_first_task, defaultdict[Wave, Any](lambda: defaultdict(float))
    for stage in range(first.size - 1):
        begins: dict[int, set[int]] = defaultdict(set)
        for task in range(*first[stage : stage + 2]):
            begins[node[task]].add(start[task])
        for task, parent, needed in inputs_of(arrays, stage, tasks["node"]):
            pieces = [(start[task], source, size) for source, size in needed.items()]
            if is_shuffle(arrays, stage, parent):
                theirs = range(*first[parent : parent + 2])
                each = sum(needed.values()) / len(theirs)
                pieces = [(max(start[task], finish[of]), node[of], each) for of in theirs]
            layer = sorted(begins[node[task]]).index(start[task])
            for at_ns, source, size in pieces:
                is_fresh = at_ns == start[task]
                wave = Wave(at_ns, is_fresh, stage, parent, 0 if is_fresh else layer)
                if source != node[task]:
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
        own = (wave.stage, place[wave.stage, wave.parent])
        return wave.at_ns, wave.is_fresh, *(own if wave.is_fresh else (wave.parent, wave.stage)), wave.layer

    together = [
        list(group) for _, group in groupby(sorted(waves, key=key), key=lambda w: (w.at_ns, w.is_fresh))
    ]
    of = [
        [list(g) for _, g in groupby(group, key=lambda w: w.stage if w.is_fresh else w.parent)]
        for group in together
    ]
    for order in islice(product(*(permutations(group) for group in of)), 200):
        yield [wave for group in order for part in group for wave in part]


def coflows_of(order: list[Wave], sizes: Any) -> CoflowWorkload:
    flows = [flow for wave in order for flow in sorted(sizes[wave].items())]
    columns = ([flow[0][0] for flow in flows], [flow[0][1] for flow in flows], [flow[1] for flow in flows])
    counts = [len(sizes[wave]) for wave in order]
    return make_coflow_workload("waves", [w.at_ns / 1e9 for w in order], counts, *columns, MACHINES.num_nodes)


def last_ends(
    arrays: Any, tasks: dict[str, np.ndarray], served: Outcome, order: list[Wave], work: Any
) -> Any:
    """When each task has its input, by when the flows of the coflows ended, and its parents; -1: it needs none."""
    found = np.full(tasks["node"].size, -1)
    assert served.tasks is not None
    flows, ends, numbers = work.arrays(), served.tasks["finish_ns"], {wave: i for i, wave in enumerate(order)}
    start, finish, first = tasks["start_ns"], tasks["finish_ns"], arrays.stage_first_task
    for stage in range(first.size - 1):
        on = defaultdict(set)
        for task in range(*first[stage : stage + 2]):
            on[int(tasks["node"][task])].add(int(start[task]))
        for task, parent, _ in inputs_of(arrays, stage, tasks["node"]):
            layer = sorted(on[int(tasks["node"][task])]).index(int(start[task]))
            found[task] = max(found[task], start[task])
            if is_shuffle(arrays, stage, parent):
                found[task] = max(found[task], finish[slice(*first[parent : parent + 2])].max())
            for wave, i in numbers.items():
                if (wave.stage, wave.parent) != (stage, parent):
                    continue
                if (
                    wave.at_ns == start[task]
                    if wave.is_fresh
                    else (wave.layer == layer and wave.at_ns > start[task])
                ):
                    own = slice(*flows.first_flow[i : i + 2])
                    here = flows.egress[own] == tasks["node"][task]
                    found[task] = max(found[task], ends[own][here].max(initial=0))
    return found


@pytest.mark.parametrize("coordinator", COORDINATORS)
@given(
    seed=st.integers(0, 10**6),
    scheduler=st.sampled_from(("drf", "srtf", "tetris")),
    delay_s=st.sampled_from([0.0, 0.0005]),
)
@settings(max_examples=8)
def test_waves_are_served_as_coflows_of_a_workload(
    coordinator: str, seed: int, scheduler: str, delay_s: float
) -> None:
    dags = with_bytes(mixed_dags(jobs=8, seed=seed), seed)
    setting = under(coordinator, dags, scheduler=scheduler, delay_s=delay_s, waves="apart")
    found = run_setting(pipelined(setting))
    arrays, tasks = dags.arrays(), found.tasks
    assert tasks is not None
    sizes = waves_of(arrays, tasks)
    for order in orders(arrays, sizes):
        work = coflows_of(order, sizes)
        served = run_setting(coflow_setting(coordinator, work, speed=GB, delay_s=delay_s))
        mean_s = (served.finish_ns - work.arrays().arrival_ns).mean() / 1e9
        ends = last_ends(arrays, tasks, served, order, work)
        # Ends of coflows that no task waited for at last are in the mean alone.
        if (found.series.fetched_ns == ends).all() and np.isclose(found.series.mean_cct_s, mean_s):
            break
    else:
        raise AssertionError("no order of registration gives the same times")
    assert found.series.coflows == work.num_coflows
    begin = np.where(found.series.fetched_ns >= 0, found.series.fetched_ns, tasks["start_ns"])
    check_order(arrays, tasks, begin, found.series.launched_ns)
