"""Priority queues of coflows, and time shared between them: what Aalo and Philae have in common.

Queue q takes coflows whose measure is at most ``limit * factor**q``; the last queue has no limit. A coflow that moves
to another queue goes to its tail. With *slots* the queues share time: in a round the highest non-empty queue is served
first for `slot`, then each later queue for 1 / `share` of the time of the queue before it (Philae, section 4.5,
"varying numbers of scheduling intervals according to the weights"). During a slot the other queues are served after its
queue, in their order, so that work is conserved. A slot that would be shorter than `least` is as long as `least` if
there is a coflow in its queue, and is left out if there is none: in every round each queue with a coflow is served
first once, so that no queue starves. If
`least` is 0, slots of less than an interval are left out, as Philae's authors simulate it. Without slots the order of
queues is strict.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from actors.causes import Remedy
from actors.fabric.ports import Fabric
from actors.initial_arrays import at_start, list_per, per
from actors.kernel.arrays import total
from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import NEVER, NONE
from actors.kernel.records import Records, records
from actors.scheduler import Parameter

UNQUEUED = np.int64(-2)  # active, but in no queue
INACTIVE = np.int64(-1)  # not registered yet, or ended
RANK_SHIFT = 40  # a key has a class or a queue in its upper bits, and the place in it in its lower bits

CLOCK = np.dtype(
    [
        ("entries", "i8"),  # how often a coflow has entered a queue
        ("queue", "i8"),  # whose slot it is, or NONE
        ("end", "i8"),  # when that slot ends, ns; NEVER: queues have no slots
        ("first", "i8"),  # the queue that had the first slot of the round
    ]
)


class Queues(NamedTuple):
    """The queue of each of C coflows, of K queues, and whose slot it is."""

    size: np.ndarray  # [K] coflows in a queue
    clock: Records  # [1] CLOCK
    limit: np.ndarray  # [K] bytes, the last infinite
    slot: int  # ns, 0: strict priority
    least: int  # ns
    interval: int  # ns
    share: int
    queue: np.ndarray = per("coflow", INACTIVE)  # INACTIVE, UNQUEUED, or the queue
    entered: np.ndarray = per("coflow")  # the number of its entry among the entries of all coflows
    learned: np.ndarray = per("coflow", NEVER)  # when the coordinator learned what put it into its queue, ns
    learned_bytes: np.ndarray = per("coflow", 0.0)  # what it had sent then
    keys: np.ndarray = list_per("group")  # scratch for sorting
    groups: np.ndarray = list_per("group")


_SLOTS = ("starvation=slots",)
LIMIT_PARAMETERS = (
    Parameter("queues", 10, "integer", "priority queues", low=1, high=64),
    Parameter("first_limit_bytes", 10 << 20, "size", "limit of the first queue", low=1),
    Parameter("factor", 10.0, "number", "growth of the limits from queue to queue", low=1.000001, high=1e6),
    Parameter(
        "interval_s",
        0.008,
        "duration",
        "scheduling interval δ",
        low=1e-6,
        high=3600,
        addresses=(Remedy("decision", "the time between two decisions"),),
    ),
)


def in_turns(rule: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the rule of a scheduler whose queues take turns unless its parameter `starvation` is strict."""
    turns = "in its slot a lower queue goes before higher ones, so that none starves"
    slots = f"{rule}; but queues take turns (starvation=slots): {turns}"
    return lambda parameters: slots if parameters.get("starvation", "slots") == "slots" else rule


