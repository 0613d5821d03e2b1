"""Small coflow workloads at a switch of which each port sends a byte in a nanosecond, and plain oracles for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import equal_loop
import numpy as np
from hypothesis import strategies as st

from actors.fabric import equal_rates as equal
from actors.fabric import greedy, madd
from actors.fabric import max_min as fair_rates
from actors.fabric.order import Order, list_lines, set_order
from actors.fabric.ports import Fabric, build_fabric, merge_parallel, next_end
from actors.initial_arrays import at_start
from actors.kernel.queue import NEVER, NONE
from actors.schedulers.coflows import pfp
from workloads.coflows import CoflowArrays, make_coflow_workload

SPEED = 1e9  # bytes per second: a byte per ns, so that times are bytes
Coflow = tuple[int, list[tuple[int, int, float]]]  # arrival in ns; ingress, egress and bytes of its flows


def arrays_of(coflows: list[Coflow], ports: int) -> CoflowArrays:
    flows = [flow for _, members in coflows for flow in members]
    return make_coflow_workload(
        "small",
        [arrival / 1e9 for arrival, _ in coflows],
        [len(members) for _, members in coflows],
        *([flow[k] for flow in flows] for k in range(3)),
        ports,
    ).arrays()


def switch(coflows: list[Coflow], ports: int) -> Fabric:
    return build_fabric(merge_parallel(arrays_of(coflows, ports))[0], SPEED)


@st.composite
def switches(draw: st.DrawFn, least: int = 1, most: int = 5, ports: int = 4) -> Fabric:
    """Coflows of distinct pairs of ports; some sizes are equal, and some arrive together."""
    pair = st.tuples(st.integers(0, ports - 1), st.integers(0, ports - 1))
    size = st.one_of(st.integers(1, 5).map(lambda n: n * 1000), st.integers(1, 5000))
    coflows, arrival = [], 0
    for _ in range(draw(st.integers(least, most))):
        sizes = draw(st.dictionaries(pair, size, min_size=1, max_size=8))
        coflows.append((arrival, [(source, sink, float(n)) for (source, sink), n in sizes.items()]))
        arrival += draw(st.sampled_from((0, 0, 500, 1777, 6000)))
    return switch(coflows, ports)


def ccts(fabric: Fabric) -> list[int]:
    assert (fabric.coflows.finish < NEVER).all()
    return (fabric.coflows.finish - fabric.coflows.arrival).tolist()


def next_arrival(fabric: Fabric, arrived: int) -> Any:
    return fabric.coflows.arrival[arrived] if arrived < fabric.coflows.arrival.size else NEVER


def arrived_by(fabric: Fabric, t: int) -> int:
    return int(np.searchsorted(fabric.coflows.arrival, t, side="right"))


Key = Callable[[int], Any]


def greedily(fabric: Fabric, key: Key = int) -> Iterator[tuple[int, Any, Any]]:
    """Serve coflows greedily in order of a key, which may change; yields (now, ranking, matching) at every instant."""
    m, arrived = greedy.make_matching(fabric), 0
    coflows = fabric.coflows
    while (t := min(fabric.flows.end.min(), next_arrival(fabric, arrived))) < NEVER:
        for flow in np.flatnonzero(fabric.flows.end == t):
            greedy.end_flow(fabric, m, t, flow)
        arrived = arrived_by(fabric, t)
        greedy.settle_all(fabric, m, t)
        there = sorted((c for c in range(arrived) if coflows.left[c] > 0), key=lambda c: (key(c), c))
        greedy.serve_in_order(fabric, m, t, np.array(there, np.int64), len(there))
        greedy.fill_ports(fabric, m, t)
        m.changes[0] = 0
        yield t, m.ranking, m


def by_madd(
    fabric: Fabric,
    smallest_first: bool,
    key: Key = int,
    decide: Callable[[Fabric, Any, Any], None] = madd.decide,
) -> Iterator[tuple[int, Any, Any]]:
    """Serve coflows by MADD, in order of their bottleneck or of a key; yields (now, order, rates)."""
    order, a, arrived = at_start(Order, fabric), at_start(madd.Madd, fabric), 0
    while True:
        t = min(madd.next_coflow_end(order, a), next_arrival(fabric, arrived))
        if a.ends.size[0] > 0 and a.ends.keys[0] < t:
            t = a.ends.keys[0]
            madd.refill(fabric, order, a, t)
        elif t == NEVER:
            return
        else:
            madd.progress(fabric, order, a, t)
            there = [*order.groups[: order.used[0]].tolist(), *range(arrived, arrived_by(fabric, t))]
            arrived = arrived_by(fabric, t)
            there.sort(key=lambda c: (madd.bottleneck_ns(fabric, a, c) if smallest_first else key(c), c))
            set_order(order, np.array(there, np.int64), len(there))
            decide(fabric, order, a)
        yield t, order, a


def equally(
    fabric: Fabric,
    trigger: int,
    missed_only: bool = True,
    key: Key = int,
    decide: Callable[[Fabric, Any, Any], None] = equal_loop.decide,
) -> Iterator[tuple[int, Any, Any]]:
    """Serve coflows at equal rates, in order of a key, decided at arrivals and where at least `trigger` has ended.

    Yields (now, order, rates) at every instant.
    """
    order, e, arrived = at_start(Order, fabric), equal.make_equal(fabric, missed_only), 0
    while (t := min(equal_loop.next_end(fabric, order, e), next_arrival(fabric, arrived))) < NEVER:
        ended = equal_loop.end_due(fabric, order, e, t)
        if ended >= trigger or arrived_by(fabric, t) > arrived:
            equal.progress(fabric, order, e, t)
            there = [*order.groups[: order.used[0]].tolist(), *range(arrived, arrived_by(fabric, t))]
            arrived = arrived_by(fabric, t)
            there.sort(key=lambda c: (key(c), c))
            set_order(order, np.array(there, np.int64), len(there))
            decide(fabric, order, e)
            list_lines(fabric, order)
        else:
            equal_loop.refill(fabric, order, e, t)
        yield t, order, e


def equal_rates(fabric: Fabric, order: Any, e: Any) -> np.ndarray:
    """Bytes per ns of all flows under equal rates: their coflow's, and what backfill adds."""
    there = (fabric.flows.finish == NEVER) & (order.level[fabric.flows.coflow] != NONE)
    return np.where(there, e.rate[fabric.flows.coflow] + e.extra, 0.0)


