"""The network without a scheduler: all flows share the ports of machines max-min fairly, nearly as under TCP.

When all messages of an instant are handled, flows that have ended leave, flows of new fetches join, and rates become
max-min fair again (`actors.fabric.max_min`).

A flow goes from a machine where tasks of the parent ran to the machine of the fetch; each machine has a port to send
and one to receive. Rows of flows are taken when flows begin, and given back when they end.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.max_min import Fair, add_flow, end_due, fill, make_fair, next_due, take_out
from actors.fabric.port_pairs import active_pairs, grow_pairs, lacks_lists, make_pairs
from actors.fabric.ports import Fabric, build_fabric
from actors.initial_arrays import longer, sizes_of
from actors.inputs import HasInputs, can_lose_outputs, sources_of
from actors.kernel import messages
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import GROW, NEVER, NONE, RUNNING
from actors.kernel.turns import take_of_network
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
    make_fetches,
    next_break,
    note_done,
    note_output,
    request,
    room_of_event,
    send_done,
    source_of_copy,
    take_given_up,
)
from workloads.coflows import no_coflows

WORK = np.int64(100_000_000)  # pairs whose rates were shared, after which a slice ends: tenths of a second


class Switch(NamedTuple):
    """The state of the switch; F rows of flows."""

    fetches: Fetches
    fabric: Fabric
    fair: Fair
    leader: np.ndarray  # [F] of the fetch of a flow
    unused: np.ndarray  # [F] the first `num_unused`: rows without a flow
    num_unused: np.ndarray  # [1]
    wanted: np.ndarray  # [1] flows that fresh fetches have at most
    was_cut: np.ndarray  # [1] bool: flows have ended before their last byte, at this instant
    largest: int  # flows that a fetch has at most


@entry
def advance(w: HasInputs, switch: Switch, until: int, most: int) -> int:
    """Handle events of the network before `until`, at most `most` of them; return the stop reason."""
    message, work = w.queue.now, np.int64(0)
    for _ in range(most):
        if lacks_rows(switch):
            return GROW
        why = take_of_network(w, until)
        if why != RUNNING:
            return why
        if message.kind[0] == messages.FETCH:
            on_fetch(w, switch, message.time[0])
        elif message.kind[0] == messages.OUTPUT:
            on_output(w, switch, message.time[0])
        elif message.kind[0] == messages.BROKEN:
            on_broken(w, switch, message.time[0])
        else:
            on_share(w, switch, message.time[0])
            work += w.nodes.size + active_pairs(switch.fair.pairs)
            if work > WORK:  # the host has progress to show, and Ctrl-C to see
                return RUNNING
    return RUNNING


@inlined
def lacks_rows(switch: Switch) -> bool:
    """Return whether there may be too few rows for the next event."""
    more = switch.wanted[0] + switch.largest
    return switch.num_unused[0] < more or lacks_lists(switch.fair.pairs, more)


@compiled
def on_fetch(w: HasInputs, switch: Switch, t: int) -> None:
    """Let a task fetch its input from this instant on."""
    task, stage = messages.read_fetch(w)
    is_leader = join_fetch(w, switch.fetches, task, stage)
    switch.wanted[0] += more_flows(w, stage, is_leader)
    request(w, switch.fetches, t)


@inlined
def more_flows(w: HasInputs, stage: int, is_leader: bool) -> int:
    """Return how many flows a fetch has more, at most, with a task of a stage."""
    inputs, more = w.inputs, np.int64(0)
    for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
        parent = inputs.parent[e]
        if inputs.size[e] == 0.0:
            continue
        if inputs.one_to_one[e] == 1:
            more += 1
        elif is_leader:
            more += sources_of(w, parent)
    return more


@compiled
def on_output(w: HasInputs, switch: Switch, t: int) -> None:
    """Let tasks that fetch get what another one sends, which has ended."""
    task, stage = messages.read_output(w)
    more = note_output(w, switch.fetches.outputs, task, stage)
    if more > 0:
        switch.wanted[0] += more
        request(w, switch.fetches, t)


@compiled
def on_share(w: HasInputs, switch: Switch, t: int) -> None:
    """Change rates: flows have ended, others begin."""
    if not begin_share(w, switch.fetches):
        return
    fabric, f, fetches = switch.fabric, switch.fair, switch.fetches
    least = end_due(fabric, f, t)
    for i in range(f.num_ended[0]):
        flow = f.ended[i]
        switch.unused[switch.num_unused[0]] = flow
        switch.num_unused[0] += 1
        end_flow_of(w, fetches, switch.leader[flow])
    unused = switch.num_unused[0]
    begin_outputs(w, switch, t)
    for i in range(fetches.num_fresh[0]):
        leader = fetches.fresh[i]
        fetches.newest[w.inputs.node[leader]] = NONE
        begin_flows(w, switch, t, leader)
        if can_lose_outputs(w.inputs):
            break_if_lost(w, fetches.breaks, leader, t)
        end_beginning(w, fetches, leader)
    if switch.num_unused[0] < unused:
        least = 0.0
    give_up_fetches(w, switch, t)
    if switch.was_cut[0]:
        least, switch.was_cut[0] = 0.0, False
    fetches.num_fresh[0] = switch.wanted[0] = 0
    if least < np.inf:
        fill(fabric, f, t, least)
    send_done(w, fetches, t, room_of_event(w))
    following = t if fetches.num_done[0] > 0 else min(next_due(f), next_break(fetches.breaks))
    if following < NEVER:
        request(w, fetches, following)


@compiled
def on_broken(w: HasInputs, switch: Switch, t: int) -> None:
    """End the flows of a machine that has failed; fetches from it are broken until that is detected."""
    node, p = messages.read_broken(w), switch.fair.pairs
    forget_fetches_to(w, switch.fetches, t, node)
    for port in (node, switch.fabric.side + node):
        while p.size[port] > 0:
            flow = p.head[p.pair[p.first[port]]]
            if port == node:
                when = max(w.faults.actors.detect[node], t)
                break_fetch(w, switch.fetches.breaks, switch.leader[flow], when)
            cut_flow(w, switch, t, flow)
    if switch.was_cut[0]:
        request(w, switch.fetches, t)


@compiled
def give_up_fetches(w: HasInputs, switch: Switch, t: int) -> None:
    """End the flows of fetches that are to be given up."""
    p = switch.fair.pairs
    leader = take_given_up(switch.fetches.breaks, t)
    while leader != NONE:
        port, i = switch.fabric.side + w.inputs.node[leader], np.int64(0)
        while i < p.size[port]:
            pairs, flow = p.size[port], p.head[p.pair[p.first[port] + i]]
            while flow != NONE:
                following = p.next[flow]
                if switch.leader[flow] == leader:
                    cut_flow(w, switch, t, flow)
                flow = following
            if p.size[port] == pairs:
                i += 1  # else another pair has got this place in the list
        note_done(switch.fetches, leader)
        leader = take_given_up(switch.fetches.breaks, t)


@inlined
def cut_flow(w: HasInputs, switch: Switch, t: int, flow: int) -> None:
    """End a flow before its last byte."""
    w.inputs.moved[0] -= take_out(switch.fabric, switch.fair, t, flow)
    switch.unused[switch.num_unused[0]] = flow
    switch.num_unused[0] += 1
    switch.was_cut[0] = True


@inlined
def begin_outputs(w: HasInputs, switch: Switch, t: int) -> None:
    """Begin flows from tasks that have ended at this instant to those that were launched before."""
    o = switch.fetches.outputs
    list_senders(w, o)
    for i in range(o.num_stages[0]):
        parent = o.stages[i]
        for edge in range(w.inputs.first_child[parent], w.inputs.first_child[parent + 1]):
            child = w.inputs.child[edge]
            if w.inputs.at_launch[edge] == 1:
                leader, e = o.first[child], edge_from(w, parent, child)
                while leader != NONE:
                    begin_shuffle(w, switch, t, leader, e, begin_of_senders(w, parent), o.places[parent])
                    leader = o.next[leader]
    end_outputs(w, switch.fetches)


@compiled
def begin_flows(w: HasInputs, switch: Switch, t: int, leader: int) -> None:
    """Begin the flows of a fetch, from each machine that has some of its input."""
    inputs, stage = w.inputs, w.inputs.stage[leader]
    for e in range(inputs.first_parent[stage], inputs.first_parent[stage + 1]):
        if inputs.size[e] == 0.0:
            continue
        if inputs.one_to_one[e] == 1:
            each, task = bytes_of_pair(w, stage, e), leader
            while task != NONE:
                count = copies_from(w, stage, e, leader, task)
                if count > 0 and copy_is_there(w, stage, e, task):
                    begin_flow(w, switch, t, leader, e, source_of_copy(w, stage, e, task), each * count)
                task = inputs.next[task]
            continue
        senders = sources_of(w, inputs.parent[e])
        begin_shuffle(w, switch, t, leader, e, w.stages.first_task[inputs.parent[e]], senders)


@compiled
def begin_shuffle(w: HasInputs, switch: Switch, t: int, leader: int, e: int, first: int, count: int) -> None:
    """Begin the flows of a fetch over an all-to-all edge, from so many machines of `Inputs.source`."""
    inputs, each = w.inputs, bytes_of_pair(w, w.inputs.stage[leader], e)
    for i in range(first, first + count):
        size = each * inputs.tasks[i] * inputs.parts[leader]
        begin_flow(w, switch, t, leader, e, inputs.source[i], size)


@inlined
def begin_flow(w: HasInputs, switch: Switch, t: int, leader: int, e: int, source: int, size: float) -> None:
    """Begin a flow to the machine of a fetch, unless its bytes are there."""
    flows, sink = switch.fabric.flows, w.inputs.node[leader]
    if not crosses(w, source, sink, size):
        return
    switch.num_unused[0] -= 1
    flow = switch.unused[switch.num_unused[0]]
    flows.coflow[flow], flows.size[flow], switch.leader[flow] = e, size, leader
    flows.source[flow], flows.sink[flow] = source, switch.fabric.side + sink
    switch.fabric.coflows.left[e] += 1
    w.inputs.waiting[leader] += 1
    add_flow(switch.fabric, switch.fair, t, flow)


def build(w: HasInputs, rows: int, port_bytes_per_s: float) -> Switch:
    """Return the switch of a world at time 0, with so many rows of flows."""
    fabric = build_fabric(no_coflows(w.nodes.size).arrays(), port_bytes_per_s)
    was = sizes_of(fabric)
    edges = w.inputs.parent.size
    fabric = longer(fabric, was, was | {"flow": rows, "coflow": edges, "group": 2 * edges})
    return Switch(
        fetches=make_fetches(w),
        fabric=fabric,
        fair=make_fair(fabric, make_pairs(rows, fabric.speed.size, rows)),
        leader=np.zeros(rows, np.int64),
        unused=np.arange(rows)[::-1].copy(),
        num_unused=np.array([rows]),
        wanted=np.zeros(1, np.int64),
        was_cut=np.zeros(1, np.bool_),
        largest=flows_at_most(w),
    )


def flows_at_most(w: HasInputs) -> int:
    """Return how many flows a fetch has at most: one from each machine over each edge to its stage.

    Over an edge without parent, as over all that are one-to-one, it has one more with each task.
    """
    inputs, tasks = w.inputs, np.diff(w.stages.first_task)
    of_edge = np.minimum(tasks[inputs.parent], w.nodes.size) * (inputs.size > 0)
    of_edge[inputs.parent == NONE] = 1
    stage = np.repeat(np.arange(tasks.size), np.diff(inputs.first_parent))
    return np.int64(np.bincount(stage, of_edge).max(initial=0))


def grow(switch: Switch) -> Switch:
    """Return the state with twice as many rows of flows, or as many as the next event may need."""
    if not lacks_rows(switch):
        return switch
    was = sizes_of(switch.fabric)
    rows = max(2 * was["flow"], was["flow"] + int(switch.wanted[0]) + switch.largest)
    now, more = was | {"flow": rows}, rows - was["flow"]
    unused = np.concatenate([switch.unused[: switch.num_unused[0]], np.arange(rows - 1, was["flow"] - 1, -1)])
    switch.num_unused[0] = unused.size
    fair = longer(switch.fair, was, now)
    return switch._replace(
        fabric=longer(switch.fabric, was, now),
        fair=fair._replace(
            pairs=grow_pairs(switch.fair.pairs, rows),
            mark=np.concatenate([fair.mark, np.zeros(more)]),
            offset=np.concatenate([fair.offset, np.zeros(more)]),
        ),
        leader=np.concatenate([switch.leader, np.zeros(more, np.int64)]),
        unused=np.concatenate([unused, np.zeros(rows - unused.size, np.int64)]),
    )
