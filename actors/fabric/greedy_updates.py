"""How the coordinator of a greedy schedule applies an update of a coflow (`actors.fabric.updates`).

Flows that an update stops end without a message: their agents have stopped them already. Bytes to be sent again are put
back on their lines as if they had just arrived, and `fill_ports` serves them in their turn. The effect of a sender's
update depends only on whether its flows had ended; the coordinator has received ends before the stop before the update.
"""

import numpy as np

from actors.fabric.coordinator import NO_AGENT_REPORTS, record_local_flow, send_rate
from actors.fabric.counters import N_COFLOW_UPDATES, N_DEREGISTERED, N_LOST, N_RATES, N_WITHOUT_EFFECT
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_ends import whole_ns
from actors.fabric.greedy import Matching, end_flow, end_stopped_flow, offer
from actors.fabric.intervals import charge, charge_updates, enter_interval
from actors.fabric.ports import Fabric, add_to_line, flow_speed, take_bytes
from actors.fabric.ranking import Ranking, link, place_line
from actors.fabric.updates import expect_update
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_ARRIVED
from actors.kernel.queue import NEVER, NONE
from actors.kernel.records import Records
from workloads.coflow_updates import DEREGISTER, RECEIVER


@inlined
def receive_update(w: CoflowWorld, t: int, k: int) -> bool:
    """Receive a framework's message of an update; return whether its coflow is still active."""
    rows, counts = w.updates.row, w.counts
    if k + 1 < rows.size:
        expect_update(w, k + 1)
    enter_interval(w, t, NO_AGENT_REPORTS)
    charge_updates(w, 1)
    counts[N_COFLOW_UPDATES] += 1
    if w.fabric.coflows.left[rows.coflow[k]] == 0:
        counts[N_WITHOUT_EFFECT] += 1
        return False
    return True


@inlined
def change_flows(w: CoflowWorld, r: Ranking, m: Matching, t: int, k: int, forgets: bool) -> bool:
    """Stop the flows of an update, and resend what is needed; return whether the coflow has ended thereby.

    `forgets`: lost bytes are subtracted from what the coflow has sent.
    """
    rows, pairs = w.updates.row, w.updates.pair
    for i in range(rows.first[k], rows.end[k]):
        size = stop_updated_flow(w, r, m, k, pairs.flow[i], pairs.onto[i], forgets)
        resend_flow(w, r, m, t, k, pairs.onto[i], size)
    return settle_coflow(w, k)


@inlined
def stop_updated_flow(
    w: CoflowWorld, r: Ranking, m: Matching, k: int, flow: int, onto: int, forgets: bool
) -> float:
    """Stop a flow of an update and move its bytes to `onto`; return how many of them are to be sent again."""
    flows, generations, kind = w.fabric.flows, w.updates.flow, w.updates.row.kind[k]
    size, ends = flows.size[flow], flows.finish[flow] == NEVER
    left = 0.0
    if ends:
        left = drop_flow(w.fabric, r, m, w.updates.row.time[k], flow)
        w.counts[N_ARRIVED] -= 1
    again = ends or w.updates.row.side[k] == RECEIVER
    if kind == DEREGISTER or (flow == onto and flows.line[flow, 0] == NONE):
        again = False
    if again:
        w.counts[N_LOST] += np.int64(
            lost_before(generations, flow, size, w.updates.row.time[k]) if ends else size
        )
        if forgets:
            w.fabric.coflows.sent[flows.coflow[flow]] -= size - left
    generations.known_generation[flow] += 1
    generations.due[flow] = generations.heard[flow] = 0.0
    if flow != onto:
        flows.size[flow] = 0.0
        flows.size[onto] += size
    return size if again else 0.0


@inlined
def lost_before(generations: Records, flow: int, size: float, time: int) -> float:
    """Return the bytes of an unfinished flow that were lost at `time`, without those that its agent counts.

    The agent counts what it has sent in a generation that had not ended as far as it knew.
    """
    lost = size - generations.due[flow]
    return lost + generations.heard[flow] if generations.known_from[flow] > time else lost


@compiled
def drop_flow(fabric: Fabric, r: Ranking, m: Matching, time: int, flow: int) -> float:
    """End a flow whose agent stopped it at `time`; return what it has left by the coordinator's estimate."""
    flows = fabric.flows
    stopped = max(time, flows.since[flow])  # at a rate that had not arrived nothing was sent
    left = flows.left[flow]
    if m.flow[flows.source[flow]] == flow:
        left -= flow_speed(fabric, flow) * (stopped - flows.since[flow])
        end_flow(fabric, r, m, stopped, flow)
    else:
        end_stopped_flow(fabric, r, stopped, flow)
    return max(left, 0.0)


@inlined
def resend_flow(w: CoflowWorld, r: Ranking, m: Matching, t: int, k: int, flow: int, size: float) -> None:
    """Add bytes to what a flow has to send, whether it has ended or not."""
    fabric, flows = w.fabric, w.fabric.flows
    if size == 0.0:
        return
    if flows.line[flow, 0] == NONE:
        record_local_flow(w, w.updates.row.time[k], flow)
        return
    w.updates.flow.due[flow] += size
    w.updates.flow.known_from[flow] = NEVER
    if flows.finish[flow] == NEVER:
        add_bytes(w, m, t, flow, size)
    else:
        w.counts[N_ARRIVED] += 1
        restart_flow(fabric, r, m, flow, size)


@inlined
def add_bytes(w: CoflowWorld, m: Matching, t: int, flow: int, size: float) -> None:
    """Add bytes to a flow that has not ended; if it runs, send its agent the new number at once."""
    flows = w.fabric.flows
    take_bytes(w.fabric, flow, -size)
    if m.flow[flows.source[flow]] == flow:
        speed = flow_speed(w.fabric, flow)
        flows.end[flow] = flows.since[flow] + whole_ns(flows.left[flow] / speed)
        charge(w, w.prices.flow + w.prices.schedule)
        w.counts[N_RATES] += 1
        send_rate(w, t, flow, speed)


@compiled
def restart_flow(fabric: Fabric, r: Ranking, m: Matching, flow: int, size: float) -> None:
    """Put a flow that has ended, or is new, on its lines, and offer its ingress port to it."""
    flows, coflows, lines = fabric.flows, fabric.coflows, fabric.lines
    flows.left[flow], flows.finish[flow] = size, NEVER
    coflows.left[flows.coflow[flow]] += 1
    for side in range(2):
        line = flows.line[flow, side]
        add_to_line(lines, line, flows.sink[flow] if side == 0 else flows.source[flow], size)
        if lines.left[line] == 1 and r.level[lines.group[line]] != NONE:
            link(r, line, r.prev[r.ports[0] + lines.port[line]])
            place_line(lines, r, line, r.level[lines.group[line]])
    level, source = r.level[lines.group[flows.line[flow, 0]]], flows.source[flow]
    if level != NONE and level < m.level[source]:
        offer(m, source, level, level)


@inlined
def settle_coflow(w: CoflowWorld, k: int) -> bool:
    """Return whether a coflow has ended after an update; a deregistered coflow never finishes."""
    coflows, rows = w.fabric.coflows, w.updates.row
    coflow = rows.coflow[k]
    if coflows.left[coflow] > 0:
        coflows.finish[coflow] = NEVER
        return False
    coflows.finish[coflow] = rows.time[k]
    if rows.kind[k] == DEREGISTER:
        coflows.finish[coflow] = NONE
        w.counts[N_DEREGISTERED] += 1
    return True
