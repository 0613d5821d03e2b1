"""A user's own coordinator of coflows: a small class in plain Python that orders coflows, or sets the rates of flows.

    class SmallestFirst:
        def order(self, coflows, now_s):
            return np.argsort(coflows.bytes_sent, kind="stable")

    class EqualShares:
        def rates(self, coflows, flows, now_s):
            ...  # bytes per second for each flow

With `order` each flow in turn gets both of its ports if they are free, and what a flow that has ended leaves goes to
the next in order at once. With `rates` nothing changes until the class is asked again. It is asked when a coflow has
been registered or has ended (with `rates`, also when a flow has), or every `interval_s`, an attribute of the class.

It coordinates the coflows of a workload, or those of DAG jobs over a network (`actors.transfers`), which come into
being during the run.

The class sees what the coordinator has received and estimates; sizes only if its attribute `clairvoyant` is true.

The loop stops with `PYTHON` where the class is to be asked; `Host` calls `begin_decision`, asks the class, and calls
`apply_order` or `apply_rates`, which send the agents what has changed. Rates may be more messages than one event may
send: the loop goes on with the others before it takes the next event.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from actors.conditions import NS, read_only
from actors.fabric.agent import BY_FLOW, cut_flow
from actors.fabric.coordinator import (
    AT_EVENTS,
    NO_AGENT_REPORTS,
    SPARE,
    Agenda,
    note_decision,
    note_report,
    register,
    remove_ended,
    request_decision,
    wake_coordinator,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.fabric_world import CoflowWorld, build_world
from actors.fabric.flow_rates import FlowRates, end_rate, list_changes, send_listed
from actors.fabric.greedy import (
    Matching,
    end_greedy,
    fill_ports,
    make_matching,
    send_greedy_rates,
    serve_in_order,
)
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER
from actors.fabric.ports import flows_of
from actors.fabric.waves import sent_together, sum_waves
from actors.fabric.worlds import COFLOW_WORLDS
from actors.initial_arrays import at_start, list_per, per
from actors.kernel.compiled import compiled, direct, entry
from actors.kernel.counters import N_FINISHED
from actors.kernel.queue import NEVER, NONE, lacks_room
from actors.scheduler import Parameter, Scheduler
from actors.schedulers.coflows.build import coordinator_loops
from actors.schedulers.user.own import OwnHost, described
from workloads.errors import InputError
from workloads.groups import rows_between

INTERVAL, LEAST_INTERVAL_S = "interval_s", 1e-6
COUNTED_S = 0.008  # the interval by which decisions at events are counted
_SLACK = 1e-9  # of a port's speed, for what adding up rates rounds


class Coflows(NamedTuple):
    """The active coflows in order of arrival; read-only arrays [K].

    Attributes:
        coflow: their places in the workload; of DAG jobs, their numbers in the order in which they were registered.
        arrival_s: their arrivals.
        weight: their weights.
        width: how many flows they have.
        flows_left: how many of their flows have not ended.
        bytes_sent: bytes that they have sent, as the coordinator estimates; of DAG jobs, with those of other waves
            (`network.waves`).
        size_bytes: their sizes; None unless the scheduler is clairvoyant.
    """

    coflow: np.ndarray
    arrival_s: np.ndarray
    weight: np.ndarray
    width: np.ndarray
    flows_left: np.ndarray
    bytes_sent: np.ndarray
    size_bytes: np.ndarray | None


class Flows(NamedTuple):
    """The unfinished flows of those coflows; read-only arrays [M]."""

    coflow: np.ndarray  # place in `Coflows`
    ingress: np.ndarray
    egress: np.ndarray
    left_bytes: np.ndarray | None  # as the coordinator estimates, of the clairvoyant alone
    ingress_bytes_per_s: np.ndarray  # [P] speeds of all ports
    egress_bytes_per_s: np.ndarray


class State(NamedTuple):
    """The state of the coordinator of C coflows."""

    agenda: Agenda
    matching: Matching
    rates: FlowRates  # of flows that the class gives rates
    gives_rates: bool  # and not an order
    groups: np.ndarray = list_per("coflow")  # the order that is made
    whole: np.ndarray = list_per("coflow")  # [C, 3] of the active coflows: number, width, flows that are left
    real: np.ndarray = list_per("coflow")  # [C, 3] of these: arrival (s), weight, bytes sent as estimated
    place: np.ndarray = list_per("coflow")  # scratch: the last place in an order at which a coflow stands
    num_sent: np.ndarray = per("run")  # how many of the new rates of the last decision have been sent


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow."""
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    end_rate(w, p.rates, ended, flow)
    coflow_ended = end_greedy(w, p.matching, flow, ended)
    if coflow_ended or p.gives_rates:
        request_decision(w, p.agenda, t)
    elif p.agenda.interval == AT_EVENTS:
        wake_coordinator(w, p.agenda, t)


