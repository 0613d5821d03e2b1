"""CDS-LP (Allerton 2018): coflows with deadlines admitted, and given bandwidth over time, by an integer program.

If all coflows are there at the beginning, no scheduler that knows what this one knows has more coflows in time.
Heuristics are compared with it: HiGHS solves the program, which takes long if there are many coflows.

1. A coflow registers, with the sizes of its flows and its deadline.
2. The program is about the coflows that have not ended. It admits those of the most weight that can all be sent by
   their deadlines: time is cut into slots at the deadlines, and what each flow sends in each slot is a variable
   (`actors.schedulers.coflows.integer_programs`). When `time_limit_s` ends the search, those of the last set that can
   be sent together are admitted, and the summary has the gap.
3. In a slot each flow has one rate; at the end of a slot the coordinator sends the rates of the next slot. Plans keep a
   millionth of each port free, so that a flow ends just before its slot ends. If rates begin late, because costs were
   not known, a flow has something left when its last slot ends: it gets what the plan leaves of both of its ports, or
   is planned again if more than 1e-5 of it is left. With `reserve_s` plans end that much before deadlines, which leaves
   time for costs that are not known beforehand.
4. Coflows without deadlines get what the plan leaves, in order of arrival, each by MADD: its flows end together, as
   soon as what is left of its ports allows. When a coflow ends, the next ones get what it had.
5. Coflows that are not admitted are rejected, and considered again until their deadlines. Decisions are made as by
   `dcoflow`: at each arrival, with `decide_at=ends` also at each end of a coflow, or every `update_period_s`.

The program has a variable for each coflow, and one for each flow and slot until its deadline. The coordinator runs in
Python: with `cost.model` measured a decision costs the time that HiGHS takes.

**Deviations from the paper.** The paper counts coflows; here weights count, which are 1 if the workload has none. The
program is decomposed: an integer program of the coflows alone, as that of `order-ilp`, and a linear program of the
bandwidth of those that it admits, which adds a row to the former if they cannot all be in time. The paper's program is
solved once; here it is solved again, for what is left, when coflows arrive. The program spreads a coflow over its slots
and sends nothing earlier than it must, so that later arrivals find less room than under an order.

`cds-lpa` solves the linear program in which coflows may be sent in part, and admits those of which at least
`admit_from` is sent. Bandwidth that was planned for the others stays unused. Deviations from the paper: those of
`cds-lp`. `admit_from` is 1 in DCoflow's paper, and 0.99 in its authors' code, which counts coflows of which a hundredth
is not sent, and emulates no network.
"""

import io
from typing import Any, NamedTuple

import numpy as np

from actors.fabric.admission import count_verdicts, ends_dropped, is_dropped, send_verdicts
from actors.fabric.agent import BY_FLOW
from actors.fabric.coordinator import (
    NO_AGENT_REPORTS,
    charge,
    effective_time,
    note_decision,
    note_report,
    remove_ended,
    wake_coordinator,
)
from actors.fabric.counters import N_REFILLS
from actors.fabric.fabric_world import NS, CoflowWorld
from actors.fabric.flow_rates import FlowRates, end_rate, list_changes, send_listed, settle
from actors.fabric.greedy import end_greedy
from actors.fabric.messages import DECIDE, FLOW_DONE, REGISTER, SEND_REST
from actors.fabric.ports import flows_of, take_bytes
from actors.initial_arrays import at_start, per
from actors.kernel.compiled import compiled, direct, entry, inlined
from actors.kernel.cost import known_cost, previous_cost
from actors.kernel.queue import NEVER
from actors.scheduler import Host, Parameter
from actors.schedulers.coflows.admitting import (
    DECIDE_AT,
    UPDATE_PERIOD,
    Admitting,
    admitting_scheduler,
    build_admitting,
    consider,
    judge,
    keep_ended,
    register_coflow,
    request_admission,
    send_other_verdicts,
)
from actors.schedulers.coflows.build import coordinator_loops
from actors.schedulers.coflows.integer_programs import ADMITTED, Demand, Solved, most_in_time
from actors.schedulers.coflows.order_ilp import TIME_LIMIT, note_solved
from actors.schedulers.coflows.ordered import INTERVAL
from actors.setting import Setting
from workloads.groups import rows_of_groups

