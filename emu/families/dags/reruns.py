"""When tasks became runnable in a run in which tasks that had ended ran again, as their output was lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from workloads.dags import DagWorkload

Int64Array = npt.NDArray[np.int64]
NEVER = -1


def awaited_ns(
    workload: DagWorkload, finish_ns: Int64Array, attempts: np.ndarray, task: Int64Array, start_ns: Int64Array
) -> Int64Array:
    """Return when all that tasks waited for had ended, ns, before they were launched.

    Parameters
    ----------
    finish_ns : array
        When each task of the workload ended, the last time.
    attempts : array
        `actors.failures.ATTEMPT` records: those that had ended count.
    task, start_ns : array
        The tasks, numbered in workload order, and when they were launched; a task may be there several times.
    """
    a = workload.arrays()
    stage_of = np.repeat(np.arange(workload.num_stages), np.diff(a.stage_first_task))
    job_of = np.repeat(np.arange(workload.num_jobs), np.diff(a.first_stage))
    earlier: dict[int, list[int]] = defaultdict(list)
    for row in attempts[attempts["ended"] == 1]:
        earlier[int(row["task"])].append(int(row["end"]))
    known: dict[tuple[int, int, int], int] = {}
    found = np.zeros(task.size, np.int64)
    for i, (one, start) in enumerate(zip(task.tolist(), start_ns.tolist(), strict=True)):
        stage = int(stage_of[one])
        found[i] = max(a.submit_ns[job_of[stage]], _end_before(earlier, one, start))
        for e in range(a.first_parent[stage], a.first_parent[stage + 1]):
            first, end = a.stage_first_task[a.parent[e]], a.stage_first_task[a.parent[e] + 1]
            if a.parent_one_to_one[e]:
                first += one - a.stage_first_task[stage]
                end = first + 1
            key = int(first), int(end), start
            if key not in known:
                known[key] = _last_end(finish_ns, earlier, *key)
            found[i] = max(found[i], known[key])
    return found


def _end_before(earlier: Mapping[int, list[int]], task: int, start_ns: int) -> int:
    """Return when a task that ran again had ended the last time before a time, ns."""
    return max((end for end in earlier.get(task, ()) if end <= start_ns), default=NEVER)


def _last_end(
    finish_ns: Int64Array, earlier: Mapping[int, list[int]], first: int, end: int, start_ns: int
) -> int:
    """Return when the last of some tasks had ended that ended before a time."""
    ends = finish_ns[first:end]
    is_before = (ends >= 0) & (ends <= start_ns)
    last = int(ends[is_before].max(initial=NEVER))
    for task in (first + np.flatnonzero(~is_before)).tolist():
        last = max(last, _end_before(earlier, task, start_ns))
    return last
