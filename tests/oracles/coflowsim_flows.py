"""CoflowSim's FAIR and PFP, each rule of which can be switched to ours: as `tests.oracles.coflowsim_rules`, for flows.

FAIR: flows of the same two ports have the same rate, so that what counts is how much a flow of each pair has been sent.
PFP: the flows that are served are determined again whenever a flow comes or ends.
"""

from typing import NamedTuple

import numba
import numpy as np

from emu.results.metrics import Float64Array
from tests.oracles.peer_trace import BYTES_PER_MS, EPOCH_MS, STEP_MS, Trace, begin_ms
from workloads.jobs import Int64Array

_NONE = np.int64(-1)
_DONE = 1e-3  # bytes; what has less left has ended


class FlowRules(NamedTuple):
    """CoflowSim's rules, which are the defaults here."""

    step: float = STEP_MS  # ends are at multiples of it; what a flow had for the rest is lost; 0: exact
    epoch: float = EPOCH_MS  # coflows begin at multiples of it, before they arrive; 0: when they arrive
    halves: bool = True  # FAIR: a flow has the least of the equal shares of its ports; or max-min fair rates
    racks: bool = (
        True  # PFP: receivers choose in order of racks; or the flow with the least left of all goes first
    )
    once: bool = True  # PFP: flows are ordered when they arrive; or by what they have left


def fair_cct_s(trace: Trace, rules: FlowRules) -> Float64Array:
    """Completion times under FAIR, from when coflows begin, in the trace's order."""
    begin = begin_ms(trace, rules.epoch)
    return (simulate_fair(trace, begin, rules) - begin) / 1000


def pfp_cct_s(trace: Trace, rules: FlowRules) -> Float64Array:
    """Completion times under PFP, likewise."""
    begin = begin_ms(trace, rules.epoch)
    return (simulate_pfp(trace, begin, rules) - begin) / 1000


@numba.njit(cache=True)
def whole(t, need, step):
    """Return when what needs some time from t on is done."""
    return t + (np.ceil(need / step) * step if step > 0.0 else need)


class Pairs(NamedTuple):
    """What flows from port a to port b have been sent."""

    flows: Int64Array  # [P, P] how many there are
    flows_at: Int64Array  # [2, P] flows of a port
    sent: Float64Array  # [P, P] bytes that one which was always there has been sent, at `since`
    since: Float64Array  # [P, P] ms
    rate: Float64Array  # [P, P] of each, bytes a ms
    head: Int64Array  # [P, P] the next one to end
    after: Int64Array  # [F] and who ends after it
    target: Float64Array  # [F] what `sent` is then
    end: Float64Array  # [P, P] when it ends, ms
    soonest: Float64Array  # [P] the first of these


@numba.njit(cache=True)
def simulate_fair(trace, begin, rules):
    """Return when coflows end, ms."""
    coflows, ports = begin.size, trace.row.shape[1]
    p = Pairs(
        np.zeros((ports, ports), np.int64),
        np.zeros((2, ports), np.int64),
        np.zeros((ports, ports)),
        np.zeros((ports, ports)),
        np.zeros((ports, ports)),
        np.full((ports, ports), _NONE),
        np.full(trace.size.size, _NONE),
        np.zeros(trace.size.size),
        np.full((ports, ports), np.inf),
        np.full(ports, np.inf),
    )
    unfinished, ended = np.diff(trace.first), np.zeros(coflows)
    coflow_of = np.repeat(np.arange(coflows), np.diff(trace.first))
    touched = np.zeros((2, ports), np.bool_)
    t, come = 0.0, 0
    while come < coflows or p.flows_at[0].sum() > 0:
        touched[:] = False
        for a in range(ports):
            if p.soonest[a] <= t:
                end_flows(p, t, a, touched, coflow_of, unfinished, ended)
        while come < coflows and begin[come] <= t:
            for f in range(trace.first[come], trace.first[come + 1]):
                add_flow(p, t, f, trace.source[f], trace.sink[f], trace.size[f], touched)
            come += 1
        if rules.halves:
            for a in range(ports):
                for b in range(ports):
                    if p.flows[a, b] > 0 and (touched[0, a] or touched[1, b]):
                        rate = BYTES_PER_MS / max(p.flows_at[0, a], p.flows_at[1, b])
                        change_rate(p, t, a, b, rate, rules.step)
        else:
            fill_fairly(p, t, rules.step)
        for a in range(ports):
            p.soonest[a] = p.end[a].min()
        t = min(p.soonest.min(), begin[come] if come < coflows else np.inf)
    return ended


@numba.njit(cache=True)
def sent_by(p, t, a, b):
    """Return what a flow of a pair that was always there has been sent by t."""
    return p.sent[a, b] + p.rate[a, b] * (t - p.since[a, b])


@numba.njit(cache=True)
def end_flows(p, t, a, touched, coflow_of, unfinished, ended):
    """End the flows from a port that have ended by t."""
    for b in range(p.end.shape[1]):
        if p.end[a, b] > t:
            continue
        p.sent[a, b], p.since[a, b] = sent_by(p, t, a, b), t
        while p.head[a, b] != _NONE and p.target[p.head[a, b]] <= p.sent[a, b] + _DONE:
            coflow = coflow_of[p.head[a, b]]
            unfinished[coflow] -= 1
            ended[coflow] = t
            p.head[a, b] = p.after[p.head[a, b]]
            p.flows[a, b] -= 1
            p.flows_at[0, a] -= 1
            p.flows_at[1, b] -= 1
        p.end[a, b] = np.inf
        touched[0, a] = touched[1, b] = True