ADMIT_FROM = Parameter("admit_from", 1.0, "share", "share of a coflow that must be sent in time to admit it")
RESERVE = Parameter(
    "reserve_s",
    0.0,
    "duration",
    "time before each deadline at which plans end, at most half of what is left until then",
    low=0,
    high=86400,
)
_LATE = 1e-5  # share of a flow: if less is left when its last slot ends, the flow is not planned again
# Share by which rates exceed the planned ones, so that a flow ends before its slot, in whole ns. Plans leave twice as
# much of each port free, as HiGHS may exceed capacities by rounding.
_FREE = 1e-6
_NOISE = 1e-9  # share of a flow: if HiGHS sends less than this in a slot, that is rounding
_GAP_NS = 2  # at the end of a slot, as slots and flows end at whole ns
_DONE_NS = 1.0  # a flow that ends within this time at its rate is not stopped
_FULL = 1e-9  # of a port's speed: less residual bandwidth than this is an effect of rounding
_SAME = 1e-12  # of a rate: two rates that differ by less differ only by rounding


class State(NamedTuple):
    """The state of the coordinator of F flows."""

    admitting: Admitting  # its ports are not matched
    rates: FlowRates
    before: np.ndarray = per("flow", 0.0)  # the rates before those that were sent last
    # ns, when the host is asked for the rates of the next slot; NEVER: there is no next slot
    slot_end: np.ndarray = per("run", NEVER)


@compiled
def send_rates(w: CoflowWorld, p: State, t: int) -> int:
    """Send the rates in `wanted`; return how many are new."""
    agenda, rates = p.admitting.agenda, p.rates
    for i in range(rates.rate.size):
        p.before[i] = rates.rate[i]
    list_changes(w, agenda, rates, agenda.used[0])
    send_listed(w, rates, t, 0, rates.num_changed[0])
    return rates.num_changed[0]


@compiled
def account_for_cost(w: CoflowWorld, p: State) -> None:
    """Account for a cost that was not known when rates were sent: the rates have begun later by this cost.

    It is called when the coordinator handles its next message, of any kind.
    """
    spent = previous_cost(w, np.int64(0))
    for k in range(p.rates.num_changed[0]):
        flow = p.rates.changed[k]
        take_bytes(w.fabric, flow, (p.before[flow] - p.rates.rate[flow]) * spent)
    p.rates.num_changed[0] = 0


@entry
def begin_decision(w: CoflowWorld, p: State, t: int) -> int:
    """Account for what has been sent, and put the coflows to decide about into the order; return how many."""
    agenda = p.admitting.agenda
    note_decision(w, remove_ended(w, agenda))
    effective = effective_time(w, t)
    for i in range(agenda.used[0]):
        for flow in flows_of(w.fabric.coflows, agenda.active[i]):
            settle(w, p.rates, effective, flow)
    p.slot_end[0] = NEVER
    count = consider(w, p.admitting, t)
    for i in range(agenda.used[0]):
        if is_dropped(p.admitting.admission, agenda.active[i]):
            stop_flows(w, p, agenda.active[i])
    return count


@inlined
def stop_flows(w: CoflowWorld, p: State, coflow: int) -> None:
    """Set the wanted rates of a coflow's flows to 0."""
    for flow in flows_of(w.fabric.coflows, coflow):
        p.rates.wanted[flow] = 0.0


@entry
def end_decision(w: CoflowWorld, p: State, t: int, admitted: int, count: int) -> None:
    """Admit the first `admitted` coflows of the order; send the rates in `wanted`, and verdicts."""
    admitting = p.admitting
    admitted = keep_ended(w, admitting, admitted, count)
    for i in range(admitted, count):
        stop_flows(w, p, admitting.deadline_order.groups[i])
    rates = send_rates(w, p, t)
    judge(w, admitting, t, admitted, admitted, count)
    charge(w, w.prices.schedule * count_verdicts(w, admitting.admission))
    send_verdicts(w, admitting.admission, t, rates)
    if admitting.period > 0 and admitted > 0:
        request_admission(w, admitting, t + 1)
    await_slot_end(w, p)


