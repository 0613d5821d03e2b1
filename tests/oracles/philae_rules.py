"""The rules of the simulator of Philae's authors, each of which can be switched to ours: what makes its figures differ.

Not a part of the emulator, and not run by it: as `tests.oracles.coflowsim_rules`, for the authors' engine. With all of
its rules it gives the completion times of policies A and D and of Aalo there. It goes from one step of 8 ms at which
something may change to the next. Queue 0 has thin coflows, 1 those with pilots, the others are those of the paper.
"""

from typing import NamedTuple

import numpy as np

from emu.results.metrics import Float64Array
from tests.oracles.peer_arrays import NONE, by_key, inner, outer, set_all
from tests.oracles.peer_trace import EPOCH_MS, Trace, begin_ms
from workloads.jobs import Int64Array

STEP_MS = 8
STEP_BYTES = 134_217 * STEP_MS
A, D, AALO = range(3)
_THIN, _PILOTS, _MAIN, _QUEUES = (np.int64(k) for k in (0, 1, 2, 12))
_THIN_LIMIT, _FIRST_LIMIT = 7, 10 << 20
_FAR = np.int64(1) << 62


class PhilaeRules(NamedTuple):
    """The authors' rules, which are the defaults here."""

    epoch: float = EPOCH_MS  # coflows begin at multiples of it, before they arrive
    step_bytes: int = STEP_BYTES  # a port in a step
    leak: bool = True  # a coflow's last flow stays among the pilots of its ports for ever
    thin: bool = True  # the flows of thin coflows count as pilots of their ports
    reversed_ties: bool = True  # of equally busy ports the last one is first, and at the next sort the first
    diagonal: bool = True  # if a pair of ports is taken, the next on the anti-diagonals; or the sender's next
    first_send: bool = (
        True  # D: the length of flows at a port is less what the first to begin there sent in a step
    )
    slots: bool = True  # queues share time; or strict priority


class State(NamedTuple):
    """Where a simulation is."""

    left: Int64Array  # [F] bytes
    unfinished: Int64Array  # [C]
    at: Int64Array  # [C, 2, P] unfinished flows of a coflow at a port
    coflows_at: Int64Array  # [2, P] coflows there
    first_sent: Int64Array  # [C, 2, P] least that a flow has sent in its first step there, -1: none has
    queue: Int64Array  # [C] -1: in none
    entered: Int64Array  # [C] orders those of a queue
    entries: Int64Array  # [1] how many there were
    chosen: Int64Array  # [C, most] the pilots of a coflow, -1: no more
    pilot: np.ndarray  # [F]
    pilots: Int64Array  # [C] unfinished ones
    length: Int64Array  # [C] estimate
    busy: Int64Array  # [2, P] pilots
    sent: Int64Array  # [C] bytes
    news: np.ndarray  # [1] whether measures may have changed since queues were updated
    coflow_of: Int64Array  # [F]
    slot: Int64Array  # [2] whose it is, and its end
    spans: Int64Array  # [Q] of the queues in a round
    free: np.ndarray  # [2, P] ports, while flows are chosen
    key: Int64Array  # [C] by which coflows are sorted
    place: Int64Array  # [P] 0, 1, 2, …
    busy_here: Int64Array  # [P] pilots of the ports of one side, while they are sorted
    rate: Int64Array  # [C] bytes a step
    ended: Int64Array  # [C] step


def philae_cct_s(trace: Trace, policy: int, rules: PhilaeRules) -> Float64Array:
    """Completion times from when coflows begin, in the trace's order."""
    begin = begin_ms(trace, rules.epoch).astype(np.int64) // STEP_MS
    wanted = np.maximum((np.float32(0.05) * trace.senders.astype(np.float32)).astype(np.int64), 1)
    state = beginning(trace, wanted)
    simulate(trace, state, begin, wanted, policy, rules)
    return (state.ended - begin) * (STEP_MS / 1000)


