"""What machines have, and what the resource manager takes tasks to need: an estimate, which may differ from the use.

A manager may see only some of the resources, as YARN's sees cores and memory (`SEES`). It places, ranks and plans as if
there were no others.
"""

import numpy as np

from actors.conditions import error_factor
from actors.resources import amounts
from actors.scheduler import Parameter
from actors.setting import Estimates, Setting
from clusters.capacity import capacities, demands
from workloads.errors import InputError
from workloads.hints import did_you_mean

ALL, SHORT = "all", {"cores": "cpu_cores"}
SEES = Parameter(
    "sees",
    ALL,
    "text",
    "resources that it sees, as in cores+memory; others have no part in what it does, and may be over-used",
)


def needs_and_capacity(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return what a task of each stage is taken to need, [S, R], and what nodes have, [N, R], in billionths.

    Of the R resources that the manager sees.

    Raises:
        InputError: as of `seen_resources`; or a machine has nothing of a resource that tasks need and it takes them not
            to need.
    """
    workload = setting.workload
    true, capacity = amounts(demands(workload)), amounts(capacities(setting.cluster, workload.resources))
    taken = estimated_demand(true, capacity, setting.estimates, setting.seed)
    seen = seen_resources(setting)
    if len(seen) < true.shape[1] or setting.slows:  # else demands that are estimated to be 0 slow no task
        is_seen = np.isin(np.arange(true.shape[1]), seen)
        _check_machines(setting, true, np.where(is_seen, taken, 0), capacity)
    if len(seen) == true.shape[1]:
        return taken, capacity
    return np.ascontiguousarray(taken[:, seen]), np.ascontiguousarray(capacity[:, seen])


def seen_resources(setting: Setting) -> list[int]:
    """Return the places of the resources that the manager sees, among those of the workload.

    Raises:
        InputError: it is to see one that the workload does not have.
    """
    names, asked = setting.workload.resources, str(setting.parameters.get(SEES.name, ALL)).strip()
    if asked == ALL:
        return list(range(max(len(names), 1)))
    wanted = {SHORT.get(name.strip(), name.strip()) for name in asked.split("+")}
    for name in sorted(wanted - {*names}):
        what = f"parameter {SEES.name} of {setting.scheduler.name}"
        if not names:
            raise InputError(f"{what}: no task of {setting.workload.name} states what it needs; want {ALL}")
        wrong = f"tasks of {setting.workload.name} need no {name!r}" if name else f"{asked!r} lacks a name"
        raise InputError(
            f"{what}: {wrong}{did_you_mean(name, (*SHORT, *names, ALL))}; several as cores+memory"
        )
    return [place for place, name in enumerate(names) if name in wanted]


def _check_machines(setting: Setting, true: np.ndarray, taken: np.ndarray, capacity: np.ndarray) -> None:
    """Refuse machines with nothing of a resource that tasks need, and that the manager does not take them to need."""
    hidden = (true > 0) & (taken == 0)
    found = np.argwhere((capacity == 0) & hidden.any(axis=0))
    if found.size:
        node, r = found[0].tolist()
        stage, names = int(np.argmax(hidden[:, r])), setting.workload.resources or ("slots",)
        first = setting.workload.arrays().first_stage
        job = int(np.searchsorted(first, stage, side="right")) - 1
        raise InputError(
            f"{setting.scheduler.name} takes tasks of job {job}, stage {stage - first[job]}, to need no {names[r]},"
            f" which they do, and machine {node} has none: they could not run there; want a scheduler that sees it"
        )


def estimated_demand(demand: np.ndarray, capacity: np.ndarray, estimates: Estimates, seed: int) -> np.ndarray:
    """Return what a task of each stage is taken to need, [S, R] whole billionths.

    The error is that of durations, drawn again for each stage and resource. A task is taken to need no more than some
    machine has that it fits on: else it would never be launched.

    Args:
        demand: [S, R] what tasks need.
        capacity: [N, R] what machines have.
    """
    if not estimates.demands or estimates.error == "none":
        return demand
    factor = error_factor(estimates, [seed, 0xDE3A], demand.shape)
    found = np.minimum(np.rint(demand * factor), float(capacity.max())).astype(np.int64)
    limit = np.full(demand.shape, -1, np.int64)
    for machine in np.unique(capacity, axis=0):
        first = (limit[:, 0] < 0) & (demand <= machine).all(axis=1)
        limit[first] = machine
    return np.where(limit >= 0, np.minimum(found, limit), found)
