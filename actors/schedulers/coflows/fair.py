"""Fair: all flows share the ports max-min fairly, nearly as under TCP; without any knowledge of coflows.

There is no coordinator: the network itself determines the rates. Every flow has a bottleneck, a port that is full and
at which no other flow has a higher rate. A fabric without a scheduler of coflows behaves so, and schedulers are
compared with it.

1. A coflow arrives: all its flows start at once; no message is needed.
2. When flows arrive or end, rates become max-min fair again, at that instant (`actors.fabric.max_min`).

A flow's rate depends on all flows of the switch, which no actor sees: the scheduler has a global view, the switch is
one actor, and only the clock `virtual` runs it. Network delay and costs of a coordinator do not apply. O(pairs of ports
whose rates change) a decision.

**Deviations.** TCP needs time to find its rate, and favours short round trips; here rates are fair at once. Flows of a
coflow between the same two ports are one flow, which has one share.
"""

from dataclasses import replace
from typing import NamedTuple

from actors.fabric.agent import note_end, note_start
from actors.fabric.coordinator import Agenda, register, request_decision, wake_coordinator
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.max_min import Fair, add_coflow, end_due, fill, make_fair, next_due
from actors.fabric.messages import DECIDE, REGISTER
from actors.fabric.ports import flows_of, takes_bandwidth
from actors.initial_arrays import at_start
from actors.kernel.compiled import compiled
from actors.kernel.queue import NEVER
from actors.schedulers.coflows.build import coflow_scheduler, coordinator_loops
from actors.setting import Costs, Network, Setting

_NO_INTERVALS_S = 1e9  # no coordinator counts intervals: the first one lasts for the whole run


class State(NamedTuple):
    """The state of the switch."""

    agenda: Agenda  # active: coflows that have arrived at this instant
    fair: Fair


@compiled
def on_arrival(w: CoflowWorld, agenda: Agenda, t: int, coflow: int) -> None:
    """Step 1: register a coflow; its flows start at this instant."""
    if register(w, agenda, t, coflow):
        request_decision(w, agenda, t)


@compiled
def on_change(w: CoflowWorld, p: State, t: int) -> None:
    """Step 2: end flows, start others, and recompute the rates."""
    fabric, fair, new = w.fabric, p.fair, p.agenda.used
    least = end_due(fabric, fair, t)
    for i in range(fair.num_ended[0]):
        note_end(w, t, fair.ended[i])
    for i in range(new[0]):
        coflow, least = p.agenda.active[i], 0.0
        add_coflow(fabric, fair, t, coflow)
        fabric.coflows.start[coflow] = t
        for flow in flows_of(fabric.coflows, coflow):
            if takes_bandwidth(fabric, flow):
                note_start(w, t, flow)
    new[0] = 0
    fill(fabric, fair, t, least)
    following = next_due(fair)
    if following < NEVER:
        wake_coordinator(w, p.agenda, following)


advance, _ = coordinator_loops(__name__, State, {REGISTER: on_arrival, DECIDE: on_change}, {})


def build_switch(setting: Setting) -> CoflowWorld:
    """Return a world in which the switch knows coflows when they arrive, without delays and costs."""
    return build_world(
        replace(setting, network=Network(delay_s=0.0), costs=Costs()), interval_s=_NO_INTERVALS_S
    )


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the switch's state at time 0."""
    world = build_switch(setting)
    return world, State(at_start(Agenda, world.fabric), make_fair(world.fabric))


NO_COORDINATOR = (("cost", "it has no coordinator"), ("network.delay", "it has no coordinator"))

FAIR = coflow_scheduler(
    name="fair",
    title="max-min fair sharing between flows, as TCP nearly does",
    paper="Bertsekas, Gallager: Data Networks, section 6.5.2; a baseline of Varys, SIGCOMM 2014",
    parameters=(),
    build=build,
    advance=advance,
    global_view=("always",),
    ignores=NO_COORDINATOR,
)
