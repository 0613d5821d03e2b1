"""Coflows in one order, made at their arrivals and ends: the loop of fifo, scf, ncf, lcf, sebf and sincronia.

They differ by the order (`rule`, and a key for each coflow), and may differ by the rates in that order (`by_madd`):

- *madd*: all flows of a coflow end together, at the rates that its slowest port allows; what is left goes to single
  flows in order (`actors.fabric.madd`), except with sebf-deadline. When such a flow ends, what it had goes to flows
  that wait at its ports.
- *greedy*: a flow has both of its ports alone, or waits (`actors.fabric.greedy`). When a flow ends, its ports go to the
  next flows in order.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from actors.fabric.agent import agent_event, cut_flow
from actors.fabric.bssi import BssiScratch, bssi
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    Agenda,
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
from actors.fabric.counters import N_REFILLS
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.flow_order import FlowOrder, make_flow_order, refill_ports, serve_coflows
from actors.fabric.greedy import Matching, make_matching, settle_all
from actors.fabric.greedy_updates import change_flows, receive_update
from actors.fabric.initial_arrays import at_start, list_per, per
from actors.fabric.madd import Madd, decide, joint_bottleneck_ns, make_madd
from actors.fabric.madd_agent import Shrinking, cut_shrinking_flow, make_shrinking, shrinking_event
from actors.fabric.madd_coordinator import (
    decide_or_refill,
    receive_backfilled_done,
    receive_line_done,
    send_times,
)
from actors.fabric.port_sets import count_bits
from actors.fabric.ports import Fabric, finish_flow, flows_of, lines_of, words_on
from actors.fabric.priority_queues import sort_groups
from actors.fabric.ranking import Ranking, make_ranking
from actors.fabric.service_order import Order, set_order
from actors.fabric.waves import are_together, end_of_shuffle
from actors.fabric.worlds import COFLOW_WORLDS
from actors.inputs import HasInputs
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NEVER, NONE
from actors.scheduler import Parameter, Scheduler
from actors.setting import Setting
from actors.transfers.joined import Coordinated, handle_coordinated
from workloads.errors import InputError

# The order of coflows: by a key, which is their place, length, width or weight, and changes only when an update changes
# their flows; by how long they need alone; or Sincronia's.
BY_PLACE, BY_LENGTH, BY_WIDTH, BY_WEIGHT, BY_BOTTLENECK, BY_BSSI = map(np.int64, range(6))

INTERVAL = Parameter(
    "interval_s", 0.008, "duration", "interval by which work is counted", low=1e-6, high=3600
)
RATES = Parameter(
    "rates",
    "madd",
    "choice",
    "a coflow's flows end together and what is left is backfilled, or each flow has its ports alone",
    choices=("madd", "greedy"),
)


class State(NamedTuple):
    """The state of the coordinator of C coflows, and `shrinking`, the agents' state."""

    rule: int
    by_madd: bool
    backfills: bool  # of MADD: what is left goes to single flows
    reorders_at_ends: bool  # of greedy rates: the order is also recomputed when a coflow has ended
    agenda: Agenda
    order: Order
    ranking: Ranking
    matching: Matching  # of greedy rates
    flow_order: FlowOrder  # of greedy rates
    madd: Madd  # of MADD
    shrinking: Shrinking
    scratch: BssiScratch
    key: np.ndarray = per("coflow", 0.0)  # for rules that have one
    groups: np.ndarray = list_per("coflow")  # the order that is being made
    keys: np.ndarray = per("coflow", 0.0)  # by which `groups` are sorted
    stale: np.ndarray = per("run", False)  # a coflow has arrived, or ended, since the last order
    # flows whose ends were received, and not predicted, since the last decision
    ended: np.ndarray = per("run")
    # of MADD: the first `num_cut`, which have ended before their last byte
    cut: np.ndarray = list_per("flow")
    num_cut: np.ndarray = per("run")
    num_sent: np.ndarray = per("run")  # how many of the last decision's changes have been sent
    counted_at: np.ndarray = per("port")  # scratch


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Register a coflow, with the sizes of its flows."""
    if register(w, p.agenda, t, coflow):
        p.key[coflow] = key_of(w.fabric, p.rule, coflow)
        join_keys(w, p, coflow)
        p.stale[0] = True
        request_decision(w, p.agenda, t)


@inlined
def join_keys(w: CoflowWorld, p: State, coflow: int) -> None:
    """Let the key of a wave count in that of its shuffle, which is computed from all of its waves so far."""
    waves, shuffle, key = w.waves, w.waves.shuffle[coflow], p.key[coflow]
    if shuffle == NONE:
        return
    if waves.flows[shuffle] == w.fabric.coflows.left[coflow]:  # the first wave
        waves.key[shuffle] = key
    elif p.rule == BY_PLACE:
        waves.key[shuffle] = min(waves.key[shuffle], key)
    elif p.rule == BY_LENGTH:
        waves.key[shuffle] = max(waves.key[shuffle], key)
    else:
        waves.key[shuffle] += key


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a single flow, which may end its coflow."""
    if p.by_madd:
        receive_backfilled_done(w, p, t, flow, ended)
        return
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if has_more_to_send(w, flow):
        return
    if end_greedy(w, p.ranking, p.matching, flow, ended) and p.reorders_at_ends:
        p.stale[0] = True
    request_decision(w, p.agenda, t)


