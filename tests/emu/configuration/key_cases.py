"""For each key of the configuration: values that must change what comes out, what must change, and where they do.

A case is a base, given with ``--set``, and values that are tried one against the other: the key's default, and all
choices of one that has choices. Keys that say where a run is hosted, and must not change it, are in `HOSTED`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from actors.schedulers.registry import find_scheduler
from emu.configuration.config import layer_from_arguments, layer_from_set, resolve
from emu.configuration.plan import Plan, prepare
from emu.configuration.workload_cache import WorkloadCache
from tests.actors.dag_settings import mixed_dags, with_bytes, with_input
from tests.workloads.family_examples import coflows_of
from workloads.constraints import parse_constraint_set, with_constraints
from workloads.jobs import JobWorkload, make_workload

HEADS, TIMELINE, TASKS, SUMMARY, EVENTS = "heads", "timeline", "tasks", "summary", "events"
"""What may change: jobs or coflows; the timeline; tasks or flows; the summary but for the engine; events."""


ALONE: Mapping[str, str] = {}
"""Values are compared with each other alone: without the key there is an error, or one of them holds."""


@dataclass(frozen=True)
class Case:
    """What is tried of a key.

    Attributes
    ----------
    values : tuple of str
        To be compared with each other, and with what holds if the key is not given (or with `base`, if it gives it).
    base : mapping
        Other keys and parameters, as of ``--set``; ``FILE:name`` is the path of one of `FILES`.
    moves : str
        What must change.
    without : mapping, optional
        The base of the run without the key, where it is another; `ALONE`: there is none.
    """

    values: tuple[str, ...]
    base: Mapping[str, str]
    moves: str = HEADS
    without: Mapping[str, str] | None = None


JOBS = {"scheduler": "hawk", "nodes": "10", "seed": "1"}
AWARE = JOBS | {"scheduler": "hawk-c", "cluster": "FILE:machines.toml"}
BANDED = JOBS | {"workload_steps": "priorities"}
EVICTING = BANDED | {"preemption.mode": "restart"}
DRAWN = AWARE | {"constraints.model": "cores >= 8: 60%"}
ASKING = AWARE | {
    "workload_steps": "demands --model 'cpu_cores=3 memory_gib=1: 60%, cpu_cores=1 memory_gib=3: 40%'"
}
TWO = "cores >= 8: 50%, cores >= 4: 40%"
GENERATED = JOBS | {"workload": "poisson", "workload_options.jobs": "20", "short_cutoff": "10 s"}
COFLOWS = {"scheduler": "philae", "fabric.port_speed": "100 Mbps", "seed": "1"}
DAGS = {"scheduler": "carbyne", "nodes": "1", "seed": "1"}
READING = DAGS | {"nodes": "10", "cluster": "FILE:machines.toml", "network.scheduler": "fair"}
FIXED = {"cost.model": "fixed"}
WINDOWS = {"clock": "windows", "partitions": "2"}
STRAGGLING = {"dynamics.straggler_share": "30%"}

FILES = {
    "machines.toml": """rack_size = 3
[[machines]]
count = 5
cores = 4
speed = 1.0
[[machines]]
count = 5
cores = 8
speed = 0.5
""",
    "types.toml": """[[machines]]
