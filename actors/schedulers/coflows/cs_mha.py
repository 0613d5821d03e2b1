"""CS-MHA (ICC 2016): coflows with deadlines, admitted if each port by itself has time for them. Clairvoyant.

The baseline of DCoflow: a coflow is rejected where one port rejects it, whatever that frees at the others.

1. A coflow registers, with the sizes of its flows and its deadline. At a decision, what has passed its deadline is
   dropped; the others are ordered by what they have left, those that were rejected before included.
2. Each port takes its coflows in the order of their deadlines; whenever one would be late, the longest so far is
   rejected there (Moore-Hodgson), of several the one that is due first. A coflow is admitted if no port rejects it.
3. Admitted ones are served first, in the order of their deadlines. With `serve_rejected` the others come behind, by the
   largest share of their time left that they need of a port.
4. In this order each flow gets both of its ports if they are free; a running flow that holds a port which an earlier
   one can use is stopped. Flows of one coflow go by `flow_order`, as with `dcoflow`. Agents are sent the verdicts.
5. Decisions are made as by `dcoflow`: at each arrival, with `decide_at=ends` at each end of a coflow, too, or every
   `update_period_s`.

A coflow without a deadline is always admitted. O(lines log n) a decision about n coflows.

**Deviations from the paper.** The paper's text was not at hand: this is the algorithm as DCoflow's authors implemented
it, who let rejected coflows follow. They add 1e-6 (off-line) or 1e-3 (on-line) to the time left in step 3, so that it
is not 0; here it is more than 0, as what has passed its deadline is dropped before. The decentralised form, D2-CAS, is
not here.
"""

# STATE
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_order import flow_order
from actors.fabric.worlds import COFLOW_WORLDS
from actors.scheduler import Scheduler
from actors.schedulers.coflows.admitting import (
    BY_CS_MHA,
    DECIDE_AT,
    UPDATE_PERIOD,
    State,
    advance,
    build_admitting,
    series,
    serve_rejected,
)
from actors.schedulers.coflows.ordered import INTERVAL
from actors.setting import Setting


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    return build_admitting(setting, BY_CS_MHA, serves_rejected=setting.parameters["serve_rejected"])


CS_MHA = Scheduler(
    name="cs-mha",
    title="coflows with deadlines: admitted if each port by itself has time for them",
    paper="Luo, Yu, Li: Decentralized deadline-aware coflow scheduling for datacenter networks, ICC 2016",
    parameters=(serve_rejected(True), DECIDE_AT, UPDATE_PERIOD, flow_order("workload"), INTERVAL),
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    series=series,
    uses_deadlines=True,
)
