"""Aalo by the rules of its paper (SIGCOMM 2015): queues share bandwidth by weight, flows of a coflow have equal rates.

Not clairvoyant. The queues are those of `aalo`, and coflows are moved down them in the same way. The use of the ports
differs: `aalo` serves flows one after another, and queues in turn; here all queues are served at once.

1. A coflow registers: it enters the first queue.
2. Every `interval_s` agents report what coflows have sent. Those that have sent more than their queue's limit go to the
   tail of the queue of what they have sent.
3. Each queue that has coflows has its weight's part of every port (`actors.fabric.queue_shares`): K - q for queue q =
   0, 1, ... of K. In a queue, first in, first out: each coflow gives all its flows the same rate, as much as the
   slowest of them can have of what those before it left.
4. What queues leave of their parts goes to all coflows once more, in the same way; and the rest goes to single flows,
   each as much as both of its ports have: work is conserved.
5. The agents receive the rates that are new. What an ended flow leaves is idle until the next interval.

O(queues times ports, and lines of all active coflows) a decision, whatever their number of flows.

**Deviations from the paper.** The paper's text was not at hand. From memory, not checked: that weights fall by one from
queue to queue. A coflow one of whose ports is full has no rate in step 3; its flows at other ports are served in step 4
alone.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import Agenda, is_due, make_agenda, receive_flow_done, register, remove_ended
from actors.fabric.equal_agent import Serving, make_serving, serving_event
from actors.fabric.equal_coordinator import apply_flow_done, enforce_decision, send_rates, start_sending
from actors.fabric.equal_rates import Equal, backfill, make_equal, progress, reset_residual
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.intervals import charge_reports, enter_interval, has_costs
from actors.fabric.messages import FLOW_DONE, REGISTER, TELL
from actors.fabric.priority_queues import (
    QUEUE_PARAMETERS,
    Queues,
    dequeue,
    enqueue,
    make_queues,
    next_tick,
    order_key,
    sort_groups,
)
from actors.fabric.queue_shares import Shares, make_shares, share_equally
from actors.fabric.service_order import Order, make_order, set_order
from actors.fabric.worlds import COFLOW_WORLDS
from actors.kernel.compiled import compiled, entry
from actors.kernel.cost import take
from actors.kernel.queue import RUNNING
from actors.kernel.world import NEVER
from actors.scheduler import Scheduler
from actors.schedulers.coflows.aalo import demote, next_crossing, series
from actors.schedulers.coflows.saath import await_change, build_serving_world, request_tick
from actors.setting import Setting

_FIRST = np.int64(0)


class State(NamedTuple):
    """The state of the coordinator of C coflows, and `serving`, the agents' state."""

    agenda: Agenda
    order: Order
    equal: Equal
    serving: Serving
    queues: Queues
    shares: Shares
    size: np.ndarray  # empty: sizes are not known
    idle_until: np.ndarray  # [1] until when no decision can change anything without a new message, ns
    num_sending: np.ndarray  # [1] agents that send
    num_sent: np.ndarray  # [1] how many of the last decision's changes have been sent
    counted_at: np.ndarray  # [P] scratch
    learned: np.ndarray  # [C] when a coflow entered its queue, ns
    learned_bytes: np.ndarray  # [C] float64, what it had sent then


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: put a coflow into the first queue; decide at the interval's end."""
    enter_interval(w, t, p.num_sending[0])
    if register(w, p.agenda, t, coflow):
        enqueue(p.queues, coflow, _FIRST)
        p.learned[coflow] = w.fabric.coflows.arrival[coflow]
    request_tick(w, p, t)


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow; its bandwidth is reassigned when the interval ends."""
    receive_flow_done(w, t, p.num_sending[0], flow)
    if apply_flow_done(w.fabric, p.equal, p.num_sending, flow, ended):
        dequeue(p.queues, w.fabric.flows.coflow[flow])
    request_tick(w, p, t)


@compiled
def on_tick(w: CoflowWorld, p: State, t: int, due: int) -> None:
    """Make the decision at the end of an interval: steps 2 to 5."""
    fabric, order, e, q = w.fabric, p.order, p.equal, p.queues
    if t < p.idle_until[0]:
        await_change(w, p, t)
        return
    enter_interval(w, t, p.num_sending[0])
    charge_reports(w, p.num_sending[0])
    count = remove_ended(w, p.agenda)
    demote(w, p, t)
    for i in range(count):
        q.groups[i] = p.agenda.active[i]
        q.keys[i] = order_key(q, q.groups[i])
    sort_groups(q, count)
    progress(fabric, order, e, t)
    set_order(order, q.groups, count)
    reset_residual(fabric, e)
    share_equally(fabric, order, e, p.shares, q.queue, _FIRST, order.used[0])
    backfill(fabric, order, e)
    enforce_decision(w, order, e, p.num_sending, p.counted_at, count, t)
    start_sending(w, e, p.num_sent, t, due)
    if count > 0:
        following = next_tick(t + 1, q.interval)
        p.idle_until[0] = max(following, next_crossing(w, p, t)) if not has_costs(w) else following
        await_change(w, p, t)


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
            serving_event(w, p.serving, me)
        elif kind == FLOW_DONE:
            on_flow_done(w, p, t, message.a[0], message.b[0])
        elif kind == REGISTER:
            on_arrival(w, p, t, message.a[0])
        elif kind == TELL:
            send_rates(w, p.equal, p.num_sent, t, message.a[0])
        elif is_due(w, p.agenda):
            on_tick(w, p, t, message.a[0])
    return RUNNING


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    world = build_serving_world(setting)
    fabric, coflows = world.fabric, world.work.size
    return world, State(
        agenda=make_agenda(coflows),
        order=make_order(fabric),
        equal=make_equal(fabric, missed_only=False),
        serving=make_serving(fabric),
        queues=make_queues(coflows, {**given, "starvation": "strict"}),
        shares=make_shares(fabric, np.arange(given["queues"], 0, -1)),
        size=np.zeros(0),
        idle_until=np.zeros(1, np.int64),
        num_sending=np.zeros(1, np.int64),
        num_sent=np.zeros(1, np.int64),
        counted_at=np.zeros(world.nodes.size, np.int64),
        learned=np.full(coflows, NEVER),
        learned_bytes=np.zeros(coflows),
    )


AALO_SHARES = Scheduler(
    name="aalo-shares",
    title="aalo whose queues share bandwidth by weight, with equal rates inside a coflow",
    paper="Chowdhury, Stoica: Aalo, SIGCOMM 2015, doi 10.1145/2785956.2787480",
    parameters=tuple(
        known
        for known in QUEUE_PARAMETERS
        if known.name in ("queues", "first_limit_bytes", "factor", "interval_s")
    ),
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    series=series,
)
