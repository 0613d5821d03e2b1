"""Small emulations for tests: run in this process, step by step, or in a process of their own."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from bounded_runs import ALL_TASKS, few_events, finish, started, steps

from actors.hosting.partition import Observe, Outcome, Partition
from actors.hosting.recorded import RECORDED
from actors.hosting.runs import emulate
from actors.hosting.stall import longest_s
from actors.hosting.windows import emulate_windows
from actors.kernel.queue import RANK_SHIFT, SOURCE_SHIFT
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Costs, Dynamics, Estimates, Network, Setting
from clusters.cluster import Cluster, build_cluster
from clusters.failures import CENTRAL, NODE, SCHEDULER, Outages
from clusters.schema import encode_texts
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload, make_workload

NS = 1_000_000_000
CUTOFF_S = 10.0

KINDS = {number: kind.name for number, kind in RECORDED.items()}


class FewestTasks:
    """A central scheduler of a user's own: tasks go to the nodes that have the fewest."""

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)


def jobs(*rows: tuple[float, Sequence[float]]) -> JobWorkload:
    """A workload of (submit_s, durations of the tasks in seconds) rows."""
    submit_s, durations = zip(*rows, strict=True)
    flat = [d for each in durations for d in each]
    return make_workload("by hand", submit_s, [len(each) for each in durations], flat)


def cluster_of(nodes: int | Sequence[int], racks: Sequence[int] | None = None) -> Cluster:
    """A cluster of so many nodes with one slot, or of nodes with these slots."""
    slots = (1,) * nodes if isinstance(nodes, int) else tuple(nodes)
    return _cluster(slots, None if racks is None else tuple(racks))


@cache
def _cluster(slots: tuple[int, ...], racks: tuple[int, ...] | None) -> Cluster:
    return build_cluster("test", slots, rack=racks)


def setting_of(
    scheduler: Any,
    workload: JobWorkload,
    nodes: int | Sequence[int] | Cluster,
    *,
    cutoff_s: float = CUTOFF_S,
    long_partition: float = 1.0,
    network: Network | float = 0.0005,
    estimates: Estimates | None = None,
    costs: Costs | None = None,
    dynamics: Dynamics | None = None,
    machine_speed: bool = False,
    seed: int = 0,
    **parameters: Any,
) -> Setting:
    """A setting; what is not given is plain. `network` may be a constant delay in seconds."""
    found = find_scheduler(scheduler)
    return Setting(
        scheduler=found,
        parameters=resolve_parameters(found, parameters),
        workload=workload,
        cluster=nodes if isinstance(nodes, Cluster) else cluster_of(nodes),
        short_cutoff_s=cutoff_s,
        long_partition=long_partition,
        network=network if isinstance(network, Network) else Network(delay_s=network),
        estimates=estimates or Estimates(),
        costs=costs or Costs(),
        dynamics=dynamics or Dynamics(),
        machine_speed=machine_speed,
        seed=seed,
    )


def run_setting(setting: Setting, observe: Observe = ALL_TASKS) -> Outcome:
    """Run a setting in this process."""
    return emulate(setting, observe, in_process=True, progress=few_events)


def run_windows(
    setting: Setting, observe: Observe, partitions: int, quantum_s: float | None = None
) -> Outcome:
    """Run a setting in several partitions in this process."""
    return emulate_windows(
        setting, observe, partitions=partitions, quantum_s=quantum_s, in_process=True, progress=few_events
    )


def run_partition(setting: Setting, observe: Observe = ALL_TASKS) -> Partition:
    """Run a setting in this process; the partition as it is at the end."""
    return finish(started(setting, observe))


def emulate_small(
    scheduler: Any, workload: JobWorkload, nodes: int | Sequence[int] | Cluster, **settings: Any
) -> Outcome:
    """Run an emulation in this process, all tasks recorded; `settings` as in `setting_of`."""
    return run_setting(setting_of(scheduler, workload, nodes, **settings))


class Message(NamedTuple):
    """A message as it was handled, in seconds."""

    time_s: float
    kind: str
    src: int
    dst: int
    a: int


class Log(NamedTuple):
    """What happened in an emulation that was stepped message by message."""

    tasks: list[tuple[str, int, float, float]]  # "job.task", node, start, finish (s), by start, then node
    messages: list[Message]
    counters: dict[str, int]  # what the mechanisms did

    @property
    def kinds(self) -> dict[str, int]:
        """How many messages of each kind there were."""
        return dict(Counter(m.kind for m in self.messages))


def step_through(scheduler: Any, workload: JobWorkload, nodes: Any, **settings: Any) -> Log:
    """Run an emulation one message at a time, and write down all of it."""
    return step_setting(setting_of(scheduler, workload, nodes, **settings))[0]


