"""Fetches: what tasks that are launched on one machine at one instant need of others. The network's own books of them.

1. A task asks for its input. Those of its stage that ask on its machine at the same instant fetch with it: one of them,
   the *leader*, stands for all.
2. When all messages of an instant are handled, flows of new fetches begin (`SHARE`; `fair.py`, `shuffles.py`).
3. When the last flow of a fetch has ended, its machine gets a message.

Where machines fail, a fetch that lacks what was on one of them is given up when that failure is detected (`Breaks`).
Over pipelined edges further flows of a fetch begin as tasks of parents end (`Outputs`).
"""

from typing import NamedTuple

import numpy as np

from actors.initial_arrays import at_start, list_per, per
from actors.inputs import HasInputs, has_output, is_pipelined, sort_by_machine, sources_of, when_known_lost
from actors.kernel import messages
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_FLOWS
from actors.kernel.queue import NEVER, NONE, SPARE

# What tasks of parents send as they end, to tasks that were launched before: the network's books of pipelined edges.
#
# 1. A task has ended (`OUTPUT`). If tasks of its children fetch, its machine is one of those that send from this
#    instant on; what it sends to tasks that are launched later is fetched when they are.
# 2. When all messages of an instant are handled, flows from these machines begin, to each fetch that is *open*: one
#    that began before all tasks of parents over pipelined edges had ended. Then fetches that have just begun are
#    opened.
# 3. When all those tasks have ended, the fetches are closed: each ends with the last of its flows.


class Outputs(NamedTuple):
    """Of T tasks and S stages; all are empty where no edge is pipelined."""

    # [S] tasks of parents over pipelined edges of which no fetch knows that they have ended
    awaited: np.ndarray
    unclosed: np.ndarray = per("stage")  # fetches that are open, or will be when the instant ends, at most
    # The first of its open fetches, by their machines, then as they began; NONE: none
    first: np.ndarray = per("stage", NONE)
    next: np.ndarray = per("task", NONE)  # of a leader: the next one
    # How many machines send from this instant on, in the second half of `Inputs.source`
    places: np.ndarray = per("stage")
    # The first `num_stages`: those of which tasks have ended at this instant
    stages: np.ndarray = list_per("stage")
    num_stages: np.ndarray = per("run")


def make_outputs(w: HasInputs) -> Outputs:
    """Return the books before any task has ended."""
    inputs, tasks = w.inputs, np.diff(w.stages.first_task)
    stages = tasks.size if is_pipelined(inputs) else 0
    awaited = np.zeros(stages, np.int64)
    if stages > 0:
        parent = np.repeat(np.arange(stages), np.diff(inputs.first_child))
        np.add.at(awaited, inputs.child, tasks[parent] * inputs.at_launch)
    return at_start(Outputs, {"stage": stages, "task": inputs.ended.size}, awaited=awaited)


@inlined
def is_awaiting(outputs: Outputs, stage: int) -> bool:
    """Return whether tasks of parents over pipelined edges have not ended."""
    return outputs.awaited.size > 0 and outputs.awaited[stage] > 0


@inlined
def begin_of_senders(w: HasInputs, stage: int) -> int:
    """Return where in `Inputs.source` the machines begin where tasks of a stage have ended at this instant."""
    return w.inputs.ended.size + w.stages.first_task[stage]


@compiled
def note_output(w: HasInputs, outputs: Outputs, task: int, stage: int) -> int:
    """Step 1; return how many flows begin with it, at most."""
    inputs, more = w.inputs, np.int64(0)
    inputs.ended[task], inputs.sources[stage] = 1, NONE
    for edge in range(inputs.first_child[stage], inputs.first_child[stage + 1]):
        if inputs.at_launch[edge] == 1:
            more += outputs.unclosed[inputs.child[edge]]
    if more == 0:
        forget_awaited(w, outputs, stage, np.int64(1))
        return more
    if outputs.places[stage] == 0:
        outputs.stages[outputs.num_stages[0]] = stage
        outputs.num_stages[0] += 1
    place = begin_of_senders(w, stage) + outputs.places[stage]
    inputs.source[place], inputs.tasks[place] = inputs.node[task], 1
    outputs.places[stage] += 1
    return more


