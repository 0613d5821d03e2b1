"""The best order of coflows with deadlines, by an integer program, as if ports were independent. Clairvoyant.

The weight that it admits is a bound: no order, and no division of bandwidth, has more weight in time. Flows need both
of their ports at the same time, so that some of the admitted coflows may be late (`prediction_error` in the summary).

1. A coflow registers, with the sizes of its flows and its deadline.
2. Problem (II-B) of DCoflow's paper is about the coflows that have not ended. It admits those of the most weight that
   are in time if each port serves them in one order, independently of the other ports
   (`actors.schedulers.coflows.integer_programs`). HiGHS solves it; when `time_limit_s` ends the search, the best
   solution so far is used, and the summary has the gap.
3. Admitted coflows are served by deadline: any order that has them in time can be replaced by this one. The others are
   rejected, and considered again until their deadlines.
4. In this order each flow gets both of its ports if they are free; a running flow is stopped if it holds a port that an
   earlier flow can use. Flows of one coflow are in the order of `flow_order`, as in `dcoflow`.
5. Decisions are made as by `dcoflow`: at each arrival, with `decide_at=ends` also at each end of a coflow, or every
   `update_period_s`.

The program has a variable for each coflow, and a constraint for each deadline and port that is short of time. The
coordinator runs in Python: with `cost.model` measured a decision costs the time that HiGHS takes.

**Deviations from the paper.** The paper's program also has a variable for each pair of coflows, for their order. The
order by deadline is always one of the best, so that these are not needed, and the optimum is the same. No figure of the
paper uses the program. It counts coflows; here weights count, which are 1 if the workload has none. The program is
about the present coflows, and does not foresee later arrivals.
"""

from typing import Any

import numpy as np

from actors.fabric.fabric_world import NS, CoflowWorld
from actors.fabric.greedy import flow_order
from actors.kernel.compiled import compiled, direct, entry
from actors.scheduler import Host, Parameter
from actors.schedulers.coflows.admitting import (
    DECIDE_AT,
    UPDATE_PERIOD,
    Admitting,
    admitting_loop,
    admitting_scheduler,
    begin_decision,
    build_admitting,
    end_decision,
    serve_rejected,
)
from actors.schedulers.coflows.integer_programs import Solved, most_in_order
from actors.schedulers.coflows.ordered import INTERVAL
from actors.setting import Setting

TIME_LIMIT = Parameter(
    "time_limit_s",
    60.0,
    "duration",
    "when HiGHS ends its search for a better solution",
    low=0.001,
    high=86400,
)


@compiled
def on_decide(w: CoflowWorld, p: Admitting, t: int) -> bool:
    """Let the host decide, if it is time to; else refill the ports of flows that have ended."""
    if t >= p.decide_at[0]:
        return True
    begin_decision(w, p, t)
    return False


@entry
def begin(w: CoflowWorld, p: Admitting, t: int) -> int:
    """Begin a decision; return how many coflows it is about."""
    return begin_decision(w, p, t)


@entry
def end(w: CoflowWorld, p: Admitting, t: int, admitted: int, count: int) -> None:
    """Admit the first `admitted` of the coflows in `deadline_order.groups`, in their order, and reject the others."""
    end_decision(w, p, t, admitted, count)


class Solver(Host):
    """The Python side of an emulation: solves the program at each decision."""

    def __init__(self, setting: Setting):
        self._time_limit_s = float(setting.parameters["time_limit_s"])

    def compile(self, world: Any, state: Admitting) -> None:
        """Compile the functions that the host calls."""
        number = np.int64(0)
        self._begin = direct(begin, world, state, number)
        self._end = direct(end, world, state, number, number, number)

    def __call__(self, world: Any, state: Admitting) -> None:
        """Order and admit the coflows that the decision at hand is about."""
        t, order = np.int64(world.queue.now[0].time), state.deadline_order
        count = self._begin(world, state, t)
        found = order.groups[:count].copy()
        time_left_s, admitted = order.time_left[found] / NS, np.zeros(count, bool)
        can_be = time_left_s > 0
        if can_be.any():
            times_s = times_of(world.fabric, order.need, found[can_be]) / NS
            weight = world.fabric.coflows.weight[found[can_be]]
            solved = most_in_order(times_s, time_left_s[can_be], weight, self._time_limit_s)
            admitted[can_be] = solved.admitted
            note_solved(state.admission.solved, solved)
        order.groups[:count] = found[np.lexsort((time_left_s, ~admitted))]
        self._end(world, state, t, np.int64(admitted.sum()), np.int64(count))

    def save(self) -> bytes:
        """Return nothing: the world and the state have all that must be kept."""
        return b""

    def load(self, saved: bytes) -> None:
        """Restore nothing."""


def times_of(fabric: Any, need: np.ndarray, coflows: np.ndarray) -> np.ndarray:
    """Return [N, C] what coflows need of each port, from what each line needs: `need`, [L]."""
    lines = fabric.lines
    found = np.zeros((fabric.speed.size, coflows.size))
    for column, coflow in enumerate(coflows.tolist()):
        for side in range(2):
            own = slice(lines.first_line[coflow, side], lines.end_line[coflow, side])
            found[lines.port[own], column] = need[own]
    return found


def note_solved(solved: np.ndarray, found: Solved) -> None:
    """Count a program that was solved."""
    solved[0] += 1
    solved[1] += not found.is_optimal
    solved[2] = max(solved[2], found.gap)


advance = admitting_loop(__name__, Admitting, on_decide)

ORDER_ILP = admitting_scheduler(
    name="order-ilp",
    title="coflows with deadlines: the best order by an integer program, as if ports were independent",
    paper="Luu, Brun, El-Azouzi, De Pellegrini, Prabhu, Richier: DCoflow, IFIP Networking 2022, problem (II-B), "
    "arXiv 2205.01229",
    about=__doc__,
    parameters=(
        TIME_LIMIT,
        serve_rejected(False),
        DECIDE_AT,
        UPDATE_PERIOD,
        flow_order("workload"),
        INTERVAL,
    ),
    build=build_admitting,
    advance=advance,
    host=Solver,
)
