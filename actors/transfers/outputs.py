"""What tasks of parents send as they end, to tasks that were launched before: the network's books of pipelined edges.

1. A task has ended (`OUTPUT`). If tasks of its children fetch, its machine is one of those that send from this instant
   on; what it sends to tasks that are launched later is fetched when they are.
2. When all messages of an instant are handled, flows from these machines begin, to each fetch that is *open*: one that
   began before all tasks of parents over pipelined edges had ended. Then fetches that have just begun are opened.
3. When all those tasks have ended, the fetches are closed: each ends with the last of its flows.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.inputs import HasInputs, is_pipelined, sort_by_machine
from actors.kernel.queue import NONE


class Outputs(NamedTuple):
    """Of T tasks and S stages; all are empty where no edge is pipelined."""

    # [S] tasks of parents over pipelined edges of which no fetch knows that they have ended
    awaited: np.ndarray
    unclosed: np.ndarray  # [S] fetches that are open, or will be when the instant ends, at most
    first: np.ndarray  # [S] the first of its open fetches, by their machines, then as they began; NONE: none
    next: np.ndarray  # [T] of a leader: the next one
    # [S] how many machines send from this instant on, in the second half of `Inputs.source`
    places: np.ndarray
    stages: np.ndarray  # [S] the first `num_stages`: those of which tasks have ended at this instant
    num_stages: np.ndarray  # [1]


def make_outputs(w: HasInputs) -> Outputs:
    """Return the books before any task has ended."""
    inputs, tasks = w.inputs, np.diff(w.stages.first_task)
    stages = tasks.size if is_pipelined(inputs) else 0
    awaited = np.zeros(stages, np.int64)
    if stages > 0:
        parent = np.repeat(np.arange(stages), np.diff(inputs.first_child))
        np.add.at(awaited, inputs.child, tasks[parent] * inputs.at_launch)
    return Outputs(
        awaited=awaited,
        unclosed=np.zeros(stages, np.int64),
        first=np.full(stages, NONE),
        next=np.full(w.inputs.ended.size, NONE),
        places=np.zeros(stages, np.int64),
        stages=np.zeros(stages, np.int64),
        num_stages=np.zeros(1, np.int64),
    )


@inlined
def is_awaiting(o: Outputs, stage: int) -> bool:
    """Return whether tasks of parents over pipelined edges have not ended."""
    return o.awaited.size > 0 and o.awaited[stage] > 0


@inlined
def begin_of_senders(w: HasInputs, stage: int) -> int:
    """Return where in `Inputs.source` the machines begin where tasks of a stage have ended at this instant."""
    return w.inputs.ended.size + w.stages.first_task[stage]


@compiled
def note_output(w: HasInputs, o: Outputs, task: int, stage: int) -> int:
    """Step 1; return how many flows begin with it, at most."""
    inputs, more = w.inputs, np.int64(0)
    inputs.ended[task], inputs.sources[stage] = 1, NONE
    for edge in range(inputs.first_child[stage], inputs.first_child[stage + 1]):
        if inputs.at_launch[edge] == 1:
            more += o.unclosed[inputs.child[edge]]
    if more == 0:
        forget_awaited(w, o, stage, np.int64(1))
        return more
    if o.places[stage] == 0:
        o.stages[o.num_stages[0]] = stage
        o.num_stages[0] += 1
    place = begin_of_senders(w, stage) + o.places[stage]
    inputs.source[place], inputs.tasks[place] = inputs.node[task], 1
    o.places[stage] += 1
    return more


@inlined
def forget_awaited(w: HasInputs, o: Outputs, stage: int, count: int) -> None:
    """Note that the children of a stage await so many tasks less."""
    for edge in range(w.inputs.first_child[stage], w.inputs.first_child[stage + 1]):
        if w.inputs.at_launch[edge] == 1:
            o.awaited[w.inputs.child[edge]] -= count


@compiled
def list_senders(w: HasInputs, o: Outputs) -> None:
    """List for step 2 the machines where tasks have ended at this instant, each once, in order."""
    source, tasks = w.inputs.source, w.inputs.tasks
    for i in range(o.num_stages[0]):
        begin = begin_of_senders(w, o.stages[i])
        end, last = begin + o.places[o.stages[i]], begin
        sort_by_machine(source, tasks, begin, end)
        for place in range(begin + 1, end):
            if source[place] == source[last]:
                tasks[last] += tasks[place]
            else:
                last += 1
                source[last], tasks[last] = source[place], tasks[place]
        o.places[o.stages[i]] = last - begin + 1


@inlined
def edge_from(w: HasInputs, parent: int, child: int) -> int:
    """Return the edge from a stage to its child, among those of `Inputs.parent`."""
    e = w.inputs.first_parent[child]
    while w.inputs.parent[e] != parent:
        e += 1
    return e


@compiled
def open_fetch(w: HasInputs, o: Outputs, leader: int) -> None:
    """Let a fetch wait for tasks of parents, as if they were a flow."""
    stage, node = w.inputs.stage[leader], w.inputs.node[leader]
    w.inputs.waiting[leader] += 1
    before, here = NONE, o.first[stage]
    while here != NONE and w.inputs.node[here] <= node:
        before, here = here, o.next[here]
    o.next[leader] = here
    if before == NONE:
        o.first[stage] = leader
    else:
        o.next[before] = leader


@inlined
def count_ends(w: HasInputs, o: Outputs, stage: int) -> int:
    """Return how many tasks of a stage have ended at this instant."""
    begin, count = begin_of_senders(w, stage), np.int64(0)
    for place in range(begin, begin + o.places[stage]):
        count += w.inputs.tasks[place]
    return count