@entry
def change_slot(w: CoflowWorld, p: State, t: int) -> None:
    """Send the rates in `wanted`, which are those of the slot that begins."""
    w.counts[N_REFILLS] += 1
    send_rates(w, p, t)
    await_slot_end(w, p)


@inlined
def await_slot_end(w: CoflowWorld, p: State) -> None:
    """Request the rates of the next slot, or a decision, whichever comes first."""
    at = min(p.slot_end[0], p.admitting.decide_at[0])
    if at < NEVER:
        wake_coordinator(w, p.admitting.agenda, at)


@compiled
def on_flow_done(w: CoflowWorld, p: State, t: int, flow: int, ended: int) -> None:
    """Apply the end of a flow, which may end its coflow."""
    account_for_cost(w, p)
    note_report(w, t, NO_AGENT_REPORTS, w.fabric.flows.source[flow])
    if ends_dropped(w, p.admitting.admission, flow, ended):
        return
    end_rate(w, p.rates, ended, flow)
    if end_greedy(w, p.admitting.matching, flow, ended) and p.admitting.at_ends:
        request_admission(w, p.admitting, t)


@inlined
def on_arrival(w: CoflowWorld, p: State, t: int, coflow: int) -> None:
    """Register a coflow."""
    account_for_cost(w, p)
    register_coflow(w, p.admitting, t, coflow)


@inlined
def on_rest(w: CoflowWorld, p: State, t: int) -> None:
    """Send further verdicts."""
    account_for_cost(w, p)
    send_other_verdicts(w, p.admitting, t)


@inlined
def on_decide(w: CoflowWorld, p: State, t: int) -> bool:
    """Let the host decide."""
    account_for_cost(w, p)
    return True


advance, _ = coordinator_loops(
    __name__,
    State,
    {REGISTER: on_arrival, FLOW_DONE: on_flow_done, SEND_REST: on_rest, DECIDE: on_decide},
    BY_FLOW,
)