def step_setting(setting: Setting) -> tuple[Log, Outcome]:
    """Run a setting one message at a time, and write down all of it."""
    partition = started(setting)
    messages, events = [], 0
    for _ in steps(partition):
        now = partition.world.queue.now[0]
        if now.events > events:
            events = now.events
            messages.append(_message(now))
    outcome = partition.outcome()
    assert outcome.tasks is not None
    first = setting.workload.arrays().first_task
    job = np.repeat(np.arange(first.size - 1), np.diff(first))
    node, start, finish = outcome.tasks["node"], outcome.tasks["start_ns"], outcome.tasks["finish_ns"]
    rows = [
        (f"{job[i]}.{i - first[job[i]]}", int(node[i]), start[i] / NS, finish[i] / NS)
        for i in np.lexsort((node, start))
    ]
    return Log(rows, messages, outcome.counters), outcome


def _message(now: Any) -> Message:
    src = (int(now.key) & ((1 << RANK_SHIFT) - 1)) >> SOURCE_SHIFT
    return Message(int(now.time) / NS, KINDS[int(now.kind)], src, int(now.dst), int(now.a))


def outages(*rows: tuple[str, float, float]) -> Outages:
    """Outages of (target, fail_s, repair_s) rows; targets are "node 3", "scheduler 0" and "central"."""
    kinds = {"node": NODE, "scheduler": SCHEDULER, "central": CENTRAL}
    found = sorted((kinds[t.split()[0]], int(t.split()[1]) if " " in t else 0, a, b) for t, a, b in rows)
    kind, number, fail_s, repair_s = (np.array(column) for column in zip(*found, strict=True))
    return Outages(kind, number, fail_s.astype(float), repair_s.astype(float))


ROUGH = Dynamics(
    outages=outages(("node 0", 5, 12), ("node 0", 12.5, 40), ("scheduler 0", 8, 15), ("central", 6, 20)),
    mtbf_s=30.0,
    mttr_s=10.0,
    detection_s=2.0,
    failover_s=4.0,
    straggler_share=0.2,
    straggler_slowdown=2.0,
    straggler_distribution="pareto",
)
"""Nodes and schedulers fail, all the time, and tasks straggle."""


def with_dynamics(setting: Setting, dynamics: Dynamics = ROUGH) -> Setting:
    """The same emulation where things go wrong."""
    return dataclasses.replace(setting, dynamics=dynamics)


def with_failures(setting: Setting, dynamics: Dynamics = ROUGH) -> Setting:
    """The same where things go wrong, but nodes are up for as long as the longest task takes: each task ends."""
    setting = with_dynamics(setting, dynamics)
    dynamics = setting.dynamics
    if dynamics.mtbf_s is None:
        return setting
    mtbf_s = max(dynamics.mtbf_s, longest_s(setting))
    return with_dynamics(setting, dataclasses.replace(dynamics, mtbf_s=mtbf_s))


VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "random": ({}, {"schedulers": 1}),
    "sparrow": (
        {},
        {"probe_ratio": 1.3},
        {"replacement": True},
        {"sampling": "batch"},
        {"sampling": "per-task", "probe_ratio": 2.5},
    ),
    "hawk": (
        {},
        {"steal_choice": "random", "steal_limit": 2, "late_binding": True},
        {"instant_stealing": True, "replacement": True},
        {"steal_attempts": 0, "fit": "worst"},
    ),
    "eagle": (
        {"least_probes": 3},
        {"sticky": False, "reprobe_rounds": 0},
        {"shortest_first": False, "reprobe_rounds": 3, "late_binding": True},
        {"live_progress": True, "replacement": True, "slack": 0.5},
    ),
    "ideal-eagle": ({}, {"sticky": False, "late_binding": True}),
    "central-fifo": ({}, {"order": "fair"}),
    "central-lwl": ({}, {"late_binding": True}, {"fit": "best"}),
    "dist-lwl": (
        {"heartbeat_s": 3},
        {"late_binding": True, "jitter_s": 0},
        {"shortest_first": False, "schedulers": 2},
        {"global_view": True, "late_binding": True},
    ),
    "yacc-d": (
        {"heartbeat_s": 3, "queue_limit": 1, "rebalance_s": 0},
        {"bound": "wait", "queue_wait_s": 5, "order": "sjf", "choices": 1, "tries": 0, "schedulers": 2},
        {"order": "fifo", "queue_limit": 0, "choices": 3},
        {"order": "lrtf", "rebalance": False, "slack": 0.5},
    ),
    "phoenix": (
        {"heartbeat_s": 3, "crv_threshold": 0.1, "candidates": 3, "order": "weighted"},
        {"heartbeat_s": 3, "crv_threshold": 0, "least_probes": 2, "sticky": False, "window": 5},
    ),
    "phoenix-released": ({"heartbeat_s": 3, "load_gate": 0.3, "least_probes": 3},),
    "central-fcfs-gang": ({}, {"gangs": "all"}),
    "easy": ({}, {"gangs": "all"}),
    "conservative": ({}, {"gangs": "all"}),
    "own": ({},),
}
"""Parameters that between them reach every branch of a policy; "own" is `FewestTasks`."""


