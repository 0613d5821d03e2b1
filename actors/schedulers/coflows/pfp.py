"""Per-flow prioritisation: the flow with the least left goes first, pFabric's ideal (SIGCOMM 2013). Clairvoyant.

There is no coordinator: packets carry priorities, and the network serves them. For single flows this is nearly optimal;
its weakness is that a coflow is as slow as its last flow.

1. A coflow arrives: the two ports of each of its flows know the flow and its size at once.
2. When flows arrive or end, the flow with the least left gets both of its ports, at full speed; then, of the flows
   whose ports are both free, the one with the least left, and so on (`actors.fabric.shortest_flow_first`).

Which flows are served depends on all flows of the switch, which no actor sees: the scheduler has a global view, the
switch is one actor, and only the clock `virtual` runs it. Network delay and costs of a coordinator do not apply.
O(pairs of ports that are searched) a decision.

**Deviations from the paper.** None from the ideal algorithm of section 3; pFabric's switches and transport, which
approximate it, are not modelled.
"""

from typing import NamedTuple

from actors.fabric.agent import note_end, note_start
from actors.fabric.coordinator import Agenda, handle_event, handle_events, request_decision
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_ends import next_end
from actors.fabric.initial_arrays import at_start
from actors.fabric.shortest_flow_first import Shortest, arrive, end_flow, make_shortest, match
from actors.fabric.worlds import COFLOW_WORLDS
from actors.kernel.compiled import compiled, entry, inlined
from actors.kernel.queue import NEVER, NONE
from actors.scheduler import Scheduler
from actors.schedulers.coflows.fair import NO_COORDINATOR, build_switch, on_arrival
from actors.setting import Setting


class State(NamedTuple):
    """The state of the switch."""

    agenda: Agenda  # active: coflows that have arrived at this instant
    shortest: Shortest


@compiled
def on_change(w: CoflowWorld, p: State, t: int) -> None:
    """Step 2: end flows, add others, and serve the shortest."""
    fabric, s, new = w.fabric, p.shortest, p.agenda.used
    while next_end(fabric.flows, s.ends) == t:
        flow = s.ends.values[0]
        end_flow(fabric, s, t, flow)
        note_end(w, t, flow)
    if new[0] > 0:
        arrive(fabric, s, t, p.agenda.active[0], p.agenda.active[new[0] - 1])
        new[0] = 0
    match(fabric, s, t)
    for i in range(s.num_served[0]):
        start(w, t, s.served[i])
    following = next_end(fabric.flows, s.ends)
    if following < NEVER:
        request_decision(w, p.agenda, following)


@compiled
def start(w: CoflowWorld, t: int, flow: int) -> None:
    """Start a flow, or continue it."""
    coflows, coflow = w.fabric.coflows, w.fabric.flows.coflow[flow]
    if w.sending.since[flow] == NONE:
        note_start(w, t, flow)
    w.sending.since[flow] = t
    coflows.start[coflow] = min(coflows.start[coflow], t)


@inlined
def on_event(w: CoflowWorld, p: State) -> bool:
    """Handle the event at hand; return whether the host must decide."""
    return handle_event(w, p, w.sending, on_arrival=on_arrival, on_decide=on_change)


@entry
def advance(w: CoflowWorld, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    return handle_events(w, p, until, most, on_event)


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the switch's state at time 0."""
    world = build_switch(setting)
    return world, State(at_start(Agenda, world.fabric), make_shortest(world.fabric))


PFP = Scheduler(
    name="pfp",
    title="shortest remaining flow first, pFabric's ideal",
    paper="Alizadeh et al.: pFabric, SIGCOMM 2013, section 3, doi 10.1145/2486001.2486031",
    parameters=(),
    build=build,
    advance=advance,
    worlds=COFLOW_WORLDS,
    global_view=("always",),
    ignores=NO_COORDINATOR,
)
