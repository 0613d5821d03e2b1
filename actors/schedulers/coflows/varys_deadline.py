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

from typing import NamedTuple

import numpy as np

from actors.fabric.admission import (
    ADMITTED,
    DROPPED,
    REJECTED,
    decide_verdict,
    drop_greedy,
    time_left,
)
from actors.fabric.coordinator import effective_time
from actors.fabric.fabric_world import NS, CoflowWorld
from actors.fabric.madd import add_rates
from actors.fabric.order import sort_groups
from actors.kernel.compiled import compiled
from actors.kernel.queue import NONE
from actors.scheduler import Parameter
from actors.schedulers.coflows.ordered import INTERVAL
from actors.schedulers.coflows.reserving import (
    BEHIND,
    NO_DEADLINE,
    Reserving,
    begin_decision,
    build_reserving,
    end_decision,
    fits,
    reserve,
    reserve_if_fits,
    reserving_loop,
    reserving_scheduler,
    serve_by_keys,
)
from actors.setting import Setting

# A rejected coflow is dropped; or waits until it is admitted or can no longer be in time; or is served behind the
# others.
REJECTED_ARE = ("drop", "retry", "serve")
DROP, RETRY, SERVE = map(np.int64, range(len(REJECTED_ARE)))

REJECTED_COFLOWS = Parameter(
    "rejected",
    "drop",
    "choice",
    "rejected coflows are dropped, ask again while they can be in time, or are served behind the others",
    choices=REJECTED_ARE,
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


class State(NamedTuple):
    """The state of the coordinator."""

    reserving: Reserving
    rejected: int  # DROP, RETRY or SERVE
    padding: float  # to be admitted, a coflow must have more time left than it needs, by this share of what it needs
    least: int  # and at least this time, ns
    by_arrival: (
        bool  # what reservations leave goes to their coflows in order of arrival; else of their deadlines
    )


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> None:
    """Steps 2 to 5, if a coflow has arrived or will have ended."""
    reserving = p.reserving
    count = begin_decision(w, reserving, t)
    if count == NONE:
        return
    for i in range(count):
        reserving.keys[i] = 0.0 if reserving.admission.verdict[reserving.groups[i]] == ADMITTED else 1.0
    sort_groups(
        w.fabric.coflows, reserving.groups, reserving.keys, count
    )  # those that are admitted first, as their reservations stay
    reserved = admit_in_turn(w, p, t, count)
    add_rates(w.fabric, reserving.order, reserving.madd, reserved, reserving.order.used[0])
    end_decision(w, reserving, t)


@compiled
def admit_in_turn(w: CoflowWorld, p: State, t: int, count: int) -> int:
    """Judge the first `count` of `groups`, and put the served ones in order; return how many have reserved."""
    reserving, effective, served, reserved = p.reserving, effective_time(w, t), 0, 0
    for i in range(count):
        coflow = reserving.groups[i]
        left = time_left(reserving.admission, coflow, effective)
        verdict = judge(w, p, coflow, left)
        if verdict == DROPPED:
            drop_greedy(w, reserving.admission, reserving.matching, t, coflow, DROPPED)
            continue
        decide_verdict(w, reserving.admission, t, coflow, verdict)
        if verdict == REJECTED and p.rejected == RETRY:
            continue
        key = 0.0 if p.by_arrival else np.float64(reserving.admission.deadline[coflow])
        if left == np.inf:
            key = NO_DEADLINE
        elif verdict == REJECTED:
            key = BEHIND
        else:
            reserved += 1
        reserving.groups[served], reserving.keys[served] = coflow, key
        served += 1
    serve_by_keys(w, reserving, served)
    return reserved


@compiled
def judge(w: CoflowWorld, p: State, coflow: int, left: float) -> int:
    """Steps 2, 3 and 5: return the verdict on a coflow that has `left` ns; if admitted, it reserves by its deadline."""
    if left == np.inf:
        return ADMITTED
    madd, may, least = p.reserving.madd, left > 0.0 and left >= p.least, left / (1.0 + p.padding)
    if p.reserving.admission.verdict[coflow] == ADMITTED:
        reserve(w.fabric, madd, coflow, max(left, 1.0))
        return ADMITTED
    if may and reserve_if_fits(w.fabric, madd, coflow, left, least):
        return ADMITTED
    if p.rejected == DROP:
        return DROPPED
    can_be = may and fits(w.fabric, madd, coflow, least, w.fabric.speed)
    if p.rejected == RETRY and not can_be:
        return DROPPED
    return REJECTED


advance = reserving_loop(__name__, State, on_decide)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0.

    Raises:
        InputError: the cost of a decision is not known before the decision.
    """
    given = setting.parameters
    world, reserving = build_reserving(setting)
    return world, State(
        reserving=reserving,
        rejected=REJECTED_ARE.index(given["rejected"]),
        padding=given["padding"],
        least=round(given["least_s"] * NS),
        by_arrival=given["backfill"] == "arrival",
    )


VARYS_DEADLINE = reserving_scheduler(
    name="varys-deadline",
    title="Varys with deadlines: admitted if the bandwidth can be reserved that lets a coflow end in time",
    paper="Chowdhury, Zhong, Stoica: Varys, SIGCOMM 2014, section 5, doi 10.1145/2619239.2626315",
    parameters=(REJECTED_COFLOWS, PADDING, LEAST, BACKFILL, INTERVAL),
    build=build,
    advance=advance,
)