TWINS = {"sparrow-c": "sparrow", "hawk-c": "hawk", "eagle-c": "eagle", "central-c": "central-lwl"}
"""Constraint-aware schedulers, and which one each is where no job has constraints; they have its variants."""


def named(scheduler: str) -> Any:
    """The scheduler of a name in `VARIANTS`."""
    return FewestTasks if scheduler == "own" else scheduler


def mixed_workload(num_jobs: int, seed: int) -> JobWorkload:
    """Short and long jobs in whole seconds, so that many events fall on one instant."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 7, num_jobs)
    means = np.repeat(np.where(rng.random(num_jobs) < 0.8, 3, 30), counts)
    durations = rng.integers(0, 2 * means)
    return make_workload("mixed", np.cumsum(rng.integers(0, 4, num_jobs)), counts, durations)


def constrained(workload: JobWorkload, *sets: str) -> JobWorkload:
    """The workload whose jobs have these sets in turn; an empty text is none."""
    found = [parse_constraint_set(text) if text else () for text in sets]
    return with_constraints(workload, found, np.arange(workload.num_jobs) % len(found))


SETS = (
    "",
    "cores >= 4",
    "clock >= 2 GHz and isa = arm",
    "cores >= 8 soft 1.5 and clock >= 3 GHz soft 2",
    "spread-nodes soft 3",
    "spread-racks soft 1.25",
    "same-rack",
    "same-rack and cores >= 4",
)


def mixed_cluster() -> Cluster:
    """Eight nodes in three racks, of which each constraint in `SETS` leaves a few."""
    return build_cluster(
        "mixed",
        [1, 2, 1, 3, 1, 1, 1, 2],
        rack=[0, 0, 0, 1, 1, 1, 2, 2],
        cpu_cores=[2, 4, 8, 4, 2, 4, 8, 2],
        clock_hz=[2e9, 1e9, 2e9, 2e9, 1e9, 2e9, 3e9, 3e9],
        isa=encode_texts(["x86", "x86", "arm", "arm", "arm", "x86", "x86", "arm"]),
        speed=[1.0, 0.5, 1.0, 1.5, 1.0, 2.0, 1.0, 1.0],
    )


NETWORKS = {
    "none": Network(0.0),
    "constant": Network(0.0005),
    "varies": Network(0.01, spread_s=0.02, cross_rack_delay_s=0.05),
}


def cases(num_jobs: int = 25) -> Iterator[tuple[str, Setting]]:
    """Yield a name and a setting for each scheduler, variant and kind of network."""
    workload = mixed_workload(num_jobs, seed=3)
    cluster = build_cluster("test", [1, 2, 1, 3, 1, 1], rack=[0, 0, 0, 1, 1, 1])
    for scheduler, variants in VARIANTS.items():
        for i, parameters in enumerate(variants):
            for name, network in NETWORKS.items():
                setting = setting_of(
                    named(scheduler),
                    workload,
                    cluster,
                    long_partition=0.7,
                    network=network,
                    seed=11,
                    estimates=Estimates("random", 0.5) if i == 1 else None,
                    **parameters,
                )
                yield f"{scheduler} {parameters} {name}", setting
                if name == "constant":
                    yield f"{scheduler} {parameters} rough", with_dynamics(setting)
    for scheduler, twin in [*TWINS.items(), *((name, name) for name in ("phoenix", "phoenix-released"))]:
        setting = setting_of(
            scheduler,
            constrained(workload, *SETS),
            mixed_cluster(),
            long_partition=0.7,
            machine_speed=twin == "hawk",
            seed=11,
            **VARIANTS[twin][-1],
        )
        yield f"{scheduler} constrained", setting
        yield f"{scheduler} constrained rough", with_dynamics(setting)


def digest(outcome: Outcome) -> str:
    """A short hash of everything an emulation gave but how long it took."""
    assert outcome.tasks is not None
    sha = hashlib.sha256(json.dumps([outcome.counters, outcome.events]).encode())
    columns = (outcome.start_ns, outcome.finish_ns, *outcome.tasks.values(), *outcome.timeline.values())
    evicted = [] if outcome.evicted is None else [outcome.evicted]
    attempts = [outcome.attempts[name] for name in outcome.attempts.dtype.names or ()]
    for column in (*columns, *evicted, *attempts, *(outcome.series or ())):
        sha.update(np.ascontiguousarray(column).tobytes())
    return sha.hexdigest()[:16]


OBSERVED = dataclasses.replace(ALL_TASKS, timeline_period_s=5.0)


# Jobs of a case. With 50, a straggler that nodes outlive a thousand times takes all of the time.
SMALL = 10


DELAY_S = 1.0  # a second, so that every hop shows in an example


def log_of(scheduler: Any, workload: Any, nodes: Any, **settings: Any) -> Log:
    """The log of an example worked out by hand, in which a message takes DELAY_S."""
    return step_through(scheduler, workload, nodes, network=DELAY_S, **settings)
