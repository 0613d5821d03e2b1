"""Coflows in the order of one property, first, shortest, narrowest or lightest first: baselines of Varys.

`fifo`, `scf`, `ncf` and `lcf` have one loop and differ only by the key. `scf` and `lcf` know sizes in advance.

1. A coflow registers, and gets its key: in `fifo` its number in the order of registration; in `scf` its length, which
   is its largest flow; in `ncf` its width, the smaller of its numbers of senders and receivers; in `lcf` its bytes.
2. When a coflow has arrived or ended, all active coflows are sorted by their keys; of equal ones the first to arrive is
   first.
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

from actors.schedulers.coflows.ordered import (
    BY_LENGTH,
    BY_PLACE,
    BY_WEIGHT,
    BY_WIDTH,
    INTERVAL,
    RATES,
    build_ordered,
    ordered_scheduler,
)

FIFO, SCF, NCF, LCF = (
    ordered_scheduler(
        name=name,
        title=title,
        paper="Chowdhury, Zhong, Stoica: Varys, SIGCOMM 2014, doi 10.1145/2619239.2626315",
        about=__doc__,
        parameters=(RATES, INTERVAL),
        build=partial(build_ordered, rule=rule),
        updatable="rates=greedy",
    )
    for name, title, rule in (
        ("fifo", "coflows first in, first out", BY_PLACE),
        ("scf", "the shortest coflow first, by its largest flow", BY_LENGTH),
        ("ncf", "the narrowest coflow first, by its senders or receivers", BY_WIDTH),
        ("lcf", "the lightest coflow first, by its bytes", BY_WEIGHT),
    )
)