@compiled
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Register a coflow."""
    if register(w, p.agenda, t, coflow):
        request_decision(w, p.agenda, t)


@compiled
def on_decide(w: CoflowWorld, p: State, t: int) -> bool:
    """Give what ended flows have left to the next flows in order, or return that the class is to be asked."""
    if p.agenda.stale[0]:
        return True
    fill_ports(w.fabric, p.matching, t + w.network.delay_ns)
    w.counts[N_REFILLS] += 1
    send_greedy_rates(w, p.matching, t)
    return False


@entry
def begin_decision(w: CoflowWorld, p: State, t: int) -> int:
    """Begin a decision: describe the active coflows in `p.whole` and `p.real`; return how many there are."""
    p.agenda.stale[0] = False
    count = remove_ended(w, p.agenda)
    coflows = w.fabric.coflows
    reported = t - w.network.delay_ns
    sum_waves(w, p.agenda.active, count, reported)
    for i in range(count):
        coflow = p.agenda.active[i]
        p.whole[i, 0] = coflows.place[coflow]
        p.whole[i, 1] = len(flows_of(coflows, coflow))
        p.whole[i, 2] = coflows.left[coflow]
        p.real[i, 0] = coflows.arrival[coflow] / NS
        p.real[i, 1] = coflows.weight[coflow]
        p.real[i, 2] = max(sent_together(w, reported, coflow), 0.0)
    return count


@entry
def apply_order(w: CoflowWorld, p: State, t: int, order: np.ndarray, count: int) -> bool:
    """Serve the active coflows in an order of their places, [count]; do nothing and return False if it is not one."""
    for i in range(count):
        p.place[i] = NONE
    for i in range(count):
        if order[i] < 0 or order[i] >= count or p.place[order[i]] != NONE:
            return False
        p.place[order[i]] = i
        p.groups[i] = p.agenda.active[order[i]]
    effective = t + w.network.delay_ns
    serve_in_order(w.fabric, p.matching, effective, p.groups, count)
    fill_ports(w.fabric, p.matching, effective)
    note_decision(w, count)
    send_greedy_rates(w, p.matching, t)
    if p.agenda.interval != AT_EVENTS and count > 0:
        request_decision(w, p.agenda, t + 1)
    return True


@entry
def apply_rates(w: CoflowWorld, p: State, t: int, count: int) -> None:
    """Send the flows of the active coflows at the rates in `p.rates.wanted`."""
    note_decision(w, count)
    list_changes(w, p.agenda, p.rates, count)
    p.num_sent[0] = 0
    send_some(w, p, t)
    if p.agenda.interval != AT_EVENTS and count > 0:
        request_decision(w, p.agenda, t + 1)


@compiled
def send_some(w: CoflowWorld, p: State, t: int) -> None:
    """Send new rates that have not been sent, as many as one event may send messages."""
    first = p.num_sent[0]
    p.num_sent[0] = min(p.rates.num_changed[0], first + w.queue.room - SPARE)
    send_listed(w, p.rates, t, first, p.num_sent[0])


@compiled
def lacks_room_for_rates(w: CoflowWorld, p: State) -> bool:
    """Send the rates of the last decision, before the next event; return whether the queue must grow for the rest."""
    while p.num_sent[0] < p.rates.num_changed[0]:
        if lacks_room(w.queue):
            return True
        send_some(w, p, w.queue.now.time[0])
    return False


advance, advance_transfers = coordinator_loops(
    __name__,
    State,
    {REGISTER: on_arrival, FLOW_DONE: on_flow_done, DECIDE: on_decide},
    BY_FLOW,
    cut_flow,
    grows_if=(lacks_room_for_rates,),
)


def wrap(own: Any, name: str | None = None) -> Scheduler:
    """Return a scheduler of a user's object or class with `order(coflows, now_s)` or `rates(coflows, flows, now_s)`.

    Raises:
        InputError: its `interval_s` is not a duration, or an argument has no default.
    """
    face = described(own, name, "a user's coordinator of coflows")
    face["parameters"] = _with_interval(face["parameters"], own, face["name"])
    rated = callable(getattr(own, "rates", None))

    def build(setting: Any) -> Any:
        interval_s = setting.parameters.get(INTERVAL) or 0.0
        world = build_world(setting, interval_s=interval_s or COUNTED_S)
        fabric, coflows = world.fabric, world.work.size
        return world, at_start(
            State,
            fabric,
            agenda=at_start(Agenda, fabric, interval=round(interval_s * NS) or int(AT_EVENTS)),
            matching=make_matching(fabric),
            rates=at_start(FlowRates, fabric),
            gives_rates=rated,
            whole=np.zeros((coflows, 3), np.int64),
            real=np.zeros((coflows, 3)),
        )

    return Scheduler(
        **face,
        build=build,
        advance=advance,
        transfers=advance_transfers,
        worlds=COFLOW_WORLDS,
        host=lambda setting: Host(own, setting),
        remade=(wrap, (own, name)),
    )


def _with_interval(parameters: tuple[Parameter, ...], own: Any, scheduler: str) -> tuple[Parameter, ...]:
    """Return the parameters of a user's class or object; `interval_s`, if it is one, is a duration."""
    if not hasattr(own, INTERVAL):
        return parameters
    meaning = "time between two times that it is asked"
    read = Parameter(INTERVAL, None, "duration", meaning, low=LEAST_INTERVAL_S)
    value = getattr(own, INTERVAL)
    read = read if value is None else replace(read, default=read.parse(value, scheduler))
    return (*(p for p in parameters if p.name != INTERVAL), read)