def beginning(trace: Trace, wanted: Int64Array) -> State:
    """Return the state before the first coflow."""
    coflows, ports = wanted.size, trace.row.shape[1]
    return State(
        trace.size.astype(np.int64),
        np.diff(trace.first),
        np.zeros((coflows, 2, ports), np.int64),
        np.zeros((2, ports), np.int64),
        np.full((coflows, 2, ports), NONE),
        np.full(coflows, NONE),
        np.zeros(coflows, np.int64),
        np.zeros(1, np.int64),
        np.full((coflows, max(wanted.max(), _THIN_LIMIT)), NONE),
        np.zeros(trace.size.size, np.bool_),
        np.zeros(coflows, np.int64),
        np.zeros(coflows, np.int64),
        np.zeros((2, ports), np.int64),
        np.zeros(coflows, np.int64),
        np.ones(1, np.bool_),
        np.repeat(np.arange(coflows), np.diff(trace.first)),
        np.array([NONE, 0]),
        np.zeros(_QUEUES, np.int64),
        np.ones((2, ports), np.bool_),
        np.zeros(coflows, np.int64),
        np.arange(ports),
        np.zeros(ports, np.int64),
        np.zeros(coflows, np.int64),
        np.zeros(coflows, np.int64),
    )


@outer
def simulate(trace, s, begin, wanted, policy, rules):
    """Find when coflows end, in steps."""
    coflows = begin.size
    order = [NONE for _ in range(0)]
    t, come, done = 0, 0, 0
    while done < coflows:
        while come < coflows and begin[come] <= t:
            arrive(trace, s, come, wanted[come], policy, rules)
            order.append(np.int64(come))
            come += 1
        if rules.slots:
            turn(s, t)
        if s.news[0] or policy == AALO:
            order = update_queues(trace, s, policy, rules, order)
        served = serve(trace, s, order, s.slot[0])
        until = begin[come] if come < coflows else _FAR
        if s.slot[0] != NONE:
            until = min(until, s.slot[1])
        for f in served:
            c, a, b = s.coflow_of[f], trace.source[f], trace.sink[f]
            until = min(until, t - (-s.left[f] // rules.step_bytes))
            if s.left[f] == trace.size[f] and note_first(s, c, a, b, min(rules.step_bytes, s.left[f])):
                until = t + 1
        if s.slot[0] == NONE and rules.slots and coflows_in(s, _MAIN, _QUEUES) > 0:
            until = t + 1
        if policy == AALO:
            until = min(until, t + next_limit(s, served, rules.step_bytes))
        for f in served:
            c = s.coflow_of[f]
            if send(trace, s, c, f, rules.step_bytes * (until - t), rules.leak):
                s.ended[c] = until
                done += 1
        order = [c for c in order if s.unfinished[c] > 0]
        t = until


@inner
def note_first(s, c, a, b, sent):
    """Keep the least that a flow has sent at once at two ports of its coflow; return whether that is news."""
    news = False
    for i, j in ((0, a), (1, b)):
        if not 0 <= s.first_sent[c, i, j] <= sent:
            s.first_sent[c, i, j] = sent
            s.news[0] = news = True
    return news


@inner
def send(trace, s, c, f, most, leak):
    """Send a flow's next bytes, and return whether its coflow has ended."""
    sent = min(most, s.left[f])
    s.left[f] -= sent
    s.sent[c] += sent
    if s.left[f] == 0:
        end_flow(trace, s, c, f, leak)
    if s.unfinished[c] == 0:
        s.queue[c] = NONE
    return s.unfinished[c] == 0


@inner
def arrive(trace, s, c, wanted, policy, rules):
    """A coflow begins: it has its pilots, and all flows of a thin one are."""
    width = trace.first[c + 1] - trace.first[c]
    for f in range(trace.first[c], trace.first[c + 1]):
        for i, j in ((0, trace.source[f]), (1, trace.sink[f])):
            s.coflows_at[i, j] += s.at[c, i, j] == 0
            s.at[c, i, j] += 1
    s.news[0] = True
    thin = width <= _THIN_LIMIT
    move(s, c, _MAIN if policy == AALO else _THIN if thin else _PILOTS)
    if policy != AALO:
        count = width if thin else wanted
        choose(trace, s, c, count, rules)
        for n in range(count):
            f = s.chosen[c, n]
            s.pilot[f] = True
            s.pilots[c] += 1
            if not thin:
                s.length[c] += np.int64(trace.size[f]) // count


@inner
def choose(trace, s, c, count, rules):
    """Choose which flows of a coflow are its pilots: between its least busy ports."""
    thin = trace.first[c + 1] - trace.first[c] <= _THIN_LIMIT
    sources = [np.int64(j) for j in range(s.at.shape[2]) if s.at[c, 0, j] > 0]
    sinks = [np.int64(j) for j in range(s.at.shape[2]) if s.at[c, 1, j] > 0]
    for n in range(count):
        sources, sinks = by_busy(s, 0, sources, rules), by_busy(s, 1, sinks, rules)
        f, span = NONE, max(len(sources), len(sinks))
        for n_th in range(2 * span * span):
            i, k = n_th % span, n_th // span
            k = k - i if rules.diagonal else k
            if not rules.diagonal:
                i, k = k, i
            if i < len(sources) and 0 <= k < len(sinks):
                here = (
                    trace.first[c] + trace.row[c, sinks[k]] * trace.senders[c] + trace.column[c, sources[i]]
                )
                new = True
                for chosen in range(n):
                    new &= s.chosen[c, chosen] != here
                if new:
                    f = here
                    break
        s.chosen[c, n] = f
        if rules.thin or not thin:
            s.busy[0, trace.source[f]] += 1
            s.busy[1, trace.sink[f]] += 1


@inner
def by_busy(s, side, ports, rules):
    """Return ports by how many pilots they have; equal ones in the opposite order, as `<=` makes of a stable sort."""
    for port in ports:
        s.busy_here[port] = s.busy[side, port]
    if rules.reversed_ties:
        turned = [NONE for _ in range(0)]
        for i in range(len(ports) - 1, -1, -1):
            turned.append(ports[i])
        return by_key(s.busy_here, turned)
    return by_key(s.busy_here, by_key(s.place, ports))


@inner
def end_flow(trace, s, c, f, leak):
    """A flow has ended."""
    s.unfinished[c] -= 1
    s.news[0] |= s.pilot[f]
    s.pilots[c] -= s.pilot[f]
    for i, j in ((0, trace.source[f]), (1, trace.sink[f])):
        s.at[c, i, j] -= 1
        if s.at[c, i, j] == 0:
            s.coflows_at[i, j] -= 1
            s.news[0] = True
        if s.pilot[f] and not (leak and s.unfinished[c] == 0):
            s.busy[i, j] -= 1


@inner
def coflows_in(s, first, last):
    """Return how many coflows are in some queues."""
    count = 0
    for c in range(s.queue.size):
        count += first <= s.queue[c] <= last
    return count


@inner
def turn(s, t):
    """Begin the next slot when one is over: 256 steps, 25, 2 for the first queue of a round and those after it."""
    slot = s.slot
    while slot[0] != NONE and t >= slot[1]:
        slot[0] = slot[0] + 1 if slot[0] + 1 < _QUEUES else NONE
        slot[1] += s.spans[slot[0]] if slot[0] != NONE else 0
    if slot[0] == NONE:
        span = 256
        for q in range(_MAIN, _QUEUES):
            s.spans[q] = span if coflows_in(s, q, q) > 0 else 0
            if slot[0] == NONE and s.spans[q] > 0:
                slot[0], slot[1] = q, t + span
            if slot[0] != NONE:
                span //= 10


@inner
def update_queues(trace, s, policy, rules, order):
    """Whose pilots have ended enters the queue of its measure; whose measure has changed goes to another one's tail."""
    s.news[0] = False
    for c in order:
        if s.queue[c] == _PILOTS and s.pilots[c] == 0:
            move(s, c, queue_of(trace, s, c, policy, rules))
    for c in in_order(s, order):
        if s.queue[c] >= _MAIN:
            to = queue_of(trace, s, c, policy, rules)
            if to != s.queue[c]:
                move(s, c, to)
    thin = [k for k in order if s.queue[k] == _THIN]
    for c in thin:
        s.key[c] = contention(s, c, thin)
    for c in by_key(s.key, thin):
        move(s, c, _THIN)
    return in_order(s, order)


@inner
def in_order(s, order):
    """Return coflows queue by queue, first in, first out."""
    for c in order:
        s.key[c] = (s.queue[c] << 40) + s.entered[c]
    return by_key(s.key, order)


@inner
def move(s, c, queue):
    """Put a coflow at the tail of a queue."""
    s.queue[c], s.entered[c] = queue, s.entries[0]
    s.entries[0] += 1


@inner
def contention(s, c, others):
    """Return how many others share a port with a coflow."""
    found = 0
    for other in others:
        found += other != c and have_a_port_in_common(s, c, other)
    return found


@inner
def have_a_port_in_common(s, c, other):
    """Return whether two coflows have unfinished flows at one port."""
    for i in range(2):
        for j in range(s.at.shape[2]):
            if s.at[c, i, j] > 0 and s.at[other, i, j] > 0:
                return True
    return False


@inner
def queue_of(trace, s, c, policy, rules):
    """Return the queue of a coflow's measure."""
    width = trace.first[c + 1] - trace.first[c]
    if policy == D:
        measure = np.int64(0)
        for i in range(2):
            for j in range(s.at.shape[2]):
                if s.at[c, i, j] > 0:
                    short = s.first_sent[c, i, j] if rules.first_send else 0
                    measure += max(1, s.length[c] - short) * s.coflows_at[i, j]
    elif policy == AALO:
        measure = s.sent[c]
    else:
        measure = width * s.length[c]
    queue, limit = _MAIN, np.int64(_FIRST_LIMIT)
    while queue < _QUEUES - 1 and measure >= limit:
        queue += 1
        limit *= 10
    return queue


@inner
def serve(trace, s, order, slot):
    """Return the flows that are sent: thin coflows, pilots, whose slot it is, the other queues; each has its ports."""
    served, free = [NONE for _ in range(0)], s.free
    set_all(free, True)
    for c in order:
        if s.queue[c] < _MAIN:
            for n in range(s.chosen.shape[1]):
                f = s.chosen[c, n]
                if f != NONE and s.left[f] > 0 and free[0, trace.source[f]] and free[1, trace.sink[f]]:
                    free[0, trace.source[f]] = free[1, trace.sink[f]] = False
                    served.append(f)
    for now in (True, False):
        for c in order:
            if s.queue[c] >= _MAIN and (s.queue[c] == slot) == now:
                serve_greedily(trace, s, c, free, served)
    return served


@inner
def serve_greedily(trace, s, c, free, served):
    """Sender by sender, the first receiver that is free."""
    senders, first, end = trace.senders[c], trace.first[c], trace.first[c + 1]
    for i in range(senders):
        a = trace.source[first + i]
        if s.at[c, 0, a] == 0 or not free[0, a]:
            continue
        for f in range(first + i, end, senders):
            if s.left[f] > 0 and free[1, trace.sink[f]]:
                free[0, a] = free[1, trace.sink[f]] = False
                served.append(np.int64(f))
                break


@inner
def next_limit(s, served, step_bytes):
    """Return in how many steps a coflow of Aalo has sent what its queue takes, at the earliest."""
    for f in served:
        s.rate[s.coflow_of[f]] = 0
    for f in served:
        s.rate[s.coflow_of[f]] += step_bytes
    soonest = _FAR // 2
    for f in served:
        c = s.coflow_of[f]
        if s.queue[c] < _QUEUES - 1:
            lacks = _FIRST_LIMIT * 10 ** (s.queue[c] - _MAIN) - s.sent[c]
            soonest = min(soonest, max(1, -(-lacks // s.rate[c])))
    return soonest
