"""The network without a scheduler: all flows share the ports of machines max-min fairly, nearly as under TCP.

1. A task asks for its input. Those of its stage that ask on its machine at the same instant fetch with it.
2. When all messages of an instant are handled, flows that have ended leave, flows of new fetches join, and rates become
   max-min fair again (`actors.fabric.max_min`). Machines whose tasks have all their input get a message.

A flow goes from a machine where tasks of the parent ran to the machine of the fetch; each machine has a port to send
and one to receive. Rows of flows are taken when flows begin, and given back when they end.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.max_min import Fair, add_flow, end_due, fill, next_due
from actors.fabric.port_pairs import lacks_lists
from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.machines import messages
from actors.machines.dag_world import N_FLOWS, DagWorld
from actors.machines.inputs import count_sources


class Switch(NamedTuple):
    """The state of the switch; F rows of flows, T tasks, N machines."""

    fabric: Fabric
    fair: Fair
    leader: np.ndarray  # [F] of the fetch of a flow
    unused: np.ndarray  # [F] the first `num_unused`: rows without a flow
    num_unused: np.ndarray  # [1]
    fresh: np.ndarray  # [T] the first `num_fresh`: leaders of fetches that have no flows yet
    num_fresh: np.ndarray  # [1]
    done: np.ndarray  # [T] the first `num_done`: leaders of fetches that have ended; a message is to be sent
    num_done: np.ndarray  # [1]
    newest: np.ndarray  # [N] the leader of the newest fetch of a machine
    older: np.ndarray  # [T] the one before it, of the same instant
    due: np.ndarray  # [1] when rates change next, ns
    wanted: np.ndarray  # [1] flows that fresh fetches have at most
    moved: np.ndarray  # [2] bytes that went over the network, and that did not need to; float64


@inlined
def lacks_rows(s: Switch, largest: int) -> bool:
    """Return whether there may be too few rows for the next event."""
    more = s.wanted[0] + largest
    return s.num_unused[0] < more or lacks_lists(s.fair.pairs, more)


@compiled
def on_fetch(w: DagWorld, s: Switch, t: int) -> None:
    """Step 1."""
    inputs = w.inputs
    task, stage = messages.read_fetch(w)
    node = inputs.node[task]
    leader = s.newest[node]
    while leader != NONE and inputs.stage[leader] != stage:
        leader = s.older[leader]
    inputs.stage[task] = stage
    if leader == NONE:
        inputs.together[task], inputs.waiting[task], inputs.next[task] = 1, 0, NONE
        s.older[task], s.newest[node] = s.newest[node], task
        s.fresh[s.num_fresh[0]] = task
        s.num_fresh[0] += 1
    else:
        inputs.together[leader] += 1
        inputs.next[task], inputs.next[leader] = inputs.next[leader], task
    s.wanted[0] += more_flows(w, stage, leader == NONE)
    request(w, s, t)


@inlined
def more_flows(w: DagWorld, stage: int, is_leader: bool) -> int:
    """Return how many flows a fetch has more, at most, with a task of a stage."""
    inputs, more = w.inputs, np.int64(0)
    for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
        parent = inputs.parent[e]
        if inputs.size[e] == 0.0:
            continue
        if inputs.one_to_one[e] == 1:
            more += 1
        elif is_leader:
            if inputs.sources[parent] == NONE:
                count_sources(w, parent)
            more += inputs.sources[parent]
    return more


@inlined
def request(w: DagWorld, s: Switch, time: int) -> None:
    """Have rates change at `time`, unless they do earlier."""
    if time < s.due[0]:
        s.due[0] = time
        messages.send_share(w, time)


@compiled
def on_share(w: DagWorld, s: Switch, t: int) -> None:
    """Step 2."""
    if messages.read_share(w) != s.due[0]:
        return  # an earlier one has replaced it
    s.due[0] = NEVER
    fabric, f, inputs = s.fabric, s.fair, w.inputs
    least = end_due(fabric, f, t)
    for i in range(f.num_ended[0]):
        flow = f.ended[i]
        leader = s.leader[flow]
        s.unused[s.num_unused[0]] = flow
        s.num_unused[0] += 1
        inputs.waiting[leader] -= 1
        if inputs.waiting[leader] == 0:
            note_done(s, leader)
    for i in range(s.num_fresh[0]):
        leader = s.fresh[i]
        s.newest[inputs.node[leader]] = NONE
        begin_flows(w, s, t, leader)
        if inputs.waiting[leader] == 0:
            note_done(s, leader)
        else:
            least = 0.0
    s.num_fresh[0] = s.wanted[0] = 0
    if least < np.inf:
        fill(fabric, f, t, least)
    send_done(w, s, t)
    following = next_due(f)
    if s.num_done[0] > 0:
        following = t
    if following < NEVER:
        request(w, s, following)


@inlined
def note_done(s: Switch, leader: int) -> None:
    """Note that a fetch has ended."""
    s.done[s.num_done[0]] = leader
    s.num_done[0] += 1


@inlined
def send_done(w: DagWorld, s: Switch, t: int) -> None:
    """Send messages that tasks have their input, as many as one event may; the others follow at once."""
    room = w.queue.room - messages.SPARE
    while s.num_done[0] > 0 and room > 0:
        room -= 1
        s.num_done[0] -= 1
        leader = s.done[s.num_done[0]]
        messages.send_fetched(w, t, w.inputs.node[leader], leader)


@compiled
def begin_flows(w: DagWorld, s: Switch, t: int, leader: int) -> None:
    """Begin the flows of a fetch, from each machine that has some of its input."""
    inputs, stage = w.inputs, w.inputs.stage[leader]
    tasks = w.stages.first_task[stage + 1] - w.stages.first_task[stage]
    for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
        parent = inputs.parent[e]
        if inputs.size[e] == 0.0:
            continue
        if inputs.one_to_one[e] == 1:
            copy_output(w, s, t, leader, e)
            continue
        first = w.stages.first_task[parent]
        of_pair = inputs.size[e] / tasks / (w.stages.first_task[parent + 1] - first)
        for i in range(first, first + inputs.sources[parent]):
            begin_flow(
                w, s, t, leader, e, inputs.source[i], of_pair * inputs.tasks[i] * inputs.together[leader]
            )


@compiled
def copy_output(w: DagWorld, s: Switch, t: int, leader: int, e: int) -> None:
    """Begin the flows of a one-to-one edge: from each machine that ran tasks for which those of the fetch wait."""
    inputs, stages, stage = w.inputs, w.stages, w.inputs.stage[leader]
    first = stages.first_task[stage]
    shift = stages.first_task[inputs.parent[e]] - first
    each = inputs.size[e] / (stages.first_task[stage + 1] - first)
    task = leader
    while task != NONE:
        source, count, is_first, other = inputs.node[task + shift], 0, True, leader
        while other != NONE and is_first:
            if inputs.node[other + shift] == source:
                is_first = other == task or count > 0
                count += 1
            other = inputs.next[other]
        if is_first:
            begin_flow(w, s, t, leader, e, source, each * count)
        task = inputs.next[task]


@inlined
def begin_flow(w: DagWorld, s: Switch, t: int, leader: int, e: int, source: int, size: float) -> None:
    """Begin a flow to the machine of a fetch, unless its bytes are there."""
    flows, sink = s.fabric.flows, w.inputs.node[leader]
    if source == sink:
        s.moved[1] += size
        return
    s.moved[0] += size
    s.num_unused[0] -= 1
    flow = s.unused[s.num_unused[0]]
    flows.coflow[flow], flows.size[flow], s.leader[flow] = e, size, leader
    flows.source[flow], flows.sink[flow] = source, s.fabric.side + sink
    s.fabric.coflows.left[e] += 1
    w.counts[N_FLOWS] += 1
    w.inputs.waiting[leader] += 1
    add_flow(s.fabric, s.fair, t, flow)
