"""Checks that a run kept the constraints of its jobs: its table of tasks, compared with the text of the constraints.

Nothing here is used by schedulers. The level at which a job ran, that is, which of its soft constraints it did
without, is found from the nodes and the durations of its tasks alone.
"""

from __future__ import annotations

import math
import operator
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clusters.cluster import Cluster
from clusters.schema import find_attribute
from emu.configuration.plan import KEPT_WORKLOAD, configure, prepare
from emu.directories.run_directory import CONFIG
from emu.results.result import Result
from workloads.catalogue import save_workload
from workloads.constraints import PLACEMENT, Constraint, ConstraintSet, constraint_sets, set_of_job, set_text
from workloads.errors import InputError
from workloads.jobs import JobWorkload

if TYPE_CHECKING:
    import pandas as pd

SLACK_S = 1e-6
"""Times in tables are rounded: two equal ones may differ by less than this."""
LONGEST_S = 2**62 / 1e9
"""No task takes longer, whatever it does without."""
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
    result: Result,
    workload: JobWorkload | None = None,
    cluster: Cluster | None = None,
    case: str = "the run",
) -> pd.DataFrame:
    """Check that all tasks of a result ran where their jobs' constraints let them.

    The nodes of each job's tasks satisfy it at one level, at which also its placement constraints hold and its tasks
    took as long as the prices of the soft constraints it did without make them. Levels drop the cheapest soft
    constraint first, among equals the first. The counter ``jobs_relaxed`` is the number of jobs that did without any.

    Parameters
    ----------
    result : Result
        With tasks (``output_tasks=True``).
    workload, cluster : optional
        What was run; by default both are loaded again, as the result's configuration names them.
    case : str
        What errors say the result is of.

    Returns
    -------
    pandas.DataFrame
        A row for each job that has constraints: ``job_id``, ``constraints`` as text, and ``least_dropped`` and
        ``most_dropped``. These are how many soft constraints the job may have done without, by what is seen of it:
        they differ where a constraint was dropped but satisfied, at no price or in tasks that take no time.

    Raises
    ------
    AssertionError
        What does not hold, and of which job.
    InputError
        The result has no tasks, or what it was run on cannot be loaded.

    Notes
    -----
    Durations of stragglers are not in a result, so that where tasks straggle durations are not looked at.
    """
    if result.tasks is None:
        raise InputError("the result has no tasks; run with output_tasks=True")
    if workload is None or cluster is None:
        loaded = _inputs_of(result)
        workload, cluster = workload or loaded[0], cluster or loaded[1]
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
            f"{case}: jobs_relaxed is {relaxed}, and by nodes and durations {seen} jobs did without a soft constraint"
        )
    return table


def levels_of(constraints: Sequence[Constraint]) -> list[Level]:
    """Return the levels of a set, from all of it to its hard constraints: the cheapest soft one goes first."""
    kept, levels = list(constraints), [Level(tuple(constraints), (), 1.0)]
    while soft := [one for one in kept if one.price is not None]:
        cheapest = soft[0]
        for one in soft:
            if (one.price or 0.0) < (cheapest.price or 0.0):
                cheapest = one
        kept.remove(cheapest)
        _, dropped, factor = levels[-1]
        levels.append(Level(tuple(kept), (*dropped, cheapest), factor * (cheapest.price or 1.0)))
    return levels


def satisfying(cluster: Cluster, constraint: Constraint) -> npt.NDArray[np.bool_]:
    """Return which nodes satisfy a constraint on an attribute, read off the cluster's table: shape (N,)."""
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
    """Return an attribute of the user's own as a number: 0 where a node lacks it, nan where it is another text."""
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
    """Return why tasks cannot have run at a level; empty if they can."""
    for one in level.kept:
        if one.attribute != PLACEMENT and not holds[one][ran.node].all():
            return f"a task ran on node {ran.node[~holds[one][ran.node]][0]}, which has not got {one}"
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


def _inputs_of(result: Result) -> tuple[JobWorkload, Cluster]:
    """Return what a result was run on, loaded as its configuration names it."""
    with tempfile.TemporaryDirectory(prefix="emu-check-") as folder:
        file = Path(folder) / CONFIG if result.path is None else result.path / CONFIG
        if result.path is None:
            file.write_text(result.config, encoding="utf-8")
            if result.workload is not None:
                save_workload(result.workload, Path(folder) / KEPT_WORKLOAD)
        plan = prepare(configure({}, file))
    if not isinstance(plan.workload, JobWorkload):
        raise InputError(f"{result.summary['scheduler']} schedules coflows, which have no constraints")
    return plan.workload, plan.cluster
