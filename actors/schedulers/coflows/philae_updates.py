"""How Philae applies an update of a coflow: to the contention at ports, to pilots, and to the size.

- A pilot that restarts before the size of its coflow is known is a pilot again, and the estimate no longer counts it.
  A pilot that moves is a pilot at its new ports; if the coflow has an unfinished flow there, the two become one flow. A
  coflow that so loses all its pilots before any has ended is served like a thin coflow.
- When the size is known, pilots are flows like the others. The size is the pilots' mean times the present number of
  flows. Lost bytes do not count as sent, neither in policy B nor with `size_correction` (section 4.5).

`p` is the coordinator's `State`.
"""

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy_updates import receive_update, resend_flow, settle_coflow, stop_updated_flow
from actors.fabric.ports import Fabric, flows_of, lines_of
from actors.fabric.priority_queues import dequeue
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from actors.schedulers.coflows.philae_measures import (
    learn,
    leave_port,
    mark_moved,
    mark_thin_at_ports,
    move,
    return_to_port,
)
from actors.schedulers.coflows.philae_pilots import assign_pilot_line, has_pilot, line_at
from actors.schedulers.coflows.philae_state import State

_FORGETS = True  # lost bytes do not count as sent


@inlined
def update_coflow(w: CoflowWorld, p: State, t: int, k: int) -> bool:
    """Receive an update of a coflow, and apply it; return whether it has any effect."""
    if not receive_update(w, t, k):
        return False
    rows, pairs, coflow = w.updates.row, w.updates.pair, w.updates.row.coflow[k]
    sampled = p.pilots_left[coflow] > 0
    for i in range(rows.first[k], rows.end[k]):
        note_presence(w.fabric, p.was_at_port, sampled, coflow, pairs.flow[i])
        note_presence(w.fabric, p.was_at_port, sampled, coflow, pairs.onto[i])
    for i in range(rows.first[k], rows.end[k]):
        change_flow(w, p, t, k, coflow, pairs.flow[i], pairs.onto[i])
    coflow_ended = settle_coflow(w, k)
    for i in range(rows.first[k], rows.end[k]):
        apply_presence(w, p, t, coflow, pairs.flow[i], coflow_ended)
        apply_presence(w, p, t, coflow, pairs.onto[i], coflow_ended)
    count_flows(w.fabric, p.width, coflow)
    if coflow_ended:
        dequeue(p.queues, coflow)
        p.num_active[0] -= 1
        return True
    if sampled and p.pilots_left[coflow] == 0:
        if p.pilots_done[coflow] > 0:
            learn(w, p, t, coflow)
        else:
            mark_thin_at_ports(w, p, coflow)
    elif p.queues.queue[coflow] >= 0:
        move(w, p, t, coflow)
    mark_moved(p, coflow)
    return True


@inlined
def change_flow(w: CoflowWorld, p: State, t: int, k: int, coflow: int, flow: int, onto: int) -> None:
    """Stop a flow and resend what is needed: as a pilot, if it was a pilot and the size is not known."""
    fabric, flows = w.fabric, w.fabric.flows
    unknown = p.learned[coflow] == NEVER
    pilot, ends = is_pilot(fabric, coflow, flow), flows.finish[flow] == NEVER
    size, row, column = flows.size[flow], flows.line[flow, 0], flows.line[flow, 1]
    again = stop_updated_flow(w, p.ranking, p.matching, k, flow, onto, _FORGETS)
    if pilot and ends:
        count_pilot(w, p, coflow, flow, -1)
    if pilot and not (flow == onto and unknown):
        make_ordinary(fabric, coflow, flow)
    if flow != onto and flows.finish[onto] != NEVER and is_pilot(fabric, coflow, onto):
        make_ordinary(fabric, coflow, onto)  # its size remains in the estimate
    if pilot and unknown and again > 0.0 and flows.line[onto, 0] != NONE and flows.finish[onto] != NEVER:
        if flow == onto and not ends:
            p.pilots_done[coflow] -= 1
            p.pilot_bytes[coflow] -= size
        if flow == onto or ends:
            count_pilot(w, p, coflow, onto, 1)
        if flow != onto and ends:
            give_pilot_lines(fabric, onto, row, column)
    resend_flow(w, p.ranking, p.matching, t, k, onto, again)


