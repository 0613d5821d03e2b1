"""CoflowSim's deadline mode, each of whose rules can be switched to ours: what it admits, and what is in time.

    python -m tests.oracles.coflowsim_deadlines

A second, small simulator that shares no code with the emulator, beside `varys-deadline` on the whole Facebook trace.
Each coflow is due after what it takes alone at 128 MiB/s, and a random share of that more (java.util.Random(17)). Times
are in ms.
"""

from typing import NamedTuple

import numpy as np

import emu
from benchmarks.coflow_runs import TRACE, workload_of
from benchmarks.measuring import show
from emu.results.metrics import BoolArray, Float64Array
from tests.oracles.coflowsim_rules import backfill_order, share_room
from tests.oracles.peer_arrays import NONE, inner, outer, set_all, take
from tests.oracles.peer_trace import EPOCH_MS, STEP_MS, Trace, begin_ms, trace_of
from workloads.coflows import CoflowWorkload, with_demands
from workloads.jobs import Int64Array

_SECOND = float(128 << 20)  # bytes that a port carries in a second
_LEAST = 1e-3 / 8192  # bytes a ms; less room counts as no room
_DONE = 1e-3  # bytes; what has less left has ended


class Rules(NamedTuple):
    """CoflowSim's rules, which are the defaults here.

    - `second`: the ms of a second in which ports carry 128 MiB, while times of deadlines have 1,000: a coflow that is
      sent at the rates that it has reserved takes 1.024 times as long as it has.
    - `epoch`: coflows begin, and ask, at multiples of it, before they arrive; 0: when they arrive.
    - `stalls`: the trial that an arrival asks for takes the rates of all that run, and only an admission gives rates
      again, or the end of a coflow.
    - `whole`: a flow has its bytes left over the whole time from arrival to deadline; else over the time left.
    - `step`: ends are at multiples of it; 0: exact.
    - `share`: coflows that find a port full share what is left as if they were one.
    - `tolerance`: a coflow is in time that is less than 100 ms late, or by less than 5.5 % of its time.
    - `deadlines`: what is left goes to the coflow that is due first; else by arrival.
    """

    second: float = 1024.0
    epoch: float = EPOCH_MS
    stalls: bool = True
    whole: bool = True
    step: float = STEP_MS
    share: bool = True
    tolerance: bool = True
    deadlines: bool = True


class State(NamedTuple):
    """Where a simulation is; C coflows, F flows, P ports of each side."""

    left: Float64Array  # [F] bytes, at `since`
    rate: Float64Array  # [F] bytes a ms
    since: Float64Array  # [F]
    room: Float64Array  # [2, P]
    load: Float64Array  # [2, P] scratch, as the next two
    used: Float64Array
    count: Float64Array
    unfinished: Int64Array  # [C]
    admitted: np.ndarray  # [C] bool
    ended: Float64Array  # [C] inf: it has not


def outcome(trace: Trace, rules: Rules) -> tuple[BoolArray, BoolArray]:
    """Which coflows are admitted, and which of these are in time."""
    begin = begin_ms(trace, rules.epoch)
    duration = trace.bottleneck / _SECOND * (1 + trace.draw) * 1000
    coflows, ports = begin.size, (2, trace.row.shape[1])
    state = State(
        trace.size.copy(),
        *(np.zeros(trace.size.size) for _ in range(2)),
        *(np.zeros(ports) for _ in range(4)),
        np.diff(trace.first),
        np.zeros(coflows, np.bool_),
        np.full(coflows, np.inf),
    )
    simulate(trace, state, begin, duration, rules)
    took = state.ended - begin
    late = took - duration
    met = (late < 100) | (took / 1.024 < 1.03 * duration) if rules.tolerance else late <= 1e-6 * duration
    return state.admitted, state.admitted & met


@outer
def simulate(trace, s, begin, duration, rules):
    """Find which coflows are admitted, and when they end."""
    order = [NONE for _ in range(0)]
    due = begin + duration
    t, come = 0.0, 0
    while come < begin.size or len(order) > 0:
        settle(trace, s, t, order)
        running = [c for c in order if s.unfinished[c] > 0]
        decide = len(running) < len(order)
        for coflow in order:
            if s.unfinished[coflow] == 0:
                s.ended[coflow] = t
        order = running
        while come < begin.size and begin[come] <= t:
            reserve(trace, s, t, order, due, duration, rules, False)
            if rules.stalls:
                stop(trace, s, t, order)
            if fits(trace, s, come, duration[come] * rules.second / 1000.0):
                s.admitted[come] = True
                order.append(np.int64(come))
                decide = True
            come += 1
        if decide:
            give_rates(trace, s, t, order, due, duration, rules)
        t = next_change(trace, s, t, order, begin[come] if come < begin.size else np.inf, rules)
        if t == np.inf:  # the last rejection has stopped all
            return


@inner
def settle(trace, s, t, order):
    """Bring all flows of coflows to time t."""
    for coflow in order:
        s.unfinished[coflow] = 0
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            s.left[f] -= min(s.rate[f] * (t - s.since[f]), s.left[f])
            s.since[f] = t
            if s.left[f] <= _DONE:
                s.left[f] = s.rate[f] = 0.0
            s.unfinished[coflow] += s.left[f] > 0.0


