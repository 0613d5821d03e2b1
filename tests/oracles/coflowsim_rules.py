"""CoflowSim's rules, each of which can be switched to ours: what makes the difference between its figures and ours.

Not a part of the emulator, and not run by it: a second, small simulator, whose state is what each flow has left. With
all of CoflowSim's rules it gives CoflowSim's completion times, with all of ours those of our schedulers, so that the
rules between explain the difference (`python -m claims.coflow_simulators --rules`; tests/test_coflow_rules.py).

It goes from one change of rates to the next; under CoflowSim's rules what a step of 8 ms ends is done when that ends.
Times are in ms. Here are FIFO, NCF, SEBF and DARK; `tests.oracles.coflowsim_flows` has FAIR and PFP.
"""

import heapq
from typing import NamedTuple

import numpy as np

from emu.results.metrics import Float64Array
from tests.oracles.peer_arrays import NONE, by_key, inner, outer, set_all, take
from tests.oracles.peer_trace import BYTES_PER_MS, EPOCH_MS, STEP_MS, Trace, begin_ms
from workloads.jobs import Int64Array

FIFO, NCF, SEBF, DARK = range(4)
AT_COFLOWS, REFILL, AT_FLOWS = range(3)
_LEAST = 1e-3 / 8192  # bytes a ms; less room counts as no room
_DONE = 1e-3  # bytes; what has less left has ended
_FIRST_LIMIT = 10.0 * (1 << 20)


class Rules(NamedTuple):
    """CoflowSim's rules, which are the defaults here.

    - `step`: ends are at multiples of it, and what a flow had for the rest is lost; 0: exact.
    - `epoch`: coflows begin at multiples of it, before they arrive; 0: when they arrive.
    - `rates` change when coflows arrive and end (AT_COFLOWS). REFILL: what a flow had goes to waiting ones, too.
      AT_FLOWS: all are recomputed when a flow ends.
    - `rounding`: the bytes that a receiver still needs are counted down flow by flow and step by step. Rounding then
      leaves ports not quite full, and the next coflow gets the small rest instead of a share. Else it is exact.
    - `share`: coflows that find a port full share what is left as if they were one.
    - `deadlines`: what is left then goes to flows by random deadlines of their coflows; else by the order.
    - `static`: SEBF's order is that of arrival, by all bytes; else recomputed each time, by those that are left.
    - `sinks_late`: DARK's coflows change queues when rates change; else also when they pass a limit.
    """

    step: float = STEP_MS
    epoch: float = EPOCH_MS
    rates: int = AT_COFLOWS
    rounding: bool = True
    share: bool = True
    deadlines: bool = True
    static: bool = True
    sinks_late: bool = True


def cct_s(trace: Trace, algorithm: int, rules: Rules) -> Float64Array:
    """Completion times from when coflows begin, in the trace's order."""
    begin = begin_ms(trace, rules.epoch)
    due = np.trunc(begin + trace.bottleneck / (BYTES_PER_MS * 1024.0) * (1 + trace.draw) * 1000)
    state = beginning(trace)
    simulate(trace, state, begin, due, algorithm, rules)
    return (state.ended - begin) / 1000


class State(NamedTuple):
    """Where a simulation is."""

    left: Float64Array  # [F] bytes, at `since`
    rate: Float64Array  # [F] bytes a ms
    since: Float64Array  # [F]
    end: Float64Array  # [F] when a flow ends that does so on its own, inf: with its coflow
    waiting: np.ndarray  # [F] whether it has nothing of the backfill
    joint: np.ndarray  # [C] whether MADD serves a coflow
    room: Float64Array  # [2, P]
    unfinished: Int64Array  # [C]
    joint_end: Float64Array  # [C] when the flows that do not end on their own have
    owed: Float64Array  # [C, P] bytes that a receiver is to get, as it counts them
    queue: Int64Array  # [C] of DARK
    sent: Float64Array  # [C] bytes
    load: Float64Array  # [2, P] of one coflow, or of those that share, while rates are computed; so are the next two
    used: Float64Array
    count: Float64Array
    key: Float64Array  # [C] to sort coflows by
    ended: Float64Array  # [C] ms
    sending: Int64Array  # [P] flows to one receiver, while they are sent step by step


