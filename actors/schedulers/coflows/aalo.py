"""Aalo (SIGCOMM 2015): coflows move down priority queues as they send. Not clairvoyant.

No size is known in advance. A coflow starts in the highest queue, and moves down when it has sent more than the queue's
limit: discretized coflow-aware least-attained service (D-CLAS). Small coflows end in high queues.

1. A coflow registers: it enters the first queue.
2. Every `interval_s` agents report what coflows have sent. A coflow that has sent more than its queue's limit goes to
   the tail of the queue for what it has sent.
3. Queues are served in their order, and the coflows of a queue first in, first out: each flow in turn gets both of its
   ports if they are free. Queues share time (`actors.fabric.priority_queues`): in a round the first queue with coflows
   is served first for `slot_intervals`, and each later queue for `share` times fewer, but at least `least_intervals`.
4. The agents receive which flows start and stop. A port whose flow has ended is idle until the next interval.

The coordinator decides only at those multiples of the interval at which something can change. Reports without news are
counted; if costs are charged, the coordinator handles all of them. O(active coflows + lines of those that change their
queue) a decision, O(words of a line) a flow that starts or stops.

**Deviations from the paper.** Within a queue, flows have a whole port one after another, as in the experiments of
Philae's authors, and not equal shares. Queues share time in slots, as there, and not bandwidth. (`aalo-shares` has both
of the paper's rules.) If each slot is a tenth of the slot before it, the last of ten queues is served for one interval
in three months: hence `least_intervals`. In the simulator of Philae's authors a queue whose slot is shorter than an
interval has no slot, and starves: `least_intervals=0`. `starvation=strict` is CoflowSim's rule.

`aalo-oracle` knows each coflow's size, and puts the coflow into its last queue at once: the difference to `aalo` is the
cost of learning sizes. Deviations from the paper: those of `aalo`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from actors.fabric.agent import BY_FLOW, cut_flow
from actors.fabric.coordinator import (
    Agenda,
    charge_reports,
    enter_interval,
    has_costs,
    next_tick,
    note_decision,
    register,
    remove_ended,
    request_decision,
    wake_coordinator,
)
from actors.fabric.counters import N_DEMOTIONS
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.greedy import (
    COFLOW_ENDED,
    UNCHANGED,
    Matching,
    apply_update,
    fill_ports,
    make_matching,
    move_group,
    receive_end,
    send_greedy_rates,
)
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER, UPDATE
from actors.fabric.priority_queues import (
    QUEUE_PARAMETERS,
    Queues,
    dequeue,
    in_turns,
    make_queues,
    order_key,
    queue_of,
    update_slot,
)
from actors.fabric.waves import (
    enqueue_together,
    queue_together,
    rate_together,
    sent_together,
    sum_waves,
)
from actors.initial_arrays import at_start
from actors.kernel.compiled import compiled
from actors.kernel.queue import NEVER
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.learned_and_admitted import learned_by
from actors.setting import Setting

_FIRST = np.int64(0)


class State(NamedTuple):
    """The state of the coordinator of C coflows."""

    agenda: Agenda
    matching: Matching
    queues: Queues
    size: np.ndarray  # [C] bytes, if sizes are known; otherwise empty


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: put a coflow into the first queue, or its last one if sizes are known; decide at the interval's end."""
    enter_interval(w, t, p.matching.running[0])
    if register(w, p.agenda, t, coflow):
        queue = queue_of(p.queues, p.size[coflow]) if p.size.size > 0 else queue_together(w, coflow, _FIRST)
        enqueue_together(w, p.queues, coflow, queue)
        p.queues.learned[coflow] = w.fabric.coflows.arrival[coflow]
    request_decision(w, p.agenda, t)


@compiled
def on_tick(w: CoflowWorld, p: State, t: int) -> None:
    """Make the decision at the end of an interval: steps 2 to 4."""
    queues, matching = p.queues, p.matching
    enter_interval(w, t, matching.running[0])
    charge_reports(w, matching.running[0])
    count = remove_ended(w, p.agenda)
    if p.size.size == 0:
        demote(w, p.agenda, queues, t)
    update_slot(queues, t)
    effective = t + w.network.delay_ns
    for i in range(count):
        coflow = p.agenda.active[i]
        level = order_key(queues, coflow)
        if level != matching.ranking.level[coflow]:
            move_group(w.fabric, matching, effective, coflow, level)
    fill_ports(w.fabric, matching, effective)
    note_decision(w, count)
    send_greedy_rates(w, matching, t)
    if count > 0:
        following = next_tick(t + 1, queues.interval)
        if not has_costs(w):
            crossing = next_crossing(w, p.agenda, queues, t) if p.size.size == 0 else NEVER
            following = max(following, min(queues.clock.end[0], crossing))
        wake_coordinator(w, p.agenda, following)


