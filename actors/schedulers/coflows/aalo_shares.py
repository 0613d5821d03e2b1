"""Aalo by the rules of its paper (SIGCOMM 2015): queues share bandwidth by weight, flows of a coflow have equal rates.

Not clairvoyant. The queues are those of `aalo`, and coflows move down in the same way. The use of the ports differs:
`aalo` serves flows one after another, and queues in turn; here all queues are served at once.

1. A coflow registers: it enters the first queue.
2. Every `interval_s` agents report what coflows have sent. A coflow that has sent more than its queue's limit goes to
   the tail of the queue for what it has sent.
3. Each queue that has coflows gets a share of every port in proportion to its weight (`actors.fabric.queue_shares`),
   which is K - q for queue q = 0, 1, ... of K. Coflows of a queue are served first in, first out: each gives all its
   flows the same rate, as much as its slowest flow can have of the bandwidth that those before it left.
4. What queues leave of their shares goes to all coflows once more, in the same way. The rest goes to single flows, each
   as much as both of its ports have: work is conserved.
5. The agents receive the new rates. What an ended flow leaves is idle until the next interval.

O(queues times ports, and lines of all active coflows) a decision, whatever their number of flows.

**Deviations from the paper.** The paper's text was not at hand. From memory, not checked: weights fall by one from
queue to queue. If a port of a coflow is full, the coflow has no rate in step 3; its flows at other ports are served
only in step 4.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import Agenda, handle_event, handle_events, note_report
from actors.fabric.equal_agent import Serving, cut_served_flow, serving_event
from actors.fabric.equal_coordinator import apply_flow_done, register_served, send_rates
from actors.fabric.equal_rates import Equal, make_equal
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
from actors.fabric.priority_queues import LIMIT_PARAMETERS, Queues, dequeue, order_key
from actors.fabric.queue_shares import Shares, make_shares, share_equally
from actors.fabric.service_order import Order
from actors.fabric.waves import enqueue_together, queue_together
from actors.fabric.worlds import COFLOW_WORLDS
from actors.inputs import HasInputs
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NEVER
from actors.scheduler import Scheduler
from actors.schedulers.coflows.aalo import demote, next_crossing, series
from actors.setting import Setting
from actors.transfers.joined import Coordinated, handle_coordinated

_FIRST = np.int64(0)


class State(NamedTuple):
    """The state of the coordinator of C coflows, and `serving`, the agents' state."""

    agenda: Agenda
    order: Order
    equal: Equal
    serving: Serving
    queues: Queues
    shares: Shares
    idle_until: np.ndarray = per("run")  # ns: before that only a new message can change a decision
    num_sending: np.ndarray = per("run")  # agents that send
    num_sent: np.ndarray = per("run")  # how many of the last decision's changes have been sent
    learned: np.ndarray = per("coflow", NEVER)  # when a coflow entered its queue, ns
    learned_bytes: np.ndarray = per("coflow", 0.0)  # what it had sent then


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: put a coflow into the first queue; decide at the interval's end."""
    enter_interval(w, t, p.num_sending[0])
    if register_served(w, p, coflow):
        enqueue_together(w, p.queues, coflow, queue_together(w, coflow, _FIRST))
        p.learned[coflow] = w.fabric.coflows.arrival[coflow]
    request_tick(w, p, t)


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow; its bandwidth is reassigned when the interval ends."""
    note_report(w, t, p.num_sending[0], w.fabric.flows.source[flow])
    if apply_flow_done(w.fabric, p.equal, p.num_sending, flow, ended):
        dequeue(p.queues, w.fabric.flows.coflow[flow])
    request_tick(w, p, t)


@compiled
def on_tick(w: CoflowWorld, p: State, t: int) -> None:
    """Make the decision at the end of an interval: steps 2 to 5."""
    if begin_tick(w, p, t):
        demote(w, p, t)
        put_in_order(w, p, t, key_of)
        share_equally(w.fabric, p.order, p.equal, p.shares, p.queues.queue, _FIRST, p.order.used[0])
        end_tick(w, p, t, next_crossing)


@inlined
def key_of(p: State, t: int, coflow: int) -> int:
    """Return the sort key of a coflow: queues in their order, in a queue first in, first out."""
    return order_key(p.queues, coflow)


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
    world = build_serving_world(setting)
    return world, at_start(
        State,
        world.fabric,
        **ticking_state(setting, world),
        equal=make_equal(world.fabric, missed_only=False),
        shares=make_shares(world.fabric, np.arange(setting.parameters["queues"], 0, -1)),
    )


AALO_SHARES = Scheduler(
    name="aalo-shares",
    title="aalo whose queues share bandwidth by weight, with equal rates inside a coflow",
    paper="Chowdhury, Stoica: Aalo, SIGCOMM 2015, doi 10.1145/2785956.2787480",
    rule="coflows that have sent less are in queues with a larger share of the ports, and in a queue the one that "
    "arrived first goes first",
    parameters=LIMIT_PARAMETERS,
    build=build,
    advance=advance,
    transfers=advance_transfers,
    worlds=COFLOW_WORLDS,
    series=series,
)