class Host(OwnHost):
    """The Python side of an emulation: asks the user's class for an order, or for rates."""

    def __init__(self, own: Any, setting: Any):
        super().__init__(own, setting)
        self._ports = setting.cluster.num_nodes

    def compile(self, world: Any, state: State) -> None:
        """Compile the functions that the host calls."""
        number = np.int64(0)
        self._begin = direct(begin_decision, world, state, number)
        if not state.gives_rates:
            self._serve = direct(apply_order, world, state, number, np.zeros(0, np.int64), number)
        else:
            self._apply = direct(apply_rates, world, state, number, number)

    def share_done(self, world: Any, state: State) -> float:
        """Return the share of flows that have ended; of calls by interval, the share of the earliest possible run.

        In many workloads few flows are left for most of the time, because the last coflows are the largest.
        """
        if state.agenda.interval == AT_EVENTS:
            return float(world.counts[N_FINISHED : N_FINISHED + 2].sum()) / world.sending.left.size
        first, now = int(world.work.submit[0]), int(world.queue.now[0].time)
        return (now - first) / max(_earliest_end(world, now) - first, 1)

    def __call__(self, world: Any, state: State) -> None:
        """Answer the decision that is due."""
        t = np.int64(world.queue.now[0].time)
        count = self._begin(world, state, t)
        coflows = self._coflows(world, state, count)
        if not state.gives_rates:
            order = self.ask("order", coflows, int(t) / NS) if count else np.zeros(0, np.int64)
            if not self._serve(world, state, t, self._places(order, count), np.int64(count)):
                raise self._no_order(order, count)
            return
        flow, place = _flows_of_active(world, state, count)
        unfinished = world.fabric.flows.finish[flow] == NEVER
        flow, place = flow[unfinished], place[unfinished]
        if flow.size:
            flows = self._flows(world, state, flow, place, t)
            rates = self.ask("rates", coflows, flows, int(t) / NS)
            state.rates.wanted[flow] = self._checked_rates(rates, world.fabric, flow) / NS
        self._apply(world, state, t, np.int64(count))

    @property
    def _clairvoyant(self) -> bool:
        return bool(getattr(self.scheduler, "clairvoyant", False))

    def _coflows(self, world: Any, state: State, count: int) -> Coflows:
        """Return the active coflows as the coordinator knows them: copies, which a class may keep."""
        whole, real = (read_only(rows[:count].T.copy()) for rows in (state.whole, state.real))
        sizes = None
        if self._clairvoyant:
            flow, place = _flows_of_active(world, state, count)
            sizes = read_only(np.bincount(place, world.fabric.flows.size[flow], count))
        return Coflows(whole[0], real[0], real[1], whole[1], whole[2], real[2], sizes)

    def _flows(self, world: Any, state: State, flow: np.ndarray, place: np.ndarray, t: int) -> Flows:
        """Return flows of the active coflows in these places, as the coordinator knows them."""
        fabric, ports = world.fabric, self._ports
        flows, side = fabric.flows, int(fabric.side)
        left = None
        if self._clairvoyant:
            sent = state.rates.rate[flow] * np.maximum(t - state.rates.since[flow], 0)
            left = read_only(np.maximum(flows.left[flow] - sent, 0.0))
        return Flows(
            coflow=read_only(place),
            ingress=read_only(flows.source[flow]),
            egress=read_only(flows.sink[flow] - side),
            left_bytes=left,
            ingress_bytes_per_s=read_only(fabric.speed[:ports] * NS),
            egress_bytes_per_s=read_only(fabric.speed[side : side + ports] * NS),
        )

    def _places(self, order: Any, count: int) -> np.ndarray:
        """Return the order as an array of whole numbers.

        Raises:
            InputError: it is not an order of the active coflows.
        """
        found = self.array_of(order)
        if found.shape != (count,) or (count and found.dtype.kind not in "iu"):
            raise InputError(
                f"scheduler {self.name}: order() returned {found.dtype} of shape {found.shape} for {count} coflows;"
                " it must return their places 0, 1, ..., the first to be served first"
            )
        return found.astype(np.int64)

    def _no_order(self, order: Any, count: int) -> InputError:
        """Return the error about places that are not there once each."""
        shown = np.asarray(order).tolist()[:8]
        return InputError(
            f"scheduler {self.name}: order() returned {shown}; each of 0 to {count - 1} must be there once"
        )

    def _checked_rates(self, rates: Any, fabric: Any, flow: np.ndarray) -> np.ndarray:
        """Return the rates in bytes per second.

        Raises:
            InputError: one is not a rate, or a port would carry more than it can.
        """
        found = self.array_of(rates, np.float64)
        if found.shape != flow.shape or not (np.isfinite(found).all() and (found >= 0).all()):
            raise InputError(
                f"scheduler {self.name}: rates() returned what is not one rate, 0 or more bytes per second, for each of"
                f" {flow.size} flows"
            )
        for what, port, shift in (
            ("ingress", fabric.flows.source, 0),
            ("egress", fabric.flows.sink, int(fabric.side)),
        ):
            load = np.bincount(port[flow], found, minlength=fabric.speed.size) / NS
            overloaded = np.flatnonzero(load > fabric.speed * (1 + _SLACK))
            if overloaded.size:
                port, most = overloaded[0] - shift, fabric.speed[overloaded[0]] * NS
                raise InputError(
                    f"scheduler {self.name}: rates() gives {what} port {port} {load[overloaded[0]] * NS:.6g} bytes"
                    f" per second, and it carries {most:.6g}"
                )
        return found


def _flows_of_active(world: Any, state: State, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all flows of the first `count` active coflows, and the place of the coflow of each among these."""
    coflows, active = world.fabric.coflows, state.agenda.active[:count]
    first, end = coflows.first_flow[active], coflows.end_flow[active]
    return rows_between(first, end), np.repeat(np.arange(count), end - first)


def _earliest_end(world: Any, now: int) -> int:
    """Return when all flows can have ended at the earliest, by the last arrival and the slowest port."""
    sending, flows, speed = world.sending, world.fabric.flows, world.fabric.speed
    left = np.maximum(sending.left - sending.rate * np.maximum(now - sending.since, 0), 0.0)
    of_port = np.bincount(flows.source, left, minlength=speed.size)
    of_port += np.bincount(flows.sink, left, minlength=speed.size)
    exists = speed > 0
    return max(int(world.work.submit[-1]), now + int((of_port[exists] / speed[exists]).max()))