class Planner(Host):
    """The Python side of an emulation: solves the program at each decision, and plans rates slot by slot.

    At a decision the loop returns `PYTHON`; the host admits coflows, plans the rate of each of their flows in each slot
    of time, and calls `end_decision`. At the end of a slot the loop returns `PYTHON` again, and the host calls
    `change_slot`. Between these calls rates stay: the bandwidth of a flow that ends is unused until the next call.
    """

    def __init__(self, setting: Setting):
        given = setting.parameters
        self._time_limit_s = float(given["time_limit_s"])
        self._reserve = float(given["reserve_s"]) * NS
        self._admit_from = min(float(given.get("admit_from", 1.0)), ADMITTED)
        self._relaxed = "admit_from" in given
        self._flow = np.zeros(0, np.int64)  # [K] flows that are planned
        self._end = np.zeros(0, np.int64)  # [S] ends of slots, ns
        self._rate = np.zeros((0, 0))  # [K, S] bytes per ns
        self._behind = np.zeros(0, np.int64)  # flows of coflows without deadlines, in order of arrival

    def compile(self, world: Any, state: State) -> None:
        """Compile the functions that the host calls."""
        number = np.int64(0)
        self._begin = direct(begin_decision, world, state, number)
        self._finish = direct(end_decision, world, state, number, number, number)
        self._change = direct(change_slot, world, state, number)

    def __call__(self, world: Any, state: State) -> None:
        """Decide, or begin the next slot of the plan."""
        t = np.int64(world.queue.now[0].time)
        if t < state.admitting.decide_at[0]:
            self._begin_slot(world, state, t + world.network.delay_ns)
            self._change(world, state, t)
            return
        state.admitting.decide_at[0] = NEVER
        count = self._begin(world, state, t)
        effective = t + world.network.delay_ns + known_cost(world)
        admitted = self._plan(world, state, count, int(effective))
        self._begin_slot(world, state, int(effective))
        self._finish(world, state, t, np.int64(admitted), np.int64(count))

    def _plan(self, world: Any, state: State, count: int, effective: int) -> int:
        """Admit coflows, put them first in the order, and plan the rates of their flows; return how many."""
        fabric, found = world.fabric, state.admitting.deadline_order.groups[:count].copy()
        time_left = state.admitting.deadline_order.time_left[found]
        flow = rows_of_groups(fabric.coflows.end_flow - fabric.coflows.first_flow, found)
        flow = flow[(fabric.flows.finish[flow] == NEVER) & ~_ends(state, flow, fabric.flows.left[flow])]
        state.rates.wanted[flow] = 0.0
        self._flow, self._end, self._rate = flow[:0], np.zeros(0, np.int64), np.zeros((0, 0))
        admitted = np.isinf(time_left)
        place = np.full(fabric.coflows.arrival.size, -1)
        place[found[admitted]] = np.arange(admitted.sum())
        self._behind = flow[place[fabric.flows.coflow[flow]] >= 0]

        can_be = (time_left > 0) & ~admitted
        active = found[can_be]
        place[:] = -1
        place[active] = np.arange(active.size)
        flow = flow[place[fabric.flows.coflow[flow]] >= 0]
        if flow.size:
            solved = most_in_time(
                self._demand(world, active, time_left[can_be], place, flow), self._relaxed, self._time_limit_s
            )
            note_solved(state.admitting.admission.solved, solved)
            chosen = solved.share >= self._admit_from
            admitted[can_be] = chosen
            sent = chosen[place[fabric.flows.coflow[flow]]]
            self._keep(flow[sent], solved._replace(sent_bytes=solved.sent_bytes[sent]), effective)
        state.admitting.deadline_order.groups[:count] = found[np.argsort(~admitted, kind="stable")]
        return int(admitted.sum())

    def _demand(
        self, world: Any, active: np.ndarray, time_left: np.ndarray, place: np.ndarray, flow: np.ndarray
    ) -> Demand:
        """Return what the flows of the active coflows ask for; `time_left` of these coflows is in ns."""
        fabric = world.fabric
        return Demand(
            coflow=place[fabric.flows.coflow[flow]],
            ports=np.stack([fabric.flows.source[flow], fabric.flows.sink[flow]], 1),
            size_bytes=fabric.flows.left[flow],
            time_left_s=(time_left - np.minimum(self._reserve, time_left / 2)) / NS,
            weight=fabric.coflows.weight[active],
            bytes_per_s=fabric.speed * NS * (1 - 2 * _FREE),
            gap_s=_GAP_NS / NS,
        )

    def _keep(self, flow: np.ndarray, solved: Solved, effective: int) -> None:
        """Keep a plan that takes effect at this time, in ns."""
        length_ns, sent_bytes = solved.length_s * NS, solved.sent_bytes
        is_noise = sent_bytes < _NOISE * sent_bytes.sum(axis=1, keepdims=True)
        self._flow, self._rate = flow, np.where(is_noise, 0.0, sent_bytes) / length_ns * (1 + _FREE)
        self._end = effective + np.ceil(solved.end_s * NS).astype(np.int64)

    def _begin_slot(self, world: Any, state: State, effective: int) -> None:
        """Set the rates from a time on, and the time when the loop asks for the next ones."""
        flows, k = world.fabric.flows, int(np.searchsorted(self._end, effective, side="right"))
        unfinished = flows.finish[self._flow] == NEVER
        flow, rate = self._flow[unfinished], self._rate[unfinished]
        over = ~rate[:, k:].any(axis=1)
        left = _left(world, state, flow, effective)
        late = over & ~_ends(
            state, flow, left
        )  # rates began later than planned, or the flow was planned in part
        again = late & (left > _LATE * flows.size[flow])
        state.rates.wanted[flow[late]] = 0.0
        t, end = int(world.queue.now[0].time), int(NEVER)
        if again.any():
            state.admitting.decide_at[0] = min(int(state.admitting.decide_at[0]), t + 1)
        planned = flow[~over]
        if planned.size:
            state.rates.wanted[planned] = rate[~over, k]
            end = int(self._end[k])
        end = min(end, self._fill(world, state, planned, flow[late & ~again], effective))
        state.slot_end[0] = max(end - world.network.delay_ns, t + 1) if end < NEVER else NEVER

    def _fill(self, world: Any, state: State, planned: np.ndarray, late: np.ndarray, effective: int) -> int:
        """Give what planned flows leave to late flows, one by one, then to coflows without deadlines.

        Return when the first of these ends, NEVER if none is sent.
        """
        fabric, flows, first = world.fabric, world.fabric.flows, float(NEVER)
        behind = self._behind[flows.finish[self._behind] == NEVER]
        behind = behind[~_ends(state, behind, _left(world, state, behind, effective))]
        if late.size + behind.size == 0:
            return int(NEVER)
        borders = np.flatnonzero(np.diff(flows.coflow[behind])) + 1
        residual = fabric.speed - _load(fabric, planned, state.rates.wanted[planned])
        for part in [*np.split(late, np.arange(1, late.size)), *np.split(behind, borders)]:
            left = _left(world, state, part, effective)
            load = _load(fabric, part, left)
            used = load > 0
            state.rates.wanted[part] = 0.0
            if used.any() and (residual[used] > _FULL * fabric.speed[used]).all():
                need = max(float((load[used] / residual[used]).max()), 1.0)
                wanted, now = left / need, state.rates.rate[part]
                state.rates.wanted[part] = np.where(np.abs(wanted - now) <= _SAME * now, now, wanted)
                residual -= load / need
                first = min(first, effective + np.ceil(need))
        return int(min(first, NEVER))

    def save(self) -> bytes:
        """Return the plan."""
        kept = io.BytesIO()
        np.savez(kept, flow=self._flow, end=self._end, rate=self._rate, behind=self._behind)
        return kept.getvalue()

    def load(self, saved: bytes) -> None:
        """Restore the plan that `save` saved."""
        with np.load(io.BytesIO(saved), allow_pickle=False) as kept:
            self._flow, self._end, self._rate = kept["flow"], kept["end"], kept["rate"]
            self._behind = kept["behind"]