@inlined
def forget_awaited(w: HasInputs, outputs: Outputs, stage: int, count: int) -> None:
    """Note that the children of a stage await so many tasks less."""
    for edge in range(w.inputs.first_child[stage], w.inputs.first_child[stage + 1]):
        if w.inputs.at_launch[edge] == 1:
            outputs.awaited[w.inputs.child[edge]] -= count


@compiled
def list_senders(w: HasInputs, outputs: Outputs) -> None:
    """List for step 2 the machines where tasks have ended at this instant, each once, in order."""
    source, tasks = w.inputs.source, w.inputs.tasks
    for i in range(outputs.num_stages[0]):
        begin = begin_of_senders(w, outputs.stages[i])
        end, last = begin + outputs.places[outputs.stages[i]], begin
        sort_by_machine(source, tasks, begin, end)
        for place in range(begin + 1, end):
            if source[place] == source[last]:
                tasks[last] += tasks[place]
            else:
                last += 1
                source[last], tasks[last] = source[place], tasks[place]
        outputs.places[outputs.stages[i]] = last - begin + 1


@inlined
def edge_from(w: HasInputs, parent: int, child: int) -> int:
    """Return the edge from a stage to its child, among those of `Inputs.parent`."""
    e = w.inputs.first_parent[child]
    while w.inputs.parent[e] != parent:
        e += 1
    return e


@compiled
def open_fetch(w: HasInputs, outputs: Outputs, leader: int) -> None:
    """Let a fetch wait for tasks of parents, as if they were a flow."""
    stage, node = w.inputs.stage[leader], w.inputs.node[leader]
    w.inputs.waiting[leader] += 1
    before, here = NONE, outputs.first[stage]
    while here != NONE and w.inputs.node[here] <= node:
        before, here = here, outputs.next[here]
    outputs.next[leader] = here
    if before == NONE:
        outputs.first[stage] = leader
    else:
        outputs.next[before] = leader


@inlined
def count_ends(w: HasInputs, outputs: Outputs, stage: int) -> int:
    """Return how many tasks of a stage have ended at this instant."""
    begin, count = begin_of_senders(w, stage), np.int64(0)
    for place in range(begin, begin + outputs.places[stage]):
        count += w.inputs.tasks[place]
    return count


# Fetches that lack what was on a machine that has failed: the network's own books of them.
#
# 1. A machine has failed (`BROKEN`): its flows end at once, and fetches to it are forgotten, as their tasks are lost.
# 2. A fetch from it is *broken*, as is one that begins later and needs an output that was there. Its other flows go on.
# 3. When the failure is detected the fetch is given up: its flows end, and its machine gets a message (`FETCH_FAILED`).


class Breaks(NamedTuple):
    """Of T tasks; all are empty where no machine fails."""

    leaders: np.ndarray = list_per("task")  # the first `num_leaders`: those of broken fetches
    num_leaders: np.ndarray = per("run")
    due: np.ndarray = per("task", NONE)  # of a leader: when its fetch is given up, ns; NONE: it is not broken


@inlined
def is_broken(breaks: Breaks, leader: int) -> bool:
    """Return whether a fetch lacks what is lost."""
    return breaks.due.size > 0 and breaks.due[leader] != NONE


@compiled
def break_fetch(w: HasInputs, breaks: Breaks, leader: int, when: int) -> None:
    """Step 2: note that a fetch is to be given up at a time, or before."""
    if breaks.due[leader] == NONE:
        breaks.leaders[breaks.num_leaders[0]] = leader
        breaks.num_leaders[0] += 1
        breaks.due[leader] = when
        w.inputs.waiting[leader] += 1  # it does not end with its last flow
    breaks.due[leader] = min(breaks.due[leader], when)


@compiled
def break_if_lost(w: HasInputs, breaks: Breaks, leader: int, t: int) -> None:
    """Break a fetch that begins if some of its input is lost, until that is known."""
    when = when_lost(w, leader)
    if when < NEVER:
        break_fetch(w, breaks, leader, max(when, t))