@compiled
def demote(w: CoflowWorld, agenda: Agenda, queues: Queues, t: int) -> None:
    """Step 2: move each coflow to the queue for the bytes that it had sent when the agents reported."""
    known = t - w.network.delay_ns
    sum_waves(w, agenda.active, agenda.used[0], known)
    for i in range(agenda.used[0]):
        coflow = agenda.active[i]
        sent = sent_together(w, known, coflow)
        queue = queue_of(queues, sent)
        if queue > queues.queue[coflow]:
            enqueue_together(w, queues, coflow, queue)
            w.counts[N_DEMOTIONS] += 1
            queues.learned[coflow], queues.learned_bytes[coflow] = t, sent


@compiled
def next_crossing(w: CoflowWorld, agenda: Agenda, queues: Queues, t: int) -> int:
    """Return the first multiple of the interval at which a coflow is known to have sent more than its queue's limit."""
    first, known = NEVER, t - w.network.delay_ns
    sum_waves(w, agenda.active, agenda.used[0], known)
    for i in range(agenda.used[0]):
        coflow = agenda.active[i]
        limit, rate = queues.limit[queues.queue[coflow]], rate_together(w, coflow)
        if rate > 1e-12 and limit < np.inf:
            in_ns = max((limit - sent_together(w, known, coflow)) / rate, 0.0)
            if in_ns < 1e18:
                first = min(first, next_tick(t + np.int64(in_ns) + 1, queues.interval))
    return first


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow; its ports are reassigned when the interval ends."""
    change = receive_end(w, p.matching, t, p.matching.running[0], flow, ended)
    note_change(w, p, t, change, w.fabric.flows.coflow[flow])


@compiled
def on_update(w: CoflowWorld, p: State, t: int, update: int) -> None:
    """Apply an update of a coflow; what must be sent again is scheduled when the interval ends."""
    enter_interval(w, t, p.matching.running[0])
    change = apply_update(w, p.matching, t, update)
    note_change(w, p, t, change, w.updates.row.coflow[update])


@compiled
def note_change(w: CoflowWorld, p: State, t: int, change: int, coflow: int) -> None:
    """Decide at the interval's end if a coflow has changed, or ended."""
    if change == COFLOW_ENDED:
        dequeue(p.queues, coflow)
    if change != UNCHANGED:
        request_decision(w, p.agenda, t)


advance, advance_transfers = coordinator_loops(
    __name__,
    State,
    {REGISTER: on_arrival, FLOW_DONE: on_flow_done, UPDATE: on_update, DECIDE: on_tick},
    BY_FLOW,
    cut_flow,
)


def build(setting: Setting, knows_sizes: bool) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    world = build_world(setting, interval_s=setting.parameters["interval_s"])
    fabric, work = world.fabric, setting.workload.arrays()
    queues = make_queues(fabric, setting.parameters)
    return world, State(
        agenda=at_start(Agenda, fabric, interval=queues.interval),
        matching=make_matching(fabric),
        queues=queues,
        size=np.add.reduceat(work.size_bytes, work.first_flow[:-1]) if knows_sizes else np.zeros(0),
    )


AALO, AALO_ORACLE = (
    coflow_scheduler(
        name=name,
        title=title,
        paper=paper,
        parameters=QUEUE_PARAMETERS,
        build=partial(build, knows_sizes=knows_sizes),
        advance=advance,
        transfers=None if knows_sizes else advance_transfers,
        updatable="always",
        series=learned_by,
        rule=in_turns(f"{rule}, and in a queue the one that arrived first goes first"),
    )
    for name, title, paper, knows_sizes, rule in (
        (
            "aalo",
            "coflows sink through priority queues as they send",
            "Chowdhury, Stoica: Aalo, SIGCOMM 2015, doi 10.1145/2785956.2787480",
            False,
            "coflows that have sent less are in higher queues",
        ),
        (
            "aalo-oracle",
            "aalo that puts each coflow into its last queue at once",
            "Jajoo, Gandhi, Hu: Philae, USENIX ATC 2019, section 8.4",
            True,
            "smaller coflows are in higher queues",
        ),
    )
)