@numba.njit(cache=True)
def add_flow(p, t, f, a, b, size, touched):
    """Put a flow among those of its pair."""
    p.sent[a, b], p.since[a, b] = sent_by(p, t, a, b) if p.flows[a, b] > 0 else 0.0, t
    p.target[f] = p.sent[a, b] + size
    before, here = _NONE, p.head[a, b]
    while here != _NONE and p.target[here] <= p.target[f]:
        before, here = here, p.after[here]
    p.after[f] = here
    if before == _NONE:
        p.head[a, b] = f
    else:
        p.after[before] = f
    p.flows[a, b] += 1
    p.flows_at[0, a] += 1
    p.flows_at[1, b] += 1
    touched[0, a] = touched[1, b] = True


@numba.njit(cache=True)
def change_rate(p, t, a, b, rate, step):
    """Give the flows of a pair another rate."""
    p.sent[a, b], p.since[a, b] = sent_by(p, t, a, b), t
    p.rate[a, b] = rate
    p.end[a, b] = whole(
        t, (p.target[p.head[a, b]] - p.sent[a, b] - (_DONE if step > 0.0 else 0.0)) / rate, step
    )


@numba.njit(cache=True)
def fill_fairly(p, t, step):
    """Max-min fair rates: the port with the least for each of its flows, then the one with the least of the others."""
    room, count = np.full(p.flows_at.shape, BYTES_PER_MS), p.flows_at.copy()
    ports = count.shape[1]
    fixed = np.zeros(p.flows.shape, np.bool_)
    for _ in range(2 * ports):
        least, side, port = np.inf, 0, 0
        for i in range(2):
            for j in range(ports):
                if count[i, j] > 0 and room[i, j] / count[i, j] < least:
                    least, side, port = room[i, j] / count[i, j], i, j
        if least == np.inf:
            return
        for other in range(ports):
            a, b = (port, other) if side == 0 else (other, port)
            if p.flows[a, b] > 0 and not fixed[a, b]:
                fixed[a, b] = True
                change_rate(p, t, a, b, least, step)
                for i, j in ((0, a), (1, b)):
                    room[i, j] -= least * p.flows[a, b]
                    count[i, j] -= p.flows[a, b]


@numba.njit(cache=True)
def simulate_pfp(trace, begin, rules):
    """Return when coflows end, ms."""
    coflows, flows, ports = begin.size, trace.size.size, trace.row.shape[1]
    left, after, before = trace.size.copy(), np.full(flows, _NONE), np.full(flows, _NONE)
    head = np.full(ports, _NONE)
    unfinished, ended = np.diff(trace.first), np.zeros(coflows)
    coflow_of = np.repeat(np.arange(coflows), np.diff(trace.first))
    served, soonest = [_NONE for _ in range(0)], np.inf
    t, come, done = 0.0, 0, 0
    while done < coflows:
        while come < coflows and begin[come] <= t:
            for f in range(trace.first[come], trace.first[come + 1]):
                insert(head, after, before, left, f, trace.sink[f])
            come += 1
        served = serve(trace, head, after, left, rules.racks)
        soonest = begin[come] if come < coflows else np.inf
        for f in served:
            soonest = min(
                soonest, whole(t, (left[f] - (_DONE if rules.step > 0.0 else 0.0)) / BYTES_PER_MS, rules.step)
            )
        for f in served:
            row = trace.sink[f]
            left[f] -= min(BYTES_PER_MS * (soonest - t), left[f])
            if left[f] <= _DONE:
                unlink(head, after, before, f, row)
                unfinished[coflow_of[f]] -= 1
                if unfinished[coflow_of[f]] == 0:
                    ended[coflow_of[f]] = soonest
                    done += 1
            elif not rules.once and before[f] != _NONE and left[before[f]] > left[f]:
                unlink(head, after, before, f, row)
                insert(head, after, before, left, f, row)
        t = soonest
    return ended


@numba.njit(cache=True)
def insert(head, after, before, left, f, row):
    """Put a flow into a list, before those that have more left."""
    last, here = _NONE, head[row]
    while here != _NONE and left[here] <= left[f]:
        last, here = here, after[here]
    before[f], after[f] = last, here
    if here != _NONE:
        before[here] = f
    if last == _NONE:
        head[row] = f
    else:
        after[last] = f


@numba.njit(cache=True)
def unlink(head, after, before, f, row):
    """Take a flow out of its list."""
    if before[f] == _NONE:
        head[row] = after[f]
    else:
        after[before[f]] = after[f]
    if after[f] != _NONE:
        before[after[f]] = before[f]


@numba.njit(cache=True)
def serve(trace, head, after, left, racks):
    """Return the flows that are sent: receivers take turns, and of each the first whose sender is free."""
    served = [_NONE for _ in range(0)]
    here, busy, first = head.copy(), np.zeros(head.size, np.bool_), 0
    while True:
        best = _NONE
        for row in range(first, head.size):
            while here[row] != _NONE and busy[trace.source[here[row]]]:
                here[row] = after[here[row]]
            if here[row] != _NONE and (best == _NONE or left[here[row]] < left[here[best]]):
                best = row
                if racks:
                    break
        if best == _NONE:
            return served
        served.append(here[best])
        busy[trace.source[here[best]]] = True
        here[best] = _NONE
        first = best + 1 if racks else 0
