"""Small coflow workloads at a switch of which each port sends a byte in a nanosecond, and plain oracles for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from actors.fabric import fair as fair_rates
from actors.fabric import greedy, madd, pfp
from actors.fabric.ends import next_end
from actors.fabric.order import list_lines, make_order, set_order
from actors.fabric.ports import Fabric, build_fabric
from actors.kernel.world import NEVER
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
    return build_fabric(arrays_of(coflows, ports), SPEED)


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
    """Serve coflows greedily in order of a key, which may change; yields (now, order, matching) at every instant."""
    order, m, arrived = make_order(fabric), greedy.make_matching(fabric), 0
    coflows = fabric.coflows
    while (t := min(fabric.flows.end.min(), next_arrival(fabric, arrived))) < NEVER:
        for flow in np.flatnonzero(fabric.flows.end == t):
            greedy.end_flow(fabric, order, m, t, flow)
        arrived = arrived_by(fabric, t)
        greedy.settle_all(fabric, m, t)
        there = sorted((c for c in range(arrived) if coflows.left[c] > 0), key=lambda c: (key(c), c))
        if set_order(order, np.array(there, np.int64), len(there)):
            list_lines(fabric, order)
            greedy.match_anew(fabric, order, m, t)
        else:
            greedy.fill_ports(fabric, order, m, t)
        m.changes[0] = 0
        yield t, order, m


def by_madd(fabric: Fabric, smallest_first: bool) -> Iterator[tuple[int, Any, Any]]:
    """Serve coflows by MADD, in order of their bottleneck or of arrival; yields (now, order, rates)."""
    order, a, arrived = make_order(fabric), madd.make_madd(fabric), 0
    while True:
        t = min(madd.next_coflow_end(order, a), next_arrival(fabric, arrived))
        if a.end_size[0] > 0 and a.end_time[0] < t:
            t = a.end_time[0]
            madd.refill(fabric, order, a, t)
        elif t == NEVER:
            return
        else:
            madd.progress(fabric, order, a, t)
            there = [*order.groups[: order.used[0]].tolist(), *range(arrived, arrived_by(fabric, t))]
            arrived = arrived_by(fabric, t)
            there.sort(key=lambda c: (madd.bottleneck_ns(fabric, a, c) if smallest_first else c, c))
            set_order(order, np.array(there, np.int64), len(there))
            madd.decide(fabric, order, a)
        yield t, order, a


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
            pfp.end_flow(fabric, s, t, s.ends.flow[0])
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


def simulate(fabric: Fabric, rates_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Coflow completion times by a plain loop over events; rates_of(flows, what they have left) -> bytes per ns."""
    flows, arrival = fabric.flows, fabric.coflows.arrival[fabric.flows.coflow]
    left, t, finish = flows.size.copy(), 0.0, np.full(flows.size.size, np.inf)
    while not np.isfinite(finish).all():
        there = np.flatnonzero((arrival <= t) & ~np.isfinite(finish))
        coming = arrival[arrival > t]
        if there.size == 0:
            t = coming.min()
            continue
        rates = rates_of(there, left[there])
        with np.errstate(divide="ignore"):
            step = min((left[there] / rates).min(), coming.min() - t if coming.size else np.inf)
        t += step
        left[there] -= rates * step
        finish[there[left[there] <= 1e-6]] = t
    last = np.zeros(fabric.coflows.arrival.size)
    np.maximum.at(last, flows.coflow, finish)
    return last - fabric.coflows.arrival