def fairly(fabric: Fabric) -> Iterator[tuple[int, Any]]:
    """Give all flows that are there max-min fair rates; yields (now, rates) at every instant."""
    f, arrived = fair_rates.make_fair(fabric), 0
    while (t := min(fair_rates.next_due(f), next_arrival(fabric, arrived))) < NEVER:
        least = fair_rates.end_due(fabric, f, t)
        for coflow in range(arrived, arrived_by(fabric, t)):
            fair_rates.add_coflow(fabric, f, t, coflow)
            least = 0.0
        arrived = arrived_by(fabric, t)
        fair_rates.fill(fabric, f, t, least)
        yield t, f


def shortest_first(fabric: Fabric) -> Iterator[tuple[int, Any]]:
    """Serve the flow with the least left first; yields (now, who is served) at every instant."""
    s, arrived = pfp.make_shortest(fabric), 0
    while (t := min(next_end(fabric.flows, s.ends), next_arrival(fabric, arrived))) < NEVER:
        while next_end(fabric.flows, s.ends) == t:
            pfp.end_flow(fabric, s, t, s.ends.values[0])
        if arrived_by(fabric, t) > arrived:
            pfp.arrive(fabric, s, t, arrived, arrived_by(fabric, t) - 1)
            arrived = arrived_by(fabric, t)
        pfp.match(fabric, s, t)
        yield t, s


def run(steps: Iterator[Any]) -> None:
    for _ in steps:
        pass


def ports_of(fabric: Fabric, flow: int) -> tuple[int, int]:
    return int(fabric.flows.source[flow]), int(fabric.flows.sink[flow])


def check_ports(fabric: Fabric, order: Any, e: Any) -> None:
    """Under equal rates no port sends more than it can, and no flow that may be backfilled finds room at both ports."""
    flows, given, load = fabric.flows, equal_rates(fabric, order, e), np.zeros(fabric.speed.size)
    for ports in (flows.source, flows.sink):
        np.add.at(load, ports, given)
    assert (load <= fabric.speed * (1 + 1e-9)).all()
    assert np.allclose(e.residual, fabric.speed - load, atol=1e-7)
    may = (flows.finish == NEVER) & (order.level[flows.coflow] != NONE)
    if e.missed_only:
        may &= e.rate[flows.coflow] == 0.0
    room = e.residual > 1e-6
    assert not (may & room[flows.source] & room[flows.sink]).any()


def unfinished(fabric: Fabric, coflow: int) -> np.ndarray:
    return np.flatnonzero((fabric.flows.coflow == coflow) & (fabric.flows.finish == NEVER))


def serve_equally(fabric: Fabric, coflow: int, room: np.ndarray, rates: np.ndarray) -> bool:
    """Give a coflow's flows one rate out of the room, by a plain reading of the rule; return whether they get any."""
    flows = unfinished(fabric, coflow)
    users = Counter(port for flow in flows for port in ports_of(fabric, flow))
    rate = min(room[port] / n for port, n in users.items())
    if rate < 1e-9:
        return False
    rates[flows] += rate
    for port, n in users.items():
        room[port] -= n * rate
    return True


def simulate(fabric: Fabric, rates_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Coflow completion times; rates_of(flows, what they have left) -> bytes per ns."""
    finish = serve(fabric.coflows.arrival[fabric.flows.coflow], fabric.flows.size, rates_of)
    last = np.zeros(fabric.coflows.arrival.size)
    np.maximum.at(last, fabric.flows.coflow, finish)
    return last - fabric.coflows.arrival


def serve(
    arrival: np.ndarray,
    size: np.ndarray,
    rates_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    step: float = np.inf,
) -> np.ndarray:
    """When each flow ends, by a plain loop over arrivals and ends, which thinks again after each `step`.

    rates_of(flows that are there, what they have left) -> bytes in a unit of time.
    """
    arrival, left, t = arrival.astype(float), size.astype(float), 0.0
    finish = np.full(size.size, np.inf)
    while not np.isfinite(finish).all():
        there = np.flatnonzero((arrival <= t) & ~np.isfinite(finish))
        coming = arrival[arrival > t].min(initial=np.inf)
        if there.size == 0:
            t = coming
            continue
        rates = rates_of(there, left[there])
        with np.errstate(divide="ignore"):
            on = min(t + (left[there] / rates).min(), coming, t + step)
        left[there] -= rates * (on - t)
        t = on
        finish[there[left[there] <= 1e-6]] = t
    return finish
