"""Coflows that are waves of one shuffle, and stand together in the coordinator's order.

Where tasks of a stage are launched one after another, the flows of a shuffle become known in waves, and each wave is a
coflow with lines and rates of its own. To the coordinator they are one: what decides their place in the order is what
the shuffle is so far, and they enter queues together. A coflow that is no wave stands for itself.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.ports import bytes_sent
from actors.fabric.priority_queues import Queues, enqueue
from actors.initial_arrays import per
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NONE


class Waves(NamedTuple):
    """The shuffle of each of C coflows, and what S shuffles are so far; S is 0 where each coflow stands for itself."""

    flows: np.ndarray  # [S] flows of its waves
    key: np.ndarray  # [S] by which an order has it, float64
    ended_bytes: np.ndarray  # [S] of waves that have ended, float64
    sent: np.ndarray  # [S] scratch: what it has sent, float64
    rate: np.ndarray  # [S] scratch: bytes per ns, of its running flows, float64
    queue: np.ndarray  # [S] the last queue that it has entered, NONE: it has entered none
    entered: np.ndarray  # [S] the number of its entry into that one
    length: np.ndarray  # [S] bytes of a flow, as estimated from its first sample, float64; 0.0 before
    shuffle: np.ndarray = per("coflow", NONE)


def make_waves(coflows: int, shuffles: int) -> Waves:
    """Return so many coflows that are no waves yet, of so many shuffles."""
    counts = {name: np.zeros(shuffles, np.int64) for name in ("flows", "entered")}
    sums = {name: np.zeros(shuffles) for name in ("key", "ended_bytes", "sent", "rate", "length")}
    return Waves(**counts, **sums, queue=np.full(shuffles, NONE), shuffle=np.full(coflows, NONE))


@inlined
def are_together(waves: Waves) -> bool:
    """Return whether coflows may be waves of shuffles."""
    return waves.flows.size > 0


@inlined
def join_shuffle(w: Any, coflow: int) -> None:
    """Count the flows of a wave that registers among those of its shuffle."""
    shuffle = w.waves.shuffle[coflow]
    if shuffle != NONE:
        w.waves.flows[shuffle] += w.fabric.coflows.left[coflow]


@inlined
def leave_shuffle(w: Any, coflow: int) -> None:
    """Count what a wave that has ended has sent among what its shuffle has."""
    shuffle = w.waves.shuffle[coflow]
    if shuffle != NONE:
        w.waves.ended_bytes[shuffle] += w.fabric.coflows.sent[coflow]


@inlined
def end_of_shuffle(waves: Waves, groups: np.ndarray, first: int, count: int) -> int:
    """Return the place after the last wave of the shuffle at place `first`; waves of one lie side by side."""
    end, shuffle = first + 1, waves.shuffle[groups[first]]
    while end < count and shuffle != NONE and waves.shuffle[groups[end]] == shuffle:
        end += 1
    return end


@compiled
def sum_waves(w: Any, active: np.ndarray, count: int, t: int) -> None:
    """Compute what the shuffles of the first `count` of `active` have sent by t, and at which rates they send."""
    waves, coflows = w.waves, w.fabric.coflows
    if are_together(waves):
        for i in range(count):
            shuffle = waves.shuffle[active[i]]
            waves.sent[shuffle], waves.rate[shuffle] = waves.ended_bytes[shuffle], 0.0
        for i in range(count):
            shuffle = waves.shuffle[active[i]]
            waves.sent[shuffle] += bytes_sent(coflows, t, active[i])
            waves.rate[shuffle] += coflows.rate[active[i]]


@inlined
def sent_together(w: Any, t: int, coflow: int) -> float:
    """Return what a coflow has sent by t; of a wave what its shuffle has by the t of `sum_waves`."""
    shuffle = w.waves.shuffle[coflow]
    return bytes_sent(w.fabric.coflows, t, coflow) if shuffle == NONE else w.waves.sent[shuffle]


@inlined
def rate_together(w: Any, coflow: int) -> float:
    """Return at which rate a coflow sends; of a wave its shuffle."""
    shuffle = w.waves.shuffle[coflow]
    return w.fabric.coflows.rate[coflow] if shuffle == NONE else w.waves.rate[shuffle]


@inlined
def flows_together(w: Any, coflow: int, own: int) -> int:
    """Return how many flows the shuffle of a wave has so far; of a coflow that is no wave its `own`."""
    shuffle = w.waves.shuffle[coflow]
    return own if shuffle == NONE else w.waves.flows[shuffle]


@inlined
def queue_together(w: Any, coflow: int, first: int) -> int:
    """Return the queue of the shuffle of a wave, or `first`, where a coflow begins."""
    shuffle = w.waves.shuffle[coflow]
    return first if shuffle == NONE or w.waves.queue[shuffle] == NONE else w.waves.queue[shuffle]


@inlined
def enqueue_together(w: Any, queues: Queues, coflow: int, queue: int) -> None:
    """Put a coflow at the tail of a queue; a wave to its shuffle if that is there, or in a later one, already."""
    waves, shuffle = w.waves, w.waves.shuffle[coflow]
    enqueue(queues, coflow, queue)
    if shuffle != NONE:
        if waves.queue[shuffle] < queue:
            waves.queue[shuffle], waves.entered[shuffle] = queue, queues.entered[coflow]
        queues.entered[coflow] = waves.entered[shuffle]


@inlined
def learn_together(w: Any, coflow: int, length: float) -> None:
    """Let the shuffle of a wave have an estimate of the bytes of a flow."""
    shuffle = w.waves.shuffle[coflow]
    if shuffle != NONE and w.waves.length[shuffle] == 0.0:
        w.waves.length[shuffle] = length


@inlined
def length_together(w: Any, coflow: int) -> float:
    """Return the estimate of the bytes of a flow that the shuffle of a wave has; 0.0: there is none."""
    shuffle = w.waves.shuffle[coflow]
    return 0.0 if shuffle == NONE else w.waves.length[shuffle]
