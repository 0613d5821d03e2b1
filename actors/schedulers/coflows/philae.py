"""Philae (ATC 2019): coflow sizes learned by sampling. Not clairvoyant.

A few flows of a coflow, its pilots, are sent first; their mean size times the number of flows is the estimate of the
coflow's size. Then the shortest coflow goes first, by this size and by the contention at its ports.

1. A coflow registers. A coflow of up to `thin_limit` flows is thin: all its flows are served at once, before all
   others; of thin coflows that one first that shares ports with the fewest other thin coflows. For other coflows pilots
   are chosen, by default from the least busy senders to the least busy receivers
   (`actors/schedulers/coflows/philae_pilots.py`).
2. Pilots are served next, first in, first out, each with both of its ports alone. With `work_conservation` the other
   flows of a coflow that is being sampled get ports that are otherwise idle.
3. When all pilots of a coflow have ended, the mean of their sizes is l, the estimated size of its flows. It enters the
   priority queue (`actors.fabric.priority_queues`) of its measure, which `policy` determines, for a coflow of n flows
   that has sent d bytes. A: n l. B: n l - d. C: the number of other coflows that share a port with it. D: the sum of l
   c(p) over its ports p with unfinished flows, where c(p) is the number of other coflows at port p.
4. A decision: a coflow whose measure has changed may go to the tail of another queue, up or down. Queues are served in
   their order, and in a queue first in, first out: each flow in turn gets both of its ports if they are free.
5. Between decisions the order stays, and the ports of a flow that ends go to the next flows in it at once: a refill.

Decisions are made when a coflow registers, when it ends, and when all of its pilots have ended (section 8); under C and
D also when a coflow is done at a port at which there are others, as contention then changes (section 5); and when a
queue's slot is over. Agents report only ends of flows. `actors/schedulers/coflows/philae_updates.py` describes what an
update of a coflow changes.

**Deviations from the paper.** In the paper agents keep to the last schedule until they receive another. It does not say
what happens at a port whose flow ends before; if the port were idle, a coflow that is alone would stop forever. Here
the coordinator serves the port by the order of its last decision. `decide=flow-ends` makes every end a decision;
`decide=interval` decides at the end of every interval, as the authors' simulator does. c(p) counts the other coflows,
as in the paper; the simulator also counts the coflow itself: `count_itself=true`. The simulator has no work
conservation: `work_conservation=false`. The simulator's policy C has neither pilots nor thin coflows, and the paper's
has both: `pilots=none`, `thin_limit=0`. C compares contention with limits in bytes; with the authors' unit of one byte
(`contention_unit_bytes`) all coflows stay in the first queue, and C is first in, first out. In the simulator queues
without a slot starve; here they do not: `least_intervals`. Pilots and thin coflows go before all queues, as in the
paper, and a port that is full of them serves no others. The order of thin coflows is that of the authors' code; the
paper has none. Under B the estimate of what is left of an underestimated coflow may be negative; the coflow then goes
to the first queue. `size_correction` scales the measure with what is left of the estimate (section 4.5, failure
tolerance); without failures that is a remaining-size policy, so it is off by default.
"""

import numpy as np

