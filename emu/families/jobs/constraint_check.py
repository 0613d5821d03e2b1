"""Checks that a run satisfied the constraints of its jobs, from its table of tasks and the text of the constraints.

Schedulers do not use this code. The level at which a job ran, that is, which of its soft constraints were dropped, is
found only from the nodes and the durations of its tasks.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clusters.cluster import Cluster
from clusters.schema import find_attribute
from emu.explaining.explained_run import plan_to_run_again
from emu.families.result_checks import SLACK_S
from emu.results.result import Result
from workloads.constraints import PLACEMENT, Constraint, ConstraintSet, constraint_sets, set_of_job, set_text
from workloads.errors import InputError
from workloads.jobs import JobWorkload

if TYPE_CHECKING:
    import pandas as pd

LONGEST_S = 2**62 / 1e9
"""No task takes longer, whatever its job drops."""
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Level(NamedTuple):
    """The rest of a set of constraints when the cheapest soft ones are dropped.

    Attributes
    ----------
    kept, dropped : tuple of Constraint
    factor : float
        On the durations of tasks: the prices of what is dropped, multiplied.
    """

    kept: ConstraintSet
    dropped: ConstraintSet
    factor: float


class Ran(NamedTuple):
    """The tasks of a job that ran, as arrays of one length."""

    node: npt.NDArray[np.int64]
    lasted_s: npt.NDArray[np.float64]
    expected_s: npt.NDArray[np.float64]


def check_constraints(
    result: Result, workload: JobWorkload | None = None, cluster: Cluster | None = None, case: str = "the run"
) -> pd.DataFrame:
    """Check that all tasks of a result ran where their jobs' constraints let them.

    There must be a level of each job at which its nodes satisfy its constraints, its placement constraints hold, and
    its tasks took as long as the prices of the dropped soft constraints make them. Levels drop the cheapest soft
    constraint first, of equal ones the first. The counter ``jobs_relaxed`` is the number of jobs that dropped any.

    Parameters
    ----------
    result : Result
        With tasks (``output_tasks=True``).
    workload, cluster : optional
        What was run; by default both are loaded again, by the result's configuration.
    case : str
        The name of the result in errors.

    Returns
    -------
    pandas.DataFrame
        A row for each job that has constraints: ``job_id``, ``constraints`` as text, and ``least_dropped`` and
        ``most_dropped``, the numbers of soft constraints that the job may have dropped: they differ where a constraint
        was dropped but satisfied, without a price or in tasks that take no time.

    Raises
    ------
    AssertionError
        A job whose constraints do not hold.
    InputError
        The result has no tasks, or its inputs cannot be loaded.

    Notes
    -----
    Results do not have the durations of stragglers: where tasks straggle, durations are not checked.
    """
    if result.tasks is None:
        raise InputError("the result has no tasks; run with output_tasks=True")
    if workload is None or cluster is None:
        plan = plan_to_run_again(result, {})
        if not isinstance(plan.workload, JobWorkload):
            raise InputError(f"{result.summary['scheduler']} schedules coflows, which have no constraints")
        workload, cluster = workload or plan.workload, cluster or plan.cluster
    config = result.manifest["config"]
    return check_tasks(
        result.tasks.to_pandas(),
        workload,
        cluster,
        relaxed=result.counters.get("jobs_relaxed", 0),
        machine_speed=config.get("machine_speed", False),
        straggling=config.get("dynamics", {}).get("straggler_share", 0) > 0,
        case=case,
    )


def check_tasks(
    tasks: pd.DataFrame,
    workload: JobWorkload,
    cluster: Cluster,
    *,
    relaxed: int,
    machine_speed: bool = False,
    straggling: bool = False,
    case: str = "the run",
) -> pd.DataFrame:
    """Check a table of tasks as `check_constraints` does; `relaxed` is the counter ``jobs_relaxed``."""
    import pandas as pd

    racks = np.array(cluster.table["rack"].to_pylist())
    speed = np.array(cluster.table["speed"].to_pylist()) if machine_speed else np.ones(cluster.num_nodes)
    sets = constraint_sets(workload)
    levels = [levels_of(constraints) for constraints in sets]
    holds = {one: satisfying(cluster, one) for of_set in sets for one in of_set if one.attribute != PLACEMENT}
    job_ids = workload.jobs["job_id"].to_pylist()
    rows_of = tasks.groupby("job_id", sort=False).indices
    columns = {name: tasks[name].to_numpy(float) for name in ("node", "start_s", "finish_s", "duration_s")}
    found = []
    for job, of_set in enumerate(set_of_job(workload).tolist()):
        if of_set < 0:
            continue
        rows = rows_of[job_ids[job]]
        rows = rows[~np.isnan(columns["finish_s"][rows])]
        node = columns["node"][rows].astype(np.int64)
        ran = Ran(
            node,
            columns["finish_s"][rows] - columns["start_s"][rows],
            columns["duration_s"][rows] / speed[node],
        )
        wrong = [_what_is_wrong(one, ran, holds, racks, straggling) for one in levels[of_set]]
        fits = [i for i, what in enumerate(wrong) if not what]
        if not fits:
            why = "; ".join(
                f"without {set_text(one.dropped)}: {what}" if one.dropped else what
                for one, what in zip(levels[of_set], wrong, strict=True)
            )
            raise AssertionError(f"{case}: job {job_ids[job]} ({set_text(sets[of_set])}): {why}")
        found.append((job_ids[job], set_text(sets[of_set]), fits[0], fits[-1]))
    table = pd.DataFrame(found, columns=["job_id", "constraints", "least_dropped", "most_dropped"])
    least, most = int((table.least_dropped > 0).sum()), int((table.most_dropped > 0).sum())
    if not least <= relaxed <= most:
        seen = f"{least}" if least == most else f"{least} to {most}"
        raise AssertionError(
            f"{case}: jobs_relaxed is {relaxed}, and by nodes and durations {seen} jobs dropped a soft constraint"
        )
    return table


def levels_of(constraints: Sequence[Constraint]) -> list[Level]:
    """Return the levels of a set, from all of it to its hard constraints: the cheapest soft one is dropped first."""
    kept, levels = list(constraints), [Level(tuple(constraints), (), 1.0)]
    while soft := [one for one in kept if one.price is not None]:
        cheapest = min(soft, key=lambda one: one.price or 0.0)
        kept.remove(cheapest)
        _, dropped, factor = levels[-1]
        levels.append(Level(tuple(kept), (*dropped, cheapest), factor * (cheapest.price or 1.0)))
    return levels


def satisfying(cluster: Cluster, constraint: Constraint) -> npt.NDArray[np.bool_]:
    """Return which nodes satisfy a constraint on an attribute, by the cluster's table: shape (N,)."""
    attribute = find_attribute(constraint.attribute)
    wanted, compare = attribute.parse(constraint.value), _ORDER[constraint.operator]
    lacks = attribute.column not in cluster.table.column_names
    values = [""] * cluster.num_nodes if lacks else cluster.table[attribute.column].to_pylist()
    if attribute.kind == "tags":
        return np.array([(wanted in str(value).split()) == (constraint.operator == "=") for value in values])
    if attribute.kind == "own" and constraint.operator not in ("=", "!="):
        return np.array([compare(_size(str(value)), float(wanted)) for value in values])
    return np.array([compare(value, wanted) for value in values])


