"""Varys (SIGCOMM 2014): smallest effective bottleneck first, and minimum allocation for desired duration (MADD).

A coflow needs as long as its most loaded port. The coflow that needs the least time is served first, and none of its
flows is faster than its slowest flow must be: the rest is for later coflows. Clairvoyant.

1. A coflow registers, with the sizes of its flows; or a coflow has ended.
2. The effective bottleneck of each coflow is recomputed: the longest time that one of its ports would need for its
   bytes left, alone and at full speed. Coflows are sorted by it; of equal ones the first to arrive is first.
3. MADD: each coflow in order takes what lets all its flows end together, as soon as the bandwidth that those before it
   leave at its slowest port allows. A coflow that finds a port full takes nothing.
4. Backfill: what is left goes to single flows, in the same order, each as much as both of its ports have. When such a
   flow ends, what it had goes to flows that wait at its ports. Otherwise rates stay until a coflow arrives or ends.

With `rates=greedy` each flow in order has both of its ports alone, or waits: the authors of Philae simulate Varys so.

O(lines of all active coflows) a decision, O(words of a line) for a flow that is backfilled: all flows of a coflow that
MADD serves shrink in one proportion (`actors.fabric.madd`). An agent receives one time for a line, not one for each of
its flows, and only if it is new (`actors.fabric.madd_agent`). The coordinator decides for the time at which its rates
take effect, and knows what will have ended by then (`actors.fabric.madd_coordinator`).

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

from actors.schedulers.coflows.ordered import (
    BY_BOTTLENECK,
    INTERVAL,
    RATES,
    build_ordered,
    ordered_scheduler,
)

LEAST_LEFT = "coflows whose busiest port has the least left to send go first"

SEBF = ordered_scheduler(
    name="sebf",
    title="Varys: the coflow that needs least at its slowest port first, its flows end together",
    paper="Chowdhury, Zhong, Stoica: Varys, SIGCOMM 2014, Algorithm 1, doi 10.1145/2619239.2626315",
    about=__doc__,
    parameters=(RATES, INTERVAL),
    build=partial(build_ordered, rule=BY_BOTTLENECK),
    rule=LEAST_LEFT,
)

SEBF_DEADLINE = ordered_scheduler(
    name="sebf-deadline",
    title="Varys without backfill or admission, as a baseline for deadlines",
    paper="Luu et al.: DCoflow, IFIP Networking 2022, section IV; of Varys: doi 10.1145/2619239.2626315",
    about=__doc__,
    parameters=(INTERVAL,),
    build=partial(build_ordered, rule=BY_BOTTLENECK, backfills=False),
    transfers=None,  # shuffles have no deadlines
    rule=LEAST_LEFT,
)
