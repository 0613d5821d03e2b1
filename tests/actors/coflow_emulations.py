"""Small emulations of coflows for tests, run instant by instant in this process.

In examples worked out by hand a port sends a byte in a second, so that bytes are seconds. A flow is named by its
coflow and ports: "2 0>1" goes from port 0 to port 1 and is of coflow 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from bounded_runs import bounded

from actors.fabric.counters import N_DECISIONS, N_REFILLS
from actors.hosting.partition import Observe, Outcome, Partition
from actors.kernel.queue import NEVER
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Costs, Network, Setting, Switch
from clusters.cluster import build_cluster
from workloads.arrow import column
from workloads.coflow_updates import Row as Update
from workloads.coflow_updates import make_updates
from workloads.coflows import CoflowWorkload, make_coflow_workload, with_demands
from workloads.isolation import isolated_s, with_port_speeds

NS = 1_000_000_000
TASKS = Observe(tasks=True)
Flow = tuple[int, int, float]  # ingress, egress, bytes
Row = tuple[float, Sequence[Flow]]  # arrival in seconds, flows
COSTS = Costs("fixed", per_update_s=1e-5, per_flow_s=2e-5, per_coflow_s=1e-4, per_schedule_s=1e-5)


def coflows(*rows: Row, ports: int) -> CoflowWorkload:
    """A workload of (arrival_s, flows) rows."""
    flows = [flow for _, members in rows for flow in members]
    ingress, egress, size = ([flow[k] for flow in flows] for k in range(3))
    arrival, width = [at for at, _ in rows], [len(members) for _, members in rows]
    return make_coflow_workload("by hand", arrival, width, ingress, egress, size, ports)


def setting_of(
    scheduler: str,
    workload: CoflowWorkload,
    *,
    speed: float = 1.0,
    delay_s: float = 0.0,
    costs: Costs | None = None,
    local_is_free: bool = False,
    seed: int = 0,
    **parameters: Any,
) -> Setting:
    """A setting; `speed` is that of the ports, bytes per second."""
    found = find_scheduler(scheduler)
    return Setting(
        scheduler=found,
        parameters=resolve_parameters(found, parameters),
        workload=workload,
        cluster=build_cluster("ports", [1] * workload.num_ports),
        short_cutoff_s=float("inf"),
        network=Network(delay_s=delay_s),
        costs=costs or Costs(),
        switch=Switch(speed, local_is_free),
        seed=seed,
    )


def updated(scheduler: str, workload: CoflowWorkload, updates: Sequence[Update], **asked: Any) -> Setting:
    """A setting with updates, for a scheduler that takes them, if only with other rates."""
    if find_scheduler(scheduler).updatable == "rates=greedy":
        asked["rates"] = "greedy"
    return replace(
        setting_of(scheduler, workload, **asked),
        updates=make_updates(updates, workload) if updates else None,
    )


def instants(partition: Partition) -> Iterator[int]:
    """Run a partition that has been started; yields the time (ns) after all that happens at it."""
    with np.errstate(over="ignore"):
        for _ in bounded():
            if (t := next_event(partition.world.queue)) >= NEVER:
                return
            for _ in bounded():
                if partition._step(t + 1):
                    break
            yield t


def next_event(queue: Any) -> int:
    """When the next message is due, ns."""
    now, due = queue.now[0], int(NEVER)
    if now.lane_tail > now.lane_head:
        due = int(queue.lane.time[now.lane_head & (queue.lane.size - 1)])
    return min(due, int(queue.heap.time[0])) if now.heap_size > 0 else due


def parts_of_state(partition: Partition) -> SimpleNamespace:
    """The fields of the coordinator's state, with those of what several policies have in common."""
    fields = partition.state._asdict()
    for shared in ("ordered", "admitting", "reserving"):
        if shared in fields:
            fields |= fields[shared]._asdict()
    return SimpleNamespace(**fields)


def rates_now(partition: Partition) -> np.ndarray:
    """[F] bytes per ns at which flows are being sent."""
    fabric, state, sending = partition.world.fabric, parts_of_state(partition), partition.world.sending
    flows, rates = fabric.flows, sending.rate.copy()
    if hasattr(state, "shrinking") and getattr(state, "by_madd", True):  # of lines whose flows end together
        line, s = flows.line[:, 0], state.shrinking
        there = np.flatnonzero((line >= 0) & (sending.left > 0.0) & (sending.end == NEVER))
        rates[there] = sending.left[there] * s.scale[line[there]] / s.need[line[there]]
    if hasattr(state, "serving"):  # of lines whose flows have one rate
        line = flows.line[:, 0]
        there = np.flatnonzero((line >= 0) & (sending.left > 0.0))
        rates[there] += state.serving.groups.in_force[line[there]]
    if hasattr(state, "fair"):
        level = state.fair.level
        there = (fabric.coflows.start[flows.coflow] < NEVER) & (flows.finish == NEVER)
        return np.where(there, np.minimum(level[flows.source], level[flows.sink]), 0.0)
    if hasattr(state, "shortest"):
        rates[:] = 0.0
        running = np.unique(state.shortest.flow[state.shortest.flow >= 0])
        rates[running] = np.minimum(fabric.speed[flows.source], fabric.speed[flows.sink])[running]
    return rates