@compiled
def when_lost(w: HasInputs, leader: int) -> int:
    """Return when it is known that some input of a fetch is lost, ns; NEVER: all is there."""
    inputs, stage, when = w.inputs, w.inputs.stage[leader], NEVER
    for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
        parent = inputs.parent[e]
        if parent == NONE or inputs.size[e] == 0.0:
            continue
        if inputs.one_to_one[e] == 0:
            sources_of(w, parent)
            when = min(when, inputs.outputs.lost[parent])
            continue
        task, offset = leader, w.stages.first_task[parent] - w.stages.first_task[stage]
        while task != NONE:
            if not has_output(inputs, task + offset):
                when = min(when, when_known_lost(w, task + offset))
            task = inputs.next[task]
    return when


@compiled
def take_given_up(breaks: Breaks, t: int) -> int:
    """Take the leader of a fetch that is to be given up now out of those of broken ones; NONE: there is none."""
    for i in range(breaks.num_leaders[0]):
        leader = breaks.leaders[i]
        if breaks.due[leader] <= t:
            breaks.num_leaders[0] -= 1
            breaks.leaders[i] = breaks.leaders[breaks.num_leaders[0]]
            return leader
    return NONE


@compiled
def next_break(breaks: Breaks) -> int:
    """Return when the next broken fetch is to be given up, ns."""
    when = NEVER
    for i in range(breaks.num_leaders[0]):
        when = min(when, breaks.due[breaks.leaders[i]])
    return when


class Fetches(NamedTuple):
    """Fetches of T tasks on N machines."""

    outputs: Outputs
    breaks: Breaks
    fresh: np.ndarray = list_per("task")  # the first `num_fresh`: leaders of fetches that have no flows yet
    num_fresh: np.ndarray = per("run")
    # The first `num_done`: leaders of fetches that have ended, whose tasks get a message
    done: np.ndarray = list_per("task")
    num_done: np.ndarray = per("run")
    newest: np.ndarray = per("machine", NONE)  # the leader of the newest fetch of a machine
    older: np.ndarray = per("task", NONE)  # the one before it, of the same instant
    due: np.ndarray = per("run", NEVER)  # when the next SHARE is due, ns


def make_fetches(w: HasInputs) -> Fetches:
    """Return the books before any task has asked."""
    sizes = {"task": w.inputs.node.size, "machine": w.nodes.size}
    breaks = at_start(Breaks, {"task": w.inputs.outputs.ended.size})
    return at_start(Fetches, sizes, outputs=make_outputs(w), breaks=breaks)


@inlined
def join_fetch(w: HasInputs, fetches: Fetches, task: int, stage: int) -> bool:
    """Step 1; return whether the task is the leader of a new fetch."""
    inputs = w.inputs
    node = inputs.node[task]
    leader = fetches.newest[node]
    while leader != NONE and inputs.stage[leader] != stage:
        leader = fetches.older[leader]
    inputs.stage[task] = stage
    inputs.fetching[stage] += 1
    if leader == NONE:
        inputs.together[task], inputs.waiting[task], inputs.next[task] = 1, 0, NONE
        inputs.parts[task] = inputs.part[task]
        fetches.older[task], fetches.newest[node] = fetches.newest[node], task
        fetches.fresh[fetches.num_fresh[0]] = task
        fetches.num_fresh[0] += 1
        if is_awaiting(fetches.outputs, stage):
            fetches.outputs.unclosed[stage] += 1
    else:
        inputs.together[leader] += 1
        inputs.parts[leader] += inputs.part[task]
        inputs.next[task], inputs.next[leader] = inputs.next[leader], task
    return leader == NONE


@inlined
def request(w: HasInputs, fetches: Fetches, time: int) -> None:
    """Have a SHARE at `time`, unless there is one earlier."""
    if time < fetches.due[0]:
        fetches.due[0] = time
        messages.send_share(w, time)


@inlined
def begin_share(w: HasInputs, fetches: Fetches) -> bool:
    """Return whether the SHARE at hand is the one that is due; else an earlier one has replaced it."""
    is_due = messages.read_share(w) == fetches.due[0]
    if is_due:
        fetches.due[0] = NEVER
    return is_due


