"""The network under a coordinator of coflows: the flows of a shuffle that become known together are a coflow.

When all messages of an instant are handled, the tasks of a stage that were launched in it fetch their input. For each
edge to their stage, the flows from the machines where the parent's tasks ran are a coflow, which is registered with the
coordinator one network delay later (`actors.fabric.coordinator`). Agents send its flows at the rates that they receive.
When the last flow of a fetch has ended, its machine gets a message.

Where the tasks of a stage are launched one after another, as machines have room, a shuffle is many coflows, its waves,
which stand together in the coordinator's order (`actors.fabric.waves`). So it is where they end one after another, over
a pipelined edge: what tasks that end at an instant send to those that were launched before are waves. A wave has a
machine once among its receivers: fetches of one machine are in as many waves.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.coordinator import Agenda, remove_ended
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.messages import PACE, SET_EXTRA, SET_LINE, SET_RATE, SHRINK, VERDICT, send_register
from actors.fabric.order import Order
from actors.fabric.port_sets import bit_of
from actors.fabric.ports import pilot_group
from actors.fabric.sampling import Sampling, count_pilots
from actors.fabric.waves import are_together
from actors.initial_arrays import clear, list_per, longer, parts_of, per, sizes_of
from actors.inputs import HasInputs, can_lose_outputs, is_pipelined, sort_by_machine, sources_of
from actors.kernel import messages
from actors.kernel.compiled import compiled, inlined
from actors.kernel.cost import NO_COST
from actors.kernel.queue import NEVER, NONE, SPARE, Queue
from actors.transfers.fetches import (
    Fetches,
    begin_of_senders,
    begin_share,
    break_fetch,
    break_if_lost,
    bytes_of_pair,
    copies_from,
    copy_is_there,
    crosses,
    edge_from,
    end_beginning,
    end_flow_of,
    end_outputs,
    forget_fetches_to,
    join_fetch,
    list_senders,
    next_break,
    note_done,
    note_output,
    request,
    room_of_event,
    send_done,
    source_of_copy,
    take_given_up,
)
from workloads.groups import rows_between

# Runs of free rows: rows that lie side by side are taken from the longest run, until none is long enough.
#
# Then the host collects the rows that are free again, and makes more if few are (`make_room`).


class Runs(NamedTuple):
    """Runs of free rows, the longest first."""

    start: np.ndarray
    end: np.ndarray
    now: np.ndarray  # [1] the one from which rows are taken; those before it are used up


@compiled
def find_run(runs: Runs, count: int) -> int:
    """Return the first of so many free rows that lie side by side, NONE: there are no such rows."""
    for i in range(runs.now[0], runs.start.size):
        if runs.end[i] - runs.start[i] >= count:
            runs.now[0] = i
            return runs.start[i]
    return NONE


@inlined
def take_run(runs: Runs, count: int) -> None:
    """Take the first rows of the run that was found."""
    runs.start[runs.now[0]] += count


def free_runs(first: np.ndarray, end: np.ndarray, size: int) -> Runs:
    """Return the runs of rows, of `size` in all, that are not in one of the spans from `first` to before `end`."""
    order = np.argsort(first)
    starts, ends = np.append(0, end[order]), np.append(first[order], size)
    gaps = np.flatnonzero(ends > starts)
    gaps = gaps[np.argsort(starts[gaps] - ends[gaps], kind="stable")]
    return Runs(starts[gaps], ends[gaps], np.zeros(1, np.int64))


def longest(runs: Runs) -> int:
    """Return the length of the longest run."""
    return int((runs.end - runs.start).max(initial=0))


def total(runs: Runs) -> int:
    """Return how many rows are free."""
    return int((runs.end - runs.start).sum())


# The network's books of coflows under a coordinator: which rows they have, and which are free.


class Free(NamedTuple):
    """Rows that no coflow has."""

    flows: Runs
    lines: Runs
    words: Runs
    coflows: np.ndarray  # [C] the first `num_coflows`
    num_coflows: np.ndarray  # [1]


class Cuts(NamedTuple):
    """The flows that are to be cut; those before `next` are left until later."""

    flow: np.ndarray = list_per("flow")  # the first `num`
    num: np.ndarray = per("run")
    next: np.ndarray = per("run")
    left: np.ndarray = per("run")  # how many are left until later, at the front of `flow`
    later: np.ndarray = per("run", NEVER)  # when the first of those may be cut, ns


class Shuffles(NamedTuple):
    """The network's books of coflows: F rows of flows, C of coflows; T tasks, S stages, N machines."""

    fetches: Fetches
    free: Free
    sampling: Sampling
    cuts: Cuts
    lacks: np.ndarray  # [3] flows, lines and words for which no run is free; zeros: none is wanted
    # [S] the first `num_stages`: those with fresh fetches; from `next_stage` on they are not registered
    stages: np.ndarray
    newest: np.ndarray  # [S] the last of the fresh fetches of a stage; `Fetches.older` is the one before
    sinks: np.ndarray  # [N] the first `num_sinks`: machines to which the tasks of that stage fetch, in order
    leaders: np.ndarray  # [N] of their fetches
    at: np.ndarray  # [ports] scratch
    num_stages: np.ndarray = per("run")
    next_stage: np.ndarray = per("run")
    next_edge: np.ndarray = per("run")  # of that stage, among the edges to it
    num_parents: np.ndarray = per("run")  # stages of which tasks have ended at this instant, `Outputs.stages`
    next_parent: np.ndarray = per("run")  # the first of them whose flows are not registered
    next_child: np.ndarray = per("run")  # of that stage, among the edges from it
    next_layer: np.ndarray = per("run")  # of that child: its fetches that come as this one on their machines
    num_sinks: np.ndarray = per("run")
    registered: np.ndarray = per("run")  # coflows so far
    ended: np.ndarray = per("run")  # coflows that have ended
    took_ns: np.ndarray = per("run", 0.0)  # what these took in all, from when their flows were known
    leader: np.ndarray = per("flow")  # of the fetch of a flow
    unended: np.ndarray = per("coflow")  # flows that agents have not ended
    in_use: np.ndarray = per("coflow", False)
    span: np.ndarray = per("coflow")  # [C, 6] first and end of its rows of flows, lines, words