class Log(NamedTuple):
    """What happened in an emulation."""

    decisions: list[float]  # when the coordinator made a schedule, s
    refills: list[float]  # when it gave away what flows had left, by the last one
    sending: dict[
        str, list[tuple[float, ...]]
    ]  # of each flow from when to when; at which rate, unless a byte a second
    queues: list[
        tuple[float, int, int]
    ]  # when, which coflow, to which queue (-1: it is gone; -2: in none yet)
    counters: dict[str, int]
    # what the scheduler has learned, as in `Learned`, or admitted, as in `Admitted`
    learned: dict[str, list[float]]


def log_of(scheduler: str, workload: CoflowWorkload, **settings: Any) -> Log:
    """Run an example instant by instant and write down all of it; `settings` as in `setting_of`."""
    return log_setting(setting_of(scheduler, workload, **settings))[0]


def log_setting(setting: Setting) -> tuple[Log, Outcome]:
    """Run a setting instant by instant and write down all of it."""
    partition = Partition(setting, TASKS)
    partition.start()
    fabric, state, counts = partition.world.fabric, parts_of_state(partition), partition.world.counts
    names = [f"{c} {i}>{j - fabric.side}" for c, i, j, *_ in zip(*fabric.flows[:3], strict=True)]
    spans: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    looks: dict[int, list[float]] = {N_DECISIONS: [], N_REFILLS: []}
    queues = []
    queue = state.queues.queue if hasattr(state, "queues") else np.zeros(0, np.int64)
    was, rate, since = queue.copy(), np.zeros(len(names)), np.zeros(len(names))
    for t in instants(partition):
        made = [which for which, times in looks.items() if counts[which] > len(times)]
        assert len(made) <= 1, "a decision and a refill at one instant"
        for which in made:
            looks[which].append(int(partition.world.queue.now.time[0]) / NS)
            assert counts[which] == len(looks[which]), "two decisions at one instant"
        queues += [(t / NS, int(c), int(queue[c])) for c in np.flatnonzero(queue != was)]
        was, now = queue.copy(), rates_now(partition) * NS
        for flow in np.flatnonzero(np.abs(now - rate) > 1e-9):
            if rate[flow] > 0.0:
                speed = round(float(rate[flow]), 9)
                spans[names[flow]].append((since[flow] / NS, t / NS, *([] if speed == 1.0 else [speed])))
            since[flow], rate[flow] = t, now[flow]
    assert not rate.any()
    outcome = partition.outcome()
    learned = {} if outcome.series is None else outcome.series._asdict()
    learned = {name: column.tolist() for name, column in learned.items()}
    return Log(looks[N_DECISIONS], looks[N_REFILLS], spans, queues, outcome.counters, learned), outcome


