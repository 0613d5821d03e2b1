"""Philae (ATC 2019): coflow sizes learned by sampling. Not clairvoyant.

A few flows of a coflow, its pilots, are sent first; their mean size times the number of flows is the estimate of the
coflow's size. Then the shortest coflow goes first, by this size and by the contention at its ports.

1. A coflow registers. A coflow of up to `thin_limit` flows is thin: all its flows are served at once, before all
   others; of thin coflows that one first that shares ports with the fewest other thin coflows. For other coflows pilots
   are chosen, by default from the least busy senders to the least busy receivers.
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
queue's slot is over. Agents report only ends of flows. What an update changes stands before `update_coflow`.

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

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.agent import BY_FLOW, cut_flow
from actors.fabric.coordinator import (
    AT_EVENTS,
    NO_AGENT_REPORTS,
    Agenda,
    note_decision,
    register,
    remove_ended,
    request_decision,
    wake_coordinator,
)
from actors.fabric.counters import N_DEMOTIONS, N_PILOTS, N_REFILLS
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.greedy import (
    COFLOW_ENDED,
    UNCHANGED,
    Matching,
    fill_ports,
    make_matching,
    move_group,
    receive_end,
    receive_update,
    resend_flow,
    send_greedy_rates,
    settle_coflow,
    stop_updated_flow,
)
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER, UPDATE
from actors.fabric.port_sets import bit_of, bits_before, count_bits
from actors.fabric.ports import (
    Fabric,
    Lines,
    add_to_line,
    bytes_sent,
    coflow_of,
    flows_of,
    is_pilot_group,
    lines_of,
    merge_parallel,
    pilot_group,
    remove_from_line,
)
from actors.fabric.priority_queues import (
    QUEUE_PARAMETERS,
    RANK_SHIFT,
    UNQUEUED,
    Queues,
    dequeue,
    enqueue,
    in_turns,
    make_queues,
    order_key,
    queue_of,
    update_slot,
)
from actors.fabric.sampling import fill_pilots, sampling_of
from actors.fabric.waves import flows_together, learn_together, length_together
from actors.initial_arrays import at_start, list_per, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.kernel.random import PROBES, below, random_bits
from actors.scheduler import Parameter
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.schedulers.coflows.learned_and_admitted import Learned, learned_by
from actors.setting import Setting
from workloads.coflows import CoflowArrays


class State(NamedTuple):
    """The state of the coordinator of C coflows and N ports."""

    agenda: Agenda
    matching: Matching
    queues: Queues
    policy: int  # A, B, C, D
    thin_limit: int
    excludes_itself: int  # 1: a coflow is not counted in its own contention
    unit: float  # bytes that a coflow counts for in policy C
    conserves: bool
    corrects: bool
    at_flow_ends: bool  # each end of a flow makes a decision, and not only a refill
    samples: bool  # coflows that are not thin have pilots
    random_ports: bool
    width: np.ndarray = per("coflow")  # flows of a coflow
    pilots_left: np.ndarray = per("coflow")  # pilots that have not ended
    pilots_done: np.ndarray = per("coflow")  # pilots that have ended
    pilot_bytes: np.ndarray = per("coflow", 0.0)  # of pilots that have ended
    length: np.ndarray = per("coflow", 0.0)  # estimated bytes of a flow, 0.0 before
    busy: np.ndarray = per("port")  # pilots at a port
    coflows_at_port: np.ndarray = per("port")  # coflows with unfinished flows at a port
    contention_sum: np.ndarray = per("coflow")  # the sum of c(p) over the ports of a coflow in a queue
    met_in: np.ndarray = per("coflow")  # scratch: the last count in which a coflow was met
    num_counts: np.ndarray = per("run")  # counts so far
    num_active: np.ndarray = per("run")  # active coflows
    last_slot: np.ndarray = per("run", NONE)  # the queue whose slot it was at the last decision
    moved: np.ndarray = list_per("coflow")  # coflows that may have another level than at the last decision
    num_moved: np.ndarray = per("run")
    is_moved: np.ndarray = per("coflow", False, lasts=True)  # whether a coflow is one of them
    # scratch: whether a coflow was at a port before an update, or NONE
    was_at_port: np.ndarray = per("port", NONE)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    pilots = pilots_of(merge_parallel(setting.workload.arrays())[0], given)
    world = build_world(setting, interval_s=given["interval_s"], pilots=pilots)
    fabric, queues = world.fabric, make_queues(world.fabric, given)
    interval = queues.interval if given["decide"] == "interval" else int(AT_EVENTS)
    return world, at_start(
        State,
        fabric,
        agenda=at_start(Agenda, fabric, interval=interval),
        matching=make_matching(fabric),
        queues=queues,
        policy="ABCD".index(given["policy"]),
        thin_limit=given["thin_limit"],
        excludes_itself=int(not given["count_itself"]),
        unit=float(given["contention_unit_bytes"]),
        conserves=given["work_conservation"],
        corrects=given["size_correction"],
        at_flow_ends=given["decide"] != "events",
        samples=given["pilots"] != "none",
        random_ports=given["pilot_ports"] == "random",
    )


# Which flows of a coflow Philae sends ahead (Jajoo, Gandhi, Hu; ATC 2019, section 4.2).
#
# How many: a share of its senders, a share of its flows, or a number. Which: from its least busy sender to the least
# busy receiver of this sender, where the pilots at a port, of all coflows, say how busy it is; or from random ports.

_EMPTY = np.uint64(0)

SAMPLES = ("pilots=senders|flows|number",)
PILOT_PARAMETERS = (
    Parameter("thin_limit", 7, "integer", "flows up to which a coflow has no pilots", low=0, high=1 << 40),
    Parameter(
        "pilots",
        "senders",
        "choice",
        "how many pilots a coflow has: a share of its senders, a share of its flows, a number, or none (policy C)",
        choices=("senders", "flows", "number", "none"),
    ),
    Parameter(
        "pilot_share", 0.05, "share", "that share; one pilot is the least", needs=("pilots=senders|flows",)
    ),
    Parameter("pilot_number", 5, "integer", "that number", low=1, high=1 << 20, needs=("pilots=number",)),
    Parameter(
        "pilot_ports",
        "least-busy",
        "choice",
        "between which ports: those with the fewest pilots, or random ones",
        choices=("least-busy", "random"),
        needs=SAMPLES,
    ),
)


def pilots_of(work: CoflowArrays, parameters: dict[str, Any]) -> np.ndarray:
    """Return [C] how many pilots each coflow has: 0 if it is thin, and at most all of its flows."""
    coflows, flows, ports = work.arrival_ns.size, np.diff(work.first_flow), work.ingress_bytes_per_s.size
    coflow, pilots = np.repeat(np.arange(coflows), flows), np.zeros(coflows, np.int64)
    senders = np.bincount(np.unique(coflow * ports + work.ingress) // ports, minlength=coflows)
    fill_pilots(sampling_of(parameters), flows, senders, pilots)
    return pilots


@compiled
def choose_pilots(w: CoflowWorld, busy: np.ndarray, coflow: int, at_random: bool) -> int:
    """Choose the pilots of a coflow, make them a group of their own, and return how many there are."""
    fabric, lines = w.fabric, w.fabric.lines
    group = pilot_group(fabric, coflow)
    rows, columns = lines_of(lines, coflow, 0), lines_of(lines, coflow, 1)
    ingress, egress = lines.first_line[group, 0], lines.first_line[group, 1]
    count = len(lines_of(lines, group, 0))
    for i in range(count):
        if at_random:
            row = draw_line(w, coflow, 2 * i, rows, NONE)
            column = draw_line(w, coflow, 2 * i + 1, columns, row)
        else:
            row = least_busy(lines, busy, rows, NONE)
            column = least_busy(lines, busy, columns, row)
        if row == NONE or column == NONE:
            return i  # the other flows of the coflow take no bandwidth
        separate_pilot(fabric, row, column, ingress + i, egress + i)
        busy[lines.port[row]] += 1
        busy[lines.port[column]] += 1
    return count


@inlined
def may_join(lines: Lines, line: int, row: int) -> bool:
    """Return whether a line has unfinished flows, one of which is also in the line `row` unless that is NONE."""
    return lines.left[line] > 0 and (row == NONE or has_flow_to(lines, row, lines.port[line]))


@compiled
def least_busy(lines: Lines, busy: np.ndarray, among: range, row: int) -> int:
    """Return the first line, of those that may join, whose port has the fewest pilots."""
    best: int = NONE
    for line in among:
        if (best == NONE or busy[lines.port[line]] < busy[lines.port[best]]) and may_join(lines, line, row):
            best = line
    return best


@compiled
def draw_line(w: CoflowWorld, coflow: int, draw: int, among: range, row: int) -> int:
    """Return a random line, or the next line after it that may join."""
    lines = w.fabric.lines
    begin = below(random_bits(w.seed, PROBES, coflow, draw), len(among)) if len(among) > 0 else 0
    for i in range(len(among)):
        line = among.start + (begin + i) % len(among)
        if may_join(lines, line, row):
            return line
    return NONE


@compiled
def has_flow_to(lines: Lines, line: int, port: int) -> bool:
    """Return whether a line has an unfinished flow whose other port is `port`."""
    for b in range(lines.block[line], lines.end[line]):
        if lines.word[b] == port >> 6:
            return lines.bits[b] & bit_of(port) != _EMPTY
    return False


@compiled
def separate_pilot(fabric: Fabric, row: int, column: int, pilot_row: int, pilot_column: int) -> None:
    """Move the flow of an ingress line (row) and an egress line (column) to lines of its own."""
    lines, flows = fabric.lines, fabric.flows
    for side in range(2):
        line, other = (row, column) if side == 0 else (column, row)
        own = pilot_row if side == 0 else pilot_column
        port = lines.port[other]
        flow = assign_pilot_line(lines, own, line, port)
        add_to_line(lines, own, port, flows.size[flow])
        remove_from_line(lines, line, port, flows.size[flow])
        flows.line[flow, side] = own


@compiled
def assign_pilot_line(lines: Lines, own: int, line: int, port: int) -> int:
    """Set up a pilot's line for the flow of another line to a port, and return that flow."""
    b, c = lines.block[line], lines.block[own]
    while lines.word[b] != port >> 6:
        b += 1
    lines.first[c] = lines.first[b] + count_bits(lines.mask[b] & bits_before(bit_of(port)))
    lines.word[c], lines.bits[c], lines.mask[c] = port >> 6, _EMPTY, bit_of(port)
    lines.port[own] = lines.port[line]
    return lines.flow[lines.first[c]]


