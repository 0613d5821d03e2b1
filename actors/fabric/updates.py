"""Changes of active coflows by their frameworks: the tables that agents and coordinator use.

A task that restarts or moves, or a coflow that leaves, *stops* flows: their *generation* ends, and what they have sent
in it may be lost (`workloads.coflow_updates`). Agents stop their flows at that time by themselves. The framework's
message reaches the coordinator one network delay later, and the coordinator decides what must be sent again. The agents
learn that with the next rate: `SET_RATE` carries the flow's generation, and how many bytes the flow has to send in it.
(A real host knows this number from its task; here no actor sees what another knows.)

- A rate for another generation than the agent's is stale: it was decided before the coordinator received the update.
- An end for another generation, or for fewer bytes, does not end the flow, which has more to send than the agent knew.

The updates before an update determine which flows it stops, so that agents and coordinator count the same generations
without messages. A flow that exists only after a move has its place among the others, without bytes.
"""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.messages import send_change, send_update
from actors.kernel.compiled import inlined
from actors.kernel.cost import known_cost
from actors.kernel.queue import NEVER, NONE
from actors.kernel.records import Records, as_records, frozen, records
from workloads.coflow_updates import CoflowUpdates
from workloads.coflows import CoflowArrays

# An update, or the part of it at one agent: it stops the flows of the pairs from `first` to `end`.
ROW = np.dtype([(name, "i8") for name in ("time", "agent", "coflow", "kind", "side", "first", "end")])
PAIR = np.dtype([("flow", "i8"), ("onto", "i8")])  # the flow that ends, and the one that takes its place
GENERATION = np.dtype(
    [
        ("generation", "i8"),  # how often the flow was stopped, as its agent knows
        ("known_generation", "i8"),  # the same, as the coordinator knows
        ("total", "f8"),  # bytes to be sent in this generation, as the agent last received
        ("due", "f8"),  # the same, as the coordinator computes
        ("heard", "f8"),  # bytes that have ended in this generation, as the coordinator knows
        # from when on the agent knows all that is due, ns; NEVER before that is sent
        ("known_from", "i8"),
    ]
)


class Updates(NamedTuple):
    """The tables of U updates; all are empty if there are none."""

    row: Records  # [U] ROW by time; `agent` is not used
    stop: Records  # ROW by agent and time
    pair: Records  # PAIR
    flow: Records  # [F] GENERATION
    moved: np.ndarray  # [M, 2] a flow of the workload, and a flow onto which it was moved


def no_updates() -> Updates:
    """Return empty tables."""
    return _read_only(records(ROW, 0), records(ROW, 0), records(PAIR, 0), records(GENERATION, 0))


