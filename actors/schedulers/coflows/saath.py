"""Saath (CoNEXT 2017): a coflow is served at all of its ports or at none. Not clairvoyant.

Aalo's queues, with three differences: flows whose coflow must wait at another port get no bandwidth, a coflow is moved
down as soon as one of its flows has sent its part of the limit, and in a queue the coflow with the least contention is
served first.

1. A coflow registers: it enters the first queue. For the queue it gets a deadline, `deadline_factor` times as long from
   now as all in the queue would take at one port, one after another, if each sent as much as the queue takes.
2. Every `interval_s` agents report what flows have been sent. A coflow of n flows, one of which has been sent more than
   an n-th of its queue's limit, goes to the queue whose limit is at least n times that, and gets its deadline.
3. Those whose deadline has passed come first, by deadline. Then queue by queue; in a queue those first that share ports
   with the fewest other coflows of it, and of these the first that came to it.
4. All or none: each in this order gives all its flows the same rate, as much as the slowest of them can have of what
   those before it left. A coflow that finds a port full is missed.
5. What is left goes to the flows of missed coflows in the same order, each as much as both of its ports have.
6. The agents receive the rates that are new. What an ended flow leaves is idle until the next interval.

The coordinator decides only at those multiples of the interval at which something can change, as Aalo's. O(lines of all
active coflows) a decision, whatever their number of flows (`actors.fabric.equal_rates`); contention is kept up to date
(`actors.fabric.port_contention`). An agent receives one rate for all that it sends of a coflow
(`actors.fabric.equal_agent`).

**Deviations from the paper.** The paper's text was not at hand. From memory, not checked: that the deadline's factor is
2, that it is kept until the coflow leaves the queue, that late coflows are served by deadline, that what a coflow may
stay is the limit over the port's speed (the fastest port's; the last queue's limit is what it would be), and that the
figures of queues and interval are Aalo's. Contention counts coflows of the same queue, as in the simulator that the
authors published for Philae; `contention=all` counts all active coflows. Not modelled: the paper's second estimate, for
stragglers and failures, by which a coflow some of whose flows have ended is put into a queue by what the others
probably have left.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import (
    Agenda,
    handle_events,
    note_report,
    num_active,
    register,
)
from actors.fabric.counters import N_DEMOTIONS
from actors.fabric.equal_agent import Serving, serving_event
from actors.fabric.equal_coordinator import (
    apply_flow_done,
    has_sent_more,
    next_time_above,
    send_rates,
    update_ahead,
)
from actors.fabric.equal_rates import Equal, add_rates, make_equal
from actors.fabric.equal_ticks import (
    begin_tick,
    build_serving_world,
    end_tick,
    put_in_order,
    request_tick,
    ticking_state,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.intervals import enter_interval
from actors.fabric.port_contention import Contention, add_coflow, change_kind, leave_port, make_contention
from actors.fabric.ports import bytes_sent
from actors.fabric.priority_queues import (
    QUEUE_PARAMETERS,
    Queues,
    dequeue,
    enqueue,
    next_tick,
)
from actors.fabric.service_order import Order
from actors.fabric.worlds import COFLOW_WORLDS
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.world import NEVER
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.aalo import series
from actors.setting import Setting

_FIRST = np.int64(0)
_QUEUE_SHIFT, _CONTENTION_SHIFT = 56, 32  # of a key; below is the order in which coflows came to the queue


class State(NamedTuple):
    """The state of the coordinator of C coflows and K queues, and `serving`, the agents' state."""

    agenda: Agenda
    order: Order
    equal: Equal
    serving: Serving
    queues: Queues
    contention: Contention
    by_queue: bool  # contention is within a queue
    width: np.ndarray  # [C] flows that cross the switch
    limit: np.ndarray  # [C] what each of these may be sent before the coflow leaves its queue, bytes
    deadline: np.ndarray  # [C] ns
    # [K] by how much a coflow in a queue puts off the deadline of one that comes to it, ns, float64
    wait_per_coflow_ns: np.ndarray
    idle_until: np.ndarray  # [1] until when no decision can change anything without a new message, ns
    num_sending: np.ndarray  # [1] agents that send
    num_sent: np.ndarray  # [1] how many of the last decision's changes have been sent
    counted_at: np.ndarray  # [P] scratch
    learned: np.ndarray  # [C] when a coflow entered its queue, ns
    learned_bytes: np.ndarray  # [C] float64, what it had sent then


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: put a coflow into the first queue, with a deadline; decide at the interval's end."""
    enter_interval(w, t, p.num_sending[0])
    if register(w, p.agenda, t, coflow):
        add_coflow(w.fabric, p.contention, coflow, _FIRST)
        enter_queue(p, t, coflow, _FIRST)
        p.learned[coflow] = w.fabric.coflows.arrival[coflow]
    request_tick(w, p, t)