@inner
def stop(trace, s, t, order):
    """Take the rates of all flows, at t."""
    for coflow in order:
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            s.rate[f], s.since[f] = 0.0, t


@inner
def load_of(trace, s, coflow):
    """Find how many bytes a coflow has left at each port."""
    set_all(s.load, 0.0)
    for f in range(trace.first[coflow], trace.first[coflow + 1]):
        s.load[0, trace.source[f]] += s.left[f]
        s.load[1, trace.sink[f]] += s.left[f]


@inner
def fits(trace, s, coflow, within):
    """Whether a coflow can end in so many ms with the room of its ports; not at all if one of them is full."""
    load_of(trace, s, coflow)
    for side in range(2):
        for port in range(s.room.shape[1]):
            if s.load[side, port] > 0.0 and (
                s.room[side, port] <= _LEAST or s.load[side, port] / s.room[side, port] > within * (1 + 1e-12)
            ):
                return False
    return True


@inner
def reserve(trace, s, t, order, due, duration, rules, keep):
    """Let coflows reserve what they need of their ports' room; return those that find one full.

    With `keep` flows get these rates.
    """
    set_all(s.room, _SECOND / rules.second)
    skipped = [NONE for _ in range(0)]
    for coflow in order:
        if not fits(trace, s, coflow, np.inf):
            skipped.append(coflow)
            continue
        set_all(s.used, 0.0)
        within = (duration[coflow] if rules.whole else max(due[coflow] - t, 1e-6)) * rules.second / 1000.0
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            a, b = trace.source[f], trace.sink[f]
            rate = min(s.left[f] / within, s.room[0, a], s.room[1, b])
            s.used[0, a] += rate
            s.used[1, b] += rate
            if keep:
                s.rate[f] = rate
        take(s.room, s.used)
    return skipped


@inner
def give_rates(trace, s, t, order, due, duration, rules):
    """Rates of all flows: what they reserve, and what is left."""
    stop(trace, s, t, order)
    skipped = reserve(trace, s, t, order, due, duration, rules, True)
    if rules.share:
        share_room(trace, s, skipped)
    for coflow in backfill_order(order, due, rules):
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            a, b = trace.source[f], trace.sink[f]
            more = min(s.room[0, a], s.room[1, b])
            if s.left[f] > 0.0 and more > _LEAST:
                s.room[0, a] -= more
                s.room[1, b] -= more
                s.rate[f] += more


@inner
def next_change(trace, s, t, order, arrival, rules):
    """Return when rates may change next: a coflow begins, or one ends."""
    soonest = arrival
    for coflow in order:
        last = 0.0
        for f in range(trace.first[coflow], trace.first[coflow + 1]):
            if s.left[f] > 0.0:
                end = np.inf
                if s.rate[f] > 0.0:
                    need = s.left[f] / s.rate[f]
                    end = t + (
                        max(np.ceil((need - 1e-9) / rules.step), 1.0) * rules.step if rules.step > 0 else need
                    )
                last = max(last, end)
        soonest = min(soonest, last)
    return soonest


SWITCHES: tuple[tuple[str, dict[str, object]], ...] = (
    ("an arrival that is rejected stops nothing", {"stalls": False}),
    ("rates by the time left, not the whole time", {"whole": False}),
    ("coflows begin when they arrive", {"epoch": 0.0}),
    ("no steps, and a second of 1,000 ms", {"step": 0.0, "second": 1000.0}),
    ("coflows that find a port full share nothing", {"share": False}),
    ("in time is in time", {"tolerance": False}),
)
"""What is switched to ours, one after another."""
OURS: tuple[tuple[str, dict[str, object]], ...] = (
    ("ours, `varys-deadline`: what a flow had goes to waiting ones at once", {}),
    ("`padding=10%,least_s=200ms,backfill=arrival`, as Varys's own code",
     {"padding": 0.1, "least_s": 0.2, "backfill": "arrival"}),
)  # fmt: skip


def with_coflowsim_deadlines(work: CoflowWorkload, trace: Trace) -> CoflowWorkload:
    """The coflows with the deadlines that CoflowSim draws."""
    duration = trace.bottleneck / _SECOND * (1 + trace.draw)
    return with_demands(work, deadline_s=trace.arrival / 1000 + duration)


def main() -> None:
    """Print a row for each set of rules."""
    if not TRACE.exists():
        raise SystemExit(f"{TRACE} is not there; EMU_SHARED says where traces are")
    work = workload_of("facebook")
    trace, rules = trace_of(work), Rules()
    rows = [["", "admitted", "in time"]]
    for name, changed in (("CoflowSim's rules", {}), *SWITCHES):
        rules = rules._replace(**changed)
        admitted, met = outcome(trace, rules)
        rows.append([name, str(admitted.sum()), str(met.sum())])
    due = with_coflowsim_deadlines(work, trace)
    for name, parameters in OURS:
        run = emu.run(
            "varys-deadline",
            due,
            parameters=parameters,
            in_process=True,
            fabric_port_speed=f"{8 * int(_SECOND)} bps",
        )
        found = run.coflows.to_pandas()
        rows.append([name, str(found.admitted.sum()), str(found.met_deadline.sum())])
    show("coflows", rows)


if __name__ == "__main__":
    main()