def lay_out(
    work: CoflowArrays, row_of_flow: np.ndarray, given: CoflowUpdates
) -> tuple[CoflowArrays, np.ndarray, Updates]:
    """Make room for the flows that moves create, and write the tables.

    Parameters
    ----------
    work : CoflowArrays
        As `merge_parallel` makes it.
    row_of_flow : ndarray of int64
        Which of its flows each flow of the workload is.
    given : CoflowUpdates
        Of the workload.

    Returns
    -------
    CoflowArrays
        With further flows, which have 0 bytes.
    ndarray of int64
        Which of these each flow of the workload is.
    Updates
    """
    ports, coflows = work.ingress_bytes_per_s.size, work.arrival_ns.size
    coflow = np.repeat(np.arange(coflows), np.diff(work.first_flow))
    of_pair = np.repeat(given.coflow, np.diff(given.first_pair))
    old = (coflow * ports + work.ingress) * ports + work.egress
    pair, onto = ((of_pair * ports + ends[:, 0]) * ports + ends[:, 1] for ends in (given.pair, given.onto))
    new = np.union1d(old, onto)
    size, place = np.zeros(new.size), np.searchsorted(new, old)
    size[place] = work.size_bytes
    work = work._replace(
        first_flow=np.searchsorted(new // ports**2, np.arange(coflows + 1)),
        ingress=new // ports % ports,
        egress=new % ports,
        size_bytes=size,
    )
    updates = _tables(given, np.searchsorted(new, pair), np.searchsorted(new, onto), work)
    return work, place[row_of_flow], updates


def _tables(given: CoflowUpdates, flow: np.ndarray, onto: np.ndarray, work: CoflowArrays) -> Updates:
    """Write the tables; `flow` and `onto` are those of the pairs."""
    row, pair = records(ROW, given.time_ns.size), records(PAIR, flow.size)
    row.time[:], row.coflow[:], row.kind[:], row.side[:] = given.time_ns, given.coflow, given.kind, given.side
    row.first[:], row.end[:] = given.first_pair[:-1], given.first_pair[1:]
    pair.flow[:], pair.onto[:] = flow, onto
    generations = records(GENERATION, work.ingress.size)
    generations.total[:] = generations.due[:] = work.size_bytes
    generations.known_from[:] = NEVER
    update, agent = np.repeat(np.arange(row.size), row.end - row.first), work.ingress[flow]
    begin = np.flatnonzero((np.diff(update, prepend=-1) != 0) | (np.diff(agent, prepend=-1) != 0))
    stop = as_records(row[update[begin]])
    stop.agent[:], stop.first[:], stop.end[:] = agent[begin], begin, np.append(begin[1:], flow.size)
    stop = as_records(stop[np.argsort(stop.agent, kind="stable")])
    return _read_only(row, stop, pair, generations)


def _read_only(row: Records, stop: Records, pair: Records, generations: Records) -> Updates:
    """Return the tables; all but the last are only read."""
    moved = _moves(pair)
    moved.flags.writeable = False
    return Updates(frozen(row), frozen(stop), frozen(pair), generations, moved)


def _moves(pair: Records) -> np.ndarray:
    """Return [M, 2] flows, and the flows onto which their bytes have been moved."""
    members: dict[int, list[int]] = {}
    moved = []
    for flow, onto in zip(pair.flow.tolist(), pair.onto.tolist(), strict=True):
        if flow != onto:
            came = members.get(flow, [flow])
            members[flow], members[onto] = [], members.get(onto, [onto]) + came
            moved += [(first, onto) for first in came]
    return np.array(moved, np.int64).reshape(-1, 2)


def follow_moves(found: Records, moved: np.ndarray) -> Records:
    """Return records of flows in which each moved flow has the record of its last end, at any of its places."""
    followed = found.copy()
    for first, onto in moved.tolist():
        if found.node[onto] != NONE and (
            followed.node[first] == NONE or found.finish[onto] > followed.finish[first]
        ):
            followed[first] = found[onto]
    return followed


@inlined
def expect_updates(w: Any) -> None:
    """Set timers for the first update, and for each agent's first stop of flows."""
    stop = w.updates.stop
    if w.updates.row.size > 0:
        expect_update(w, 0)
    for k in range(stop.size):
        if k == 0 or stop.agent[k] != stop.agent[k - 1]:
            expect_stop(w, k)


@inlined
def expect_update(w: Any, k: int) -> None:
    """Set a timer for the framework's message, one network delay after the update."""
    send_update(w, w.updates.row.time[k] + w.network.delay_ns, w.nodes.size, k)


@inlined
def expect_stop(w: Any, k: int) -> None:
    """Set a timer for an agent's stop of flows, at the time when their tasks stop."""
    send_change(w, w.updates.stop.time[k], w.updates.stop.agent[k], k)


@inlined
def generation_to_send(w: Any, t: int, flow: int) -> tuple[int, float]:
    """Return a flow's generation and its bytes, for the agent; without updates NONE, and no bytes."""
    generations = w.updates.flow
    if generations.size == 0:
        return NONE, 0.0
    generations.known_from[flow] = min(generations.known_from[flow], t + known_cost(w) + w.network.delay_ns)
    return generations.known_generation[flow], generations.due[flow]


@inlined
def generation_of_agent(w: Any, flow: int) -> tuple[int, float]:
    """Return a flow's generation and its bytes as its agent knows them; without updates NONE, and no bytes."""
    generations = w.updates.flow
    if generations.size == 0:
        return NONE, 0.0
    return generations.generation[flow], generations.total[flow]