@compiled
def line_at(lines: Lines, coflow: int, side: int, port: int) -> int:
    """Return the line of a coflow at one of its ports."""
    low, high = lines.first_line[coflow, side], lines.end_line[coflow, side]
    while high - low > 1:
        mid = (low + high) >> 1
        if lines.port[mid] <= port:
            low = mid
        else:
            high = mid
    return low


@compiled
def has_pilot(fabric: Fabric, coflow: int, side: int, port: int) -> bool:
    """Return whether a coflow has a pilot at a port that has not ended."""
    lines, group = fabric.lines, pilot_group(fabric, coflow)
    for line in lines_of(lines, group, side):
        is_here = lines.port[line] == port
        if is_here and lines.left[line] > 0:
            return True
    return False


# The measure by which Philae chooses a coflow's queue: its size, and its contention (ATC 2019, section 4.4).
#
# The number of coflows at each port is kept up to date: a coflow that arrives at a port, or is done there, changes the
# measure of the others.

A, B, C, D = range(4)
# Classes of groups, in the order in which they are served; thin coflows come before all of them.
_CLASS_SHIFT = 56
PILOTS = np.int64(1) << _CLASS_SHIFT
MAIN = np.int64(2) << _CLASS_SHIFT
BACKFILL = np.int64(3) << _CLASS_SHIFT


