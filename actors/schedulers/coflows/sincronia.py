"""Sincronia (SIGCOMM 2018): an order of coflows under which the rates hardly matter. Clairvoyant.

The order of coflows is enough: if all coflows arrive at the beginning, the mean completion time is within 4 times the
optimum with any rates that follow the order and conserve work.

1. A coflow registers, with the sizes of its flows; or, unless `reorder=arrivals`, a coflow has ended.
2. Bottleneck, select, scale, iterate (`actors.fabric.bssi`): at the most loaded port, the coflow with the least weight
   for its bytes left there gets the last place. The weights of the other coflows at that port are lowered in
   proportion. The same is then done for the coflows that have no place yet. Weights are those of the workload; they are
   1 if it has none, or with `weights=false`.
3. In this order each flow gets both of its ports if they are free; a running flow is stopped if it holds a port that an
   earlier coflow can use. With `flow_order=workload` the flows of one coflow also have an order.
4. When a flow ends, its ports go to the next flows in order at once. Agents report only ends of flows.

O(n (N + lines of a coflow)) a decision about n coflows at N ports, O(words of a line) for a flow that starts or stops.

**Deviations from the paper.** The order is recomputed at each arrival and each end of a coflow, from what coflows have
left then (with `reorder=arrivals` only at arrivals: once, if all arrive at the beginning, as in the paper's off-line
algorithm); the bound of the paper's on-line algorithm depends on epochs, which are not modelled. A heavy coflow may
wait as long as lighter ones arrive. The coordinator sets the rates; in the paper they result from priorities in the
transport.
"""

from functools import partial

from actors.fabric.flow_order import flow_order
from actors.scheduler import Parameter
from actors.schedulers.coflows.ordered import BY_BSSI, INTERVAL, build_ordered, ordered_scheduler

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

SINCRONIA = ordered_scheduler(
    name="sincronia",
    title="coflows in the order of bottleneck, select, scale, iterate",
    paper="Agarwal et al.: Sincronia, SIGCOMM 2018, Algorithm 1, doi 10.1145/3230543.3230569",
    about=__doc__,
    parameters=PARAMETERS,
    build=partial(build_ordered, rule=BY_BSSI, rates="greedy"),
    updatable="always",
)