# Rows for a coflow that comes into being: its flows, its lines, and their words, in order as `build_fabric` lays them.
#
# The flows of a coflow lie side by side, in order of ingress and egress. Those of flow f have the places 2 f and 2 f +
# 1 of `Lines.flow`, in which first the ingress lines and then the egress lines of the coflow list their flows.

_NO_BITS = np.uint64(0)


class Space(NamedTuple):
    """The first rows that a coflow gets."""

    line: int
    word: int


@inlined
def lay_flow(w: CoflowWorld, flow: int, coflow: int, source: int, sink: int, size: float) -> None:
    """Write the row of a flow that has not begun."""
    flows, sending = w.fabric.flows, w.sending
    flows.coflow[flow], flows.source[flow], flows.sink[flow] = coflow, source, w.fabric.side + sink
    flows.size[flow] = flows.left[flow] = sending.left[flow] = size
    flows.since[flow], flows.end[flow], flows.finish[flow] = 0, NEVER, NEVER
    sending.rate[flow], sending.since[flow], sending.end[flow] = 0.0, NONE, NEVER


@compiled
def sort_flows(w: CoflowWorld, first: int, end: int, leader: np.ndarray) -> None:
    """Sort rows of flows by ingress and egress (Shell's sort); `leader` goes with them."""
    flows = w.fabric.flows
    gap: int = 1
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            source, sink, size, of, j = flows.source[i], flows.sink[i], flows.size[i], leader[i], i
            while j >= first + gap and (
                flows.source[j - gap] > source
                or (flows.source[j - gap] == source and flows.sink[j - gap] > sink)
            ):
                k = j - gap
                flows.source[j], flows.sink[j], leader[j] = flows.source[k], flows.sink[k], leader[k]
                lay_flow(w, j, flows.coflow[k], flows.source[k], flows.sink[k] - w.fabric.side, flows.size[k])
                j = k
            lay_flow(w, j, flows.coflow[i], source, sink - w.fabric.side, size)
            leader[j] = of
        gap //= 3


