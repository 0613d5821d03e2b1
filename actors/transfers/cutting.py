"""Flows under a coordinator that end before their last byte, as a machine has failed, or their fetch is given up.

Their agents end them, and report that as other ends. A coflow that its coordinator does not know yet is left until it
does. To a coordinator that counts what coflows have sent, what a flow had left when it was cut counts as sent.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from actors.fabric.fabric_world import CoflowWorld
from actors.kernel import messages
from actors.kernel.compiled import compiled, inlined, template
from actors.kernel.inputs import HasInputs
from actors.kernel.queue import NEVER, NONE, SPARE
from actors.transfers.books import Cuts, Shuffles
from actors.transfers.breaking import break_fetch, take_given_up
from actors.transfers.fetches import forget_fetches_to, note_done, request

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


@template
def cut_flows(w: HasInputs, n: CoflowWorld, p: Any, c: Cuts, t: int, cut: Callable) -> None:
    """Cut flows, as many as the event at hand may send messages about; `p` and `cut` as of `handle_coordinated`."""
    room = w.queue.room - SPARE
    while has_cuts(c) and room >= MESSAGES:
        flow = c.flow[c.next[0]]
        c.next[0] += 1
        known = n.fabric.coflows.arrival[n.fabric.flows.coflow[flow]] + n.network.delay_ns + 1
        if n.sending.left[flow] == 0.0:
            continue  # it has ended
        if t < known:
            c.flow[c.left[0]] = flow
            c.left[0] += 1
            c.later[0] = min(c.later[0], known)
        else:
            w.inputs.moved[0] -= cut(n, p, t, flow)
            room -= MESSAGES
    if not has_cuts(c):
        c.num[0] = c.next[0] = c.left[0]
