"""Varys with deadlines (SIGCOMM 2014): a coflow is admitted if bandwidth can be reserved for it. Clairvoyant.

An admitted coflow ends by its deadline, whatever coflows arrive later: its bandwidth is reserved. But the first coflows
to arrive may exclude many that need less.

1. A coflow registers, with the sizes of its flows and its deadline. It is admitted, or rejected, on arrival; of coflows
   that arrive together the first in the workload comes first.
2. Its effective bottleneck is the longest time that one of its ports needs for its bytes with the bandwidth that the
   coflows admitted before have not reserved. It is admitted if the time until its deadline is at least this time plus
   `padding` of it, and at least `least_s`.
3. It then reserves the least that lets each of its flows end at its deadline: what the flow has left, divided by the
   time left (MADD with the deadline as the desired duration).
4. What is left goes to coflows without deadlines, in order of arrival, each by MADD; and then to single flows, each as
   much as both of its ports have: first those of the earliest deadline, or with `backfill=arrival` of the earliest
   arrival, and last those of coflows without deadlines. So a coflow, and its reservation, often ends before its
   deadline. When such a flow ends, what it had goes to flows that wait at its ports.
5. A rejected coflow is dropped. With `rejected=retry` it asks again when coflows arrive or end, after the admitted
   ones, and is dropped when it could not be in time even alone. With `rejected=serve` it also asks again, and until it
   is admitted it is served behind all others, also after its deadline.

A coflow without a deadline is always admitted, and reserves nothing. O(lines of all active coflows) a decision. Times,
agents and refills are those of `sebf` with MADD's rates: reservations begin when the schedule takes effect, and a
coflow whose messages, or decisions, take longer than its slack is not admitted.

**Deviations from the paper.** The authors' implementation, Varys, admits a coflow only if its deadline is 10 % later
than it must be, and at least 200 ms away, and gives what is left by arrival: that is `padding=10%`, `least_s=200ms` and
`backfill=arrival`. The paper has neither margin, and does not state the order in which coflows get what is left; by
deadline is the order of CoflowSim, the authors' simulator. Both divide by the whole time from arrival to deadline in
place of the time left, whatever has been sent, and reduce the rates of single flows if ports are full; here all
reservations fit. What a flow leaves that ends early is given away at once; CoflowSim leaves it unused until a coflow
arrives or ends.
"""

from functools import partial

from actors.scheduler import Parameter
from actors.schedulers.coflows.ordered import INTERVAL
from actors.schedulers.coflows.reserving import REJECTED_ARE, SHARE, build_reserving, reserving_scheduler

REJECTED = Parameter(
    "rejected",
    "drop",
    "choice",
    "rejected coflows are dropped, ask again while they can be in time, or are served behind the others",
    choices=REJECTED_ARE[:SHARE],
)

PADDING = Parameter(
    "padding",
    0.0,
    "share",
    "how much more time than it needs a coflow must have to be admitted, as a share of what it needs",
)
LEAST = Parameter(
    "least_s",
    0.0,
    "duration",
    "a coflow whose deadline is nearer is not admitted",
    low=0.0,
    high=86400,
)
BACKFILL = Parameter(
    "backfill",
    "deadline",
    "choice",
    "whose flows have what is left: of the earliest deadline first, or of the earliest arrival",
    choices=("deadline", "arrival"),
)

VARYS_DEADLINE = reserving_scheduler(
    name="varys-deadline",
    title="Varys with deadlines: admitted if the bandwidth can be reserved that lets a coflow end in time",
    paper="Chowdhury, Zhong, Stoica: Varys, SIGCOMM 2014, section 5, doi 10.1145/2619239.2626315",
    about=__doc__,
    parameters=(REJECTED, PADDING, LEAST, BACKFILL, INTERVAL),
    build=partial(build_reserving, stands=True),
)
