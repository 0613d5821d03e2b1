"""Integer programs of coflows with deadlines: which coflows of the most weight can be in time, solved by HiGHS.

`most_in_time` is the problem itself (P1 of DCoflow, IFIP Networking 2022; CDS-LP of Tseng and Tang, Allerton 2018): it
admits coflows and gives their flows bandwidth over time. `most_in_order` gives a bound for any order of coflows. All
coflows are there at the beginning; times are from then on.

The paper admits a coflow of the relaxed program if its variable is 1; its authors' code admits it from 0.99 on, and so
counts coflows that are sent in part.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.errors import InputError
from workloads.jobs import Float64Array, Int64Array

ADMITTED = 1 - 1e-6
"""A coflow is admitted if its variable has at least this value, which is 1 except for rounding by solvers."""
BROKEN = 1e-7
"""If a row is violated by less, that could be an effect of rounding."""
LEAST_S = 0.001
"""The least time that HiGHS is given."""


class Demand(NamedTuple):
    """What C coflows with F flows ask of L ports, where ingress and egress ports have different numbers."""

    coflow: Int64Array  # [F] in ascending order
    ports: Int64Array  # [F, 2]
    size_bytes: Float64Array  # [F] left to send
    time_left_s: Float64Array  # [C] until the deadline, above 0
    weight: Float64Array  # [C]
    bytes_per_s: Float64Array  # [L]
    gap_s: float = 0.0  # time at the end of each slot in which nothing is sent, at most half of the slot

    def lengths_s(self, end_s: Float64Array) -> Float64Array:
        """Return [S] for how long slots are used that end at these times, [S]."""
        whole = np.diff(end_s, prepend=0.0)
        return np.asarray(np.maximum(whole - self.gap_s, whole / 2))

    def times_s(self) -> Float64Array:
        """Return [L, C] how long a port takes for a coflow alone."""
        found = np.zeros((len(self.bytes_per_s), len(self.weight)))
        for side in (0, 1):
            np.add.at(found, (self.ports[:, side], self.coflow), self.size_bytes)
        used = self.bytes_per_s > 0
        found[used] /= self.bytes_per_s[used, None]
        return found


class Program(NamedTuple):
    """An integer program of V variables from 0 to 1; the first are those of coflows."""

    gain: Float64Array  # [V] coefficients of the sum to be maximised
    rows: Sequence[tuple[Any, float, float]]  # matrices, each with bounds of its product with the variables
    whole: npt.NDArray[np.bool_]  # [V] which variables are 0 or 1


class Solved(NamedTuple):
    """The solution of a program."""

    share: Float64Array  # [C] the share of each coflow that is sent in time; 0 or 1 if the program is not relaxed
    end_s: Float64Array  # [S] ends of the slots of time, in ascending order
    length_s: Float64Array  # [S] for how long they are used
    sent_bytes: Float64Array  # [F, S] of each flow in each slot; S is 0 if the program has no slots
    value: float  # the weight of the coflows that are in time
    bound: float  # no solution has a larger value
    is_optimal: bool  # else the time limit ended the search

    @property
    def admitted(self) -> npt.NDArray[np.bool_]:
        """Return [C] which coflows are admitted."""
        return self.share >= ADMITTED

    @property
    def gap(self) -> float:
        """Return how far the value may be from the optimum, as a share of the bound."""
        return 0.0 if self.is_optimal or self.bound <= 0 else max(1.0 - self.value / self.bound, 0.0)


def most_in_time(demand: Demand, relaxed: bool = False, time_limit_s: float = 60.0) -> Solved:
    """Solve problem (P1): admit coflows of the most weight, and give their flows bandwidth until their deadlines.

    Time is cut into slots at the deadlines, and the variables are what is sent in each slot, so that any division of
    bandwidth over time corresponds to values of the variables.

    The program is decomposed (Benders, Numerische Mathematik 4, 1962): an integer program has only the coflows, at
    first that of `most_in_order`; a linear program has the bandwidth of the coflows that it admits. If these cannot all
    be sent in time, its dual gives a row that no admissible set violates (`_cut`), and the integer program is solved
    again with this row. On CoflowLib's instances it is solved one to three times, in a hundredth of the time that HiGHS
    takes for both programs as one.

    Parameters
    ----------
    demand : Demand
    relaxed : bool
        Coflows may be sent in part (CDS-LPA): a linear program, and only those that are sent whole are admitted.
    time_limit_s : float
        When the search ends; the solution is then a part of the last set whose coflows can be sent together.

    Raises
    ------
    InputError
        HiGHS found nothing within the time limit.
    """
    end_s = np.unique(demand.time_left_s)
    if relaxed:
        share, sent, bound = _relaxed(demand, end_s, time_limit_s)
        return _solved(demand.weight, share, bound, True)._replace(
            end_s=end_s, length_s=demand.lengths_s(end_s), sent_bytes=sent
        )

    over_s = time.monotonic() + time_limit_s
    rows = _rows_of_order(demand.times_s(), demand.time_left_s)
    while True:
        left_s = max(over_s - time.monotonic(), LEAST_S)
        share, bound, is_optimal = _solve(_of_coflows(demand.weight, rows), left_s)
        chosen = share >= ADMITTED
        found = _bandwidth(demand, end_s, chosen)
        while found is None:
            row = _cut(demand, end_s, chosen)
            rows = np.vstack([rows, row])
            if time.monotonic() < over_s:
                break
            is_optimal = False
            chosen = chosen.copy()
            chosen[np.argmax(np.where(chosen, row / demand.weight, -1.0))] = False
            found = _bandwidth(demand, end_s, chosen)
        if found is not None:
            solved = _solved(demand.weight, chosen.astype(np.float64), bound, is_optimal)
            return solved._replace(end_s=end_s, length_s=demand.lengths_s(end_s), sent_bytes=found)


def most_in_order(
    times_s: Float64Array, time_left_s: Float64Array, weight: Float64Array, time_limit_s: float = 60.0
) -> Solved:
    """Solve problem (II-B): the coflows of the most weight that are in time in some order, with independent ports.

    A coflow ends at a port when it and the coflows before it have been sent there ((6) of the paper), and the order is
    the same at all ports. If a set of coflows is in time in any order, it is in time by deadline, at each port
    (Jackson's rule). So the program needs no variables for the order: at each port, the coflows with deadlines up to a
    time fit before that time. The same is true for any division of bandwidth, so that this is never below
    `most_in_time`.

    Parameters
    ----------
    times_s : ndarray of float64
        [L, C] how long each port takes for each coflow alone.
    time_left_s, weight : ndarray of float64
        [C] as those of `Demand`; inf: no deadline.
    time_limit_s : float
        When HiGHS ends its search, with the best solution so far.

    Raises
    ------
    InputError
        HiGHS found nothing within the time limit.
    """
    found, bound, is_optimal = _solve(_of_coflows(weight, _rows_of_order(times_s, time_left_s)), time_limit_s)
    return _solved(weight, found, bound, is_optimal)


def _rows_of_order(times_s: Float64Array, time_left_s: Float64Array) -> Float64Array:
    """Return [R, C] a row for a port and a deadline; its product with the coflows in time is at most 1."""
    by_deadline = np.argsort(time_left_s, kind="stable")
    due_s = time_left_s[by_deadline]
    is_last = np.r_[due_s[1:], np.inf] > due_s  # of those with one deadline
    last = np.flatnonzero(np.isfinite(due_s) & is_last)
    before = np.zeros((len(last), *times_s.shape))
    for row, k in zip(before, last, strict=True):
        row[:, by_deadline[: k + 1]] = times_s[:, by_deadline[: k + 1]] / due_s[k]
    rows = before.reshape(-1, len(due_s))
    return rows[rows.sum(axis=1) > 1.0]  # the others are satisfied by any set of coflows


def _of_coflows(weight: Float64Array, rows: Float64Array) -> Program:
    """Return the program with a variable for each coflow, and no others."""
    return Program(weight, [(rows, -np.inf, 1.0)], np.ones(len(weight), bool))


def _relaxed(
    demand: Demand, end_s: Float64Array, time_limit_s: float
) -> tuple[Float64Array, Float64Array, float]:
    """Return [C] the shares of coflows that the linear program sends, [F, S] what it sends, and the gain."""
    flow, slot = _slots_of(demand, end_s)
    share, bound, _ = _solve(_with_bandwidth(demand, demand.lengths_s(end_s), flow, slot), time_limit_s)
    coflows = len(demand.weight)
    return share[:coflows], _sent(demand, len(end_s), flow, slot, share[coflows:]), bound


def _bandwidth(demand: Demand, end_s: Float64Array, chosen: npt.NDArray[np.bool_]) -> Float64Array | None:
    """Return [F, S] what flows send in each slot so that all chosen coflows are in time; None: that is impossible."""
    own = chosen[demand.coflow]
    sent = np.zeros((len(own), len(end_s)))
    if not own.any():
        return sent
    part = _part(demand, chosen)
    flow, slot = _slots_of(part, end_s)
    program = _with_bandwidth(part, demand.lengths_s(end_s), flow, slot)
    coflows = len(part.weight)
    solved = _highs(program, np.inf, np.r_[np.ones(coflows), np.zeros(len(flow))])
    if solved.x is None:
        return None
    sent[own] = _sent(part, len(end_s), flow, slot, solved.x[coflows:])
    return sent


def _cut(demand: Demand, end_s: Float64Array, chosen: npt.NDArray[np.bool_]) -> Float64Array:
    """Return [C] a row that no set of coflows violates that can be sent in time, and that `chosen` violates.

    The linear program minimises how much more the ports would have to carry. Its dual gives each port in each slot a
    price; a flow costs at least its cheapest slot, and the flows of a set that can be sent cost together no more than
    all that the ports carry. If rounding hides the violation, the row excludes only sets that contain `chosen`.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, eye_array, hstack

    part, length_s, ports = _part(demand, chosen), demand.lengths_s(end_s), len(demand.bytes_per_s)
    flow, slot = _slots_of(part, end_s)
    # In bytes, as a share of all that the ports carry.
    whole = float((demand.bytes_per_s[:, None] * length_s).sum())
    room = (demand.bytes_per_s[:, None] * length_s).ravel() / whole
    at = (part.ports[flow] * len(end_s) + slot[:, None]).T.ravel()
    column = np.arange(len(flow))
    carried = coo_array((np.ones(2 * len(flow)), (at, np.tile(column, 2))), shape=(room.size, len(flow)))
    sent = coo_array((np.ones(len(flow)), (flow, column)), shape=(len(part.coflow), len(flow)))
    solved = linprog(
        np.r_[np.zeros(len(flow)), np.ones(room.size)],
        A_ub=hstack([carried, -eye_array(room.size)]).tocsr(),
        b_ub=room,
        A_eq=hstack([sent, coo_array((len(part.coflow), room.size))]).tocsr(),
        b_eq=part.size_bytes / whole,
        bounds=(0, None),
        method="highs",
    )
    if solved.status == 0:
        price = np.maximum(-solved.ineqlin.marginals, 0.0).reshape(ports, -1)
        cheapest = np.minimum.accumulate(price[demand.ports[:, 0]] + price[demand.ports[:, 1]], axis=1)
        cost = cheapest[
            np.arange(len(demand.coflow)), np.searchsorted(end_s, demand.time_left_s[demand.coflow])
        ]
        row = np.bincount(demand.coflow, cost * demand.size_bytes / whole, len(demand.weight))
        carries = float(price.ravel() @ room)
        if carries > 0 and row[chosen].sum() > carries * (1 + BROKEN):
            return np.asarray(row, np.float64) / carries
    return chosen / max(float(chosen.sum()) - 1.0, 0.5)


def _part(demand: Demand, chosen: npt.NDArray[np.bool_]) -> Demand:
    """Return the demand of the chosen coflows alone."""
    own = chosen[demand.coflow]
    return demand._replace(
        coflow=(np.cumsum(chosen) - 1)[demand.coflow[own]],
        ports=demand.ports[own],
        size_bytes=demand.size_bytes[own],
        time_left_s=demand.time_left_s[chosen],
        weight=demand.weight[chosen],
    )


def _slots_of(demand: Demand, end_s: Float64Array) -> tuple[Int64Array, Int64Array]:
    """Return flow and slot of each pair of a flow and a slot before its deadline."""
    slots = np.searchsorted(end_s, demand.time_left_s[demand.coflow]) + 1
    flow = np.repeat(np.arange(len(slots)), slots)
    return flow, np.arange(len(flow)) - np.repeat(np.cumsum(slots) - slots, slots)


def _sent(demand: Demand, slots: int, flow: Int64Array, slot: Int64Array, share: Any) -> Float64Array:
    """Return [F, S] what flows send, from the share of the flow that is sent for each pair of flow and slot."""
    sent = np.zeros((len(demand.coflow), slots))
    sent[flow, slot] = np.maximum(share, 0.0) * demand.size_bytes[flow]
    return sent


def _with_bandwidth(demand: Demand, length_s: Float64Array, flow: Int64Array, slot: Int64Array) -> Program:
    """Return (P1): a variable for each coflow, and one for each flow and slot, the share of the flow sent in it."""
    from scipy.sparse import coo_array

    coflows, flows = len(demand.weight), len(demand.coflow)
    column, shape = coflows + np.arange(len(flow)), coflows + len(flow)
    share = (
        np.r_[np.ones(len(flow)), -np.ones(flows)],
        (
            np.r_[flow, np.arange(flows)],
            np.r_[column, demand.coflow],
        ),
    )
    # Of each port and slot, the share of what it carries.
    room = (demand.bytes_per_s[:, None] * length_s).ravel()
    at = (demand.ports[flow] * len(length_s) + slot[:, None]).T.ravel()
    carried = np.tile(demand.size_bytes[flow], 2) / room[at], (at, np.tile(column, 2))
    return Program(
        np.r_[demand.weight, np.zeros(len(flow))],
        [
            (coo_array(share, shape=(flows, shape)).tocsr(), 0.0, 0.0),
            (coo_array(carried, shape=(room.size, shape)).tocsr(), -np.inf, 1.0),
        ],
        np.zeros(shape, bool),
    )


def _solved(weight: Float64Array, share: Float64Array, bound: float, is_optimal: bool) -> Solved:
    """Return a solution without bandwidth."""
    value = float(weight[share >= ADMITTED].sum())
    return Solved(share, np.zeros(0), np.zeros(0), np.zeros((0, 0)), value, bound, is_optimal)


def _solve(program: Program, time_limit_s: float) -> tuple[Float64Array, float, bool]:
    """Return the best variables, an upper bound of the gain, and whether they are optimal.

    Raises:
        InputError: no solution is found within the time limit.
    """
    solved = _highs(program, time_limit_s)
    if solved.x is None:
        raise InputError(
            f"HiGHS found no solution within {time_limit_s:g} s ({solved.message.strip()}); a longer time_limit_s,"
            " or fewer coflows at a time"
        )
    dual = getattr(solved, "mip_dual_bound", None)
    bound = -float(solved.fun if dual is None or not program.whole.any() else dual)
    return np.asarray(solved.x), bound, solved.status == 0


def _highs(program: Program, time_limit_s: float, low: Any = 0.0, high: Any = 1.0) -> Any:
    from scipy.optimize import Bounds, LinearConstraint, milp

    with _silence():
        return milp(
            -program.gain,
            constraints=[LinearConstraint(*row) for row in program.rows if row[0].shape[0]],
            integrality=program.whole.astype(int),
            bounds=Bounds(low, high),
            options={"time_limit": time_limit_s, "mip_rel_gap": 0.0},
        )


@contextmanager
def _silence() -> Iterator[None]:
    """Drop what is written to standard output: HiGHS sometimes prints a line, also without `disp`."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)