type = "old"
count = 5
[[machines]]
type = "new"
count = 5
speed = 2.0
""",
    "failures.csv": "target,fail_s,repair_s\nnode 2,5,60\nnode 3,20,90\ncentral,10,30\n",
    "updates.csv": "time_s,coflow_id,update,side,port,to\n0.05,1,restart,receiver,1,\n",
}
"""Files that cases name."""

CASES: dict[str, Case] = {
    "scheduler": Case(("eagle",), JOBS),
    "workload": Case(("poisson",), GENERATED, without=JOBS),
    "nodes": Case(("7",), JOBS),
    "cluster": Case(("FILE:machines.toml",), JOBS | {"machine_speed": "true"}),
    "machines": Case(
        ("old=2, new=8", "old=6, new=4"), JOBS | {"cluster": "FILE:types.toml", "machine_speed": "true"}
    ),
    "without": Case(("20%", "40%"), JOBS),
    "slots": Case(("2",), JOBS),
    "machine_speed": Case(("true",), AWARE),
    "resources.use": Case(("slots", "stated", "cpu_cores"), ASKING, without=ALONE),
    "resources.passing": Case(("1", "20"), ASKING | {"nodes": "3"}),
    "priorities": Case(("false",), BANDED),
    "preemption.mode": Case(("restart", "checkpoint"), BANDED, without=BANDED),
    "preemption.cost": Case(("2 s",), EVICTING),
    "preemption.most": Case(("1",), EVICTING),
    "preemption.below": Case(("1",), EVICTING),
    "preemption.order": Case(("youngest", "oldest"), EVICTING | {"nodes": "4", "slots": "3"}, without=ALONE),
    "cluster_seed": Case(("7",), DRAWN | {"cluster": "phoenix", "constraints.model": "cores >= 16: 60%"}),
    "load": Case(("50%",), JOBS),
    "load_by": Case(("arrivals", "nodes"), JOBS | {"load": "50%"}, without=ALONE),
    "constraints.model": Case(("cores >= 8: 60%", "none"), AWARE, without=ALONE),
    "constraints.jobs": Case(("short", "long", "all"), DRAWN, without=ALONE),
    "constraints.combined": Case(("true", "false"), DRAWN | {"constraints.model": TWO}, without=ALONE),
    "constraints.soft": Case(("cores",), DRAWN | {"cluster": "homogeneous", "infeasible": "drop"}),
    "constraints.price": Case(("3",), DRAWN | {"cluster": "homogeneous", "constraints.soft": "cores"}),
    "constraints.seed": Case(("5",), DRAWN),
    "workload_steps": Case(("sample count=10", "truncate --cap '2 s'"), JOBS),
    "resample.block": Case(("5 s", "20 s"), JOBS),
    "seed": Case(("2",), JOBS),
    "workload_seed": Case(("5",), GENERATED),
    "scheduler_seed": Case(("2",), JOBS),
    "short_cutoff": Case(("2 s", "50%"), JOBS),
    "long_partition": Case(("40%",), JOBS),
    "warmup": Case(("20 s",), JOBS, SUMMARY),
    "slowdown_threshold": Case(("2 s", "60 s"), JOBS, SUMMARY),
    "quantum": Case(("20 ms",), JOBS | WINDOWS),
    "network.delay": Case(("20 ms",), JOBS),
    "network.spread": Case(("20 ms",), JOBS),
    "network.cross_rack_delay": Case(("20 ms",), JOBS),
    "fabric.port_speed": Case(("1 Gbps",), COFLOWS),
    "fabric.local": Case(("network", "free"), COFLOWS),
    "fabric.updates": Case(("FILE:updates.csv",), COFLOWS),
    "estimates.error": Case(("constant", "random"), JOBS | {"estimates.size": "0.9"}, without=JOBS),
    "estimates.size": Case(("0", "0.5", "0.9"), JOBS | {"estimates.error": "random"}, without=ALONE),
    "estimates.demands": Case(("true",), DAGS | {"estimates.error": "random", "estimates.size": "0.8"}),
    "network.scheduler": Case(("none", "fair"), DAGS | {"nodes": "3"}),
    "network.skew": Case(("1.2",), DAGS | {"nodes": "3", "network.scheduler": "fair"}),
    "network.input": Case(("share", "replicas"), READING),
    "network.local_share": Case(("0", "50%"), READING | {"network.input": "share"}),
    "network.replicas": Case(("1", "2"), READING | {"network.input": "replicas"}),
    "network.locality_wait": Case(("1 s", "20 s"), READING | {"network.input": "replicas", "nodes": "5"}),
    "network.replica_placement": Case(
        ("racks",), READING | {"network.input": "replicas", "network.replicas": "2"}
    ),
    "network.registration": Case(
        ("pipelined",), DAGS | {"scheduler": "drf", "nodes": "3", "network.scheduler": "fair"}
    ),
    "network.shuffle": Case(
        ("push",), DAGS | {"scheduler": "drf", "nodes": "3", "network.scheduler": "fair"}
    ),
    "network.waves": Case(("apart",), DAGS | {"nodes": "3", "network.scheduler": "aalo"}),
    "overuse": Case(("slows",), DAGS | {"scheduler": "drf", "sees": "cores", "nodes": "1"}),
    "fairness.window": Case(("10 s",), DAGS, "summary"),
    "cost.per_job": Case(("100 ms",), JOBS | FIXED),
    "cost.per_task": Case(("100 ms",), JOBS | FIXED),
    "cost.per_update": Case(("1 ms",), COFLOWS | FIXED),
    "cost.per_flow": Case(("1 ms",), COFLOWS | FIXED),
    "cost.per_coflow": Case(("1 ms",), COFLOWS | FIXED),
    "cost.per_schedule": Case(("1 ms",), COFLOWS | FIXED),
    "cost.per_message": Case(("100 ms",), JOBS | FIXED),
    "dynamics.failures": Case(("FILE:failures.csv",), JOBS),
    "dynamics.mtbf": Case(("60 s", "200 s"), JOBS | {"dynamics.mttr": "10 s"}, without=ALONE),
    "dynamics.mttr": Case(("5 s", "20 s"), JOBS | {"dynamics.mtbf": "60 s"}, without=ALONE),
    "dynamics.detection": Case(("10 s",), JOBS | {"dynamics.failures": "FILE:failures.csv"}),
    "dynamics.failover": Case(("5 s",), JOBS | {"dynamics.failures": "FILE:failures.csv"}),
    "dynamics.straggler_share": Case(("30%",), JOBS),
    "dynamics.straggler_slowdown": Case(("5",), JOBS | STRAGGLING),
    "dynamics.straggler_distribution": Case(("constant", "pareto", "lognormal"), JOBS | STRAGGLING),
    "dynamics.straggler_shape": Case(
        ("4",), JOBS | STRAGGLING | {"dynamics.straggler_distribution": "pareto"}
    ),
    "dynamics.straggler_sigma": Case(
        ("2",), JOBS | STRAGGLING | {"dynamics.straggler_distribution": "lognormal"}
    ),
    "timeline.period": Case(("3 s", "7 s"), JOBS, TIMELINE),
    "output.tasks": Case(("true",), JOBS, TASKS),
    "output.events": Case(("all", "job=3", "slowest=2", "class=long; random=1", "time=5s..9s"), JOBS, EVENTS),
}
"""By key. One that is for both families has a case of jobs here and one of coflows in `OF_COFLOWS`."""

FEW = {"workload_options.coflows": "6", "workload_options.ports": "4"}
RANDOM_PILOTS = COFLOWS | {"pilot_ports": "random"}
OF_COFLOWS: dict[str, Case] = {
    "scheduler": Case(("aalo",), COFLOWS),
    "workload": Case(("synthetic-coflows",), COFLOWS | FEW, without=COFLOWS),
    "load": Case(("50%",), COFLOWS),
    "workload_steps": Case(("skew", "skew --cv-median 0.9; retime rate_per_s=5"), COFLOWS),
    "resample.block": Case(("20 ms", "50 ms"), COFLOWS),
    "seed": Case(("2",), RANDOM_PILOTS),
    "workload_seed": Case(("5",), COFLOWS | FEW | {"workload": "synthetic-coflows"}),
    "scheduler_seed": Case(("2",), RANDOM_PILOTS),
    "warmup": Case(("20 ms",), COFLOWS, SUMMARY),
    "quantum": Case(("20 ms",), COFLOWS | WINDOWS | {"network.delay": "1 ms"}),
    "network.delay": Case(("5 ms",), COFLOWS),
    "cost.per_message": Case(("1 ms",), COFLOWS | FIXED),
    "timeline.period": Case(("10 ms", "30 ms"), COFLOWS, TIMELINE),
    "output.tasks": Case(("true",), COFLOWS, TASKS),
    "output.events": Case(("all", "slowest=2", "all; rates"), COFLOWS, EVENTS),
}
"""Keys that are for both families, of coflows."""

HOSTED: dict[str, str] = {
    "partitions": "how many partitions there are must not change a bit",
    "windows.transport": "how partitions exchange messages",
    "in_process": "whether Ray hosts the run",
    "address": "which Ray cluster hosts it",
    "checkpoint.period": "when the run is saved",
    "checkpoint.keep": "how often it is saved",
}
"""Keys that say where a run is hosted and must not change its result, and what they say."""

APART = {
    **dict.fromkeys(
        [f"tolerance.{name}{of}" for name in ("absolute", "relative") for of in ("", " of coflows")],
        "of comparisons: `test_tolerances_move_what_is_equal`",
    ),
    "seeds": "several runs: `test_seeds_are_runs`",
    "infeasible": "one choice is an error: `test_infeasible_jobs_are_refused_or_dropped`",
    "clock": "`windows` must not change a bit: `test_keys_that_say_where_a_run_is_hosted_change_nothing`; `live` goes"
    " by the wall clock",
    **dict.fromkeys(
        ("dilation", "live.tick", "live.lateness_bound"), "of `live`: `test_keys_of_the_clock_live_reach_it`"
    ),
    **dict.fromkeys(
        ("cost.model", "cost.file"), "`measured` is what the machine takes: `test_models_of_cost`"
    ),
    "nodes of coflows": "a switch with more ports than the workload has: `test_ports_without_flows`",
}
"""Keys with a test of their own, and why."""


def cases() -> dict[str, Case]:
    """Return all cases: key to case, ``key of coflows`` where there is one of jobs too."""
    return CASES | {f"{name} of coflows": case for name, case in OF_COFLOWS.items()}


def small_jobs() -> JobWorkload:
    """Short and long jobs over a minute, as much as ten nodes can do."""
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 6, 20)
    means = np.where(rng.random(20) < 0.75, 3.0, 25.0)
    durations = np.repeat(means, counts) * rng.uniform(0.5, 1.5, counts.sum())
    return make_workload(
        "small",
        np.cumsum(rng.exponential(3.0, 20)),
        counts,
        durations,
        short_cutoff_s=10.0,
        long_partition=0.75,
    )


def with_a_job_that_no_node_can_run(workload: JobWorkload) -> JobWorkload:
    """The same, whose third job asks for more cores than there are."""
    which = np.where(np.arange(workload.num_jobs) == 2, 0, -1)
    return with_constraints(workload, [parse_constraint_set("cores >= 999")], which)


def small_coflows() -> Any:
    """Narrow and wide coflows over four ports, of a few megabytes each, some flows from a port to itself."""
    rng = np.random.default_rng(7)
    rows = []
    for k in range(10):
        pairs = rng.choice(16, rng.integers(1, 13), replace=False)
        rows.append(
            (0.01 * k, None, {(int(p) // 4, int(p) % 4): float(rng.integers(1, 9)) * 1e5 for p in pairs})
        )
    return coflows_of(rows, ports=4)


def planner(folder: Path) -> Callable[..., Plan]:
    """Return what makes a plan of keys as of ``--set``; the files of cases are written to `folder`."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    cache = WorkloadCache()
    own = {
        "jobs": small_jobs(),
        "coflows": small_coflows(),
        "dags": with_input(with_bytes(mixed_dags(), 1), 1),
    }

    def plan(sets: Mapping[str, str], workload: Any = None) -> Plan:
        texts = [f"{name}={value.replace('FILE:', f'{folder}/')}" for name, value in sets.items()]
        if workload is None:
            workload = own[find_scheduler(sets["scheduler"].partition(",")[0]).family]
        layers = [layer_from_arguments({"workload": workload}), layer_from_set(texts)]
        return prepare(resolve(layers), cache)

    return plan
