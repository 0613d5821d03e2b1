"""The measure by which Philae chooses a coflow's queue: its size, and its contention (ATC 2019, section 4.4).

The number of coflows at each port is kept up to date: a coflow that arrives at a port, or is done there, changes the
measure of the others. `p` is the coordinator's `State`.
"""

import numpy as np

from actors.fabric.counters import N_DEMOTIONS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import move_group
from actors.fabric.ports import bytes_sent, coflow_of, is_pilot_group, lines_of
from actors.fabric.priority_queues import UNQUEUED, enqueue, order_key, queue_of
from actors.fabric.waves import learn_together
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.schedulers.coflows.philae_state import State

A, B, C, D = range(4)
# Classes of groups, in the order in which they are served; thin coflows come before all of them.
_CLASS_SHIFT = 56
PILOTS = np.int64(1) << _CLASS_SHIFT
MAIN = np.int64(2) << _CLASS_SHIFT
BACKFILL = np.int64(3) << _CLASS_SHIFT


@compiled
def learn(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 3: estimate the size of a coflow whose pilots have all ended."""
    p.length[coflow] = p.pilot_bytes[coflow] / p.pilots_done[coflow]
    learn_together(w, coflow, p.length[coflow])
    p.learned[coflow], p.learned_bytes[coflow] = t, bytes_sent(w.fabric.coflows, t, coflow)
    if w.fabric.coflows.left[coflow] > 0:
        enter_queue(w, p, t, coflow)


@compiled
def enter_queue(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Compute the contention at the ports of a coflow, and put it into the queue of its measure."""
    lines, contention_sum = w.fabric.lines, 0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                contention_sum += p.coflows_at_port[lines.port[line]] - p.excludes_itself
    p.contention_sum[coflow] = contention_sum
    enqueue(p.queues, coflow, queue_of(p.queues, measure(w, p, t, coflow)))
    # Now, not at the decision, so that the coflow is counted at its ports when others leave them.
    if p.policy == D and p.ranking.level[coflow] == NONE:
        move_group(w.fabric, p.ranking, p.matching, t, coflow, MAIN | order_key(p.queues, coflow))
    mark_moved(p, coflow)


@compiled
def measure(w: CoflowWorld, p: State, t: int, coflow: int) -> float:
    """Return the measure of a coflow, which determines its queue, bytes."""
    coflows = w.fabric.coflows
    size = p.length[coflow] * p.width[coflow]
    if p.policy == A:
        found = size
    elif p.policy == B:
        return max(size - bytes_sent(coflows, t, coflow), 1.0)
    elif p.policy == C:
        return p.unit * count_neighbours(w, p, coflow, False)
    else:
        found = p.length[coflow] * p.contention_sum[coflow]
    if p.corrects and size > 0.0:
        found *= max(1.0 - bytes_sent(coflows, t, coflow) / size, 0.0)
    return found


@compiled
def change_coflows_at_port(w: CoflowWorld, p: State, t: int, port: int, by: int) -> None:
    """Add `by` to the number of coflows at a port; the others there may move to another queue."""
    lines, r = w.fabric.lines, p.ranking
    p.coflows_at_port[port] += by
    if p.policy != D:
        return
    line = r.next[r.ports[0] + port]
    while line < r.ports[0]:
        coflow = lines.group[line]
        if not is_pilot_group(w.fabric, coflow) and p.queues.queue[coflow] >= 0:
            p.contention_sum[coflow] += by
            move(w, p, t, coflow)
        line = r.next[line]


@compiled
def appear_at_ports(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Count a coflow that has registered at its ports."""
    lines = w.fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                change_coflows_at_port(w, p, t, lines.port[line], 1)


@inlined
def leave_port(w: CoflowWorld, p: State, t: int, coflow: int, port: int, coflow_ended: bool) -> None:
    """Remove a coflow from a port at which it has no unfinished flow left."""
    if p.queues.queue[coflow] >= 0:
        p.contention_sum[coflow] -= p.coflows_at_port[port] - p.excludes_itself
        if p.policy == D and not coflow_ended:
            move(w, p, t, coflow)
    change_coflows_at_port(w, p, t, port, -1)
    if is_thin(p, coflow):
        mark_thin_at_port(w, p, port)


@inlined
def return_to_port(w: CoflowWorld, p: State, t: int, coflow: int, port: int) -> None:
    """Add a coflow at a port where it had no unfinished flow, and has one now."""
    if p.queues.queue[coflow] >= 0:
        # The coflow is in a queue, so `change_coflows_at_port` counts it once more where it counts itself.
        p.contention_sum[coflow] += p.coflows_at_port[port] - p.excludes_itself
    change_coflows_at_port(w, p, t, port, 1)
    if is_thin(p, coflow):
        mark_thin_at_port(w, p, port)


@inlined
def move(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 4: put a coflow into the queue of its measure, if that has changed."""
    queue = queue_of(p.queues, measure(w, p, t, coflow))
    if queue != p.queues.queue[coflow]:
        enqueue(p.queues, coflow, queue)
        mark_moved(p, coflow)
        w.counts[N_DEMOTIONS] += 1


@compiled
def count_neighbours(w: CoflowWorld, p: State, coflow: int, thin: bool) -> int:
    """Return how many other coflows share a port with a coflow; `thin`: only thin ones count.

    Without work conservation a coflow that is being sampled counts only at the ports of its pilots.
    """
    lines, r, count = w.fabric.lines, p.ranking, 0
    p.num_counts[0] += 1
    p.met_in[coflow] = p.num_counts[0]
    for side in range(2):
        for own in lines_of(lines, coflow, side):
            if lines.left[own] == 0:
                continue
            line = r.next[r.ports[0] + lines.port[own]]
            while line < r.ports[0]:
                other = coflow_of(w.fabric, lines.group[line])
                if p.met_in[other] != p.num_counts[0] and (not thin or is_thin(p, other)):
                    p.met_in[other] = p.num_counts[0]
                    count += 1
                line = r.next[line]
    return count


@inlined
def is_thin(p: State, coflow: int) -> bool:
    """Return whether an active coflow is not in a queue, and has no pilots."""
    return p.queues.queue[coflow] == UNQUEUED and p.pilots_left[coflow] == 0


@inlined
def mark_moved(p: State, coflow: int) -> None:
    """Mark a coflow as moved: it gets another level at the next decision."""
    if not p.is_moved[coflow]:
        p.is_moved[coflow] = True
        p.moved[p.num_moved[0]] = coflow
        p.num_moved[0] += 1


@compiled
def mark_thin_at_port(w: CoflowWorld, p: State, port: int) -> None:
    """Mark thin coflows at a port as moved: the number of other thin ones at their ports has changed."""
    r = p.ranking
    line = r.next[r.ports[0] + port]
    while line < r.ports[0]:
        other = w.fabric.lines.group[line]
        if not is_pilot_group(w.fabric, other) and is_thin(p, other):
            mark_moved(p, other)
        line = r.next[line]


@compiled
def mark_thin_at_ports(w: CoflowWorld, p: State, coflow: int) -> None:
    """Mark the thin coflows at the ports of a thin coflow as moved."""
    lines = w.fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0 and is_thin(p, coflow):
                mark_thin_at_port(w, p, lines.port[line])
