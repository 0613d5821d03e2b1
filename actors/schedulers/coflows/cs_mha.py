"""CS-MHA (ICC 2016): coflows with deadlines, admitted if each port by itself has time for them. Clairvoyant.

The baseline of DCoflow: a coflow is rejected if one port rejects it, whatever room that makes at the others.

1. A coflow registers, with the sizes of its flows and its deadline. At a decision, coflows that have passed their
   deadlines are dropped; the others, also those rejected before, are ordered by what they have left.
2. Each port takes its coflows in the order of their deadlines; whenever a coflow would be late, the longest so far is
   rejected there (Moore-Hodgson), of equal ones the one with the first deadline. A coflow is admitted if no port
   rejects it.
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

from functools import partial

from actors.fabric.flow_order import flow_order
from actors.schedulers.coflows.admitting import (
    BY_CS_MHA,
    DECIDE_AT,
    UPDATE_PERIOD,
    admitting_scheduler,
    build_admitting,
    serve_rejected,
)
from actors.schedulers.coflows.ordered import INTERVAL

CS_MHA = admitting_scheduler(
    name="cs-mha",
    title="coflows with deadlines: admitted if each port by itself has time for them",
    paper="Luo, Yu, Li: Decentralized deadline-aware coflow scheduling for datacenter networks, ICC 2016",
    about=__doc__,
    parameters=(serve_rejected(True), DECIDE_AT, UPDATE_PERIOD, flow_order("workload"), INTERVAL),
    build=partial(build_admitting, rule=BY_CS_MHA),
)