def _size(text: str) -> float:
    """Return a user's attribute as a number: 0 where a node lacks it, NaN for another text."""
    try:
        size = float(text or 0)
    except ValueError:
        return math.nan
    return size if math.isfinite(size) else math.nan


def _what_is_wrong(
    level: Level,
    ran: Ran,
    holds: dict[Constraint, npt.NDArray[np.bool_]],
    racks: npt.NDArray[np.int64],
    straggling: bool,
) -> str:
    """Return why tasks cannot have run at a level; empty if they can have."""
    for one in level.kept:
        if one.attribute != PLACEMENT and not holds[one][ran.node].all():
            return f"a task ran on node {ran.node[~holds[one][ran.node]][0]}, which does not have {one}"
    placements = {one.value for one in level.kept if one.attribute == PLACEMENT}
    in_racks = len(set(racks[ran.node].tolist()))
    if "same-rack" in placements and in_racks > 1:
        return f"tasks ran in {in_racks} racks"
    if "spread-racks" in placements and in_racks < len(ran.node):
        return f"{len(ran.node)} tasks ran in {in_racks} racks"
    if "spread-nodes" in placements and (on := len(set(ran.node.tolist()))) < len(ran.node):
        return f"{len(ran.node)} tasks ran on {on} nodes"
    expected_s = np.minimum(ran.expected_s * level.factor, LONGEST_S)
    off = np.abs(ran.lasted_s - expected_s) > SLACK_S + 1e-9 * expected_s
    if not straggling and off.any():
        return f"a task took {ran.lasted_s[off][0]:.9g} s, and not {expected_s[off][0]:.9g} s"
    return ""