@compiled
def lay_coflow(
    w: CoflowWorld, t: int, coflow: int, place: int, first: int, end: int, line: int, word: int, pilots: int,
    sinks: np.ndarray, num_sinks: int, at: np.ndarray,
) -> Space:  # fmt: skip
    """Write the rows of a coflow whose flows, from `first` to before `end`, have theirs; return the rows that follow.

    Args:
        place: in the order of registration.
        line, word: the first rows of lines and words that it may take.
        pilots: how many of its flows may be served before its others.
        sinks: the first `num_sinks`: machines to which flows may go, in order.
        at: [ports] scratch, zeros; and so it is left.
    """
    coflows = w.fabric.coflows
    coflows.arrival[coflow], coflows.place[coflow], coflows.weight[coflow] = t, place, 1.0
    coflows.first_flow[coflow], coflows.end_flow[coflow], coflows.left[coflow] = first, end, end - first
    coflows.start[coflow], coflows.finish[coflow] = NEVER, NEVER
    coflows.sent[coflow], coflows.rate[coflow], coflows.since[coflow] = 0.0, 0.0, 0
    list_flows(w, first, end, sinks, num_sinks, at)
    for side in range(2):
        line, word = lay_lines(w, coflow, side, 2 * first + side * (end - first), end - first, line, word)
    for side in range(2):
        line, word = lay_pilot_lines(w, pilot_group(w.fabric, coflow), side, pilots, line, word)
    return Space(line, word)


@compiled
def list_flows(w: CoflowWorld, first: int, end: int, sinks: np.ndarray, count: int, at: np.ndarray) -> None:
    """List the flows of a coflow by ingress and egress, and then by egress and ingress (a sort by counting)."""
    flows, listed, side = w.fabric.flows, w.fabric.lines.flow, w.fabric.side
    for flow in range(first, end):
        listed[first + flow] = flow
        at[flows.sink[flow]] += 1
    place = first + end
    for k in range(count):
        here = at[side + sinks[k]]
        at[side + sinks[k]] = place
        place += here
    for flow in range(first, end):
        listed[at[flows.sink[flow]]] = flow
        at[flows.sink[flow]] += 1
    for k in range(count):
        at[side + sinks[k]] = 0


@compiled
def lay_lines(
    w: CoflowWorld, coflow: int, side: int, begin: int, count: int, line: int, word: int
) -> tuple[int, int]:
    """Write the lines of a coflow at one side, whose flows are listed from place `begin` on, and their words."""
    lines, flows = w.fabric.lines, w.fabric.flows
    lines.first_line[coflow, side] = line
    last, last_word = NONE, NONE
    for place in range(begin, begin + count):
        flow = lines.flow[place]
        near = flows.source[flow] if side == 0 else flows.sink[flow]
        far = flows.sink[flow] if side == 0 else flows.source[flow]
        if near != last:
            last, last_word = near, NONE
            lines.port[line], lines.group[line] = near, coflow
            lines.left[line], lines.bytes[line], lines.block[line] = 0, 0.0, word
            line += 1
        own = line - 1
        if far >> 6 != last_word:
            last_word = far >> 6
            lines.word[word], lines.bits[word], lines.mask[word] = last_word, _NO_BITS, _NO_BITS
            lines.first[word] = place
            word += 1
            lines.block_end[own] = lines.end[own] = word
        lines.bits[word - 1] |= bit_of(far)
        lines.mask[word - 1] |= bit_of(far)
        lines.left[own] += 1
        lines.bytes[own] += flows.size[flow]
        flows.line[flow, side] = own
    lines.end_line[coflow, side] = line
    return line, word


@compiled
def lay_pilot_lines(
    w: CoflowWorld, group: int, side: int, pilots: int, line: int, word: int
) -> tuple[int, int]:
    """Write lines of one word each that wait for pilots."""
    lines = w.fabric.lines
    lines.first_line[group, side], lines.end_line[group, side] = line, line + pilots
    for _ in range(pilots):
        lines.port[line], lines.group[line], lines.left[line], lines.bytes[line] = NONE, group, 0, 0.0
        lines.block[line], lines.end[line], lines.block_end[line] = word, word + 1, word + 1
        lines.word[word], lines.bits[word], lines.mask[word], lines.first[word] = 0, _NO_BITS, _NO_BITS, 0
        line += 1
        word += 1
    return line, word


@compiled
def on_fetch(w: HasInputs, shuffles: Shuffles, t: int) -> None:
    """Let a task fetch its input from this instant on."""
    task, stage = messages.read_fetch(w)
    join_fetch(w, shuffles.fetches, task, stage)
    request(w, shuffles.fetches, t)


@compiled
def on_output(w: HasInputs, shuffles: Shuffles, t: int) -> None:
    """Let tasks that fetch get what another one sends, which has ended."""
    task, stage = messages.read_output(w)
    if note_output(w, shuffles.fetches.outputs, task, stage) > 0:
        request(w, shuffles.fetches, t)


