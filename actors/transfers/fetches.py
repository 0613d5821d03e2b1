"""Fetches: what tasks that are launched on one machine at one instant need of others. The network's own books of them.

1. A task asks for its input. Those of its stage that ask on its machine at the same instant fetch with it: one of them,
   the *leader*, stands for all.
2. When all messages of an instant are handled, flows of new fetches begin (`SHARE`): how is the network's matter.
3. When the last flow of a fetch has ended, its machine gets a message.

Where machines fail, a fetch that lacks what was on one of them is given up when that failure is detected
(`actors.transfers.breaking`).
Over pipelined edges further flows of a fetch begin as tasks of parents end (`actors.transfers.outputs`).
"""

from typing import NamedTuple

import numpy as np

from actors.kernel import messages
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FLOWS
from actors.kernel.inputs import HasInputs, has_output
from actors.kernel.queue import NEVER, NONE, SPARE
from actors.transfers.breaking import Breaks, is_broken, make_breaks
from actors.transfers.outputs import (
    Outputs,
    count_ends,
    forget_awaited,
    is_awaiting,
    make_outputs,
    open_fetch,
)


class Fetches(NamedTuple):
    """Fetches of T tasks on N machines."""

    fresh: np.ndarray  # [T] the first `num_fresh`: leaders of fetches that have no flows yet
    num_fresh: np.ndarray  # [1]
    done: np.ndarray  # [T] the first `num_done`: leaders of fetches that have ended; a message is to be sent
    num_done: np.ndarray  # [1]
    newest: np.ndarray  # [N] the leader of the newest fetch of a machine
    older: np.ndarray  # [T] the one before it, of the same instant
    due: np.ndarray  # [1] when the next SHARE is due, ns
    outputs: Outputs
    breaks: Breaks


def make_fetches(w: HasInputs) -> Fetches:
    """Return the books before any task has asked."""
    tasks = w.inputs.node.size
    return Fetches(
        fresh=np.zeros(tasks, np.int64),
        num_fresh=np.zeros(1, np.int64),
        done=np.zeros(tasks, np.int64),
        num_done=np.zeros(1, np.int64),
        newest=np.full(w.nodes.size, NONE),
        older=np.full(tasks, NONE),
        due=np.full(1, NEVER),
        outputs=make_outputs(w),
        breaks=make_breaks(w),
    )


@inlined
def join_fetch(w: HasInputs, f: Fetches, task: int, stage: int) -> bool:
    """Step 1; return whether the task is the leader of a new fetch."""
    inputs = w.inputs
    node = inputs.node[task]
    leader = f.newest[node]
    while leader != NONE and inputs.stage[leader] != stage:
        leader = f.older[leader]
    inputs.stage[task] = stage
    inputs.fetching[stage] += 1
    if leader == NONE:
        inputs.together[task], inputs.waiting[task], inputs.next[task] = 1, 0, NONE
        inputs.parts[task] = inputs.part[task]
        f.older[task], f.newest[node] = f.newest[node], task
        f.fresh[f.num_fresh[0]] = task
        f.num_fresh[0] += 1
        if is_awaiting(f.outputs, stage):
            f.outputs.unclosed[stage] += 1
    else:
        inputs.together[leader] += 1
        inputs.parts[leader] += inputs.part[task]
        inputs.next[task], inputs.next[leader] = inputs.next[leader], task
    return leader == NONE


@inlined
def request(w: HasInputs, f: Fetches, time: int) -> None:
    """Have a SHARE at `time`, unless there is one earlier."""
    if time < f.due[0]:
        f.due[0] = time
        messages.send_share(w, time)


@inlined
def begin_share(w: HasInputs, f: Fetches) -> bool:
    """Return whether the SHARE at hand is the one that is due; else an earlier one has replaced it."""
    is_due = messages.read_share(w) == f.due[0]
    if is_due:
        f.due[0] = NEVER
    return is_due


@inlined
def crosses(w: HasInputs, source: int, sink: int, size: float) -> bool:
    """Count bytes from one machine to another, or that lie where they are needed; return whether they cross."""
    w.inputs.moved[np.int64(source == sink)] += size
    w.counts[N_FLOWS] += source != sink
    return source != sink


@inlined
def end_flow_of(w: HasInputs, f: Fetches, leader: int) -> None:
    """Note that one flow less of a fetch is under way."""
    w.inputs.waiting[leader] -= 1
    if w.inputs.waiting[leader] == 0:
        note_done(f, leader)


@inlined
def end_beginning(w: HasInputs, f: Fetches, leader: int) -> None:
    """Note that all flows of a fetch have begun that can: it is open, or has ended if there are none."""
    if is_awaiting(f.outputs, w.inputs.stage[leader]):
        open_fetch(w, f.outputs, leader)
    elif w.inputs.waiting[leader] == 0:
        note_done(f, leader)


