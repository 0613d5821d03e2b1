"""CS-MHA (ICC 2016): coflows with deadlines, admitted if each port by itself has time for them. Clairvoyant.

The baseline of DCoflow: a coflow is rejected if one port rejects it, whatever room that makes at the others.

1. A coflow registers, with the sizes of its flows and its deadline. At a decision, coflows that have passed their
   deadlines are dropped; the others, also those rejected before, are ordered by what they have left.
2. Each port takes its coflows in the order of their deadlines; whenever a coflow would be late, the longest so far is
   rejected there (Moore-Hodgson; if several are as long, the one with the first deadline). A coflow is admitted if no
   port rejects it.
3. Admitted coflows are served first, in the order of their deadlines. With `serve_rejected` the others follow, by the
   largest share of their time left that they need of a port.
4. In this order each flow gets both of its ports if they are free; a running flow is stopped if it holds a port that an
   earlier flow can use. Flows of one coflow are in the order of `flow_order`, as in `dcoflow`. Agents are sent the
   verdicts.
5. Decisions are made as by `dcoflow`: at each arrival, with `decide_at=ends` also at each end of a coflow, or every
   `update_period_s`.

A coflow without a deadline is always admitted. O(lines log n) a decision about n coflows.

**Deviations from the paper.** The paper's text was not at hand: this is the algorithm as DCoflow's authors implemented
it, who let rejected coflows follow. They add 1e-6 (off-line) or 1e-3 (on-line) to the time left in step 3, so that it
is not 0; here it is above 0, as coflows that have passed their deadlines are dropped before. The decentralised form,
D2-CAS, is not here.
"""

import numpy as np

from actors.fabric.deadline_order import (
    DeadlineOrder,
    collect_lines,
    list_by_deadline,
    most_needed,
    reject_fewest,
)
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import flow_order
from actors.fabric.order import sort_groups
from actors.fabric.ports import Fabric
from actors.kernel.compiled import compiled
from actors.kernel.queue import NONE
from actors.schedulers.coflows.admitting import (
    DECIDE_AT,
    UPDATE_PERIOD,
    Admitting,
    admitting_loop,
    admitting_scheduler,
    begin_decision,
    build_admitting,
    end_decision,
    serve_rejected,
)
from actors.schedulers.coflows.ordered import INTERVAL


@compiled
def on_decide(w: CoflowWorld, p: Admitting, t: int) -> None:
    """Steps 1 to 4: order and admit coflows, if it is time to."""
    count = begin_decision(w, p, t)
    if count != NONE:
        end_decision(w, p, t, cs_mha(w.fabric, p.deadline_order, count), count)


@compiled
def cs_mha(fabric: Fabric, deadlines: DeadlineOrder, count: int) -> int:
    """Steps 2 and 3: order the first `count` of `s.groups`; return how many are admitted. O(lines log n).

    Admitted coflows come first, by deadline; then the others, by the largest share of their time left that they need of
    a port.
    """
    list_by_deadline(fabric, deadlines, count)
    for port in range(deadlines.load.size):
        reject_fewest(fabric, deadlines, collect_lines(fabric, deadlines, port))
    admitted: int = 0
    for i in range(count):
        coflow = deadlines.groups[i]
        if deadlines.late[coflow]:
            deadlines.keys[i] = most_needed(fabric, deadlines, coflow) / max(deadlines.time_left[coflow], 1.0)
        else:
            deadlines.keys[i] = np.float64(i - count)  # before all others, by deadline
            admitted += 1
    sort_groups(fabric.coflows, deadlines.groups, deadlines.keys, count)
    return admitted


advance = admitting_loop(__name__, Admitting, on_decide)

CS_MHA = admitting_scheduler(
    name="cs-mha",
    title="coflows with deadlines: admitted if each port by itself has time for them",
    paper="Luo, Yu, Li: Decentralized deadline-aware coflow scheduling for datacenter networks, ICC 2016",
    parameters=(serve_rejected(True), DECIDE_AT, UPDATE_PERIOD, flow_order("workload"), INTERVAL),
    build=build_admitting,
    advance=advance,
    about=__doc__,
)
