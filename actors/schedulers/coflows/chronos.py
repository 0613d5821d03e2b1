"""Chronos (ICC 2016): in order of priority, coflows reserve what they need to end in time; the others share the rest.

No coflow starves: a coflow that cannot be in time is served with what is left, also after its deadline.

1. A coflow registers, with the sizes of its flows and its deadline. When a coflow has arrived or ended, all are put in
   order: by their deadlines, or with `order=bottleneck` by how long they need at their slowest port if alone.
2. In this order a coflow reserves, if its ports have it, the least bandwidth that lets each of its flows end at its
   deadline: what the flow has left divided by the time left. Then it is admitted; otherwise it is rejected, until the
   next decision. An admitted coflow may lose its reservation to coflows that come later and are before it in the order.
3. What is left of each port is shared by the coflows that have not reserved, in proportion to the bytes that they have
   left there. All flows of a coflow end together, at the rates that its smallest share allows.
4. What is left then goes to single flows, in order and first to those of coflows that have reserved, each as much as
   both of its ports have. When such a flow ends, what it had goes to flows that wait at its ports.

A coflow without a deadline reserves nothing, shares in step 3, and counts as admitted. O(n log n + lines) a decision
about n coflows. Times, agents and refills are those of `sebf` with MADD's rates: reservations begin when the schedule
takes effect, and a coflow whose messages, or decisions, take longer than its slack is not admitted.

**Deviations from the paper.** The paper's text was not at hand: steps 2 and 3 follow section V of DCoflow's paper. That
section does not state the order of priority, so that `order` offers two; nor whether a coflow's flows end together in
step 3; nor who gets bandwidth that no share can use (step 4). Verdicts show which coflows have reserved; the paper has
no admission.
"""

from functools import partial

from actors.scheduler import Parameter
from actors.schedulers.coflows.ordered import INTERVAL
from actors.schedulers.coflows.reserving import build_reserving, reserving_scheduler

ORDER = Parameter(
    "order",
    "deadline",
    "choice",
    "who reserves first: the earliest deadline, or the smallest effective bottleneck",
    choices=("deadline", "bottleneck"),
)

CHRONOS = reserving_scheduler(
    name="chronos",
    title="coflows in order reserve what lets them end in time; the others share the rest by demand",
    paper="Ma, Jiang, Li, Li: Chronos: Meeting coflow deadlines in data center networks, ICC 2016",
    about=__doc__,
    parameters=(ORDER, INTERVAL),
    build=partial(build_reserving, stands=False),
)
