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
# Then the host collects the rows that are free again, and makes more if few are (`actors.transfers.shuffles`).


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
    flows, s = w.fabric.flows, w.sending
    flows.coflow[flow], flows.source[flow], flows.sink[flow] = coflow, source, w.fabric.side + sink
    flows.size[flow] = flows.left[flow] = s.left[flow] = size
    flows.since[flow], flows.end[flow], flows.finish[flow] = 0, NEVER, NEVER
    s.rate[flow], s.since[flow], s.end[flow] = 0.0, NONE, NEVER


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
def on_fetch(w: HasInputs, s: Shuffles, t: int) -> None:
    """Let a task fetch its input from this instant on."""
    task, stage = messages.read_fetch(w)
    join_fetch(w, s.fetches, task, stage)
    request(w, s.fetches, t)


@compiled
def on_output(w: HasInputs, s: Shuffles, t: int) -> None:
    """Let tasks that fetch get what another one sends, which has ended."""
    task, stage = messages.read_output(w)
    if note_output(w, s.fetches.outputs, task, stage) > 0:
        request(w, s.fetches, t)


@compiled
def on_share(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> None:
    """Register the coflows of all fresh fetches, and of what has ended that others wait for."""
    if begin_share(w, s.fetches):
        give_up_fetches(w, n, s, t)
        if is_pipelined(w.inputs):
            list_senders(w, s.fetches.outputs)
            s.num_parents[0], s.next_parent[0] = s.fetches.outputs.num_stages[0], 0
        sort_by_stage(w, s)
        go_on(w, n, s, t)


@inlined
def is_unfinished(s: Shuffles) -> bool:
    """Return whether flows of this instant are not registered, or cut, yet: no other event may come before they are."""
    return is_registering(s) or has_cuts(s.cuts)


@inlined
def is_registering(s: Shuffles) -> bool:
    """Return whether coflows of this instant are not registered yet."""
    return s.next_stage[0] < s.num_stages[0] or s.next_parent[0] < s.num_parents[0]


@compiled
def go_on(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> None:
    """Register coflows, as many as there is room for messages and rows; the loop calls it again."""
    room = room_of_event(w)
    while is_registering(s) and room > 0:
        if s.next_parent[0] < s.num_parents[0]:
            sent = register_output(w, n, s, t)
        else:
            sent = register_fresh(w, n, s, t)
        if sent == NONE:
            break
        room -= sent
    if not is_registering(s):
        send_done(w, s.fetches, t, room)
        request_next(w, s, t)


@inlined
def request_next(w: HasInputs, s: Shuffles, t: int) -> None:
    """Have the next SHARE when something is left to be done."""
    following = t if s.fetches.num_done[0] > 0 else min(next_break(s.fetches.breaks), s.cuts.later[0])
    if following < NEVER:
        request(w, s.fetches, max(following, t))


@inlined
def register_fresh(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> int:
    """Go on with the fresh fetches of a stage; return how many messages that may have sent, NONE: rows are lacking."""
    stage = s.stages[s.next_stage[0]]
    if s.num_sinks[0] == 0:
        list_sinks(w, s, stage)
    e = w.inputs.first_parent[stage] + s.next_edge[0]
    if e == w.inputs.first_parent[stage + 1]:
        end_stage(w, s)
        return np.int64(0)
    if w.inputs.size[e] > 0.0:
        parent, senders, first = w.inputs.parent[e], np.int64(0), np.int64(0)
        if w.inputs.one_to_one[e] == 0:
            senders, first = sources_of(w, parent), w.stages.first_task[parent]
        if not register_coflow(w, n, s, t, stage, e, first, senders):
            return NONE
    s.next_edge[0] += 1
    return np.int64(1)


@inlined
def register_output(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> int:
    """Go on with what has ended, as `register_fresh` with fetches."""
    o, inputs = s.fetches.outputs, w.inputs
    parent = o.stages[s.next_parent[0]]
    edge = inputs.first_child[parent] + s.next_child[0]
    if edge == inputs.first_child[parent + 1]:
        s.next_child[0] = 0
        s.next_parent[0] += 1
        if s.next_parent[0] == s.num_parents[0]:
            end_outputs(w, s.fetches)
        return np.int64(0)
    child = inputs.child[edge]
    if s.num_sinks[0] == 0 and inputs.at_launch[edge] == 1:
        list_layer(w, s, child)
    if s.num_sinks[0] == 0:
        s.next_layer[0] = 0
        s.next_child[0] += 1
        return np.int64(0)
    first, e = begin_of_senders(w, parent), edge_from(w, parent, child)
    if not register_coflow(w, n, s, t, child, e, first, o.places[parent]):
        return NONE
    s.num_sinks[0] = 0
    s.next_layer[0] += 1
    return np.int64(1)


@inlined
def list_layer(w: HasInputs, s: Shuffles, stage: int) -> None:
    """List the machines of the open fetches of a stage that are in the next layer: the first on each, the second, …"""
    o, layer = s.fetches.outputs, np.int64(0)
    last, leader = NONE, o.first[stage]
    while leader != NONE:
        layer = layer + 1 if w.inputs.node[leader] == last else np.int64(0)
        last = w.inputs.node[leader]
        if layer == s.next_layer[0]:
            s.sinks[s.num_sinks[0]], s.leaders[s.num_sinks[0]] = last, leader
            s.num_sinks[0] += 1
        leader = o.next[leader]


@inlined
def sort_by_stage(w: HasInputs, s: Shuffles) -> None:
    """List the stages of fresh fetches, and chain the fetches of each."""
    f = s.fetches
    s.next_stage[0] = s.num_stages[0] = 0
    for i in range(f.num_fresh[0]):
        leader = f.fresh[i]
        stage = w.inputs.stage[leader]
        f.newest[w.inputs.node[leader]] = NONE
        if s.newest[stage] == NONE:
            s.stages[s.num_stages[0]] = stage
            s.num_stages[0] += 1
        f.older[leader], s.newest[stage] = s.newest[stage], leader
    f.num_fresh[0] = 0


@inlined
def list_sinks(w: HasInputs, s: Shuffles, stage: int) -> None:
    """List the machines to which the tasks of a stage fetch, in order."""
    leader = s.newest[stage]
    while leader != NONE:
        s.sinks[s.num_sinks[0]], s.leaders[s.num_sinks[0]] = w.inputs.node[leader], leader
        s.num_sinks[0] += 1
        leader = s.fetches.older[leader]
    s.newest[stage] = NONE
    sort_by_machine(s.sinks, s.leaders, 0, s.num_sinks[0])


@inlined
def end_stage(w: HasInputs, s: Shuffles) -> None:
    """Go on to the next stage: all coflows of this one are registered."""
    for k in range(s.num_sinks[0]):
        if can_lose_outputs(w.inputs):
            break_if_lost(w, s.fetches.breaks, s.leaders[k], w.queue.now.time[0])
        end_beginning(w, s.fetches, s.leaders[k])
    s.num_sinks[0] = s.next_edge[0] = 0
    s.next_stage[0] += 1


@compiled
def register_coflow(
    w: HasInputs, n: CoflowWorld, s: Shuffles, t: int, stage: int, e: int, begin: int, senders: int
) -> bool:
    """Register the flows of an edge to the tasks of a stage; return whether there were rows for them.

    Args:
        begin, senders: over an all-to-all edge: where in `Inputs.source` the machines that send begin, how many.
    """
    inputs, most, sinks = w.inputs, np.int64(0), s.num_sinks[0]
    if inputs.one_to_one[e] == 1:
        for k in range(sinks):
            most += inputs.together[s.leaders[k]]
        senders = most
    else:
        most = senders * sinks
    if most == 0:
        return True  # over a pipelined edge of which no task has ended
    pilots, words = 2 * count_pilots(s.sampling, most, senders), n.fabric.side >> 6
    lines = senders + sinks + pilots
    words = senders * min(sinks, words) + sinks * min(senders, words) + pilots
    first, line = find_run(s.free.flows, most), find_run(s.free.lines, lines)
    word = find_run(s.free.words, words)
    if first == NONE or line == NONE or word == NONE or s.free.num_coflows[0] == 0:
        s.lacks[0], s.lacks[1], s.lacks[2] = most, lines, words
        return False
    coflow = s.free.coflows[s.free.num_coflows[0] - 1]
    end = lay_flows(w, n, s, stage, e, coflow, first, begin, senders)
    if end > first:
        s.free.num_coflows[0] -= 1
        give_rows(n, s, t, e, coflow, first, end, line, word)
        send_register(n, t + n.network.delay_ns, n.nodes.size, coflow)
    return True


@inlined
def give_rows(
    n: CoflowWorld, s: Shuffles, t: int, e: int, coflow: int, first: int, end: int, line: int, word: int
) -> None:
    """Lay a coflow whose flows are laid, and take its rows."""
    senders: int = 1
    for flow in range(first + 1, end):
        senders += n.fabric.flows.source[flow] != n.fabric.flows.source[flow - 1]
    pilots = count_pilots(s.sampling, end - first, senders)
    after = lay_coflow(
        n, t, coflow, s.registered[0], first, end, line, word, pilots, s.sinks, s.num_sinks[0], s.at
    )
    if are_together(n.waves):
        n.waves.shuffle[coflow] = e
    take_run(s.free.flows, end - first)
    take_run(s.free.lines, after.line - line)
    take_run(s.free.words, after.word - word)
    s.span[coflow, 0], s.span[coflow, 1] = first, end
    s.span[coflow, 2], s.span[coflow, 3] = line, after.line
    s.span[coflow, 4], s.span[coflow, 5] = word, after.word
    s.unended[coflow], s.in_use[coflow] = end - first, True
    s.registered[0] += 1


@compiled
def lay_flows(
    w: HasInputs,
    n: CoflowWorld,
    s: Shuffles,
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
        for k in range(s.num_sinks[0]):
            task = s.leaders[k]
            while task != NONE:
                count = copies_from(w, stage, e, s.leaders[k], task)
                if count > 0 and copy_is_there(w, stage, e, task):
                    source = source_of_copy(w, stage, e, task)
                    row = lay_next(w, n, s, coflow, row, source, k, each * count)
                task = inputs.next[task]
        sort_flows(n, first, row, s.leader)
        return row
    for i in range(begin, begin + senders):
        for k in range(s.num_sinks[0]):
            size = each * inputs.tasks[i] * inputs.parts[s.leaders[k]]
            row = lay_next(w, n, s, coflow, row, inputs.source[i], k, size)
    return row


@inlined
def lay_next(
    w: HasInputs, n: CoflowWorld, s: Shuffles, coflow: int, row: int, source: int, k: int, size: float
) -> int:
    """Lay a flow to sink `k` if its bytes are not there; return the row after it."""
    if not crosses(w, source, s.sinks[k], size):
        return row
    lay_flow(n, row, coflow, source, s.sinks[k], size)
    s.leader[row] = s.leaders[k]
    w.inputs.waiting[s.leaders[k]] += 1
    return row + 1


@compiled
def on_ended(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> None:
    """Note that flows have ended in the event at hand; machines whose fetches have get messages at this instant."""
    for i in range(n.ended.num[0]):
        flow = n.ended.flow[i]
        coflow = n.fabric.flows.coflow[flow]
        s.unended[coflow] -= 1
        if s.unended[coflow] == 0:
            s.ended[0] += 1
            s.took_ns[0] += t - n.fabric.coflows.arrival[coflow]
        if s.leader[flow] != NONE:  # else nothing waits for it any more
            end_flow_of(w, s.fetches, s.leader[flow])
    n.ended.num[0] = 0
    if s.fetches.num_done[0] > 0:
        request(w, s.fetches, t)


# Flows under a coordinator that end before their last byte, as a machine has failed, or their fetch is given up.
#
# Their agents end them, and report that as other ends. A coflow that its coordinator does not know yet is left until it
# does. To a coordinator that counts what coflows have sent, what a flow had left when it was cut counts as sent.

MESSAGES = np.int64(2)  # that a flow may send when it is cut


@compiled
def on_broken(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> None:
    """Let the flows of a machine that has failed end; fetches from it are broken until that is detected."""
    node, flows = messages.read_broken(w), n.fabric.flows
    forget_fetches_to(w, s.fetches, t, node)
    for coflow in range(s.in_use.size):
        for flow in range(s.span[coflow, 0], s.span[coflow, 1] if s.in_use[coflow] else 0):
            is_from = flows.source[flow] == node
            if n.sending.left[flow] > 0.0 and (is_from or flows.sink[flow] == n.fabric.side + node):
                if is_from and s.leader[flow] != NONE:
                    when = max(w.faults.actors.detect[node], t)
                    break_fetch(w, s.fetches.breaks, s.leader[flow], when)
                cut_from(s, flow)
    if has_cuts(s.cuts):
        request(w, s.fetches, t)


@inlined
def cut_from(s: Shuffles, flow: int) -> None:
    """Have a flow cut; no fetch waits for it."""
    if s.leader[flow] != NONE:
        s.leader[flow] = NONE
        note_cut(s.cuts, flow)


@compiled
def give_up_fetches(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> None:
    """Have the flows cut of fetches that are to be given up, and those that could not be until now."""
    leader = take_given_up(s.fetches.breaks, t)
    while leader != NONE:
        for coflow in range(s.in_use.size):
            for flow in range(s.span[coflow, 0], s.span[coflow, 1] if s.in_use[coflow] else 0):
                if s.leader[flow] == leader and n.sending.left[flow] > 0.0:
                    cut_from(s, flow)
        note_done(s.fetches, leader)
        leader = take_given_up(s.fetches.breaks, t)
    begin_cuts(s.cuts)


@inlined
def has_cuts(c: Cuts) -> bool:
    """Return whether flows are to be cut now."""
    return c.next[0] < c.num[0]


@inlined
def note_cut(c: Cuts, flow: int) -> None:
    """Note that a flow is to be cut."""
    c.flow[c.num[0]] = flow
    c.num[0] += 1


@inlined
def begin_cuts(c: Cuts) -> None:
    """Consider also those that were left."""
    c.next[0] = c.left[0] = 0
    c.later[0] = NEVER


@inlined
def has_room_to_cut(n: CoflowWorld, c: Cuts, count: int) -> bool:
    """Return whether flows are to be cut, and the event at hand, which has cut `count`, may cut another one."""
    return has_cuts(c) and n.queue.room - SPARE >= MESSAGES * (count + 1)


@compiled
def next_cut(n: CoflowWorld, c: Cuts, t: int) -> int:
    """Return the next flow that is to be cut, or NONE: it has ended, or its coordinator does not know it yet."""
    flow = c.flow[c.next[0]]
    c.next[0] += 1
    known = n.fabric.coflows.arrival[n.fabric.flows.coflow[flow]] + n.network.delay_ns + 1
    if n.sending.left[flow] == 0.0:
        return NONE
    if t < known:
        c.flow[c.left[0]] = flow
        c.left[0] += 1
        c.later[0] = min(c.later[0], known)
        return NONE
    return flow


@inlined
def end_cuts(w: HasInputs, n: CoflowWorld, s: Shuffles, t: int) -> None:
    """Note the flows that have been cut, and have the next SHARE when something is left to be done."""
    cuts = s.cuts
    if not has_cuts(cuts):
        cuts.num[0] = cuts.next[0] = cuts.left[0]
    on_ended(w, n, s, t)
    request_next(w, s, t)


@inlined
def note_ended(w: HasInputs, n: CoflowWorld, s: Shuffles) -> None:
    """Note the flows that have ended in the event at hand, if any have."""
    if n.ended.num[0] > 0:
        on_ended(w, n, s, w.queue.now.time[0])


@inlined
def handle_shuffles(w: HasInputs, n: CoflowWorld, s: Shuffles) -> bool:
    """Handle the message at hand if it is about fetches; return whether it is."""
    t, kind = w.queue.now.time[0], w.queue.now.kind[0]
    if kind == messages.FETCH:
        on_fetch(w, s, t)
    elif kind == messages.OUTPUT:
        on_output(w, s, t)
    elif kind == messages.BROKEN:
        on_broken(w, n, s, t)
    elif kind == messages.SHARE:
        on_share(w, n, s, t)
    else:
        return False
    return True


# Rows of coflows that have ended are given back, and more are made if few are free, by the host between events.

ROWS = ("flow", "line", "word")  # of rows that lie side by side, in the order of `Shuffles.span`
# Messages to agents: about flows, and about lines.
TO_AGENTS = ((SET_RATE, PACE, SET_EXTRA), (SHRINK, SET_LINE, VERDICT))


def make_room(now_ns: int, n: CoflowWorld, p: Any, s: Shuffles) -> tuple[CoflowWorld, Any, Shuffles]:
    """Return the world of coflows, the coordinator's state and the books, with rows for what the books lack."""
    give_back(now_ns, n, p, s)
    was = sizes_of(n.fabric)
    free = [free_runs(*spans_of(s, k), was[kind]) for k, kind in enumerate(ROWS)]
    now = dict(was)
    for kind, runs, wanted in zip(ROWS, free, s.lacks.tolist(), strict=True):
        now[kind] = size_for(was[kind], runs, wanted)
    coflows = np.flatnonzero(~s.in_use)
    if 2 * coflows.size < was["coflow"] or coflows.size == 0:
        now["coflow"] = 2 * max(was["coflow"], 1)
    now["group"], now["place"] = 2 * now["coflow"], 2 * now["flow"]
    now["flow or line"] = now["flow"] + now["line"]
    now["flow twice or line"] = now["flow"] + now["flow or line"]
    if now != was:
        lines = n.fabric.lines
        lines.group[lines.group >= was["coflow"]] += now["coflow"] - was["coflow"]
        n, p, s = longer(n, was, now), longer(p, was, now), longer(s, was, now)
        free = [free_runs(*spans_of(s, k), now[kind]) for k, kind in enumerate(ROWS)]
    s.lacks[:] = 0
    unused = np.flatnonzero(~s.in_use)[::-1]
    slots = np.zeros(s.in_use.size, np.int64)
    slots[: unused.size] = unused
    return n, p, s._replace(free=Free(free[0], free[1], free[2], slots, np.array([unused.size])))


def size_for(size: int, free: Runs, wanted: int) -> int:
    """Return how many rows there should be: twice as many, where fewer than half are free or no run is long enough."""
    if longest(free) >= wanted and 2 * total(free) >= size:
        return size
    return max(2 * size, size + wanted)


def spans_of(s: Shuffles, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of the coflows that have rows, and the rows after their last."""
    used = s.span[s.in_use]
    return used[:, 2 * k], used[:, 2 * k + 1]


def give_back(now_ns: int, n: CoflowWorld, p: Any, s: Shuffles) -> None:
    """Give back the rows of coflows that have ended, and about which no message is under way."""
    coflows = n.fabric.coflows
    (agenda,) = parts_of(p, Agenda)
    remove_ended(n, agenda)
    has_ended = s.in_use & (s.unended == 0) & (coflows.left == 0)
    has_ended &= coflows.finish < now_ns - 2 * n.network.delay_ns
    for order in parts_of(p, Order):
        has_ended[order.groups[: order.used[0]]] = False
    if n.cost.model != NO_COST:  # what the coordinator sends leaves when it is done, which may be much later
        for k, kinds in enumerate(TO_AGENTS):
            has_ended &= ~are_named(under_way(n.queue, kinds), s.span[:, 2 * k], s.span[:, 2 * k + 1])
    ended = np.flatnonzero(has_ended)
    spans = s.span[ended]
    rows = {kind: rows_between(spans[:, 2 * k], spans[:, 2 * k + 1]) for k, kind in enumerate(ROWS)}
    rows |= {"coflow": ended, "group": np.concatenate([ended, ended + s.in_use.size])}
    for part in (n, p, s):
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
