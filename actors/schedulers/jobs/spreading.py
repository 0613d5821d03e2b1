"""Placement constraints: the tasks of a job in one rack, in different racks, or on different nodes.

The job's scheduler enforces them. The rack of a job that must run in one is chosen when the job is first probed for or
placed, and the job uses no other rack after that. For a job whose tasks must be spread the scheduler keeps the nodes
that its tasks hold: those they were handed out to, or placed on. A task that a failure has lost releases its node.
"""

import numpy as np

from actors import constraints
from actors.failures import TRIES, draw_available_node, is_known_down
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.random import CANDIDATES, below, random_bits
from actors.nodes.world import World
from actors.schedulers.jobs.job_info import tasks_of

NODE_0 = np.int64(0)


@inlined
def must_spread(w: World, job: int) -> bool:
    """Whether no two tasks of the job may share a node, or a rack."""
    return constraints.placement_of(w, job) & (constraints.OVER_NODES | constraints.OVER_RACKS) != 0


@compiled
def may_run(w: World, job: int, node: int) -> bool:
    """Whether the node may run a task of a job beside those that have a node already."""
    placement, racks = constraints.placement_of(w, job), w.network.rack
    if placement & (constraints.OVER_NODES | constraints.OVER_RACKS) == 0:
        return True
    first = w.work.first_task[job]
    for i in range(first, first + w.eligible.jobs.held[job]):
        other = w.eligible.held[i]
        if other == node or (placement & constraints.OVER_RACKS != 0 and racks[other] == racks[node]):
            return False
    return True


@inlined
def hold(w: World, job: int, node: int) -> None:
    """Note that a task of the job holds this node."""
    if must_spread(w, job):
        jobs = w.eligible.jobs
        w.eligible.held[w.work.first_task[job] + jobs.held[job]] = node
        jobs.held[job] += 1


@inlined
def release(w: World, job: int, node: int) -> None:
    """Release the node of a lost task, for another task of the job; NONE: the task had no node."""
    if must_spread(w, job) and node != NONE:
        give_back(w, job, node)


@compiled
def give_back(w: World, job: int, node: int) -> None:
    """Take the node out of those that the job's tasks hold."""
    jobs, held = w.eligible.jobs, w.eligible.held
    first = w.work.first_task[job]
    last = first + jobs.held[job] - 1
    for i in range(first, last + 1):
        if held[i] == node:
            held[i] = held[last]
            jobs.held[job] -= 1
            return


@inlined
def draw_bits(w: World, job: int) -> np.uint64:
    """Random bits for the job's next choice among its nodes."""
    w.eligible.jobs.draws[job] += 1
    return random_bits(w.seed, CANDIDATES, job, w.eligible.jobs.draws[job])


@inlined
def is_open(w: World, job: int, node: int) -> bool:
    """Whether a task of the job may be sent to one of its nodes now."""
    return not is_known_down(w, node) and may_run(w, job, node)


@compiled
def draw_node(w: World, job: int, first: int) -> int:
    """Draw a random node for a task or probe that is sent again, not known to be down; NONE if there is none.

    It is a node from `first` on; for a job with constraints an eligible one that may run another task, one from `first`
    on if the job may use any there.
    """
    if not constraints.is_constrained(w, job):
        return draw_available_node(w, job, first)
    begin, end = constraints.first_place(w, job, first), constraints.eligible_count(w, job)
    for _ in range(TRIES):
        node = constraints.eligible_node(w, job, begin + below(draw_bits(w, job), end - begin))
        if is_open(w, job, node):
            return node
    left = 0
    for i in range(begin, end):
        if is_open(w, job, constraints.eligible_node(w, job, i)):
            left += 1
    if left == 0:
        return NONE
    skip = below(draw_bits(w, job), left)
    for i in range(begin, end):
        node = constraints.eligible_node(w, job, i)
        if is_open(w, job, node):
            if skip == 0:
                return node
            skip -= 1
    return NONE


@inlined
def settle_rack(w: World, job: int, first: int) -> None:
    """Choose the rack of a job that must run in one and has none yet; if possible one with nodes from `first` on."""
    if constraints.placement_of(w, job) & constraints.IN_RACK != 0 and w.eligible.jobs.rack[job] == NONE:
        choose_rack(w, job, first)


@compiled
def choose_rack(w: World, job: int, first: int) -> None:
    """Take the rack of a random node among the racks in which the job fits."""
    wanted: int = 1
    if constraints.placement_of(w, job) & constraints.OVER_NODES != 0:
        wanted = tasks_of(w, job)
    begin = constraints.eligible_before(w, job, first)
    total = find_rack(w, job, begin, wanted, NONE)
    if total == 0:
        begin = 0
        total = find_rack(w, job, begin, wanted, NONE)
    constraints.keep_to_rack(w, job, find_rack(w, job, begin, wanted, below(draw_bits(w, job), total)))


@compiled
def find_rack(w: World, job: int, begin: int, wanted: int, skip: int) -> int:
    """Find the rack of the `skip`-th node from place `begin` on that is in a rack with `wanted` such nodes.

    If `skip` is NONE, return how many such nodes there are.
    """
    ends, count = w.eligible.rack_end, constraints.eligible_count(w, job)
    passed, rack, i = 0, 0, begin
    while i < count:
        node = constraints.eligible_node(w, job, i)
        while ends[rack] <= node:
            rack += 1
        end = constraints.eligible_before(w, job, ends[rack])
        if end - i >= wanted:
            passed += end - i
            if skip != NONE and passed > skip:
                return rack
        i = end
    return passed


@inlined
def next_open(w: World, job: int, place: int, end: int) -> int:
    """Find the job's node at a place, or the next one that is up and may run a task; the first if there is none.

    The places are those below `end`. A job with constraints, which may have few of them, takes those behind them next.
    """
    if w.faults.active == 1 or constraints.is_constrained(w, job):
        for i in range(end):
            node = constraints.eligible_node(w, job, (place + i) % end)
            if is_open(w, job, node):
                return node
        if constraints.is_constrained(w, job):
            for i in range(end, constraints.eligible_count(w, job)):
                node = constraints.eligible_node(w, job, i)
                if is_open(w, job, node):
                    return node
    return constraints.eligible_node(w, job, place)
