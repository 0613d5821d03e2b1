"""Earliest deadline first, of coflows: no admission. Clairvoyant.

This order is the best for one machine if all jobs can be in time, and a bad one if they cannot: coflows that will be
late take the time in which others could end by their deadlines.

1. A coflow registers, with its deadline. At a decision, coflows that have passed their deadlines are dropped if
   `drop_expired` is set, and come first otherwise.
2. Coflows are served in the order of their deadlines, those with equal deadlines in the order of their arrival;
   coflows without a deadline come last.
3. In this order each flow gets both of its ports if they are free; a running flow is stopped if it holds a port that an
   earlier flow can use. Flows of one coflow are in the order of `flow_order`, as in `dcoflow`.
4. Decisions are made as by `dcoflow`: at each arrival, with `decide_at=ends` also at each end of a coflow, or every
   `update_period_s`. Between decisions nothing is dropped: a late coflow is served until the next decision.

O(n log n + lines) a decision about n coflows.

**Deviations from the paper.** C. L. Liu and J. W. Layland (Journal of the ACM 20, 1973) have one processor and tasks.
Here all ports serve coflows in one order, as in the algorithms for coflows.
"""

from functools import partial

from actors.fabric.deadline_order import sort_by_deadline
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import flow_order
from actors.kernel.compiled import compiled
from actors.kernel.queue import NONE
from actors.scheduler import Parameter
from actors.schedulers.coflows.admitting import (
    DECIDE_AT,
    UPDATE_PERIOD,
    Admitting,
    admitting_loop,
    admitting_scheduler,
    begin_decision,
    build_admitting,
    end_decision,
)
from actors.schedulers.coflows.ordered import INTERVAL

DROP_EXPIRED = Parameter(
    "drop_expired", True, "flag", "coflows that have not ended by their deadlines are dropped"
)


@compiled
def on_decide(w: CoflowWorld, p: Admitting, t: int) -> None:
    """Steps 1 to 3: put coflows in the order of their deadlines, if it is time to."""
    count = begin_decision(w, p, t)
    if count != NONE:
        sort_by_deadline(w.fabric, p.deadline_order, count)
        end_decision(w, p, t, count, count)


advance = admitting_loop(__name__, Admitting, on_decide)

EDF = admitting_scheduler(
    name="edf",
    title="coflows in the order of their deadlines",
    paper="Liu, Layland: Scheduling algorithms for multiprogramming in a hard-real-time environment, JACM 20(1), 1973, "
    "doi 10.1145/321738.321743",
    about=__doc__,
    parameters=(DROP_EXPIRED, DECIDE_AT, UPDATE_PERIOD, flow_order("workload"), INTERVAL),
    build=partial(build_admitting, admits_all=True),
    advance=advance,
)