@inlined
def is_pilot(fabric: Fabric, coflow: int, flow: int) -> bool:
    """Return whether a flow is, or was, one of its coflow's pilots."""
    line = fabric.flows.line[flow, 0]
    return line != NONE and fabric.lines.group[line] != coflow


@inlined
def count_pilot(w: CoflowWorld, p: State, coflow: int, flow: int, by: int) -> None:
    """Add `by` to the number of pilots that have not ended."""
    p.pilots_left[coflow] += by
    p.busy[w.fabric.flows.source[flow]] += by
    p.busy[w.fabric.flows.sink[flow]] += by


@compiled
def make_ordinary(fabric: Fabric, coflow: int, flow: int) -> None:
    """Turn a pilot that is not being sent into an ordinary flow of its coflow."""
    flows, lines = fabric.flows, fabric.lines
    flows.line[flow, 0] = line_at(lines, coflow, 0, flows.source[flow])
    flows.line[flow, 1] = line_at(lines, coflow, 1, flows.sink[flow])


@compiled
def give_pilot_lines(fabric: Fabric, flow: int, row: int, column: int) -> None:
    """Give the lines of a pilot to a flow that is not being sent."""
    flows, lines = fabric.flows, fabric.lines
    assign_pilot_line(lines, row, flows.line[flow, 0], flows.sink[flow])
    assign_pilot_line(lines, column, flows.line[flow, 1], flows.source[flow])
    flows.line[flow, 0], flows.line[flow, 1] = row, column


@compiled
def note_presence(fabric: Fabric, was: np.ndarray, sampled: bool, coflow: int, flow: int) -> None:
    """Note whether a coflow has unfinished flows, or pilots if it is `sampled`, at the ports of a flow."""
    source, sink = fabric.flows.source[flow], fabric.flows.sink[flow]
    was[source] = np.int64(has_flows_at(fabric, sampled, coflow, 0, source))
    was[sink] = np.int64(has_flows_at(fabric, sampled, coflow, 1, sink))


@compiled
def apply_presence(w: CoflowWorld, p: State, t: int, coflow: int, flow: int, coflow_ended: bool) -> None:
    """Apply changes of the coflow's presence at the ports of a flow: it leaves a port, or returns to it."""
    flows = w.fabric.flows
    for side in range(2):
        port = flows.source[flow] if side == 0 else flows.sink[flow]
        was = p.was_at_port[port]
        is_now = np.int64(has_flows_at(w.fabric, p.pilots_left[coflow] > 0, coflow, side, port))
        p.was_at_port[port] = NONE
        if was == 1 and is_now == 0:
            leave_port(w, p, t, coflow, port, coflow_ended)
        elif was == 0 and is_now == 1:
            return_to_port(w, p, t, coflow, port)


@compiled
def has_flows_at(fabric: Fabric, sampled: bool, coflow: int, side: int, port: int) -> bool:
    """Return whether a coflow has unfinished flows at a port."""
    lines = fabric.lines
    if len(lines_of(lines, coflow, side)) == 0:
        return False
    line = line_at(lines, coflow, side, port)
    if lines.port[line] == port and lines.left[line] > 0:
        return True
    return sampled and has_pilot(fabric, coflow, side, port)


@compiled
def count_flows(fabric: Fabric, width: np.ndarray, coflow: int) -> None:
    """Count the present flows of a coflow."""
    width[coflow] = 0
    for flow in flows_of(fabric.coflows, coflow):
        width[coflow] += np.int64(fabric.flows.size[flow] > 0.0)