def beginning(trace: Trace) -> State:
    """Return the state before the first coflow."""
    coflows, flows, ports = len(trace.first) - 1, trace.size.size, (2, trace.row.shape[1])
    return State(
        trace.size.copy(),
        *(np.zeros(flows) for _ in range(2)),
        np.full(flows, np.inf),
        np.ones(flows, np.bool_),
        np.zeros(coflows, np.bool_),
        np.zeros(ports),
        np.diff(trace.first),
        np.full(coflows, np.inf),
        trace.owed.copy(),
        np.zeros(coflows, np.int64),
        np.zeros(coflows),
        *(np.zeros(ports) for _ in range(3)),
        *(np.zeros(coflows) for _ in range(2)),
        np.zeros(ports[1], np.int64),
    )


@outer
def simulate(trace, s, begin, due, algorithm, rules):
    """Find when coflows end, ms."""
    order, heap = [NONE for _ in range(0)], [(0.0, NONE) for _ in range(0)]
    t, come, done = 0.0, 0, 0
    while done < begin.size:
        decide = rules.rates != REFILL
        while come < begin.size and begin[come] <= t:
            order.append(np.int64(come))
            come += 1
            decide = True
        for coflow in order:
            decide |= s.joint_end[coflow] <= t
        if not decide:
            decide = refill(trace, s, t, backfill_order(order, due, rules), heap, rules.step)
        if decide:
            settle(trace, s, t, order, rules.rounding)
            for coflow in order:
                if s.unfinished[coflow] == 0:
                    s.ended[coflow] = t
                    done += 1
            order = [c for c in order if s.unfinished[c] > 0]
            order = in_order(trace, s, order, algorithm, rules)
            give_rates(trace, s, order, due, algorithm, rules)
            heap = foresee(trace, s, t, order, rules)
        now = t
        t = next_change(s, order, heap, begin[come] if come < begin.size else np.inf)
        if algorithm == DARK and not rules.sinks_late:
            t = min(t, next_limit(trace, s, now, order, rules.step))


@inner
def settle(trace, s, t, order, rounding):
    """Bring all flows of coflows to time t."""
    for coflow in order:
        s.sent[coflow] = s.unfinished[coflow] = 0
        for first in range(trace.first[coflow], trace.first[coflow + 1], trace.senders[coflow]):
            end, owed, ended = first + trace.senders[coflow], 0.0, True
            if rounding:
                owed = step_by_step(s, t, first, end, s.owed[coflow, trace.sink[first]])
            for f in range(first, end):
                if not rounding:
                    s.left[f] -= min(s.rate[f] * (t - s.since[f]), s.left[f])
                    owed += s.left[f]
                if s.left[f] <= _DONE:
                    s.left[f] = 0.0
                s.unfinished[coflow] += s.left[f] > 0.0
                s.sent[coflow] += trace.size[f] - s.left[f]
                s.rate[f], s.since[f] = 0.0, t
                ended &= s.left[f] == 0.0
            s.owed[coflow, trace.sink[first]] = 0.0 if ended else owed


@inner
def step_by_step(s, t, first, end, owed):
    """Send what the flows of one receiver do until t, and return what it is owed then, as it counts."""
    count = steps = 0
    for f in range(first, end):
        if s.rate[f] > 0.0 and s.left[f] > 0.0:
            s.sending[count] = f
            steps = round((t - s.since[f]) / STEP_MS)
            count += 1
    for _ in range(steps):
        for i in range(count):
            f = s.sending[i]
            sent = min(s.rate[f] * STEP_MS, s.left[f])
            owed -= sent
            s.left[f] = s.left[f] - sent if s.left[f] - sent > _DONE < owed else 0.0
    return owed


@inner
def in_order(trace, s, order, algorithm, rules):
    """Return the coflows in the order in which they are served."""
    if algorithm == DARK:
        return in_queues(s, order)
    if algorithm == FIFO:
        return order
    for coflow in order:
        if algorithm == NCF:
            s.key[coflow] = trace.narrow[coflow]
        elif rules.static:
            s.key[coflow] = trace.bottleneck[coflow]
        else:
            s.key[coflow] = left_at_bottleneck(trace, s, coflow)
    return by_key(s.key, by_key(trace.arrival, order))


