"""Saath (CoNEXT 2017): a coflow is served at all of its ports or at none. Not clairvoyant.

It has Aalo's queues, with three differences: the flows of a coflow that must wait at one port get no bandwidth at other
ports; a coflow moves down as soon as one of its flows has sent its part of the limit; and in a queue the coflow with
the least contention is served first.

1. A coflow registers: it enters the first queue, and gets a deadline for it: in `deadline_factor` times the time that
   all coflows in the queue would take at one port, one after another, if each sent as much as the queue's limit.
2. Every `interval_s` agents report what flows have been sent. If a flow of a coflow of n flows has been sent more than
   an n-th of the queue's limit, the coflow goes to the queue whose limit is at least n times that, and gets a deadline
   for it.
3. Coflows whose deadline has passed come first, by deadline. The others come queue by queue; in a queue the coflow
   comes first that shares ports with the fewest other coflows of the queue, of equal ones the first that entered it.
4. All or none: each in this order gives all its flows the same rate, as much as its slowest flow can have of the
   bandwidth that those before it left. A coflow that finds a port full is missed.
5. What is left goes to the flows of missed coflows in the same order, each as much as both of its ports have.
6. The agents receive the new rates. What an ended flow leaves is idle until the next interval.

The coordinator decides only at those multiples of the interval at which something can change, as under `aalo`. O(lines
of all active coflows) a decision, whatever their number of flows (`actors.fabric.equal_rates`); contention is kept up
to date (`actors.fabric.port_contention`). An agent receives one rate for all that it sends of a coflow
(`actors.fabric.equal_agent`).

**Deviations from the paper.** The paper's text was not at hand. From memory, not checked: the deadline's factor is 2; a
deadline is kept until the coflow leaves the queue; late coflows are served by deadline; the time in a queue is its
limit divided by the speed of the fastest port (the last queue's limit is what the others' growth gives); the figures of
queues and interval are Aalo's. Contention counts coflows of the same queue, as in the simulator that the authors
published for Philae; `contention=all` counts all active coflows. Not modelled: the paper's second estimate, for
stragglers and failures, which chooses the queue of a coflow with ended flows by what its other flows probably have
left.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import Agenda, handle_event, handle_events, note_report
from actors.fabric.counters import N_DEMOTIONS
from actors.fabric.equal_agent import Serving, cut_served_flow, serving_event
from actors.fabric.equal_coordinator import (
    apply_flow_done,
    has_sent_more,
    next_time_above,
    register_served,
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
from actors.fabric.initial_arrays import at_start, per
from actors.fabric.intervals import enter_interval
from actors.fabric.port_contention import Contention, add_coflow, change_kind, leave_port, make_contention
from actors.fabric.ports import bytes_sent
from actors.fabric.priority_queues import LIMIT_PARAMETERS, Queues, dequeue, next_tick
from actors.fabric.service_order import Order
from actors.fabric.waves import are_together, enqueue_together, flows_together, queue_together
from actors.fabric.worlds import COFLOW_WORLDS
from actors.inputs import HasInputs
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NEVER
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.aalo import series
from actors.setting import Setting
from actors.transfers.joined import Coordinated, handle_coordinated

_FIRST = np.int64(0)
_QUEUE_SHIFT, _CONTENTION_SHIFT = (
    56,
    32,
)  # of a key; the lower bits are the order in which coflows entered the queue


class State(NamedTuple):
    """The state of the coordinator of C coflows and K queues, and `serving`, the agents' state."""

    agenda: Agenda
    order: Order
    equal: Equal
    serving: Serving
    queues: Queues
    contention: Contention
    by_queue: bool  # contention is within a queue
    # [K] what each coflow in a queue adds to the time until the deadline of one that enters it, ns, float64
    wait_per_coflow_ns: np.ndarray
    width: np.ndarray = per("coflow")  # flows that cross the switch
    # what a flow may be sent before its coflow leaves its queue, bytes
    limit: np.ndarray = per("coflow", np.inf)
    deadline: np.ndarray = per("coflow", NEVER)  # ns
    idle_until: np.ndarray = per("run")  # ns: before that only a new message can change a decision
    num_sending: np.ndarray = per("run")  # agents that send
    num_sent: np.ndarray = per("run")  # how many of the last decision's changes have been sent
    learned: np.ndarray = per("coflow", NEVER)  # when a coflow entered its queue, ns
    learned_bytes: np.ndarray = per("coflow", 0.0)  # what it had sent then


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: put a coflow into the first queue, with a deadline; decide at the interval's end."""
    enter_interval(w, t, p.num_sending[0])
    if register_served(w, p, coflow):
        p.width[coflow] = w.fabric.coflows.left[coflow]
        add_coflow(
            w.fabric, p.contention, coflow, queue_together(w, coflow, _FIRST) if p.by_queue else _FIRST
        )
        enter_queue(w, p, t, coflow, queue_together(w, coflow, _FIRST))
        p.learned[coflow] = w.fabric.coflows.arrival[coflow]
    request_tick(w, p, t)