@inlined
def crosses(w: HasInputs, source: int, sink: int, size: float) -> bool:
    """Count bytes from one machine to another, or that lie where they are needed; return whether they cross."""
    w.inputs.moved[np.int64(source == sink)] += size
    w.counts[N_FLOWS] += source != sink
    return source != sink


@inlined
def end_flow_of(w: HasInputs, fetches: Fetches, leader: int) -> None:
    """Note that one flow less of a fetch is under way."""
    w.inputs.waiting[leader] -= 1
    if w.inputs.waiting[leader] == 0:
        note_done(fetches, leader)


@inlined
def end_beginning(w: HasInputs, fetches: Fetches, leader: int) -> None:
    """Note that all flows of a fetch have begun that can: it is open, or has ended if there are none."""
    if is_awaiting(fetches.outputs, w.inputs.stage[leader]):
        open_fetch(w, fetches.outputs, leader)
    elif w.inputs.waiting[leader] == 0:
        note_done(fetches, leader)


@compiled
def end_outputs(w: HasInputs, fetches: Fetches) -> None:
    """Note that flows of the tasks that have ended at this instant have begun; close what awaits no other."""
    o, inputs = fetches.outputs, w.inputs
    for i in range(o.num_stages[0]):
        stage = o.stages[i]
        forget_awaited(w, o, stage, count_ends(w, o, stage))
        o.places[stage] = 0
        for edge in range(inputs.first_child[stage], inputs.first_child[stage + 1]):
            child = inputs.child[edge]
            if inputs.at_launch[edge] == 1 and o.awaited[child] == 0:
                close_fetches(w, fetches, child)
    o.num_stages[0] = 0


@inlined
def close_fetches(w: HasInputs, fetches: Fetches, stage: int) -> None:
    """Let the open fetches of a stage end with the last of their flows."""
    leader = fetches.outputs.first[stage]
    while leader != NONE:
        following = fetches.outputs.next[leader]
        end_flow_of(w, fetches, leader)
        leader = following
    fetches.outputs.first[stage], fetches.outputs.unclosed[stage] = NONE, 0


@compiled
def forget_fetches_to(w: HasInputs, fetches: Fetches, t: int, node: int) -> None:
    """Forget fetches to a machine that has failed; outputs of all stages may have been there."""
    outputs = w.inputs.outputs
    outputs.broken_before[node], outputs.broken[node] = outputs.broken[node], t
    for stage in range(w.inputs.sources.size):
        w.inputs.sources[stage] = NONE
    fetches.newest[node] = NONE
    for i in range(fetches.breaks.num_leaders[0]):
        if w.inputs.node[fetches.breaks.leaders[i]] == node:
            fetches.breaks.due[fetches.breaks.leaders[i]] = NONE
    for i in range(fetches.num_done[0]):
        if is_broken(fetches.breaks, fetches.done[i]) and w.inputs.node[fetches.done[i]] == node:
            fetches.breaks.due[fetches.done[i]] = NONE
    fetches.num_fresh[0] = without(w, fetches.fresh, fetches.num_fresh[0], node)
    fetches.num_done[0] = without(w, fetches.done, fetches.num_done[0], node)
    fetches.breaks.num_leaders[0] = without(w, fetches.breaks.leaders, fetches.breaks.num_leaders[0], node)


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
def note_done(fetches: Fetches, leader: int) -> None:
    """Note that a fetch has ended."""
    fetches.done[fetches.num_done[0]] = leader
    fetches.num_done[0] += 1


@inlined
def room_of_event(w: HasInputs) -> int:
    """Return how many messages the event at hand may send."""
    return w.queue.room - SPARE


@inlined
def send_done(w: HasInputs, fetches: Fetches, t: int, room: int) -> None:
    """Step 3, for as many fetches as the event at hand may still send messages; the others follow at once."""
    while fetches.num_done[0] > 0 and room > 0:
        room -= 1
        fetches.num_done[0] -= 1
        leader = fetches.done[fetches.num_done[0]]
        if is_broken(fetches.breaks, leader):
            fetches.breaks.due[leader] = NONE
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
    """Return how many tasks of a fetch get their one-to-one input from the same machine as `task`.

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
