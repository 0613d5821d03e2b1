"""Chronos (ICC 2016): coflows in order of priority have what they need to end in time, the others share the rest.

No coflow starves: one that cannot be in time is served with what is left, after its deadline as well.

1. A coflow registers, with the sizes of its flows and its deadline. When a coflow has arrived or ended, all are put in
   order: by their deadlines, or with `order=bottleneck` by how long they need at their slowest port if alone.
2. In this order a coflow reserves the least bandwidth that lets each of its flows end at its deadline, what the flow
   has left divided by the time left, if its ports have that. Then it is admitted; otherwise it is rejected, until the
   next decision. One that was admitted may lose its reservation to others that come later and are before it.
3. What is left of each port is shared by those that have not reserved, in proportion to the bytes that they have left
   there; a coflow ends all its flows together, at the rates that its smallest share allows.
4. What is left then goes to single flows, first to those of coflows that have reserved, in order, each as much as both
   of its ports have. When such a flow ends, what it had goes to those that wait at its ports.

A coflow without a deadline reserves nothing, shares in step 3, and counts as admitted. O(n log n + lines) a decision
about n coflows. Times, agents and refills are those of `sebf` with MADD's rates: reservations count from when the
schedule takes effect, and a coflow whose messages, or decisions, take longer than its slack is not admitted.

**Deviations from the paper.** The paper's text was not at hand: steps 2 and 3 are what section V of DCoflow's paper
says of it. It does not say what the order of priority is, so that `order` offers two; nor that a coflow's flows end
together in step 3; nor what becomes of bandwidth that no share can use, step 4. Verdicts are what tells users which
coflows have reserved; the paper has no admission.
"""

# STATE
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.worlds import COFLOW_WORLDS
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.ordered import INTERVAL
from actors.schedulers.coflows.reserving import SHARE, State, advance, build_reserving, series
from actors.setting import Setting

ORDER = Parameter(
    "order",
    "deadline",
    "choice",
    "who reserves first: the earliest deadline, or the smallest effective bottleneck",
    choices=("deadline", "bottleneck"),
)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    by_bottleneck = setting.parameters["order"] == "bottleneck"
    return build_reserving(setting, SHARE, stands=False, by_bottleneck=by_bottleneck)


CHRONOS = Scheduler(
    name="chronos",
    title="coflows in order reserve what lets them end in time; the others share the rest by demand",
    paper="Ma, Jiang, Li, Li: Chronos: Meeting coflow deadlines in data center networks, ICC 2016",
    parameters=(ORDER, INTERVAL),
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    series=series,
    uses_deadlines=True,
)