@compiled
def enter_queue(w: CoflowWorld, p: State, t: int, coflow: int, queue: int) -> None:
    """Put a coflow into a queue, with a deadline."""
    q = p.queues
    enqueue_together(w, q, coflow, queue)
    p.limit[coflow] = q.limit[queue] / flows_together(w, coflow, p.width[coflow])
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
    """Step 2: move each coflow to the queue for the bytes that its flows had been sent when the agents reported."""
    fabric, q, known = w.fabric, p.queues, t - w.network.delay_ns
    update_ahead(fabric, p.equal, known)
    for i in range(p.agenda.used[0]):
        coflow = p.agenda.active[i]
        queue, width = q.queue[coflow], flows_together(w, coflow, p.width[coflow])
        p.limit[coflow] = q.limit[queue] / width
        while has_sent_more(fabric, p.equal, coflow, q.limit[queue] / width, known):
            queue += 1
        move_down(w, p, t, coflow, queue)
    if are_together(w.waves):
        for i in range(p.agenda.used[0]):
            move_down(w, p, t, p.agenda.active[i], queue_together(w, p.agenda.active[i], _FIRST))


@compiled
def move_down(w: CoflowWorld, p: State, t: int, coflow: int, queue: int) -> None:
    """Move a coflow to a queue that is lower than its own."""
    if queue > p.queues.queue[coflow]:
        enter_queue(w, p, t, coflow, queue)
        w.counts[N_DEMOTIONS] += 1
        sent = bytes_sent(w.fabric.coflows, t - w.network.delay_ns, coflow)
        p.learned[coflow], p.learned_bytes[coflow] = t, sent
        if p.by_queue:
            change_kind(w.fabric, p.contention, coflow, queue)


@inlined
def order_key(p: State, t: int, coflow: int) -> int:
    """Step 3: return the sort key of a coflow; coflows whose deadlines have passed come first."""
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
    """Return the first multiple of the interval at which a limit is known to be exceeded, or a deadline has passed."""
    delay = w.network.delay_ns
    first = next_time_above(w.fabric, p.order, p.equal, p.limit, t - delay)
    if first < NEVER:
        first += delay
    for i in range(p.agenda.used[0]):
        deadline = p.deadline[p.agenda.active[i]]
        if deadline > t:
            first = min(first, deadline)
    return next_tick(first, p.queues.interval) if first < NEVER else NEVER


@inlined
def on_event(w: CoflowWorld, p: State) -> bool:
    """Handle the event at hand; return whether the host must decide."""
    return handle_event(
        w, p, p.serving, on_agent_event=serving_event,
        on_flow_done=on_flow_done, on_arrival=on_arrival, on_tell=send_rates, on_decide=on_tick,
    )  # fmt: skip


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(w, p, until, most, on_event)


@entry
def advance_transfers(w: HasInputs, p: Coordinated, until: int, most: int) -> int:
    """Handle events of the network of DAG jobs whose transfers are coflows; return the stop reason."""
    return handle_coordinated(w, p, until, most, on_event, cut_served_flow)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    world = build_serving_world(setting)
    fabric = world.fabric
    limits = given["first_limit_bytes"] * given["factor"] ** np.arange(given["queues"], dtype=np.float64)
    return world, at_start(
        State,
        fabric,
        **ticking_state(setting, world),
        equal=make_equal(fabric),
        contention=make_contention(fabric),
        by_queue=given["contention"] == "queue",
        wait_per_coflow_ns=given["deadline_factor"] * limits / fabric.speed.max(),
    )


SAATH = Scheduler(
    name="saath",
    title="coflows sink through priority queues, and are served at all of their ports or at none",
    paper="Jajoo, Gandhi, Hu, Koh: Saath, CoNEXT 2017, doi 10.1145/3143361.3143364",
    parameters=(
        *LIMIT_PARAMETERS,
        Parameter(
            "deadline_factor",
            2.0,
            "number",
            "a coflow that has waited this many times as long as its queue would take one by one goes first",
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
    rule="coflows in higher queues go first, and in a queue the one that shares its ports with the fewest others",
    build=build,
    advance=advance,
    transfers=advance_transfers,
    worlds=COFLOW_WORLDS,
    series=series,
)
