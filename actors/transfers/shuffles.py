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

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.messages import send_register
from actors.fabric.sampling import count_pilots
from actors.fabric.waves import are_together
from actors.kernel import messages
from actors.kernel.compiled import compiled, inlined
from actors.kernel.inputs import HasInputs, can_lose_outputs, is_pipelined, sort_by_machine, sources_of
from actors.kernel.queue import NEVER, NONE
from actors.transfers.books import Shuffles
from actors.transfers.breaking import break_if_lost, next_break
from actors.transfers.cutting import give_up_fetches, has_cuts
from actors.transfers.fetches import (
    begin_share,
    bytes_of_pair,
    copies_from,
    copy_is_there,
    crosses,
    end_beginning,
    end_flow_of,
    end_outputs,
    join_fetch,
    request,
    room_of_event,
    send_done,
    source_of_copy,
)
from actors.transfers.laying import lay_coflow, lay_flow, sort_flows
from actors.transfers.outputs import begin_of_senders, edge_from, list_senders, note_output
from actors.transfers.runs import find_run, take_run


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