def mixed_workload(num_coflows: int, ports: int, seed: int, mean_gap: float = 0.008) -> CoflowWorkload:
    """Narrow and wide coflows of about a megabyte a flow, some of whose flows are local, for ports of 128 MB/s."""
    rng = np.random.default_rng(seed)
    width = np.where(
        rng.random(num_coflows) < 0.5,
        rng.integers(1, 5, num_coflows),
        rng.integers(8, ports * 3, num_coflows),
    )
    pairs = np.concatenate([rng.choice(ports * ports, k, replace=False) for k in width])
    size = rng.lognormal(13, 1, pairs.size).round() + 1
    arrival = np.cumsum(rng.exponential(mean_gap, num_coflows).round(3))
    return make_coflow_workload("mixed", arrival, width, pairs // ports, pairs % ports, size, ports)


SPEED = 128e6


def with_deadlines(workload: CoflowWorkload, seed: int = 1, most: float = 1.4) -> CoflowWorkload:
    """The coflows with weights of 1 or 2 and deadlines that many cannot meet; every seventh has none."""
    rng = np.random.default_rng(seed)
    alone_s = isolated_s(with_port_speeds(workload, SPEED))
    arrival_s = column(workload.coflows, "arrival_s")
    due = arrival_s + alone_s * rng.uniform(1.0, most, alone_s.size) + 0.0005
    due[6::7] = np.nan
    return with_demands(workload, deadline_s=due, weight=rng.integers(1, 3, alone_s.size))


def fit_for(scheduler: str, workload: CoflowWorkload) -> CoflowWorkload:
    """The coflows, with deadlines for a scheduler that uses them."""
    return with_deadlines(workload) if find_scheduler(scheduler).uses_deadlines else workload


OF_DCOFLOW: tuple[dict[str, Any], ...] = (
    {},
    {"reject": "min-congested", "update_period_s": 0.004},
    {"reject": "moore-hodgson", "decide_at": "ends"},
    {"reject": "min-all", "serve_rejected": True, "examine": "back"},
)
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "aalo": (
        {"first_limit_bytes": 1 << 20, "factor": 3.0, "slot_intervals": 4, "share": 2},
        {"starvation": "strict", "queues": 3, "interval_s": 0.003, "first_limit_bytes": 1 << 19},
    ),
    "aalo-oracle": ({"first_limit_bytes": 1 << 20, "factor": 3.0, "slot_intervals": 4, "share": 2},),
    "aalo-shares": ({"first_limit_bytes": 1 << 20, "factor": 3.0},),
    "philae": (
        {"first_limit_bytes": 1 << 22, "factor": 3.0, "slot_intervals": 4, "share": 2},
        {
            "work_conservation": False,
            "decide": "interval",
            "pilots": "flows",
            "pilot_share": 0.2,
            "first_limit_bytes": 1 << 21,
        },
        {"policy": "A", "work_conservation": False, "first_limit_bytes": 1 << 20, "factor": 3.0},
        {
            "policy": "B",
            "pilots": "number",
            "thin_limit": 0,
            "starvation": "strict",
            "first_limit_bytes": 1 << 20,
        },
        {"policy": "C", "contention_unit_bytes": 1 << 20, "first_limit_bytes": 2 << 20, "factor": 2.0},
        {
            "size_correction": True,
            "count_itself": True,
            "pilot_ports": "random",
            "first_limit_bytes": 1 << 21,
        },
    ),
    "dcoflow": (*OF_DCOFLOW, {"reject": "dynamic-programming", "flow_order": "ports"}),
    "wdcoflow": OF_DCOFLOW[:2],
    "cs-mha": ({}, {"serve_rejected": False, "decide_at": "ends", "flow_order": "ports"}),
    "varys-deadline": tuple({"rejected": what} for what in ("drop", "retry", "serve")),
    "chronos": ({}, {"order": "bottleneck", "interval_s": 0.003}),
    "edf": ({}, {"drop_expired": False}),
    "cds-lp": ({}, {"decide_at": "ends"}),
    "cds-lpa": ({}, {"admit_from": 0.5}),
    "order-ilp": ({}, {"serve_rejected": True, "decide_at": "ends"}),
    "sincronia": ({}, {"reorder": "arrivals", "flow_order": "workload"}),
    "saath": (
        {"first_limit_bytes": 1 << 21, "factor": 3.0, "deadline_factor": 0.5},
        {
            "first_limit_bytes": 1 << 22,
            "queues": 2,
            "interval_s": 0.003,
            "contention": "all",
            "deadline_factor": 1e6,
        },
    ),
}
"""Parameters that reach the branches of a policy; a scheduler that is not here has its defaults."""


def variants_of(scheduler: str) -> tuple[dict[str, Any], ...]:
    """Parameters to try a scheduler of coflows with."""
    if any(parameter.name == "rates" for parameter in find_scheduler(scheduler).parameters):
        return ({"rates": "madd"}, {"rates": "greedy"})
    return VARIANTS.get(scheduler, ({},))


NAMES = scheduler_names("coflows")
ADMITTING = ("dcoflow", "wdcoflow", "cs-mha")
RESERVING = ("varys-deadline", "chronos")


def due(workload: CoflowWorkload, *deadline_s: float | None, weight: Any = None) -> CoflowWorkload:
    return with_demands(workload, deadline_s=deadline_s, weight=weight)


def star(machines: int) -> CoflowWorkload:
    """DCoflow's figure 1, for any number of machines: the first coflow is at all ports and is due first.

    It takes each port for 1 and is due at 1; each other coflow is one flow from a machine to its neighbour, takes its
    two ports for 1.2 and is due at 2.
    """
    wide = (0.0, [(machine, machine, 1.0) for machine in range(machines)])
    narrow = [(0.0, [(machine, (machine + 1) % machines, 1.2)]) for machine in range(machines)]
    return due(coflows(wide, *narrow, ports=machines), 1.0, *[2.0] * machines)


def admitting_setting(
    scheduler: str, seed: int, delay_s: float, costs: bool, which: int, gap: float = 0.003
) -> Setting:
    """A run of coflows of which many cannot be in time, with one of the scheduler's variants."""
    own = variants_of(scheduler)
    return setting_of(
        scheduler,
        with_deadlines(mixed_workload(12, 4, seed, gap), seed),
        speed=SPEED,
        delay_s=delay_s,
        costs=COSTS if costs else None,
        local_is_free=costs,
        **own[which % len(own)],
    )
