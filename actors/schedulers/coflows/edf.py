"""Earliest deadline first, of coflows: no admission. Clairvoyant.

The order that is best for one machine if all jobs can be in time, and a bad one if they cannot: coflows that will be
late take what would let others be in time.

1. A coflow registers, with its deadline. At a decision, coflows that have passed theirs are dropped if
   `drop_expired` is set, and come first otherwise.
2. They are served in the order of their deadlines, of equal ones the first to arrive first; those without a deadline
   come last.
3. In this order each flow gets both of its ports if they are free; a running flow that holds a port which an earlier
   one can use is stopped. Flows of one coflow go by `flow_order`, as with `dcoflow`.
4. Decisions are made as by `dcoflow`: at each arrival, with `decide_at=ends` at each end of a coflow, too, or every
   `update_period_s`. Between them nothing is dropped: a coflow that is late goes on until the next one.

O(n log n + lines) a decision about n coflows.

**Deviations from the paper.** C. L. Liu and J. W. Layland (Journal of the ACM 20, 1973) have one processor and
tasks. What each port does of a coflow follows one order here, as in the algorithms for coflows.
"""

# STATE
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_order import flow_order
from actors.fabric.worlds import COFLOW_WORLDS
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.admitting import (
    BY_DEADLINE,
    DECIDE_AT,
    UPDATE_PERIOD,
    State,
    advance,
    build_admitting,
    series,
)
from actors.schedulers.coflows.ordered import INTERVAL
from actors.setting import Setting

DROP_EXPIRED = Parameter(
    "drop_expired", True, "flag", "coflows that have not ended by their deadlines are dropped"
)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    return build_admitting(setting, BY_DEADLINE, drops_expired=setting.parameters["drop_expired"])


EDF = Scheduler(
    name="edf",
    title="coflows in the order of their deadlines",
    paper="Liu, Layland: Scheduling algorithms for multiprogramming in a hard-real-time environment, JACM 20(1), 1973, "
    "doi 10.1145/321738.321743",
    parameters=(DROP_EXPIRED, DECIDE_AT, UPDATE_PERIOD, flow_order("workload"), INTERVAL),
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    series=series,
    uses_deadlines=True,
)
