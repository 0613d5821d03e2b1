"""Equal rates without a coordinator: the loop that serves a switch as soon as anything ends.

At each instant the loop calls `end_due`. To decide, it calls `progress`, sorts the order, and calls `decide`; else it
calls `refill`, which gives what ended flows had to others at their ports, and for which `list_lines` was called after
the decision. It must decide at arrivals. If it decides at all ends, too, the rates are at all times those that the
order gives. To decide only at ends from `SERVED` or from `COFLOW` on is cheaper: a coflow's rate rises later, but still
no flow that may be backfilled finds room at both of its ports.
"""

import numpy as np

from actors.fabric import ports
from actors.fabric.equal_groups import remove_from_heap, served_by, sift_up
from actors.fabric.equal_rates import (
    add_rates,
    backfill,
    end_flow,
    enforce_rates,
    fill_line,
    group_of,
    reset_residual,
)
from actors.fabric.madd import has_residual, update_open_port
from actors.fabric.port_sets import lowest, place
from actors.kernel.compiled import compiled
from actors.kernel.heap import drop
from actors.kernel.queue import NEVER

# What has ended: at most backfilled flows, a flow that had its group's rate alone, a whole coflow.
BACKFILLED, SERVED, COFLOW = map(np.int64, range(3))
_EMPTY = np.uint64(0)
_TOP = np.int64(0)  # the first level


@compiled
def next_end(fabric, order, e):
    """Return when the next flow ends, NEVER if none has a rate."""
    t = NEVER
    for i in range(order.used[0]):
        t = min(t, e.groups.end[order.groups[i]])
    return min(t, ports.next_end(fabric.flows, e.ends))


@compiled
def end_due(fabric, order, e, t):
    """End the flows whose time has come at t; return what has ended. `refill`, or `progress`, must follow."""
    ended = BACKFILLED
    while e.ends.size[0] > 0 and e.ends.keys[0] <= t:
        flow = e.ends.values[0]
        if fabric.flows.end[flow] == e.ends.keys[0] and end_flow(fabric, e, t, flow):
            ended = COFLOW
        drop(e.ends)
    for i in range(order.used[0]):
        group = order.groups[i]
        while e.groups.end[group] <= t:
            over = end_flow(fabric, e, t, e.groups.heap[e.groups.first[group]])
            ended = max(ended, COFLOW if over else SERVED)
    return ended


@compiled
def decide(fabric, order, e):
    """Give rates to the groups of an order, from the time that was given to `progress`."""
    reset_residual(fabric, e)
    add_rates(fabric, order, e, _TOP, order.used[0])
    backfill(fabric, order, e)
    enforce_rates(fabric, order, e, e.now[0])


@compiled
def refill(fabric, order, e, t):
    """Give what ended flows had to other flows at their ports, in order."""
    e.changes[0] = 0
    for k in range(e.released.size):
        while e.released[k] != _EMPTY:
            bit = lowest(e.released[k])
            e.released[k] ^= bit
            offer_residual(fabric, order, e, (k << 6) + place(bit))
    enforce_rates(fabric, order, e, t)


@compiled
def offer_residual(fabric, order, e, port):
    """Offer the room of a port to its lines, in order."""
    update_open_port(fabric, e, port)
    for i in range(order.first[port], order.end[port]):
        if not has_residual(fabric, e, port):
            break
        fill_line(fabric, e, order.line[i])


@compiled
def move_flow(fabric, e, flow, group):
    """Serve a flow no longer with `group` but with the one to whose lines it has been moved; neither has a rate."""
    flows, own = fabric.flows, group_of(fabric, flow)
    remove_from_heap(flows.left, e.groups, group, flow)
    flows.left[flow] += served_by(e.groups, e.now[0], own) - served_by(e.groups, e.now[0], group)
    e.ahead[own] = max(e.ahead[own], flows.size[flow] - flows.left[flow])
    i = e.groups.first[own] + e.groups.size[own]
    e.groups.size[own] += 1
    e.groups.heap[i], e.groups.position[flow] = flow, i
    sift_up(flows.left, e.groups, own, i)