@compiled
def learn(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 3: estimate the size of a coflow whose pilots have all ended."""
    p.length[coflow] = p.pilot_bytes[coflow] / p.pilots_done[coflow]
    learn_together(w, coflow, p.length[coflow])
    p.queues.learned[coflow], p.queues.learned_bytes[coflow] = t, bytes_sent(w.fabric.coflows, t, coflow)
    if w.fabric.coflows.left[coflow] > 0:
        enter_queue(w, p, t, coflow)


@compiled
def enter_queue(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Compute the contention at the ports of a coflow, and put it into the queue of its measure."""
    lines, contention_sum = w.fabric.lines, 0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                contention_sum += p.coflows_at_port[lines.port[line]] - p.excludes_itself
    p.contention_sum[coflow] = contention_sum
    enqueue(p.queues, coflow, queue_of(p.queues, measure(w, p, t, coflow)))
    # Now, not at the decision, so that the coflow is counted at its ports when others leave them.
    if p.policy == D and p.matching.ranking.level[coflow] == NONE:
        move_group(w.fabric, p.matching, t, coflow, MAIN | order_key(p.queues, coflow))
    mark_moved(p, coflow)


@compiled
def measure(w: CoflowWorld, p: State, t: int, coflow: int) -> float:
    """Return the measure of a coflow, which determines its queue, bytes."""
    coflows = w.fabric.coflows
    size = p.length[coflow] * p.width[coflow]
    if p.policy == A:
        found = size
    elif p.policy == B:
        return max(size - bytes_sent(coflows, t, coflow), 1.0)
    elif p.policy == C:
        return p.unit * count_neighbours(w, p, coflow, False)
    else:
        found = p.length[coflow] * p.contention_sum[coflow]
    if p.corrects and size > 0.0:
        found *= max(1.0 - bytes_sent(coflows, t, coflow) / size, 0.0)
    return found


@compiled
def change_coflows_at_port(w: CoflowWorld, p: State, t: int, port: int, by: int) -> None:
    """Add `by` to the number of coflows at a port; the others there may move to another queue."""
    lines, ranking = w.fabric.lines, p.matching.ranking
    p.coflows_at_port[port] += by
    if p.policy != D:
        return
    line = ranking.next[ranking.ports[0] + port]
    while line < ranking.ports[0]:
        coflow = lines.group[line]
        if not is_pilot_group(w.fabric, coflow) and p.queues.queue[coflow] >= 0:
            p.contention_sum[coflow] += by
            move(w, p, t, coflow)
        line = ranking.next[line]


@compiled
def appear_at_ports(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Count a coflow that has registered at its ports."""
    lines = w.fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                change_coflows_at_port(w, p, t, lines.port[line], 1)


@inlined
def leave_port(w: CoflowWorld, p: State, t: int, coflow: int, port: int, coflow_ended: bool) -> None:
    """Remove a coflow from a port at which it has no unfinished flow left."""
    if p.queues.queue[coflow] >= 0:
        p.contention_sum[coflow] -= p.coflows_at_port[port] - p.excludes_itself
        if p.policy == D and not coflow_ended:
            move(w, p, t, coflow)
    change_coflows_at_port(w, p, t, port, -1)
    if is_thin(p, coflow):
        mark_thin_at_port(w, p, port)


@inlined
def return_to_port(w: CoflowWorld, p: State, t: int, coflow: int, port: int) -> None:
    """Add a coflow at a port where it had no unfinished flow, and has one now."""
    if p.queues.queue[coflow] >= 0:
        # The coflow is in a queue, so `change_coflows_at_port` counts it once more where it counts itself.
        p.contention_sum[coflow] += p.coflows_at_port[port] - p.excludes_itself
    change_coflows_at_port(w, p, t, port, 1)
    if is_thin(p, coflow):
        mark_thin_at_port(w, p, port)


@inlined
def move(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 4: put a coflow into the queue of its measure, if that has changed."""
    queue = queue_of(p.queues, measure(w, p, t, coflow))
    if queue != p.queues.queue[coflow]:
        enqueue(p.queues, coflow, queue)
        mark_moved(p, coflow)
        w.counts[N_DEMOTIONS] += 1


@compiled
def count_neighbours(w: CoflowWorld, p: State, coflow: int, thin: bool) -> int:
    """Return how many other coflows share a port with a coflow; `thin`: only thin ones count.

    Without work conservation a coflow that is being sampled counts only at the ports of its pilots.
    """
    lines, ranking, count = w.fabric.lines, p.matching.ranking, 0
    p.num_counts[0] += 1
    p.met_in[coflow] = p.num_counts[0]
    for side in range(2):
        for own in lines_of(lines, coflow, side):
            if lines.left[own] == 0:
                continue
            line = ranking.next[ranking.ports[0] + lines.port[own]]
            while line < ranking.ports[0]:
                other = coflow_of(w.fabric, lines.group[line])
                if p.met_in[other] != p.num_counts[0] and (not thin or is_thin(p, other)):
                    p.met_in[other] = p.num_counts[0]
                    count += 1
                line = ranking.next[line]
    return count


@inlined
def is_thin(p: State, coflow: int) -> bool:
    """Return whether an active coflow is not in a queue, and has no pilots."""
    return p.queues.queue[coflow] == UNQUEUED and p.pilots_left[coflow] == 0


@inlined
def mark_moved(p: State, coflow: int) -> None:
    """Mark a coflow as moved: it gets another level at the next decision."""
    if not p.is_moved[coflow]:
        p.is_moved[coflow] = True
        p.moved[p.num_moved[0]] = coflow
        p.num_moved[0] += 1


@compiled
def mark_thin_at_port(w: CoflowWorld, p: State, port: int) -> None:
    """Mark thin coflows at a port as moved: the number of other thin ones at their ports has changed."""
    ranking = p.matching.ranking
    line = ranking.next[ranking.ports[0] + port]
    while line < ranking.ports[0]:
        other = w.fabric.lines.group[line]
        if not is_pilot_group(w.fabric, other) and is_thin(p, other):
            mark_moved(p, other)
        line = ranking.next[line]


@compiled
def mark_thin_at_ports(w: CoflowWorld, p: State, coflow: int) -> None:
    """Mark the thin coflows at the ports of a thin coflow as moved."""
    lines = w.fabric.lines
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0 and is_thin(p, coflow):
                mark_thin_at_port(w, p, lines.port[line])


# How Philae applies an update of a coflow: to the contention at ports, to pilots, and to the size.
#
# - A pilot that restarts before the size of its coflow is known is a pilot again, and the estimate no longer counts it.
#   A pilot that moves is a pilot at its new ports; if the coflow has an unfinished flow there, the two become one flow.
#   A coflow that so loses all its pilots before any has ended is served like a thin coflow.
# - When the size is known, pilots are flows like the others. The size is the pilots' mean times the present number of
#   flows. Lost bytes do not count as sent, neither in policy B nor with `size_correction` (section 4.5).

_FORGETS = True  # lost bytes do not count as sent


@inlined
def update_coflow(w: CoflowWorld, p: State, t: int, update: int) -> bool:
    """Receive an update of a coflow, and apply it; return whether it has any effect."""
    if not receive_update(w, t, update):
        return False
    rows, pairs, coflow = w.updates.row, w.updates.pair, w.updates.row.coflow[update]
    sampled = p.pilots_left[coflow] > 0
    for i in range(rows.first[update], rows.end[update]):
        note_presence(w.fabric, p.was_at_port, sampled, coflow, pairs.flow[i])
        note_presence(w.fabric, p.was_at_port, sampled, coflow, pairs.onto[i])
    for i in range(rows.first[update], rows.end[update]):
        change_flow(w, p, t, update, coflow, pairs.flow[i], pairs.onto[i])
    coflow_ended = settle_coflow(w, update)
    for i in range(rows.first[update], rows.end[update]):
        apply_presence(w, p, t, coflow, pairs.flow[i], coflow_ended)
        apply_presence(w, p, t, coflow, pairs.onto[i], coflow_ended)
    count_flows(w.fabric, p.width, coflow)
    if coflow_ended:
        dequeue(p.queues, coflow)
        p.num_active[0] -= 1
        return True
    if sampled and p.pilots_left[coflow] == 0:
        if p.pilots_done[coflow] > 0:
            learn(w, p, t, coflow)
        else:
            mark_thin_at_ports(w, p, coflow)
    elif p.queues.queue[coflow] >= 0:
        move(w, p, t, coflow)
    mark_moved(p, coflow)
    return True


@inlined
def change_flow(w: CoflowWorld, p: State, t: int, update: int, coflow: int, flow: int, onto: int) -> None:
    """Stop a flow and resend what is needed: as a pilot, if it was a pilot and the size is not known."""
    fabric, flows = w.fabric, w.fabric.flows
    unknown = p.queues.learned[coflow] == NEVER
    pilot, ends = is_pilot(fabric, coflow, flow), flows.finish[flow] == NEVER
    size, row, column = flows.size[flow], flows.line[flow, 0], flows.line[flow, 1]
    again = stop_updated_flow(w, p.matching, update, flow, onto, _FORGETS)
    if pilot and ends:
        count_pilot(w, p, coflow, flow, -1)
    if pilot and not (flow == onto and unknown):
        make_ordinary(fabric, coflow, flow)
    if flow != onto and flows.finish[onto] != NEVER and is_pilot(fabric, coflow, onto):
        make_ordinary(fabric, coflow, onto)  # its size remains in the estimate
    if pilot and unknown and again > 0.0 and flows.line[onto, 0] != NONE and flows.finish[onto] != NEVER:
        if flow == onto and not ends:
            p.pilots_done[coflow] -= 1
            p.pilot_bytes[coflow] -= size
        if flow == onto or ends:
            count_pilot(w, p, coflow, onto, 1)
        if flow != onto and ends:
            give_pilot_lines(fabric, onto, row, column)
    resend_flow(w, p.matching, t, update, onto, again)


@inlined
def is_pilot(fabric: Fabric, coflow: int, flow: int) -> bool:
    """Return whether a flow is, or was, one of its coflow's pilots."""
    line = fabric.flows.line[flow, 0]
    return line != NONE and fabric.lines.group[line] != coflow


@inlined
def count_pilot(w: CoflowWorld, p: State, coflow: int, flow: int, by: int) -> None:
    """Add `by` to the number of pilots that have not ended."""
    p.pilots_left[coflow] += by
    p.busy[w.fabric.flows.source[flow]] += by
    p.busy[w.fabric.flows.sink[flow]] += by


@compiled
def make_ordinary(fabric: Fabric, coflow: int, flow: int) -> None:
    """Turn a pilot that is not being sent into an ordinary flow of its coflow."""
    flows, lines = fabric.flows, fabric.lines
    flows.line[flow, 0] = line_at(lines, coflow, 0, flows.source[flow])
    flows.line[flow, 1] = line_at(lines, coflow, 1, flows.sink[flow])


@compiled
def give_pilot_lines(fabric: Fabric, flow: int, row: int, column: int) -> None:
    """Give the lines of a pilot to a flow that is not being sent."""
    flows, lines = fabric.flows, fabric.lines
    assign_pilot_line(lines, row, flows.line[flow, 0], flows.sink[flow])
    assign_pilot_line(lines, column, flows.line[flow, 1], flows.source[flow])
    flows.line[flow, 0], flows.line[flow, 1] = row, column


@compiled
def note_presence(fabric: Fabric, was: np.ndarray, sampled: bool, coflow: int, flow: int) -> None:
    """Note whether a coflow has unfinished flows, or pilots if it is `sampled`, at the ports of a flow."""
    source, sink = fabric.flows.source[flow], fabric.flows.sink[flow]
    was[source] = np.int64(has_flows_at(fabric, sampled, coflow, 0, source))
    was[sink] = np.int64(has_flows_at(fabric, sampled, coflow, 1, sink))


@compiled
def apply_presence(w: CoflowWorld, p: State, t: int, coflow: int, flow: int, coflow_ended: bool) -> None:
    """Apply changes of the coflow's presence at the ports of a flow: it leaves a port, or returns to it."""
    flows = w.fabric.flows
    for side in range(2):
        port = flows.source[flow] if side == 0 else flows.sink[flow]
        was = p.was_at_port[port]
        is_now = np.int64(has_flows_at(w.fabric, p.pilots_left[coflow] > 0, coflow, side, port))
        p.was_at_port[port] = NONE
        if was == 1 and is_now == 0:
            leave_port(w, p, t, coflow, port, coflow_ended)
        elif was == 0 and is_now == 1:
            return_to_port(w, p, t, coflow, port)


@compiled
def has_flows_at(fabric: Fabric, sampled: bool, coflow: int, side: int, port: int) -> bool:
    """Return whether a coflow has unfinished flows at a port."""
    lines = fabric.lines
    if len(lines_of(lines, coflow, side)) == 0:
        return False
    line = line_at(lines, coflow, side, port)
    if lines.port[line] == port and lines.left[line] > 0:
        return True
    return sampled and has_pilot(fabric, coflow, side, port)


@compiled
def count_flows(fabric: Fabric, width: np.ndarray, coflow: int) -> None:
    """Count the present flows of a coflow."""
    width[coflow] = 0
    for flow in flows_of(fabric.coflows, coflow):
        width[coflow] += np.int64(fabric.flows.size[flow] > 0.0)


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
        move_group(w.fabric, p.matching, t, coflow, place)  # so that it is counted at its ports
        mark_thin_at_ports(w, p, coflow)
    request_decision(w, p.agenda, t)


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow to the sample and to the contention; request a decision, or a refill."""
    fabric, flows, lines = w.fabric, w.fabric.flows, w.fabric.lines
    change, coflow = receive_end(w, p.matching, t, NO_AGENT_REPORTS, flow, ended), flows.coflow[flow]
    if change == UNCHANGED:
        return
    coflow_ended, was_pilot = change == COFLOW_ENDED, is_pilot(fabric, coflow, flow)
    decides = coflow_ended or p.at_flow_ends
    for side in range(2):
        line = flows.line[flow, side]
        port = flows.source[flow] if side == 0 else flows.sink[flow]
        if was_pilot:
            p.busy[port] -= 1
            line = line_at(lines, coflow, side, port)
        if lines.left[line] == 0 and (
            p.pilots_left[coflow] == 0 or not has_pilot(fabric, coflow, side, port)
        ):
            leave_port(w, p, t, coflow, port, coflow_ended)
            decides = decides or changes_contention(p, port)
    if was_pilot:
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
        request_decision(w, p.agenda, t)
    else:
        wake_coordinator(w, p.agenda, t)


@inlined
def changes_contention(p: State, port: int) -> bool:
    """Return whether the measure of another coflow changes because one has left a port."""
    return (p.policy == C or p.policy == D) and p.coflows_at_port[port] + 1 - p.excludes_itself > 0


@compiled
def on_update(w: CoflowWorld, p: State, t: int, update: int) -> None:
    """Apply an update of a coflow."""
    if update_coflow(w, p, t, update):
        request_decision(w, p.agenda, t)


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Make a decision, or refill ports that ended flows have left, in the last order; send what has changed."""
    is_decision = p.agenda.stale[0] or t >= p.queues.clock.end[0]
    p.agenda.stale[0] = False
    if is_decision:
        put_in_order(w, p, t)
        note_decision(w, p.num_active[0])
    else:
        w.counts[N_REFILLS] += 1
    fill_ports(w.fabric, p.matching, t + w.network.delay_ns)
    send_greedy_rates(w, p.matching, t)
    if p.queues.clock.end[0] < NEVER:
        wake_coordinator(w, p.agenda, p.queues.clock.end[0])


@compiled
def put_in_order(w: CoflowWorld, p: State, t: int) -> None:
    """Step 4: recompute the levels of coflows that have moved."""
    queues = p.queues
    if p.policy == B or p.policy == C or p.corrects:
        for i in range(remove_ended(w, p.agenda)):
            if queues.queue[p.agenda.active[i]] >= 0:
                move(w, p, t, p.agenda.active[i])
    update_slot(queues, t)
    if queues.clock.queue[0] != p.last_slot[0]:
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
    queues, slot = p.queues, p.queues.clock.queue[0]
    for i in range(remove_ended(w, p.agenda)):
        queue = queues.queue[p.agenda.active[i]]
        if queue >= 0 and (queue == slot or queue == p.last_slot[0]):
            mark_moved(p, p.agenda.active[i])
    p.last_slot[0] = slot


@compiled
def set_levels(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Give each group of a coflow its level: that of a queue, of thin coflows, of pilots, or of backfill."""
    fabric, matching, place = w.fabric, p.matching, w.fabric.coflows.place[coflow]
    if p.queues.queue[coflow] >= 0:
        move_group(fabric, matching, t, coflow, MAIN | order_key(p.queues, coflow))
    elif p.pilots_left[coflow] == 0:
        thin = count_neighbours(w, p, coflow, True)
        move_group(fabric, matching, t, coflow, (thin << RANK_SHIFT) | place)
    else:
        move_group(fabric, matching, t, pilot_group(fabric, coflow), PILOTS | place)
        if p.conserves:
            move_group(fabric, matching, t, coflow, BACKFILL | place)


advance, advance_transfers = coordinator_loops(
    __name__,
    State,
    {REGISTER: on_arrival, FLOW_DONE: on_flow_done, UPDATE: on_update, DECIDE: on_decide},
    BY_FLOW,
    cut_flow,
)


def series(setting: Setting, world: CoflowWorld, state: State) -> Learned | None:
    """Return when the size of each coflow was learned, what it had sent by then, and its estimate."""
    width = np.diff(merge_parallel(setting.workload.arrays())[0].first_flow)
    return learned_by(setting, world, state, state.length * width)


PHILAE = coflow_scheduler(
    name="philae",
    title="sizes learned from pilot flows, then shortest coflow first by size and contention",
    paper="Jajoo, Gandhi, Hu: Your Coflow has Many Flows (Philae), USENIX ATC 2019",
    refuses=tuple(
        ({"pilots": "none", "policy": policy}, "sizes of coflows are not known without pilots; want policy=C")
        for policy in ("A", "B", "D")
    ),
    rule=in_turns("pilot flows go first, then coflows that are estimated to be small"),
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
    updatable="always",
    series=series,
)
