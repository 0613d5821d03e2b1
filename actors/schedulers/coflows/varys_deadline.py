"""Varys with deadlines (SIGCOMM 2014): a coflow is admitted if bandwidth can be reserved for it. Clairvoyant.

A coflow that is admitted ends by its deadline, whatever comes later: its bandwidth is its own. The price is that the
first to come may keep out many that need less.

1. A coflow registers, with the sizes of its flows and its deadline. It is admitted, or rejected, on arrival; of those
   that arrive together the first in the workload is first.
2. Its effective bottleneck is the longest time that one of its ports needs for its bytes with the bandwidth that the
   coflows admitted before have not reserved. It is admitted if it has as long until its deadline, and `padding` of that
   more, and no less than `least_s`.
3. It then reserves the least that lets each of its flows end at its deadline: what the flow has left, divided by the
   time left (MADD with the deadline as the desired duration).
4. What is left goes to coflows without deadlines, in order of arrival, each by MADD; and then to single flows, those of
   the earliest deadline first, or with `backfill=arrival` of the earliest arrival, and of coflows without deadlines
   last, each as much as both of its ports have. So a coflow often ends before its deadline, and its reservation then.
   When such a flow ends, what it had goes to those that wait at its ports.
5. A rejected coflow is dropped. With `rejected=retry` it asks again when coflows arrive or end, after those that are
   admitted, and is dropped when it could not be in time even alone. With `rejected=serve` it asks again, too, and is
   served meanwhile behind all others, after its deadline as well.

A coflow without a deadline is always admitted, and reserves nothing. O(lines of all active coflows) a decision. Times,
agents and refills are those of `sebf` with MADD's rates: reservations count from when the schedule takes effect, and a
coflow whose messages, or decisions, take longer than its slack is not admitted.

**Deviations from the paper.** The authors' implementation, Varys, admits a coflow only if its deadline is 10 % later
than it must be, and at least 200 ms away, and gives what is left by arrival: that is `padding=10%`, `least_s=200ms` and
`backfill=arrival`. The paper has neither margin, and does not say in which order coflows have what is left; by deadline
it is as in CoflowSim, the authors' simulator. Both divide by the whole time from arrival to deadline in place of the
time left, whatever has been sent, and cut single flows short where ports are full; here all reservations fit. What a
flow leaves that ends early is given away at once; CoflowSim leaves it until a coflow arrives or ends.
"""

# STATE
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.worlds import COFLOW_WORLDS
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.ordered import INTERVAL
from actors.schedulers.coflows.reserving import DROP, RETRY, SERVE, State, advance, build_reserving, series
from actors.setting import Setting

_RULES = {"drop": DROP, "retry": RETRY, "serve": SERVE}
REJECTED = Parameter(
    "rejected",
    "drop",
    "choice",
    "rejected coflows are dropped, ask again while they can be in time, or are served behind the others",
    choices=tuple(_RULES),
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


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    return build_reserving(
        setting,
        _RULES[given["rejected"]],
        padding=given["padding"],
        least_s=given["least_s"],
        by_arrival=given["backfill"] == "arrival",
    )


VARYS_DEADLINE = Scheduler(
    name="varys-deadline",
    title="Varys with deadlines: admitted if the bandwidth can be reserved that lets a coflow end in time",
    paper="Chowdhury, Zhong, Stoica: Varys, SIGCOMM 2014, section 5, doi 10.1145/2619239.2626315",
    parameters=(REJECTED, PADDING, LEAST, BACKFILL, INTERVAL),
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    series=series,
    uses_deadlines=True,
)
