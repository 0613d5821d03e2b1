"""For each key of the configuration: values that must change what comes out, what must change, and where they do.

A case is a base, given with ``--set``, and values that are tried one against the other: the key's default, and all
choices of one that has choices. Keys that say where a run is hosted, and must not change it, are in `HOSTED`.
"""

from __future__ import annotations

import tomllib
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

HEADS = "heads"
"""What may change: jobs or coflows; else the timeline, tasks or flows, the summary but for the engine, or events."""


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


_FILE = tomllib.loads((Path(__file__).parent / "key_cases.toml").read_text(encoding="utf-8"))
BASES: dict[str, dict[str, str]] = _FILE["bases"]
JOBS, AWARE, COFLOWS, DAGS = (BASES[name] for name in ("JOBS", "AWARE", "COFLOWS", "DAGS"))
WINDOWS = {"clock": "windows", "partitions": "2"}


def _case(
    base: str, values: list[str], moves: str = HEADS, without: str = "", more: Mapping[str, str] = ALONE
) -> Case:
    """Return a case as the file states it."""
    known = {"": None, "ALONE": ALONE, **BASES}
    return Case(tuple(values), BASES[base] | dict(more), moves, known[without])


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

CASES = {name: _case(**stated) for name, stated in _FILE["of_jobs_and_dags"].items()}
"""By key. One that is for both families has a case of jobs here and one of coflows in `OF_COFLOWS`."""

OF_COFLOWS = {name: _case(**stated) for name, stated in _FILE["of_coflows"].items()}
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