@compiled
def on_share(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> None:
    """Register the coflows of all fresh fetches, and of what has ended that others wait for."""
    if begin_share(w, shuffles.fetches):
        give_up_fetches(w, n, shuffles, t)
        if is_pipelined(w.inputs):
            list_senders(w, shuffles.fetches.outputs)
            shuffles.num_parents[0], shuffles.next_parent[0] = shuffles.fetches.outputs.num_stages[0], 0
        sort_by_stage(w, shuffles)
        go_on(w, n, shuffles, t)


@inlined
def is_unfinished(shuffles: Shuffles) -> bool:
    """Return whether flows of this instant are not registered, or cut, yet: no other event may come before they are."""
    return is_registering(shuffles) or has_cuts(shuffles.cuts)


@inlined
def is_registering(shuffles: Shuffles) -> bool:
    """Return whether coflows of this instant are not registered yet."""
    return (
        shuffles.next_stage[0] < shuffles.num_stages[0] or shuffles.next_parent[0] < shuffles.num_parents[0]
    )


@compiled
def go_on(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> None:
    """Register coflows, as many as there is room for messages and rows; the loop calls it again."""
    room = room_of_event(w)
    while is_registering(shuffles) and room > 0:
        if shuffles.next_parent[0] < shuffles.num_parents[0]:
            sent = register_output(w, n, shuffles, t)
        else:
            sent = register_fresh(w, n, shuffles, t)
        if sent == NONE:
            break
        room -= sent
    if not is_registering(shuffles):
        send_done(w, shuffles.fetches, t, room)
        request_next(w, shuffles, t)


@inlined
def request_next(w: HasInputs, shuffles: Shuffles, t: int) -> None:
    """Have the next SHARE when something is left to be done."""
    following = (
        t
        if shuffles.fetches.num_done[0] > 0
        else min(next_break(shuffles.fetches.breaks), shuffles.cuts.later[0])
    )
    if following < NEVER:
        request(w, shuffles.fetches, max(following, t))


@inlined
def register_fresh(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> int:
    """Go on with the fresh fetches of a stage; return how many messages that may have sent, NONE: rows are lacking."""
    stage = shuffles.stages[shuffles.next_stage[0]]
    if shuffles.num_sinks[0] == 0:
        list_sinks(w, shuffles, stage)
    e = w.inputs.first_parent[stage] + shuffles.next_edge[0]
    if e == w.inputs.first_parent[stage + 1]:
        end_stage(w, shuffles)
        return np.int64(0)
    if w.inputs.size[e] > 0.0:
        parent, senders, first = w.inputs.parent[e], np.int64(0), np.int64(0)
        if w.inputs.one_to_one[e] == 0:
            senders, first = sources_of(w, parent), w.stages.first_task[parent]
        if not register_coflow(w, n, shuffles, t, stage, e, first, senders):
            return NONE
    shuffles.next_edge[0] += 1
    return np.int64(1)


@inlined
def register_output(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> int:
    """Go on with what has ended, as `register_fresh` with fetches."""
    o, inputs = shuffles.fetches.outputs, w.inputs
    parent = o.stages[shuffles.next_parent[0]]
    edge = inputs.first_child[parent] + shuffles.next_child[0]
    if edge == inputs.first_child[parent + 1]:
        shuffles.next_child[0] = 0
        shuffles.next_parent[0] += 1
        if shuffles.next_parent[0] == shuffles.num_parents[0]:
            end_outputs(w, shuffles.fetches)
        return np.int64(0)
    child = inputs.child[edge]
    if shuffles.num_sinks[0] == 0 and inputs.at_launch[edge] == 1:
        list_layer(w, shuffles, child)
    if shuffles.num_sinks[0] == 0:
        shuffles.next_layer[0] = 0
        shuffles.next_child[0] += 1
        return np.int64(0)
    first, e = begin_of_senders(w, parent), edge_from(w, parent, child)
    if not register_coflow(w, n, shuffles, t, child, e, first, o.places[parent]):
        return NONE
    shuffles.num_sinks[0] = 0
    shuffles.next_layer[0] += 1
    return np.int64(1)


@inlined
def list_layer(w: HasInputs, shuffles: Shuffles, stage: int) -> None:
    """List the machines of the open fetches of a stage that are in the next layer: the first on each, the second, …"""
    o, layer = shuffles.fetches.outputs, np.int64(0)
    last, leader = NONE, o.first[stage]
    while leader != NONE:
        layer = layer + 1 if w.inputs.node[leader] == last else np.int64(0)
        last = w.inputs.node[leader]
        if layer == shuffles.next_layer[0]:
            shuffles.sinks[shuffles.num_sinks[0]], shuffles.leaders[shuffles.num_sinks[0]] = last, leader
            shuffles.num_sinks[0] += 1
        leader = o.next[leader]


@inlined
def sort_by_stage(w: HasInputs, shuffles: Shuffles) -> None:
    """List the stages of fresh fetches, and chain the fetches of each."""
    f = shuffles.fetches
    shuffles.next_stage[0] = shuffles.num_stages[0] = 0
    for i in range(f.num_fresh[0]):
        leader = f.fresh[i]
        stage = w.inputs.stage[leader]
        f.newest[w.inputs.node[leader]] = NONE
        if shuffles.newest[stage] == NONE:
            shuffles.stages[shuffles.num_stages[0]] = stage
            shuffles.num_stages[0] += 1
        f.older[leader], shuffles.newest[stage] = shuffles.newest[stage], leader
    f.num_fresh[0] = 0


@inlined
def list_sinks(w: HasInputs, shuffles: Shuffles, stage: int) -> None:
    """List the machines to which the tasks of a stage fetch, in order."""
    leader = shuffles.newest[stage]
    while leader != NONE:
        shuffles.sinks[shuffles.num_sinks[0]], shuffles.leaders[shuffles.num_sinks[0]] = (
            w.inputs.node[leader],
            leader,
        )
        shuffles.num_sinks[0] += 1
        leader = shuffles.fetches.older[leader]
    shuffles.newest[stage] = NONE
    sort_by_machine(shuffles.sinks, shuffles.leaders, 0, shuffles.num_sinks[0])


@inlined
def end_stage(w: HasInputs, shuffles: Shuffles) -> None:
    """Go on to the next stage: all coflows of this one are registered."""
    for k in range(shuffles.num_sinks[0]):
        if can_lose_outputs(w.inputs):
            break_if_lost(w, shuffles.fetches.breaks, shuffles.leaders[k], w.queue.now.time[0])
        end_beginning(w, shuffles.fetches, shuffles.leaders[k])
    shuffles.num_sinks[0] = shuffles.next_edge[0] = 0
    shuffles.next_stage[0] += 1


@compiled
def register_coflow(
    w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int, stage: int, e: int, begin: int, senders: int
) -> bool:
    """Register the flows of an edge to the tasks of a stage; return whether there were rows for them.

    Args:
        begin, senders: over an all-to-all edge: where in `Inputs.source` the machines that send begin, how many.
    """
    inputs, most, sinks = w.inputs, np.int64(0), shuffles.num_sinks[0]
    if inputs.one_to_one[e] == 1:
        for k in range(sinks):
            most += inputs.together[shuffles.leaders[k]]
        senders = most
    else:
        most = senders * sinks
    if most == 0:
        return True  # over a pipelined edge of which no task has ended
    pilots, words = 2 * count_pilots(shuffles.sampling, most, senders), n.fabric.side >> 6
    lines = senders + sinks + pilots
    words = senders * min(sinks, words) + sinks * min(senders, words) + pilots
    first, line = find_run(shuffles.free.flows, most), find_run(shuffles.free.lines, lines)
    word = find_run(shuffles.free.words, words)
    if first == NONE or line == NONE or word == NONE or shuffles.free.num_coflows[0] == 0:
        shuffles.lacks[0], shuffles.lacks[1], shuffles.lacks[2] = most, lines, words
        return False
    coflow = shuffles.free.coflows[shuffles.free.num_coflows[0] - 1]
    end = lay_flows(w, n, shuffles, stage, e, coflow, first, begin, senders)
    if end > first:
        shuffles.free.num_coflows[0] -= 1
        give_rows(n, shuffles, t, e, coflow, first, end, line, word)
        send_register(n, t + n.network.delay_ns, n.nodes.size, coflow)
    return True


@inlined
def give_rows(
    n: CoflowWorld,
    shuffles: Shuffles,
    t: int,
    e: int,
    coflow: int,
    first: int,
    end: int,
    line: int,
    word: int,
) -> None:
    """Lay a coflow whose flows are laid, and take its rows."""
    senders: int = 1
    for flow in range(first + 1, end):
        senders += n.fabric.flows.source[flow] != n.fabric.flows.source[flow - 1]
    pilots = count_pilots(shuffles.sampling, end - first, senders)
    after = lay_coflow(
        n,
        t,
        coflow,
        shuffles.registered[0],
        first,
        end,
        line,
        word,
        pilots,
        shuffles.sinks,
        shuffles.num_sinks[0],
        shuffles.at,
    )
    if are_together(n.waves):
        n.waves.shuffle[coflow] = e
    take_run(shuffles.free.flows, end - first)
    take_run(shuffles.free.lines, after.line - line)
    take_run(shuffles.free.words, after.word - word)
    shuffles.span[coflow, 0], shuffles.span[coflow, 1] = first, end
    shuffles.span[coflow, 2], shuffles.span[coflow, 3] = line, after.line
    shuffles.span[coflow, 4], shuffles.span[coflow, 5] = word, after.word
    shuffles.unended[coflow], shuffles.in_use[coflow] = end - first, True
    shuffles.registered[0] += 1


@compiled
def lay_flows(
    w: HasInputs,
    n: CoflowWorld,
    shuffles: Shuffles,
    stage: int,
    e: int,
    coflow: int,
    first: int,
    begin: int,
    senders: int,
) -> int:
    """Lay the flows of an edge from row `first` on, in order of ingress and egress; return the row after the last."""
    inputs, each, row = w.inputs, bytes_of_pair(w, stage, e), first
    if inputs.one_to_one[e] == 1:
        for k in range(shuffles.num_sinks[0]):
            task = shuffles.leaders[k]
            while task != NONE:
                count = copies_from(w, stage, e, shuffles.leaders[k], task)
                if count > 0 and copy_is_there(w, stage, e, task):
                    source = source_of_copy(w, stage, e, task)
                    row = lay_next(w, n, shuffles, coflow, row, source, k, each * count)
                task = inputs.next[task]
        sort_flows(n, first, row, shuffles.leader)
        return row
    for i in range(begin, begin + senders):
        for k in range(shuffles.num_sinks[0]):
            size = each * inputs.tasks[i] * inputs.parts[shuffles.leaders[k]]
            row = lay_next(w, n, shuffles, coflow, row, inputs.source[i], k, size)
    return row


@inlined
def lay_next(
    w: HasInputs, n: CoflowWorld, shuffles: Shuffles, coflow: int, row: int, source: int, k: int, size: float
) -> int:
    """Lay a flow to sink `k` if its bytes are not there; return the row after it."""
    if not crosses(w, source, shuffles.sinks[k], size):
        return row
    lay_flow(n, row, coflow, source, shuffles.sinks[k], size)
    shuffles.leader[row] = shuffles.leaders[k]
    w.inputs.waiting[shuffles.leaders[k]] += 1
    return row + 1


@compiled
def on_ended(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> None:
    """Note that flows have ended in the event at hand; machines whose fetches have get messages at this instant."""
    for i in range(n.ended.num[0]):
        flow = n.ended.flow[i]
        coflow = n.fabric.flows.coflow[flow]
        shuffles.unended[coflow] -= 1
        if shuffles.unended[coflow] == 0:
            shuffles.ended[0] += 1
            shuffles.took_ns[0] += t - n.fabric.coflows.arrival[coflow]
        if shuffles.leader[flow] != NONE:  # else nothing waits for it any more
            end_flow_of(w, shuffles.fetches, shuffles.leader[flow])
    n.ended.num[0] = 0
    if shuffles.fetches.num_done[0] > 0:
        request(w, shuffles.fetches, t)


# Flows under a coordinator that end before their last byte, as a machine has failed, or their fetch is given up.
#
# Their agents end them, and report that as other ends. A coflow that its coordinator does not know yet is left until it
# does. To a coordinator that counts what coflows have sent, what a flow had left when it was cut counts as sent.

MESSAGES = np.int64(2)  # that a flow may send when it is cut


@compiled
def on_broken(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> None:
    """Let the flows of a machine that has failed end; fetches from it are broken until that is detected."""
    node, flows = messages.read_broken(w), n.fabric.flows
    forget_fetches_to(w, shuffles.fetches, t, node)
    for coflow in range(shuffles.in_use.size):
        for flow in range(
            shuffles.span[coflow, 0], shuffles.span[coflow, 1] if shuffles.in_use[coflow] else 0
        ):
            is_from = flows.source[flow] == node
            if n.sending.left[flow] > 0.0 and (is_from or flows.sink[flow] == n.fabric.side + node):
                if is_from and shuffles.leader[flow] != NONE:
                    when = max(w.faults.actors.detect[node], t)
                    break_fetch(w, shuffles.fetches.breaks, shuffles.leader[flow], when)
                cut_from(shuffles, flow)
    if has_cuts(shuffles.cuts):
        request(w, shuffles.fetches, t)


@inlined
def cut_from(shuffles: Shuffles, flow: int) -> None:
    """Have a flow cut; no fetch waits for it."""
    if shuffles.leader[flow] != NONE:
        shuffles.leader[flow] = NONE
        note_cut(shuffles.cuts, flow)


@compiled
def give_up_fetches(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> None:
    """Have the flows cut of fetches that are to be given up, and those that could not be until now."""
    leader = take_given_up(shuffles.fetches.breaks, t)
    while leader != NONE:
        for coflow in range(shuffles.in_use.size):
            for flow in range(
                shuffles.span[coflow, 0], shuffles.span[coflow, 1] if shuffles.in_use[coflow] else 0
            ):
                if shuffles.leader[flow] == leader and n.sending.left[flow] > 0.0:
                    cut_from(shuffles, flow)
        note_done(shuffles.fetches, leader)
        leader = take_given_up(shuffles.fetches.breaks, t)
    begin_cuts(shuffles.cuts)


@inlined
def has_cuts(cuts: Cuts) -> bool:
    """Return whether flows are to be cut now."""
    return cuts.next[0] < cuts.num[0]


@inlined
def note_cut(cuts: Cuts, flow: int) -> None:
    """Note that a flow is to be cut."""
    cuts.flow[cuts.num[0]] = flow
    cuts.num[0] += 1


@inlined
def begin_cuts(cuts: Cuts) -> None:
    """Consider also those that were left."""
    cuts.next[0] = cuts.left[0] = 0
    cuts.later[0] = NEVER


@inlined
def has_room_to_cut(n: CoflowWorld, cuts: Cuts, count: int) -> bool:
    """Return whether flows are to be cut, and the event at hand, which has cut `count`, may cut another one."""
    return has_cuts(cuts) and n.queue.room - SPARE >= MESSAGES * (count + 1)


@compiled
def next_cut(n: CoflowWorld, cuts: Cuts, t: int) -> int:
    """Return the next flow that is to be cut, or NONE: it has ended, or its coordinator does not know it yet."""
    flow = cuts.flow[cuts.next[0]]
    cuts.next[0] += 1
    known = n.fabric.coflows.arrival[n.fabric.flows.coflow[flow]] + n.network.delay_ns + 1
    if n.sending.left[flow] == 0.0:
        return NONE
    if t < known:
        cuts.flow[cuts.left[0]] = flow
        cuts.left[0] += 1
        cuts.later[0] = min(cuts.later[0], known)
        return NONE
    return flow


@inlined
def end_cuts(w: HasInputs, n: CoflowWorld, shuffles: Shuffles, t: int) -> None:
    """Note the flows that have been cut, and have the next SHARE when something is left to be done."""
    cuts = shuffles.cuts
    if not has_cuts(cuts):
        cuts.num[0] = cuts.next[0] = cuts.left[0]
    on_ended(w, n, shuffles, t)
    request_next(w, shuffles, t)


@inlined
def note_ended(w: HasInputs, n: CoflowWorld, shuffles: Shuffles) -> None:
    """Note the flows that have ended in the event at hand, if any have."""
    if n.ended.num[0] > 0:
        on_ended(w, n, shuffles, w.queue.now.time[0])


@inlined
def handle_shuffles(w: HasInputs, n: CoflowWorld, shuffles: Shuffles) -> bool:
    """Handle the message at hand if it is about fetches; return whether it is."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == messages.FETCH:
        on_fetch(w, shuffles, t)
    elif kind == messages.OUTPUT:
        on_output(w, shuffles, t)
    elif kind == messages.BROKEN:
        on_broken(w, n, shuffles, t)
    elif kind == messages.SHARE:
        on_share(w, n, shuffles, t)
    else:
        return False
    return True


# Rows of coflows that have ended are given back, and more are made if few are free, by the host between events.

ROWS = ("flow", "line", "word")  # of rows that lie side by side, in the order of `Shuffles.span`
# Messages to agents: about flows, and about lines.
TO_AGENTS = ((SET_RATE, PACE, SET_EXTRA), (SHRINK, SET_LINE, VERDICT))


def make_room(now_ns: int, n: CoflowWorld, p: Any, shuffles: Shuffles) -> tuple[CoflowWorld, Any, Shuffles]:
    """Return the world of coflows, the coordinator's state and the books, with rows for what the books lack."""
    give_back(now_ns, n, p, shuffles)
    was = sizes_of(n.fabric)
    free = [free_runs(*spans_of(shuffles, k), was[kind]) for k, kind in enumerate(ROWS)]
    now = dict(was)
    for kind, runs, wanted in zip(ROWS, free, shuffles.lacks.tolist(), strict=True):
        now[kind] = size_for(was[kind], runs, wanted)
    coflows = np.flatnonzero(~shuffles.in_use)
    if 2 * coflows.size < was["coflow"] or coflows.size == 0:
        now["coflow"] = 2 * max(was["coflow"], 1)
    now["group"], now["place"] = 2 * now["coflow"], 2 * now["flow"]
    now["flow or line"] = now["flow"] + now["line"]
    now["flow twice or line"] = now["flow"] + now["flow or line"]
    if now != was:
        lines = n.fabric.lines
        lines.group[lines.group >= was["coflow"]] += now["coflow"] - was["coflow"]
        n, p, shuffles = longer(n, was, now), longer(p, was, now), longer(shuffles, was, now)
        free = [free_runs(*spans_of(shuffles, k), now[kind]) for k, kind in enumerate(ROWS)]
    shuffles.lacks[:] = 0
    unused = np.flatnonzero(~shuffles.in_use)[::-1]
    slots = np.zeros(shuffles.in_use.size, np.int64)
    slots[: unused.size] = unused
    return n, p, shuffles._replace(free=Free(free[0], free[1], free[2], slots, np.array([unused.size])))


def size_for(size: int, free: Runs, wanted: int) -> int:
    """Return how many rows there should be: twice as many, where fewer than half are free or no run is long enough."""
    if longest(free) >= wanted and 2 * total(free) >= size:
        return size
    return max(2 * size, size + wanted)


def spans_of(shuffles: Shuffles, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of the coflows that have rows, and the rows after their last."""
    used = shuffles.span[shuffles.in_use]
    return used[:, 2 * k], used[:, 2 * k + 1]


def give_back(now_ns: int, n: CoflowWorld, p: Any, shuffles: Shuffles) -> None:
    """Give back the rows of coflows that have ended, and about which no message is under way."""
    coflows = n.fabric.coflows
    (agenda,) = parts_of(p, Agenda)
    remove_ended(n, agenda)
    has_ended = shuffles.in_use & (shuffles.unended == 0) & (coflows.left == 0)
    has_ended &= coflows.finish < now_ns - 2 * n.network.delay_ns
    for order in parts_of(p, Order):
        has_ended[order.groups[: order.used[0]]] = False
    if n.cost.model != NO_COST:  # what the coordinator sends leaves when it is done, which may be much later
        for k, kinds in enumerate(TO_AGENTS):
            has_ended &= ~are_named(
                under_way(n.queue, kinds), shuffles.span[:, 2 * k], shuffles.span[:, 2 * k + 1]
            )
    ended = np.flatnonzero(has_ended)
    spans = shuffles.span[ended]
    rows = {kind: rows_between(spans[:, 2 * k], spans[:, 2 * k + 1]) for k, kind in enumerate(ROWS)}
    rows |= {"coflow": ended, "group": np.concatenate([ended, ended + shuffles.in_use.size])}
    for part in (n, p, shuffles):
        clear(part, rows)


def under_way(queue: Queue, kinds: tuple[int, ...]) -> np.ndarray:
    """Return the rows that messages of some kinds are about, which are under way, in order.

    With costs all messages are in the heap.
    """
    rows = np.asarray(queue.pool)[queue.heap.slot[: queue.now.heap_size[0]]]
    return np.sort(rows["a"][np.isin(rows["kind"], kinds)])


def are_named(named: np.ndarray, first: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return of each span of rows whether any of it is among those that are named, which are in order."""
    found: np.ndarray = np.searchsorted(named, end) > np.searchsorted(named, first)
    return found