def _left(world: Any, state: State, flow: np.ndarray, t: int) -> np.ndarray:
    """Return what flows have left at a time, at the rates that were sent last."""
    sent = state.rates.rate[flow] * np.maximum(t - state.rates.since[flow], 0)
    return np.asarray(np.maximum(world.fabric.flows.left[flow] - sent, 0.0))


def _ends(state: State, flow: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return which flows end at the rates that were sent last, except for rounding; they must not be stopped."""
    return np.asarray((state.rates.rate[flow] > 0) & (left <= state.rates.rate[flow] * _DONE_NS))


def _load(fabric: Any, flow: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Return [N] the sum of `amount` over the flows at each port."""
    count = fabric.speed.size
    sums = np.bincount(fabric.flows.source[flow], amount, count)
    return np.asarray(sums + np.bincount(fabric.flows.sink[flow], amount, count))


def build(setting: Setting) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0."""
    world, admitting = build_admitting(setting, most_sends=2 * setting.num_tasks)
    rates = at_start(FlowRates, world.fabric)
    return world, at_start(State, world.fabric, admitting=admitting, rates=rates)


CDS_LP, CDS_LPA = (
    admitting_scheduler(
        name=name,
        title=title,
        paper="Tseng, Tang: Coflow deadline scheduling via network-aware optimization, Allerton 2018, pp. 829-833",
        parameters=(*own, RESERVE, TIME_LIMIT, DECIDE_AT, UPDATE_PERIOD, INTERVAL),
        build=build,
        advance=advance,
        host=Planner,
    )
    for name, title, own in (
        ("cds-lp", "coflows with deadlines: as many in time as can be, by an integer program", ()),
        ("cds-lpa", "coflows with deadlines: those that a linear program sends whole", (ADMIT_FROM,)),
    )
)