@compiled
def end_outputs(w: HasInputs, f: Fetches) -> None:
    """Note that flows of the tasks that have ended at this instant have begun; close what awaits no other."""
    o, inputs = f.outputs, w.inputs
    for i in range(o.num_stages[0]):
        stage = o.stages[i]
        forget_awaited(w, o, stage, count_ends(w, o, stage))
        o.places[stage] = 0
        for edge in range(inputs.first_child[stage], inputs.first_child[stage + 1]):
            child = inputs.child[edge]
            if inputs.at_launch[edge] == 1 and o.awaited[child] == 0:
                close_fetches(w, f, child)
    o.num_stages[0] = 0


@inlined
def close_fetches(w: HasInputs, f: Fetches, stage: int) -> None:
    """Let the open fetches of a stage end with the last of their flows."""
    leader = f.outputs.first[stage]
    while leader != NONE:
        following = f.outputs.next[leader]
        end_flow_of(w, f, leader)
        leader = following
    f.outputs.first[stage], f.outputs.unclosed[stage] = NONE, 0


@compiled
def forget_fetches_to(w: HasInputs, f: Fetches, t: int, node: int) -> None:
    """Forget fetches to a machine that has failed; outputs of all stages may have been there."""
    outputs = w.inputs.outputs
    outputs.broken_before[node], outputs.broken[node] = outputs.broken[node], t
    for stage in range(w.inputs.sources.size):
        w.inputs.sources[stage] = NONE
    f.newest[node] = NONE
    for i in range(f.breaks.num_leaders[0]):
        if w.inputs.node[f.breaks.leaders[i]] == node:
            f.breaks.due[f.breaks.leaders[i]] = NONE
    for i in range(f.num_done[0]):
        if is_broken(f.breaks, f.done[i]) and w.inputs.node[f.done[i]] == node:
            f.breaks.due[f.done[i]] = NONE
    f.num_fresh[0] = without(w, f.fresh, f.num_fresh[0], node)
    f.num_done[0] = without(w, f.done, f.num_done[0], node)
    f.breaks.num_leaders[0] = without(w, f.breaks.leaders, f.breaks.num_leaders[0], node)


@inlined
def without(w: HasInputs, leaders: np.ndarray, count: int, node: int) -> int:
    """Take out the leaders of fetches to a machine; return how many of the first `count` are left, in their order."""
    left: int = 0
    for i in range(count):
        if w.inputs.node[leaders[i]] != node:
            leaders[left] = leaders[i]
            left += 1
    return left


@inlined
def note_done(f: Fetches, leader: int) -> None:
    """Note that a fetch has ended."""
    f.done[f.num_done[0]] = leader
    f.num_done[0] += 1


@inlined
def room_of_event(w: HasInputs) -> int:
    """Return how many messages the event at hand may send."""
    return w.queue.room - SPARE


@inlined
def send_done(w: HasInputs, f: Fetches, t: int, room: int) -> None:
    """Step 3, for as many fetches as the event at hand may still send messages; the others follow at once."""
    while f.num_done[0] > 0 and room > 0:
        room -= 1
        f.num_done[0] -= 1
        leader = f.done[f.num_done[0]]
        if is_broken(f.breaks, leader):
            f.breaks.due[leader] = NONE
            messages.send_fetch_failed(w, t, w.inputs.node[leader], leader)
        else:
            messages.send_fetched(w, t, w.inputs.node[leader], leader)


@inlined
def bytes_of_pair(w: HasInputs, stage: int, e: int) -> float:
    """Return what a task of a parent sends to a task of its child, in the mean; over a one-to-one edge to its own."""
    tasks, parent = w.stages.first_task[stage + 1] - w.stages.first_task[stage], w.inputs.parent[e]
    if w.inputs.one_to_one[e] == 1:
        return w.inputs.size[e] / tasks
    return w.inputs.size[e] / tasks / (w.stages.first_task[parent + 1] - w.stages.first_task[parent])


@compiled
def copies_from(w: HasInputs, stage: int, e: int, leader: int, task: int) -> int:
    """Return for how many tasks of a fetch comes from where it does for `task` what they get over a one-to-one edge.

    0: one of those tasks comes before `task` in the fetch, so that they have been counted.
    """
    source, other = source_of_copy(w, stage, e, task), leader
    while source_of_copy(w, stage, e, other) != source:
        other = w.inputs.next[other]
    count = 0
    if other == task:
        while other != NONE:
            count += source_of_copy(w, stage, e, other) == source
            other = w.inputs.next[other]
    return count


@inlined
def copy_is_there(w: HasInputs, stage: int, e: int, task: int) -> bool:
    """Return whether what a task gets over a one-to-one edge has not been lost with its machine."""
    parent = w.inputs.parent[e]
    return parent == NONE or has_output(
        w.inputs, task + w.stages.first_task[parent] - w.stages.first_task[stage]
    )


@inlined
def source_of_copy(w: HasInputs, stage: int, e: int, task: int) -> int:
    """Return from where a task gets over a one-to-one edge what the parent's task sends, or its job's input."""
    parent = w.inputs.parent[e]
    if parent == NONE:
        return w.inputs.job_input.origin[task]
    return w.inputs.node[task + w.stages.first_task[parent] - w.stages.first_task[stage]]
