"""Varys (SIGCOMM 2014): smallest effective bottleneck first, and minimum allocation for desired duration (MADD).

A coflow needs as long as its most loaded port. The coflow that needs the least time is served first, and none of its
flows is faster than its slowest flow must be: the rest is for later coflows. Clairvoyant.

1. A coflow registers, with the sizes of its flows; or a coflow has ended.
2. The effective bottleneck of each coflow is recomputed: the longest time that one of its ports would need for its
   bytes left, alone and at full speed. Coflows are sorted by it; those that need equally long are in the order of
   their arrival.
3. MADD: each coflow in order takes what lets all its flows end together, as soon as the bandwidth that those before it
   leave at its slowest port allows. A coflow that finds a port full takes nothing.
4. Backfill: what is left goes to single flows, in the same order, each as much as both of its ports have. When such a
   flow ends, what it had goes to flows that wait at its ports. Otherwise rates stay until a coflow arrives or ends.

With `rates=greedy` each flow in order has both of its ports alone, or waits: the authors of Philae simulate Varys so.

O(lines of all active coflows) a decision, O(words of a line) for a flow that is backfilled: all flows of a coflow that
MADD serves shrink in one proportion (`actors.fabric.madd`). An agent receives one time for a line, not one for each of
its flows, and only if it is new (`actors.fabric.agent`). The coordinator decides for the time at which its rates
take effect, and knows what will have ended by then (`actors.fabric.madd`).

**Deviations from the paper.** There are no deadlines, and there is no admission. A coflow without rates waits for what
backfill gives its flows; the paper's guard against starvation, a share of time for all, is not here. What a backfilled
flow leaves is given away at once; CoflowSim, the simulator of Varys's authors, leaves it unused until a coflow arrives
or ends.

`sebf-deadline` is `sebf` without step 4: what MADD leaves stays unused. The authors of DCoflow call it Varys where they
count which coflows end by their deadlines. It reads no deadline, admits all coflows and drops none: a late coflow is
served to its end. `varys-deadline` is the scheduler that has Varys's admission. Deviations from the paper: those of
`sebf`. DCoflow's authors compute with one batch and round rates to five decimals; here coflows may arrive later, and
nothing is rounded.
"""

from functools import partial

from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.madd import joint_bottleneck_ns
from actors.fabric.order import sort_groups
from actors.fabric.waves import end_of_shuffle
from actors.kernel.compiled import compiled
from actors.kernel.queue import NONE
from actors.schedulers.coflows.build import coflow_scheduler
from actors.schedulers.coflows.ordered import (
    INTERVAL,
    RATES,
    Ordered,
    begin_decision,
    build_ordered,
    end_decision,
    ordered_loops,
    put_waves_side_by_side,
)

LEAST_LEFT = "coflows whose busiest port has the least left to send go first"


@compiled
def on_decide(w: CoflowWorld, p: Ordered, t: int) -> None:
    """Steps 2 to 4: put the active coflows in order of their effective bottlenecks, and give them rates."""
    count = begin_decision(w, p, t)
    if count == NONE:
        return
    put_waves_side_by_side(w, p, count)
    first = 0
    while first < count:
        end = end_of_shuffle(w.waves, p.groups, first, count)
        need = joint_bottleneck_ns(w.fabric, p.madd, p.groups, first, end)
        for i in range(first, end):
            p.keys[i] = need
        first = end
    sort_groups(w.fabric.coflows, p.groups, p.keys, count)
    end_decision(w, p, t, count)


advance, advance_transfers = ordered_loops(__name__, Ordered, on_decide)

SEBF = coflow_scheduler(
    name="sebf",
    title="Varys: the coflow that needs least at its slowest port first, its flows end together",
    paper="Chowdhury, Zhong, Stoica: Varys, SIGCOMM 2014, Algorithm 1, doi 10.1145/2619239.2626315",
    parameters=(RATES, INTERVAL),
    build=build_ordered,
    advance=advance,
    transfers=advance_transfers,
    about=__doc__,
    rule=LEAST_LEFT,
)

SEBF_DEADLINE = coflow_scheduler(
    name="sebf-deadline",
    title="Varys without backfill or admission, as a baseline for deadlines",
    paper="Luu et al.: DCoflow, IFIP Networking 2022, section IV; of Varys: doi 10.1145/2619239.2626315",
    parameters=(INTERVAL,),
    build=partial(build_ordered, backfills=False),
    advance=advance,  # shuffles have no deadlines
    about=__doc__,
    rule=LEAST_LEFT,
)