@inner
def left_at_bottleneck(trace, s, coflow):
    """Return how many bytes a coflow has left at its busiest port."""
    set_all(s.load, 0.0)
    most = 0.0
    for f in range(trace.first[coflow], trace.first[coflow + 1]):
        for side, port in ((0, trace.source[f]), (1, trace.sink[f])):
            s.load[side, port] += s.left[f]
            most = max(most, s.load[side, port])
    return most


@inner
def in_queues(s, order):
    """DARK: those that have sent too much go to the tail of the next queue, and from there at once to the one after."""
    queued = [c for c in order if s.queue[c] == 0]
    found, limit = [NONE for _ in range(0)], _FIRST_LIMIT
    for queue in range(10):
        moved = [c for c in queued if s.sent[c] > limit and queue < 9]
        found.extend([c for c in queued if not (s.sent[c] > limit and queue < 9)])
        for coflow in moved:
            s.queue[coflow] = queue + 1
        queued = [c for c in order if s.queue[c] == queue + 1 and c not in moved]
        queued.extend(moved)
        limit *= 10
    return found


@inner
def give_rates(trace, s, order, due, algorithm, rules):
    """Rates of all flows, from nothing."""
    set_all(s.room, BYTES_PER_MS)
    if algorithm == DARK:
        for coflow in order:
            share_room(trace, s, [coflow])
        return
    skipped = [c for c in order if not serve_jointly(trace, s, c)]
    if rules.share:
        share_room(trace, s, skipped)
    for coflow in backfill_order(order, due, rules):
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            s.waiting[f] = True
            give_more(trace, s, f)


@inner
def serve_jointly(trace, s, coflow):
    """MADD: rates that let all flows of a coflow end together; or return that a port is full."""
    set_all(s.load, 0.0)
    set_all(s.used, 0.0)
    for port in range(s.room.shape[1]):
        s.load[1, port] = s.owed[coflow, port]
    for f in range(trace.first[coflow], trace.first[coflow + 1]):
        s.load[0, trace.source[f]] += s.left[f]
    need = 0.0
    for side in range(2):
        for port in range(s.room.shape[1]):
            if s.load[side, port] > 0.0:
                s.joint[coflow] = s.room[side, port] > _LEAST
                if not s.joint[coflow]:
                    return False
                need = max(need, s.load[side, port] / s.room[side, port])
    for f in range(trace.first[coflow], trace.first[coflow + 1]):
        a, b = trace.source[f], trace.sink[f]
        s.rate[f] = min(s.left[f] / need, s.room[0, a], s.room[1, b])
        s.used[0, a] += s.rate[f]
        s.used[1, b] += s.rate[f]
    take(s.room, s.used)
    return True


@inner
def share_room(trace, s, coflows):
    """Flows of coflows share what ports have, at each as many ways as it has flows whose two ports have room."""
    set_all(s.count, 0.0)
    set_all(s.used, 0.0)
    for counted in (False, True):
        for coflow in coflows:
            for f in range(trace.first[coflow], trace.first[coflow + 1]):
                a, b = trace.source[f], trace.sink[f]
                if s.left[f] > 0.0 and s.room[0, a] > _LEAST and s.room[1, b] > _LEAST:
                    if counted:
                        rate = min(s.room[0, a] / s.count[0, a], s.room[1, b] / s.count[1, b])
                        s.rate[f] = rate if rate > _LEAST else 0.0
                        s.used[0, a] += s.rate[f]
                        s.used[1, b] += s.rate[f]
                    else:
                        s.count[0, a] += 1
                        s.count[1, b] += 1
    take(s.room, s.used)


@inner
def backfill_order(order, due, rules):
    """Return the coflows in the order in which their flows get what is left."""
    if not rules.deadlines:
        return order
    return by_key(due, order)


