"""Aalo by the rules of its paper (SIGCOMM 2015): queues share bandwidth by weight, flows of a coflow have equal rates.

Not clairvoyant. The queues are those of `aalo`, and coflows move down in the same way. The use of the ports differs:
`aalo` serves flows one after another, and queues in turn; here all queues are served at once.

1. A coflow registers: it enters the first queue.
2. Every `interval_s` agents report what coflows have sent. A coflow that has sent more than its queue's limit goes to
   the tail of the queue for what it has sent.
3. Each queue that has coflows gets a share of every port in proportion to its weight, which is
   K - q for queue q = 0, 1, ... of K. Coflows of a queue are served first in, first out: each gives all its
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

from actors.fabric.agent import AT_ONE_RATE, Serving, cut_served_flow
from actors.fabric.coordinator import Agenda, request_decision
from actors.fabric.equal_rates import (
    Equal,
    add_rates,
    begin_tick,
    build_serving,
    end_tick,
    receive_served_end,
    register_served,
    request_next,
    send_rates,
    serve_by_keys,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER, SEND_REST
from actors.fabric.order import Order
from actors.fabric.ports import Fabric
from actors.fabric.priority_queues import LIMIT_PARAMETERS, Queues, order_key
from actors.fabric.waves import enqueue_together, queue_together
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.schedulers.coflows.aalo import demote, next_crossing
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.learned_and_admitted import learned_by
from actors.setting import Setting

_FIRST = np.int64(0)


class Shares(NamedTuple):
    """Weights of K queues, which are above 0, and the bandwidth of the ports that they share."""

    weight: np.ndarray  # [K] float64
    whole: np.ndarray = per("port", 0.0)  # residual bandwidth when sharing begins, bytes per ns
    pool: np.ndarray = per("port", 0.0)  # what queues have left of their shares


def make_shares(fabric: Fabric, queues: int) -> Shares:
    """Return the shares of so many queues."""
    return at_start(Shares, fabric, weight=np.arange(queues, 0, -1, dtype=np.float64))


class State(NamedTuple):
    """The state of the coordinator of C coflows, and `serving`, the agents' state."""

    agenda: Agenda
    order: Order
    equal: Equal
    serving: Serving
    queues: Queues
    shares: Shares


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: put a coflow into the first queue; decide at the interval's end."""
    if register_served(w, p.agenda, p.equal, p.serving, t, coflow):
        enqueue_together(w, p.queues, coflow, queue_together(w, coflow, _FIRST))
        p.queues.learned[coflow] = w.fabric.coflows.arrival[coflow]
    request_decision(w, p.agenda, t)


@compiled
def on_tick(w: CoflowWorld, p: State, t: int) -> None:
    """Make the decision at the end of an interval: steps 2 to 5."""
    agenda, queues, order, equal = p.agenda, p.queues, p.order, p.equal
    if not begin_tick(w, agenda, equal, t):
        return
    demote(w, agenda, queues, t)
    for i in range(agenda.used[0]):
        queues.keys[i] = order_key(queues, agenda.active[i])
    serve_by_keys(w, agenda, order, equal, queues, t)
    share_equally(w.fabric, order, equal, p.shares, queues.queue, _FIRST, order.used[0])
    end_tick(w, agenda, order, equal, t)
    request_next(w, agenda, equal, t, next_crossing(w, agenda, queues, t))


@compiled
def share_equally(
    fabric: Fabric, order: Order, equal: Equal, s: Shares, queue: np.ndarray, first: int, end: int
) -> None:
    """Steps 3 and 4: give groups from level `first` to before `end` equal rates: shares by `queue` [G], then the pool.

    The order is sorted by queue. Each queue that has a group in it gets a share of what is residual at all ports, and
    serves its groups within it. What queues leave is pooled, and all groups are served once more, out of the pool.
    """
    residual, total, level = equal.residual, 0.0, first
    for port in range(residual.size):
        s.whole[port], s.pool[port] = residual[port], 0.0 if first < end else residual[port]
    while level < end:
        total += s.weight[queue[order.groups[level]]]
        level = end_of_queue(order, queue, level, end)
    level = first
    while level < end:
        share, following = (
            s.weight[queue[order.groups[level]]] / total,
            end_of_queue(order, queue, level, end),
        )
        for port in range(residual.size):
            residual[port] = share * s.whole[port]
        add_rates(fabric, order, equal, level, following)
        for port in range(residual.size):
            s.pool[port] += residual[port]
        level = following
    for port in range(residual.size):
        residual[port] = s.pool[port]
    add_rates(fabric, order, equal, first, end)


@inlined
def end_of_queue(order: Order, queue: np.ndarray, level: int, end: int) -> int:
    """Return the level after those of the queue that `level` belongs to."""
    own = queue[order.groups[level]]
    while level < end and queue[order.groups[level]] == own:
        level += 1
    return level


advance, advance_transfers = coordinator_loops(
    __name__,
    State,
    {REGISTER: on_arrival, FLOW_DONE: receive_served_end, SEND_REST: send_rates, DECIDE: on_tick},
    AT_ONE_RATE,
    cut_served_flow,
)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    queues = setting.parameters["queues"]
    return build_serving(setting, State, False, shares=lambda fabric: make_shares(fabric, queues))


AALO_SHARES = coflow_scheduler(
    name="aalo-shares",
    title="aalo whose queues share bandwidth by weight, with equal rates inside a coflow",
    paper="Chowdhury, Stoica: Aalo, SIGCOMM 2015, doi 10.1145/2785956.2787480",
    rule="coflows that have sent less are in queues with a larger share of the ports, and in a queue the one that "
    "arrived first goes first",
    parameters=LIMIT_PARAMETERS,
    build=build,
    advance=advance,
    transfers=advance_transfers,
    series=learned_by,
)