from actors.fabric.agent import agent_event, cut_flow
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    end_greedy,
    handle_event,
    handle_events,
    has_more_to_send,
    note_decision,
    note_report,
    register,
    remove_ended,
    request_decision,
    send_greedy_rates,
)
from actors.fabric.counters import N_PILOTS, N_REFILLS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import fill_ports, move_group
from actors.fabric.ports import merge_parallel, pilot_group
from actors.fabric.priority_queues import (
    QUEUE_PARAMETERS,
    RANK_SHIFT,
    UNQUEUED,
    dequeue,
    in_turns,
    next_tick,
    order_key,
    update_slot,
)
from actors.fabric.waves import flows_together, length_together
from actors.fabric.worlds import COFLOW_WORLDS
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.inputs import HasInputs
from actors.kernel.world import NEVER
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.learned_and_admitted import Learned, learned_by
from actors.schedulers.coflows.philae_measures import (
    BACKFILL,
    MAIN,
    PILOTS,
    B,
    C,
    D,
    appear_at_ports,
    count_neighbours,
    enter_queue,
    is_thin,
    learn,
    leave_port,
    mark_moved,
    mark_thin_at_ports,
    move,
)
from actors.schedulers.coflows.philae_pilots import (
    PILOT_PARAMETERS,
    SAMPLES,
    choose_pilots,
    has_pilot,
    line_at,
)
from actors.schedulers.coflows.philae_state import EVENTS, INTERVALS, State, build
from actors.schedulers.coflows.philae_updates import update_coflow
from actors.setting import Setting
from actors.transfers.joined import Coordinated, handle_coordinated


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Steps 1 and 2: register a coflow, and choose its pilots if it is not thin."""
    p.width[coflow] = w.fabric.coflows.left[coflow]
    if not register(w, p.agenda, t, coflow):
        return
    p.queues.queue[coflow] = UNQUEUED
    p.num_active[0] += 1
    appear_at_ports(w, p, t, coflow)
    if flows_together(w, coflow, w.fabric.coflows.left[coflow]) > p.thin_limit:
        p.length[coflow] = length_together(w, coflow)
        if p.samples and p.length[coflow] == 0.0:
            p.pilots_left[coflow] = choose_pilots(w, p.busy, coflow, p.random_ports)
            w.counts[N_PILOTS] += p.pilots_left[coflow]
        else:
            enter_queue(w, p, t, coflow)
    mark_moved(p, coflow)
    if p.policy == C and not is_thin(p, coflow):
        set_levels(w, p, t, coflow)  # so that it is counted at its ports
    elif is_thin(p, coflow):
        place = w.fabric.coflows.place[coflow]
        move_group(w.fabric, p.ranking, p.matching, t, coflow, place)  # so that it is counted at its ports
        mark_thin_at_ports(w, p, coflow)
    request_reorder(w, p, t)


@inlined
def request_reorder(w: CoflowWorld, p: State, t: int) -> None:
    """Request a decision, at once or when the interval ends."""
    p.stale[0] = True
    request_decision(w, p.agenda, next_tick(t, p.queues.interval) if p.decide_at == INTERVALS else t)


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow to the sample and to the contention; request a decision, or a refill."""
    fabric, flows, lines = w.fabric, w.fabric.flows, w.fabric.lines
    note_report(w, t, NO_AGENT_REPORTS, flows.source[flow])
    if has_more_to_send(w, flow):
        return
    coflow, group = flows.coflow[flow], lines.group[flows.line[flow, 0]]
    coflow_ended = end_greedy(w, p.ranking, p.matching, flow, ended)
    is_pilot = group != coflow
    decides = coflow_ended or p.decide_at != EVENTS
    for side in range(2):
        line = flows.line[flow, side]
        port = flows.source[flow] if side == 0 else flows.sink[flow]
        if is_pilot:
            p.busy[port] -= 1
            line = line_at(lines, coflow, side, port)
        if lines.left[line] == 0 and (
            p.pilots_left[coflow] == 0 or not has_pilot(fabric, coflow, side, port)
        ):
            leave_port(w, p, t, coflow, port, coflow_ended)
            decides = decides or changes_contention(p, port)
    if is_pilot:
        p.pilots_left[coflow] -= 1
        p.pilots_done[coflow] += 1
        p.pilot_bytes[coflow] += flows.size[flow]
        if p.pilots_left[coflow] == 0:
            learn(w, p, t, coflow)
            decides = True
    if coflow_ended:
        dequeue(p.queues, coflow)
        p.num_active[0] -= 1
    if decides:
        request_reorder(w, p, t)
    else:
        request_decision(w, p.agenda, t)


@inlined
def changes_contention(p: State, port: int) -> bool:
    """Return whether the measure of another coflow changes because one has left a port."""
    return (p.policy == C or p.policy == D) and p.coflows_at_port[port] + 1 - p.excludes_itself > 0