@inner
def give_more(trace, s, f):
    """Give a waiting flow what both of its ports have left; return whether it got any."""
    a, b = trace.source[f], trace.sink[f]
    more = min(s.room[0, a], s.room[1, b])
    if s.left[f] == 0.0 or not s.waiting[f] or more <= _LEAST:
        return False
    s.room[0, a] -= more
    s.room[1, b] -= more
    s.rate[f] += more
    s.waiting[f] = False
    return True


@inner
def end_of(s, t, f, step):
    """Return when a flow ends at its rate."""
    if s.rate[f] <= 0.0:
        return np.inf
    need = (s.left[f] - _DONE) / s.rate[f]
    return t + (np.ceil(need / step) * step if step > 0.0 else s.left[f] / s.rate[f])


@inner
def foresee(trace, s, t, order, rules):
    """When coflows end, and flows that do so on their own: return the heap of these."""
    heap = [(0.0, NONE) for _ in range(0)]
    for coflow in order:
        s.joint_end[coflow] = 0.0
        soonest, which = np.inf, NONE
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            s.end[f] = np.inf
            if s.left[f] == 0.0:
                continue
            end = end_of(s, t, f, rules.step)
            if rules.rates == REFILL and s.rate[f] > 0.0 and not (s.waiting[f] and s.joint[coflow]):
                s.end[f] = end
                heapq.heappush(heap, (end, np.int64(f)))
            else:
                s.joint_end[coflow] = max(s.joint_end[coflow], end)
                if end < soonest:
                    soonest, which = end, np.int64(f)
        if s.joint_end[coflow] == 0.0:
            s.joint_end[coflow] = np.inf
        if rules.rates == AT_FLOWS and which != NONE:
            heapq.heappush(heap, (soonest, which))
    return heap


@inner
def next_change(s, order, heap, arrival):
    """Return when rates change next."""
    t = min(arrival, heap[0][0]) if len(heap) > 0 else arrival
    for coflow in order:
        t = min(t, s.joint_end[coflow])
    return t


@inner
def refill(trace, s, t, order, heap, step):
    """Flows that end on their own have: what they had goes to waiting ones; return whether a coflow has ended."""
    ended = False
    while len(heap) > 0 and heap[0][0] <= t:
        end, f = heapq.heappop(heap)
        if s.end[f] != end:  # it has got more since
            continue
        ports = (trace.source[f], trace.sink[f])
        s.left[f], s.end[f], had = 0.0, np.inf, s.rate[f]
        for coflow in order:
            if trace.first[coflow] <= f < trace.first[coflow + 1]:
                s.unfinished[coflow] -= 1
                ended |= s.unfinished[coflow] == 0
        for side in range(2):
            s.room[side, ports[side]] += had
            for coflow in order:
                offer(trace, s, t, coflow, side, ports[side], heap, step)
    return ended


@inner
def offer(trace, s, t, coflow, side, port, heap, step):
    """Offer what a port has to the waiting flows of a coflow there."""
    line = trace.column[coflow, port] if side == 0 else trace.row[coflow, port]
    if line < 0 or s.room[side, port] <= _LEAST:
        return
    senders, first, end = trace.senders[coflow], trace.first[coflow], trace.first[coflow + 1]
    begin, stride = (first + line, senders) if side == 0 else (first + line * senders, 1)
    for f in range(begin, end if side == 0 else begin + senders, stride):
        left = s.left[f] - s.rate[f] * (t - s.since[f])
        if left > _DONE and give_more(trace, s, f):
            s.left[f], s.since[f] = left, t
            s.end[f] = end_of(s, t, f, step)
            heapq.heappush(heap, (s.end[f], np.int64(f)))


@inner
def next_limit(trace, s, t, order, step):
    """Return when a coflow of DARK will have sent what its queue takes."""
    soonest = np.inf
    for coflow in order:
        total = 0.0
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            total += s.rate[f]
        limit = _FIRST_LIMIT * 10.0 ** s.queue[coflow]
        if total > 0.0 and s.queue[coflow] < 9:
            soonest = min(soonest, t + np.ceil(((limit - s.sent[coflow]) / total + 1e-6) / step) * step)
    return soonest
