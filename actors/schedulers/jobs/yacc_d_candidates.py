"""The nodes that a scheduler of Yacc-D considers for an arriving job: random ones, in a heap by expected wait."""

from typing import NamedTuple

import numpy as np

from actors.kernel import eligible
from actors.kernel.compiled import inlined
from actors.kernel.random import PROBES
from actors.kernel.records import Records, records
from actors.kernel.world import NONE, World
from actors.schedulers.jobs.job_info import tasks_of
from actors.schedulers.jobs.least_work import CHOICE, sink, swap
from actors.schedulers.jobs.probing import Probing, draw_places, make_probing, most_probes, probes_of
from actors.schedulers.jobs.spreading import may_run
from actors.schedulers.jobs.yacc_d_view import View, place_of


class Candidates(NamedTuple):
    """How many nodes are drawn for a job, and scratch space for them."""

    drawing: Probing
    heap: Records  # [most nodes drawn for a job] CHOICE


def make_candidates(choices: int, nodes: int, most_tasks: int) -> Candidates:
    """Candidates of which `choices` are drawn for each task."""
    return Candidates(
        make_probing(choices, 1, False, nodes, most_tasks),
        records(CHOICE, min(most_probes(choices, 1, most_tasks), nodes)),
    )


@inlined
def first_of(w: World, first_long: int, job: int) -> int:
    """Return the first node that the job may use: for a long job that of the long partition, if it has enough nodes."""
    first = first_long * w.work.is_long[job]
    if first > 0 and eligible.is_constrained(w, job):
        placement = eligible.placement_of(w, job)
        wanted: int = 1
        if placement & eligible.OVER_NODES != 0:
            wanted = tasks_of(w, job)
        few = eligible.eligible_count(w, job) - eligible.eligible_before(w, job, first) < wanted
        if few or placement & eligible.OVER_RACKS != 0:
            return np.int64(0)
    return first


@inlined
def draw_candidates(
    w: World, candidates: Candidates, view: View, t: int, me: int, job: int, first: int, tasks: int
) -> int:
    """Put the nodes with room, of those drawn for the job, into the heap; return its size."""
    begin = eligible.eligible_before(w, job, first)
    places = eligible.eligible_count(w, job) - begin
    count = min(probes_of(candidates.drawing, tasks), places)
    draw_places(w, candidates.drawing, PROBES, job, np.int64(0), count, places)
    size = 0
    for i in range(count):
        node = eligible.eligible_node(w, job, begin + candidates.drawing.nodes[i])
        wait = place_of(w, view, t, me, job, node)
        if wait != NONE:
            candidates.heap.wait[size], candidates.heap.node[size] = wait, node
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        sink(candidates.heap, i, size, True)
    return size


@inlined
def best_on_top(w: World, candidates: Candidates, view: View, t: int, me: int, job: int, size: int) -> int:
    """Bring the node that waits least on top of the heap, and drop nodes that can take no more; return its size."""
    choice = candidates.heap
    while size > 0:
        node = choice.node[0]
        wait = place_of(w, view, t, me, job, node)
        if wait == NONE or not may_run(w, job, node):
            size -= 1
            swap(choice, 0, size)
        elif wait > choice.wait[0]:
            choice.wait[0] = wait
        else:
            break
        sink(choice, 0, size, True)
    return size