@compiled
def on_flow_cut(w: CoflowWorld, p: State, t: int, flow: int) -> None:
    """Note that a flow under MADD has ended before its last byte: what others need is to be computed again."""
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    p.cut[p.num_cut[0]] = flow
    p.num_cut[0] += 1
    p.stale[0] = True
    request_decision(w, p.agenda, t)


@compiled
def end_cut_flows(fabric: Fabric, p: State) -> None:
    """End flows under MADD that have ended before their last byte, unless they were predicted to end by now."""
    for k in range(p.num_cut[0]):
        if fabric.flows.finish[p.cut[k]] == NEVER:
            finish_flow(fabric, p.madd.now[0], p.cut[k])
    p.num_cut[0] = 0


@compiled
def on_update(w: CoflowWorld, p: State, t: int, k: int) -> None:
    """Apply an update of a coflow, which may change its key."""
    if receive_update(w, t, k):
        change_flows(w, p.ranking, p.matching, t, k, False)
        p.key[w.updates.row.coflow[k]] = key_of(w.fabric, p.rule, w.updates.row.coflow[k])
        p.stale[0] = True
        request_decision(w, p.agenda, t)


@compiled
def key_of(fabric: Fabric, rule: int, coflow: int) -> float:
    """Return the key of a coflow, computed from its flows that take bandwidth."""
    flows, key = fabric.flows, 0.0
    if rule == BY_PLACE:
        key = np.float64(fabric.coflows.place[coflow])
    elif rule == BY_WIDTH:
        key = np.float64(min(count_used(fabric, coflow, 0), count_used(fabric, coflow, 1)))
    elif rule == BY_LENGTH or rule == BY_WEIGHT:
        for flow in flows_of(fabric.coflows, coflow):
            size = flows.size[flow] if flows.line[flow, 0] != NONE else 0.0
            key = max(key, size) if rule == BY_LENGTH else key + size
    return key


@compiled
def count_used(fabric: Fabric, coflow: int, side: int) -> int:
    """Return at how many ports of one side a coflow has flows, also flows that have ended."""
    lines, count = fabric.lines, 0
    for line in lines_of(lines, coflow, side):
        size = 0.0
        for b in words_on(lines, line):
            for i in range(lines.first[b], lines.first[b] + count_bits(lines.mask[b])):
                size += fabric.flows.size[lines.flow[i]]
        count += size > 0.0
    return count


@compiled
def put_in_order(w: CoflowWorld, p: State, count: int) -> None:
    """Order the active coflows by what they have left when the order takes effect."""
    for i in range(count):
        coflow = p.agenda.active[i]
        shuffle = w.waves.shuffle[coflow]
        p.groups[i], p.keys[i] = coflow, p.key[coflow] if shuffle == NONE else w.waves.key[shuffle]
    if p.rule == BY_BSSI or p.rule == BY_BOTTLENECK:
        put_waves_side_by_side(w, p, count)
    if p.rule == BY_BSSI:
        bssi(w.fabric, w.waves, p.scratch, p.groups, count)
        return
    if p.rule == BY_BOTTLENECK:
        first = 0
        while first < count:
            end = end_of_shuffle(w.waves, p.groups, first, count)
            need = joint_bottleneck_ns(w.fabric, p.madd, p.groups, first, end)
            for i in range(first, end):
                p.keys[i] = need
            first = end
    sort_groups(w.fabric.coflows, p.groups, p.keys, count)


@inlined
def put_waves_side_by_side(w: CoflowWorld, p: State, count: int) -> None:
    """Order coflows by their shuffles, if they are waves of shuffles."""
    if are_together(w.waves):
        for i in range(count):
            p.keys[i] = w.waves.shuffle[p.groups[i]]
        sort_groups(w.fabric.coflows, p.groups, p.keys, count)