@compiled
def on_update(w: CoflowWorld, p: State, t: int, k: int) -> None:
    """Apply an update of a coflow."""
    if update_coflow(w, p, t, k):
        request_reorder(w, p, t)


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Make a decision, or refill ports that ended flows have left, in the last order; send what has changed."""
    is_decision = p.stale[0] or t >= p.queues.clock.end[0]
    p.stale[0] = False
    if is_decision:
        put_in_order(w, p, t)
        note_decision(w, p.num_active[0])
    else:
        w.counts[N_REFILLS] += 1
    fill_ports(w.fabric, p.ranking, p.matching, t + w.network.delay_ns)
    send_greedy_rates(w, p.matching, t)
    if p.queues.clock.end[0] < NEVER:
        request_decision(w, p.agenda, p.queues.clock.end[0])


@compiled
def put_in_order(w: CoflowWorld, p: State, t: int) -> None:
    """Step 4: recompute the levels of coflows that have moved."""
    q = p.queues
    if p.policy == B or p.policy == C or p.corrects:
        for i in range(remove_ended(w, p.agenda)):
            if q.queue[p.agenda.active[i]] >= 0:
                move(w, p, t, p.agenda.active[i])
    update_slot(q, t)
    if q.clock.queue[0] != p.last_slot[0]:
        mark_slot_change(w, p)
    effective = t + w.network.delay_ns
    for i in range(p.num_moved[0]):
        coflow = p.moved[i]
        p.is_moved[coflow] = False
        if w.fabric.coflows.left[coflow] > 0:
            set_levels(w, p, effective, coflow)
    p.num_moved[0] = 0


@compiled
def mark_slot_change(w: CoflowWorld, p: State) -> None:
    """Mark the coflows of the queue whose slot begins, and of the queue whose slot is over, as moved."""
    q, slot = p.queues, p.queues.clock.queue[0]
    for i in range(remove_ended(w, p.agenda)):
        queue = q.queue[p.agenda.active[i]]
        if queue >= 0 and (queue == slot or queue == p.last_slot[0]):
            mark_moved(p, p.agenda.active[i])
    p.last_slot[0] = slot


@compiled
def set_levels(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Give each group of a coflow its level: that of a queue, of thin coflows, of pilots, or of backfill."""
    fabric, r, m, place = w.fabric, p.ranking, p.matching, w.fabric.coflows.place[coflow]
    if p.queues.queue[coflow] >= 0:
        move_group(fabric, r, m, t, coflow, MAIN | order_key(p.queues, coflow))
    elif p.pilots_left[coflow] == 0:
        thin = count_neighbours(w, p, coflow, True)
        move_group(fabric, r, m, t, coflow, (thin << RANK_SHIFT) | place)
    else:
        move_group(fabric, r, m, t, pilot_group(fabric, coflow), PILOTS | place)
        if p.conserves:
            move_group(fabric, r, m, t, coflow, BACKFILL | place)


@inlined
def on_event(w: CoflowWorld, p: State) -> bool:
    """Handle the event at hand; return whether the host must decide."""
    return handle_event(
        w, p, w.sending, on_agent_event=agent_event,
        on_flow_done=on_flow_done, on_arrival=on_arrival, on_update=on_update, on_decide=on_decide,
    )  # fmt: skip


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(w, p, until, most, on_event)


@entry
def advance_transfers(w: HasInputs, p: Coordinated, until: int, most: int) -> int:
    """Handle events of the network of DAG jobs whose transfers are coflows; return the stop reason."""
    return handle_coordinated(w, p, until, most, on_event, cut_flow)


def series(setting: Setting, world: CoflowWorld, state: State) -> Learned | None:
    """Return when the size of each coflow was learned, what it had sent by then, and its estimate."""
    width = np.diff(merge_parallel(setting.workload.arrays())[0].first_flow)
    return learned_by(world, state.learned, state.learned_bytes, state.length * width)


PHILAE = Scheduler(
    name="philae",
    title="sizes learned from pilot flows, then shortest coflow first by size and contention",
    paper="Jajoo, Gandhi, Hu: Your Coflow has Many Flows (Philae), USENIX ATC 2019",
    # Sizes of coflows are not known without pilots.
    refuses=tuple({"pilots": "none", "policy": policy} for policy in ("A", "B", "D")),
    rule=in_turns("pilot flows go first, then coflows that are estimated to be small"),
    about=__doc__,  # `build` is in philae_state.py
    parameters=(
        Parameter(
            "policy",
            "D",
            "choice",
            "the measure that determines a coflow's queue",
            choices=("A", "B", "C", "D"),
        ),
        *PILOT_PARAMETERS,
        Parameter(
            "work_conservation",
            True,
            "flag",
            "idle ports serve coflows that are being sampled",
            needs=SAMPLES,
        ),
        Parameter(
            "size_correction",
            False,
            "flag",
            "the measure shrinks with what is left of the estimate",
            needs=("policy=A|C|D",),
        ),
        Parameter(
            "count_itself",
            False,
            "flag",
            "a coflow counts itself among the coflows at a port, as in the authors' simulator",
            needs=("policy=D",),
        ),
        Parameter(
            "contention_unit_bytes",
            1,
            "size",
            "what each coflow counts for in policy C",
            low=1,
            needs=("policy=C",),
        ),
        Parameter(
            "decide",
            "events",
            "choice",
            "when: at events, at these and every end of a flow, or at the end of intervals in which there were events",
            choices=("events", "flow-ends", "interval"),
        ),
        *QUEUE_PARAMETERS,
    ),
    build=build,
    advance=advance,
    transfers=advance_transfers,
    worlds=COFLOW_WORLDS,
    updatable="always",
    series=series,
)
