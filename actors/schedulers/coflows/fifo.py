"""Coflows in the order of one property, first, shortest, narrowest or lightest first: baselines of Varys.

`fifo`, `scf`, `ncf` and `lcf` have one loop and differ only by the key. `scf` and `lcf` know sizes in advance.

1. A coflow registers, and gets its key: in `fifo` its number in the order of registration; in `scf` its length, which
   is its largest flow; in `ncf` its width, the smaller of its numbers of senders and receivers; in `lcf` its bytes.
2. When a coflow has arrived or ended, all active coflows are sorted by their keys; those with equal keys are in the
   order of their arrival.
3. With `rates=madd` each coflow in order takes what lets all its flows end together, as soon as the bandwidth that
   those before it leave at its slowest port allows; a coflow that finds a port full takes nothing. What is left then
   goes to single flows, in order, each as much as both of its ports have. When such a flow ends, what it had goes to
   flows that wait at its ports.
4. With `rates=greedy` each flow in order has both of its ports alone, or waits; when it ends, the next flows get them.

MADD: O(lines of all active coflows) a decision, O(words of a line) for a flow that is backfilled; agents receive the
same as in `sebf`. Greedy: the former when the order changes, the latter for a flow that starts or stops.

**Deviations from the paper.** CoflowSim, the simulator of Varys's authors, lets coflows that find a port full share
what is left, backfills in an order of random deadlines, and does not use the bandwidth of an ended flow until a coflow
ends or arrives. The authors of Philae simulate `fifo` with greedy rates. MADD needs costs that are known in advance:
`cost.model=measured` is an error.

`scf` (shortest coflow first) is `fifo` with the largest flow of a coflow as the key, at the time when it registers.
Deviations from the paper: those of `fifo`.

`ncf` (narrowest coflow first) is `fifo` with the smaller of the numbers of senders and receivers as the key, at the
time when the coflow registers. Deviations from the paper: those of `fifo`.

`lcf` (lightest coflow first) is `fifo` with the bytes of a coflow as the key, at the time when it registers. Deviations
from the paper: those of `fifo`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import register, request_decision
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import UNCHANGED, apply_update
from actors.fabric.order import sort_groups
from actors.fabric.port_sets import count_bits
from actors.fabric.ports import Fabric, flows_of, lines_of, words_on
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE
from actors.schedulers.coflows.build import coflow_scheduler
from actors.schedulers.coflows.ordered import (
    INTERVAL,
    RATES,
    Ordered,
    begin_decision,
    build_ordered,
    end_decision,
    ordered_loops,
)
from actors.setting import Setting

BY_PLACE, BY_LENGTH, BY_WIDTH, BY_WEIGHT = map(np.int64, range(4))


class State(NamedTuple):
    """The state of the coordinator of C coflows."""

    ordered: Ordered
    rule: int  # of the key: BY_PLACE, BY_LENGTH, BY_WIDTH or BY_WEIGHT
    # By which coflows are in order; only an update of its flows changes it.
    key: np.ndarray = per("coflow", 0.0)


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Step 1: register a coflow, with its key."""
    if register(w, p.ordered.agenda, t, coflow):
        p.key[coflow] = key_of(w.fabric, p.rule, coflow)
        join_keys(w, p, coflow)
        request_decision(w, p.ordered.agenda, t)


@compiled
def key_of(fabric: Fabric, rule: int, coflow: int) -> float:
    """Return the key of a coflow, computed from its flows that take bandwidth."""
    flows, key = fabric.flows, 0.0
    if rule == BY_PLACE:
        key = np.float64(fabric.coflows.place[coflow])
    elif rule == BY_WIDTH:
        key = np.float64(min(count_used(fabric, coflow, 0), count_used(fabric, coflow, 1)))
    else:
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
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Step 2: put the active coflows in order of their keys."""
    ordered = p.ordered
    count = begin_decision(w, ordered, t)
    if count != NONE:
        for i in range(count):
            shuffle = w.waves.shuffle[ordered.groups[i]]
            ordered.keys[i] = p.key[ordered.groups[i]] if shuffle == NONE else w.waves.key[shuffle]
        sort_groups(w.fabric.coflows, ordered.groups, ordered.keys, count)
        end_decision(w, ordered, t, count)


@compiled
def on_update(w: CoflowWorld, p: State, t: int, update: int) -> None:
    """Apply an update of a coflow, which may change its key."""
    if apply_update(w, p.ordered.matching, t, update) != UNCHANGED:
        coflow = w.updates.row.coflow[update]
        p.key[coflow] = key_of(w.fabric, p.rule, coflow)
        request_decision(w, p.ordered.agenda, t)


advance, advance_transfers = ordered_loops(
    __name__, State, on_decide, on_arrival=on_arrival, on_update=on_update
)


def build(setting: Setting, rule: np.int64) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    world, ordered = build_ordered(setting)
    return world, at_start(State, world.fabric, ordered=ordered, rule=int(rule))


FIFO, SCF, NCF, LCF = (
    coflow_scheduler(
        name=name,
        title=title,
        paper="Chowdhury, Zhong, Stoica: Varys, SIGCOMM 2014, doi 10.1145/2619239.2626315",
        parameters=(RATES, INTERVAL),
        build=partial(build, rule=rule),
        advance=advance,
        transfers=advance_transfers,
        about=__doc__,
        updatable="rates=greedy",
    )
    for name, title, rule in (
        ("fifo", "coflows first in, first out", BY_PLACE),
        ("scf", "the shortest coflow first, by its largest flow", BY_LENGTH),
        ("ncf", "the narrowest coflow first, by its senders or receivers", BY_WIDTH),
        ("lcf", "the lightest coflow first, by its bytes", BY_WEIGHT),
    )
)