@compiled
def enter_queue(p: State, t: int, coflow: int, queue: int) -> None:
    """Put a coflow into a queue, with a deadline."""
    q = p.queues
    enqueue(q, coflow, queue)
    p.limit[coflow] = q.limit[queue] / p.width[coflow]
    p.deadline[coflow] = t + np.int64(min(q.size[queue] * p.wait_per_coflow_ns[queue], 1e18))


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow; its bandwidth is reassigned when the interval ends."""
    note_report(w, t, p.num_sending[0], w.fabric.flows.source[flow])
    lines, line = w.fabric.lines, w.fabric.flows.line
    coflow_ended = apply_flow_done(w.fabric, p.equal, p.num_sending, flow, ended)
    for side in range(2):
        if lines.left[line[flow, side]] == 0:
            leave_port(w.fabric, p.contention, line[flow, side])
    if coflow_ended:
        dequeue(p.queues, w.fabric.flows.coflow[flow])
    request_tick(w, p, t)


@compiled
def on_tick(w: CoflowWorld, p: State, t: int) -> None:
    """Make the decision at the end of an interval: steps 2 to 6."""
    if begin_tick(w, p, t):
        demote(w, p, t)
        put_in_order(w, p, t, order_key)
        add_rates(w.fabric, p.order, p.equal, _FIRST, p.order.used[0])
        end_tick(w, p, t, next_change)


@compiled
def demote(w: CoflowWorld, p: State, t: int) -> None:
    """Step 2: move each coflow to the queue of the bytes that its flows had been sent when the agents reported."""
    fabric, q, known = w.fabric, p.queues, t - w.network.delay_ns
    update_ahead(fabric, p.equal, known)
    for i in range(num_active(p.agenda)):
        coflow = p.agenda.active[i]
        queue = q.queue[coflow]
        while has_sent_more(fabric, p.equal, coflow, q.limit[queue] / p.width[coflow], known):
            queue += 1
        if queue > q.queue[coflow]:
            enter_queue(p, t, coflow, queue)
            w.counts[N_DEMOTIONS] += 1
            p.learned[coflow], p.learned_bytes[coflow] = t, bytes_sent(fabric.coflows, known, coflow)
            if p.by_queue:
                change_kind(fabric, p.contention, coflow, queue)


@inlined
def order_key(p: State, t: int, coflow: int) -> int:
    """Step 3: return the sort key of a coflow; missed deadlines come before all others."""
    if p.deadline[coflow] <= t:
        return p.deadline[coflow] - NEVER
    q = p.queues
    return (
        (q.queue[coflow] << _QUEUE_SHIFT)
        | (p.contention.num_met[coflow] << _CONTENTION_SHIFT)
        | q.entered[coflow]
    )


@compiled
def next_change(w: CoflowWorld, p: State, t: int) -> int:
    """Return the first multiple of the interval at which a limit is known to be passed, or a deadline has passed."""
    delay = w.network.delay_ns
    first = next_time_above(w.fabric, p.order, p.equal, p.limit, t - delay)
    if first < NEVER:
        first += delay
    for i in range(num_active(p.agenda)):
        deadline = p.deadline[p.agenda.active[i]]
        if deadline > t:
            first = min(first, deadline)
    return next_tick(first, p.queues.interval) if first < NEVER else NEVER


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(
        w, p, p.serving, until, most, on_agent_event=serving_event,
        on_flow_done=on_flow_done, on_arrival=on_arrival, on_tell=send_rates, on_decide=on_tick,
    )  # fmt: skip


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    world = build_serving_world(setting)
    fabric, coflows = world.fabric, world.work.size
    equal = make_equal(fabric)
    limits = given["first_limit_bytes"] * given["factor"] ** np.arange(given["queues"], dtype=np.float64)
    return world, State(
        **ticking_state(setting, world),
        equal=equal,
        contention=make_contention(fabric),
        by_queue=given["contention"] == "queue",
        width=equal.groups.size[:coflows].copy(),
        limit=np.full(coflows, np.inf),
        deadline=np.full(coflows, NEVER),
        wait_per_coflow_ns=given["deadline_factor"] * limits / fabric.speed.max(),
    )


SAATH = Scheduler(
    name="saath",
    title="coflows sink through priority queues, and are served at all of their ports or at none",
    paper="Jajoo, Gandhi, Hu, Koh: Saath, CoNEXT 2017, doi 10.1145/3143361.3143364",
    parameters=(
        *(
            known
            for known in QUEUE_PARAMETERS
            if known.name in ("queues", "first_limit_bytes", "factor", "interval_s")
        ),
        Parameter(
            "deadline_factor",
            2.0,
            "number",
            "how many times longer than its queue would take one by one a coflow may wait before it goes first",
            low=0,
            high=1e9,
        ),
        Parameter(
            "contention",
            "queue",
            "choice",
            "which coflows at its ports put a coflow behind others of its queue",
            choices=("queue", "all"),
        ),
    ),
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    series=series,
)