@compiled
def decide_greedy(w: CoflowWorld, p: State, t: int) -> None:
    """Recompute the order if a coflow has arrived or ended; serve it, and send what has changed."""
    r, m = p.ranking, p.matching
    effective = t + w.network.delay_ns
    if p.stale[0]:
        p.stale[0] = False
        count = remove_ended(w, p.agenda)
        note_decision(w, count)
        settle_all(w.fabric, m, effective)
        put_in_order(w, p, count)
        serve_coflows(w.fabric, r, m, p.flow_order, effective, p.groups, count)
    else:
        w.counts[N_REFILLS] += 1
        refill_ports(w.fabric, r, m, p.flow_order, effective)
    send_greedy_rates(w, m, t)


@inlined
def decide_rates(w: CoflowWorld, p: State, t: int) -> None:
    """Recompute order and rates."""
    end_cut_flows(w.fabric, p)
    count = remove_ended(w, p.agenda)
    put_in_order(w, p, count)
    set_order(p.order, p.groups, count)
    decide(w.fabric, p.order, p.madd, p.backfills)


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Decide under either kind of rates."""
    if p.by_madd:
        decide_or_refill(w, p, t, decide_rates)
        send_times(w, p, t)
    else:
        decide_greedy(w, p, t)


@inlined
def port_event(w: CoflowWorld, p: State, me: int) -> None:
    """Handle a message to an agent under either kind of rates."""
    if p.by_madd:
        shrinking_event(w, p.shrinking, me)
    else:
        agent_event(w, w.sending, me)


@compiled
def cut_any(w: CoflowWorld, p: State, t: int, flow: int) -> float:
    """End a flow before its last byte under either kind of rates; return what it had left, bytes."""
    return cut_shrinking_flow(w, p.shrinking, t, flow) if p.by_madd else cut_flow(w, p, t, flow)


@inlined
def on_event(w: CoflowWorld, p: State) -> bool:
    """Handle the event at hand; return whether the host must decide."""
    return handle_event(
        w, p, p, on_agent_event=port_event,
        on_flow_done=on_flow_done, on_flow_cut=on_flow_cut, on_line_done=receive_line_done, on_arrival=on_arrival,
        on_update=on_update, on_tell=send_times, on_decide=on_decide,
    )  # fmt: skip


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(w, p, until, most, on_event)


@entry
def advance_transfers(w: HasInputs, p: Coordinated, until: int, most: int) -> int:
    """Handle events of the network of DAG jobs whose transfers are coflows; return the stop reason."""
    return handle_coordinated(w, p, until, most, on_event, cut_any)


def check_costs(setting: Setting) -> None:
    """Check that MADD's rates can be computed for the time at which they take effect.

    Raises:
        InputError: the cost of a decision is not known before the decision.
    """
    model = setting.costs.model
    if model not in ("none", "fixed"):
        raise InputError(
            f"{setting.scheduler.name} with MADD's rates must know what a decision costs before it is made, and"
            f" cost.model is {model}; use cost.model fixed"
        )


def build_ordered(
    setting: Setting, rule: np.int64, rates: str = "madd", backfills: bool = True
) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0.

    Args:
        rates: "madd" or "greedy", of a scheduler without the parameter.
        backfills: with MADD's rates, what is left goes to single flows; otherwise it stays unused.

    Raises:
        InputError: the cost of a decision is not known before the decision, as MADD needs.
    """
    given = setting.parameters
    by_madd = given.get("rates", rates) == "madd"
    if by_madd:
        check_costs(setting)
    world = build_world(setting, interval_s=given["interval_s"])
    fabric = world.fabric
    if not given.get("weights", True):
        fabric.coflows.weight[:] = 1.0
    return world, at_start(
        State,
        fabric,
        rule=int(rule),
        by_madd=by_madd,
        backfills=backfills,
        reorders_at_ends=given.get("reorder", "ends") == "ends",
        agenda=at_start(Agenda, fabric),
        order=at_start(Order, fabric),
        ranking=make_ranking(fabric),
        matching=make_matching(fabric),
        flow_order=make_flow_order(world, given.get("flow_order", "ports")),
        madd=make_madd(fabric),
        shrinking=make_shrinking(fabric),
        scratch=at_start(BssiScratch, fabric),
    )


ordered_scheduler = partial(Scheduler, advance=advance, transfers=advance_transfers, worlds=COFLOW_WORLDS)
"""Make a scheduler of this loop: what is left to say is its names, its parameters, and `build`."""
