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
   comes first that shares ports with the fewest other coflows of the queue; if several do, the first that entered it.
4. All or none: each in this order gives all its flows the same rate, as much as its slowest flow can have of the
   bandwidth that those before it left. A coflow that finds a port full is missed.
5. What is left goes to the flows of missed coflows in the same order, each as much as both of its ports have.
6. The agents receive the new rates. What an ended flow leaves is idle until the next interval.

The coordinator decides only at those multiples of the interval at which something can change, as under `aalo`. O(lines
of all active coflows) a decision, whatever their number of flows (`actors.fabric.equal_rates`); contention is kept up
to date (`Contention`). An agent receives one rate for all that it sends of a coflow
(`actors.fabric.agent`).

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

from actors.fabric.agent import AT_ONE_RATE, Serving, cut_served_flow
from actors.fabric.coordinator import Agenda, next_tick, request_decision
from actors.fabric.counters import N_DEMOTIONS
from actors.fabric.equal_rates import (
    Equal,
    add_rates,
    begin_tick,
    build_serving,
    end_tick,
    has_sent_more,
    next_time_above,
    receive_served_end,
    register_served,
    request_next,
    send_rates,
    serve_by_keys,
    update_ahead,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER, SEND_REST
from actors.fabric.order import Order, link, unlink
from actors.fabric.ports import Fabric, Lines, bytes_sent, lines_of
from actors.fabric.priority_queues import LIMIT_PARAMETERS, Queues
from actors.fabric.waves import are_together, enqueue_together, flows_together, queue_together
from actors.initial_arrays import at_start, count_of, per, rings_of_lines
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER
from actors.scheduler import Parameter
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.learned_and_admitted import learned_by
from actors.setting import Setting

_FIRST = np.int64(0)
# Of a key; the lower bits are the order in which coflows entered the queue.
_QUEUE_SHIFT, _CONTENTION_SHIFT = 56, 32


class Contention(NamedTuple):
    """The contention of each coflow, how many others share a port with it, kept up to date.

    Two coflows are counted if there is a port at which both have unfinished flows, and if they are of one *kind*: their
    queue, or the same for all. A coflow that arrives, changes its kind, or is done at a port changes the counts of the
    coflows at its ports. So a run costs, for each line, a step for each coflow at its port, and the test whether the
    two share another port. The lines at a port are a ring, in which port n is element `ports` + n.
    """

    ports: np.ndarray = count_of("line")  # [1] L
    next: np.ndarray = rings_of_lines()  # [L + N]
    prev: np.ndarray = rings_of_lines()  # [L + N]
    is_here: np.ndarray = per("line", False)  # a line is in the ring of its port
    num_met: np.ndarray = per("coflow")  # other coflows of its kind that share a port with a coflow
    kind: np.ndarray = per("coflow")
    met_in: np.ndarray = per("coflow")  # the last of `num_counts` counts in which a coflow was found
    num_counts: np.ndarray = per("run")


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


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: put a coflow into the first queue, with a deadline; decide at the interval's end."""
    if register_served(w, p.agenda, p.equal, p.serving, t, coflow):
        p.width[coflow] = w.fabric.coflows.left[coflow]
        queue = queue_together(w, coflow, _FIRST)
        add_coflow(w.fabric, p.contention, coflow, queue if p.by_queue else _FIRST)
        enter_queue(w, p, t, coflow, queue)
        p.queues.learned[coflow] = w.fabric.coflows.arrival[coflow]
    request_decision(w, p.agenda, t)


@compiled
def enter_queue(w: CoflowWorld, p: State, t: int, coflow: int, queue: int) -> None:
    """Put a coflow into a queue, with a deadline."""
    queues = p.queues
    enqueue_together(w, queues, coflow, queue)
    p.limit[coflow] = queues.limit[queue] / flows_together(w, coflow, p.width[coflow])
    p.deadline[coflow] = t + np.int64(min(queues.size[queue] * p.wait_per_coflow_ns[queue], 1e18))


@compiled
def on_tick(w: CoflowWorld, p: State, t: int) -> None:
    """Make the decision at the end of an interval: steps 2 to 6."""
    agenda, order, equal = p.agenda, p.order, p.equal
    if not begin_tick(w, agenda, equal, t):
        return
    demote(w, p, t)
    for i in range(agenda.used[0]):
        p.queues.keys[i] = order_key(p, t, agenda.active[i])
    serve_by_keys(w, agenda, order, equal, p.queues, t)
    add_rates(w.fabric, order, equal, _FIRST, order.used[0])
    end_tick(w, agenda, order, equal, t)
    request_next(w, agenda, equal, t, next_change(w, p, t))


@compiled
def demote(w: CoflowWorld, p: State, t: int) -> None:
    """Step 2: move each coflow to the queue for the bytes that its flows had been sent when the agents reported."""
    fabric, queues, known = w.fabric, p.queues, t - w.network.delay_ns
    update_ahead(fabric, p.equal, known)
    for i in range(p.agenda.used[0]):
        coflow = p.agenda.active[i]
        queue, width = queues.queue[coflow], flows_together(w, coflow, p.width[coflow])
        p.limit[coflow] = queues.limit[queue] / width
        while has_sent_more(fabric, p.equal, coflow, queues.limit[queue] / width, known):
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
        p.queues.learned[coflow], p.queues.learned_bytes[coflow] = t, sent
        if p.by_queue:
            change_kind(w.fabric, p.contention, coflow, queue)


@inlined
def order_key(p: State, t: int, coflow: int) -> int:
    """Step 3: return the sort key of a coflow; coflows whose deadlines have passed come first."""
    if p.deadline[coflow] <= t:
        return p.deadline[coflow] - NEVER
    queues = p.queues
    return (
        (queues.queue[coflow] << _QUEUE_SHIFT)
        | (p.contention.num_met[coflow] << _CONTENTION_SHIFT)
        | queues.entered[coflow]
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
    return next_tick(first, p.agenda.interval) if first < NEVER else NEVER


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow; its bandwidth is reassigned when the interval ends."""
    lines, line = w.fabric.lines, w.fabric.flows.line
    receive_served_end(w, p.agenda, p.equal, p.queues, t, flow, ended)
    for side in range(2):
        if lines.left[line[flow, side]] == 0:
            leave_port(w.fabric, p.contention, line[flow, side])


@compiled
def add_coflow(fabric: Fabric, contention: Contention, coflow: int, kind: int) -> None:
    """Add a coflow at all ports of its unfinished flows."""
    lines = fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                link(contention, line, contention.ports[0] + lines.port[line])
                contention.is_here[line] = True
    contention.kind[coflow] = kind
    count_neighbours_of(fabric, contention, coflow, 1)


@compiled
def change_kind(fabric: Fabric, contention: Contention, coflow: int, kind: int) -> None:
    """Change the kind of a coflow."""
    if kind != contention.kind[coflow]:
        count_neighbours_of(fabric, contention, coflow, -1)
        contention.kind[coflow] = kind
        count_neighbours_of(fabric, contention, coflow, 1)


@compiled
def count_neighbours_of(fabric: Fabric, contention: Contention, coflow: int, by: int) -> None:
    """Add `by`, 1 or -1, to the counts of a coflow and of each that shares a port with it."""
    lines = fabric.lines
    contention.num_counts[0] += 1
    contention.met_in[coflow] = contention.num_counts[0]
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if contention.is_here[line]:
                here = contention.next[contention.ports[0] + lines.port[line]]
                while here < contention.ports[0]:
                    other, here = lines.group[here], contention.next[here]
                    if (
                        contention.met_in[other] != contention.num_counts[0]
                        and contention.kind[other] == contention.kind[coflow]
                    ):
                        contention.met_in[other] = contention.num_counts[0]
                        count_pair(contention, coflow, other, by)


@inlined
def count_pair(contention: Contention, coflow: int, other: int, by: int) -> None:
    """Add `by` to the counts of two coflows that share a port."""
    contention.num_met[coflow] += by
    contention.num_met[other] += by


@compiled
def leave_port(fabric: Fabric, contention: Contention, line: int) -> None:
    """Remove a coflow from the port of one of its lines."""
    lines = fabric.lines
    coflow = lines.group[line]
    unlink(contention, line)
    contention.is_here[line] = False
    here = contention.next[contention.ports[0] + lines.port[line]]
    while here < contention.ports[0]:
        other, here = lines.group[here], contention.next[here]
        if contention.kind[other] == contention.kind[coflow] and not share_port(
            lines, contention, coflow, other
        ):
            count_pair(contention, coflow, other, -1)


@compiled
def share_port(lines: Lines, contention: Contention, a: int, b: int) -> bool:
    """Return whether two coflows both have unfinished flows at a port."""
    for side in range(2):
        i, j = lines.first_line[a, side], lines.first_line[b, side]
        while i < lines.end_line[a, side] and j < lines.end_line[b, side]:
            if lines.port[i] == lines.port[j]:
                if contention.is_here[i] and contention.is_here[j]:
                    return True
                i, j = i + 1, j + 1
            elif lines.port[i] < lines.port[j]:
                i += 1
            else:
                j += 1
    return False


advance, advance_transfers = coordinator_loops(
    __name__,
    State,
    {REGISTER: on_arrival, FLOW_DONE: on_flow_done, SEND_REST: send_rates, DECIDE: on_tick},
    AT_ONE_RATE,
    cut_served_flow,
)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    limits = given["first_limit_bytes"] * given["factor"] ** np.arange(given["queues"], dtype=np.float64)
    return build_serving(
        setting,
        State,
        True,
        contention=lambda fabric: at_start(Contention, fabric),
        by_queue=lambda fabric: given["contention"] == "queue",
        wait_per_coflow_ns=lambda fabric: given["deadline_factor"] * limits / fabric.speed.max(),
    )


SAATH = coflow_scheduler(
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
    series=learned_by,
)
