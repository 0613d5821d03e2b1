"""Sincronia (SIGCOMM 2018): an order of coflows under which the rates hardly matter. Clairvoyant.

The order of coflows is enough: whatever the rates, as long as they follow it and conserve work, the mean completion
time is within 4 times the optimum, if all coflows arrive at the beginning.

1. A coflow registers, with the sizes of its flows; or, unless `reorder=arrivals`, a coflow has ended.
2. Bottleneck, select, scale, iterate (`actors.fabric.bssi`): at the most loaded port, the coflow with the least weight
   for its bytes left at it is last. The weights of the others at that port are lowered in proportion, and the same is
   done for those that are left. Weights are the workload's, 1 where it has none, or with `weights=false`.
3. In this order each flow gets both of its ports if they are free; a running flow that holds a port which an earlier
   coflow can use is stopped. With `flow_order=workload` flows of one coflow have that order, too.
4. When a flow ends, its ports go to the next flows in order at once. Agents report ends of flows alone.

O(n (N + lines of a coflow)) a decision about n coflows at N ports, O(words of a line) a flow that starts or stops.

**Deviations from the paper.** The order is recomputed at each arrival and each end of a coflow, from what coflows have
left then (with `reorder=arrivals` at arrivals alone: once, if all arrive at the beginning, as in the paper's off-line
algorithm); the bound of the paper's on-line algorithm depends on epochs, which are not modelled. A heavy coflow may
wait as long as lighter ones arrive. Rates are the coordinator's, not those of priorities in the transport.
"""

from actors.fabric.fabric_world import CoflowWorld

# STATE
from actors.fabric.flow_order import flow_order
from actors.fabric.worlds import COFLOW_WORLDS
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.ordered import BY_BSSI, INTERVAL, State, advance, build_ordered
from actors.setting import Setting

PARAMETERS = (
    Parameter(
        "reorder",
        "ends",
        "choice",
        "the order is made again when a coflow has arrived, or also when one has ended",
        choices=("arrivals", "ends"),
    ),
    Parameter("weights", True, "flag", "the weights of coflows count; otherwise all are 1"),
    flow_order("ports"),
    INTERVAL,
)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    given = setting.parameters
    at_ends = given["reorder"] == "ends"
    return build_ordered(setting, BY_BSSI, "greedy", reorders_at_ends=at_ends, weights=given["weights"])


SINCRONIA = Scheduler(
    name="sincronia",
    title="coflows in the order of bottleneck, select, scale, iterate",
    paper="Agarwal et al.: Sincronia, SIGCOMM 2018, Algorithm 1, doi 10.1145/3230543.3230569",
    parameters=PARAMETERS,
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    updatable="always",
)