QUEUE_PARAMETERS = (
    *LIMIT_PARAMETERS,
    Parameter(
        "starvation",
        "slots",
        "choice",
        "what keeps low queues from starving: slots of time in turn, or nothing (strict priority)",
        choices=("slots", "strict"),
    ),
    Parameter(
        "slot_intervals",
        256,
        "integer",
        "intervals in the slot of the first queue of a round",
        low=1,
        high=1 << 20,
        needs=_SLOTS,
    ),
    Parameter(
        "share",
        10,
        "integer",
        "how many times longer a queue's slot is than the next one's",
        low=1,
        high=1000,
        needs=_SLOTS,
    ),
    Parameter(
        "least_intervals",
        1,
        "integer",
        "least number of intervals in the slot of a queue; 0: queues with slots of less than one interval have none, as"
        " Philae's authors simulate it",
        low=0,
        high=1 << 20,
        needs=_SLOTS,
    ),
)


def make_queues(fabric: Fabric, parameters: dict[str, Any]) -> Queues:
    """Return empty queues for `QUEUE_PARAMETERS`; those of slots may be missing if `starvation` is "strict"."""
    limits = parameters["first_limit_bytes"] * parameters["factor"] ** np.arange(parameters["queues"])
    limits[-1] = np.inf
    clock = records(CLOCK, 1)
    clock.queue[0], clock.end[0] = NONE, NEVER
    interval = round(parameters["interval_s"] * 1e9)
    slot, least, share = 0, 0, 1
    if parameters["starvation"] == "slots":
        least = parameters["least_intervals"] * interval
        slot = max(parameters["slot_intervals"] * interval, least)
        share = parameters["share"]
    return at_start(
        Queues,
        fabric,
        size=np.zeros(limits.size, np.int64),
        clock=clock,
        limit=limits,
        slot=slot,
        least=least,
        interval=interval,
        share=share,
    )


@inlined
def queue_of(queues: Queues, measure: float) -> int:
    """Return the queue for a measure in bytes."""
    queue = 0
    while measure > queues.limit[queue]:
        queue += 1
    return queue


@compiled
def enqueue(queues: Queues, coflow: int, queue: int) -> None:
    """Put a coflow at the tail of a queue."""
    dequeue(queues, coflow)
    queues.queue[coflow] = queue
    queues.size[queue] += 1
    queues.clock.entries[0] += 1
    queues.entered[coflow] = queues.clock.entries[0]


@compiled
def dequeue(queues: Queues, coflow: int) -> None:
    """Take a coflow out of its queue."""
    if queues.queue[coflow] >= 0:
        queues.size[queues.queue[coflow]] -= 1
    queues.queue[coflow] = INACTIVE


@compiled
def update_slot(queues: Queues, t: int) -> None:
    """Begin the slot that contains t; slots follow each other while a coflow is in a queue."""
    clock = queues.clock
    if queues.slot == 0 or total(queues.size) == 0:
        clock.queue[0], clock.end[0] = NONE, NEVER
        return
    if clock.queue[0] == NONE:
        clock.end[0] = t
    while t >= clock.end[0]:
        span = next_slot(queues)
        if span == 0:  # a round is over
            clock.queue[0] = 0
            while queues.size[clock.queue[0]] == 0:
                clock.queue[0] += 1
            clock.first[0], span = clock.queue[0], queues.slot
        clock.end[0] += span // queues.interval * queues.interval


@inlined
def next_slot(queues: Queues) -> int:
    """Go to the next queue that has a slot in this round; return the slot's length, ns, or 0 if the round is over."""
    clock, span = queues.clock, queues.slot
    if clock.queue[0] == NONE:
        return np.int64(0)
    for _ in range(clock.first[0], clock.queue[0]):
        span //= queues.share
    while clock.queue[0] + 1 < queues.size.size:
        clock.queue[0] += 1
        span //= queues.share
        if span >= max(queues.interval, queues.least):
            return span
        if queues.least > 0 and queues.size[clock.queue[0]] > 0:
            return queues.least
    return np.int64(0)


@inlined
def order_key(queues: Queues, coflow: int) -> int:
    """Return the sort key of a coflow: first the queue whose slot it is, then the others; in a queue by entry."""
    queue = queues.queue[coflow]
    return ((0 if queue == queues.clock.queue[0] else 1 + queue) << RANK_SHIFT) | queues.entered[coflow]
