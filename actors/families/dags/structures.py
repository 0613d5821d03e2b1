"""What a snapshot of a run of DAG jobs says of stages and tasks: lists of those that may be launched, counts, jobs."""

from typing import Any

import numpy as np

from actors.families.jobs.structures import check_failures
from actors.hosting.snapshot import Refused, Snapshot, walk
from actors.kernel.queue import NONE


def check_dags(world: Any, saved: Snapshot) -> None:
    """Lists of tasks by stage, and of stages by job, and lists of jobs, machines and stages without one twice.

    Raises:
        Refused: what they say does not fit together.
    """
    stages, tasks = world.stages, world.tasks
    size = np.diff(stages.first_task)
    ready, unfinished = saved["world.stages.ready"], saved["world.stages.unfinished"]
    if (unfinished > size).any() or (ready > unfinished).any():
        raise Refused("world.stages has more tasks to launch than a stage has left")
    head, tail, following = (saved[f"world.{name}"] for name in ("stages.head", "stages.tail", "tasks.next"))
    seen = np.zeros(tasks.duration.size, bool)
    for stage in np.flatnonzero(ready).tolist():
        at, last = int(head[stage]), NONE
        for _ in range(int(ready[stage])):
            if not stages.first_task[stage] <= at < stages.first_task[stage + 1] or seen[at]:
                raise Refused("world.tasks.next has lists that leave their stage, meet or come round")
            seen[at] = True
            at, last = int(following[at]), at
        if last != tail[stage]:
            raise Refused("world.stages.tail is not the end of its list")
    # A user's own scheduler keeps what its class has returned beside the manager (`own_dags_loop.State`).
    manager = "state.manager" if "state.pending.end" in saved else "state"
    if manager != "state":
        _check_pending(saved, ready)
    _check_runnable(f"{manager}.matcher.run", world, saved, ready)
    if world.faults.active:
        check_failures(world, saved)
    if (saved["world.jobs.unfinished"] > world.work.end_task - world.work.first_task).any():
        raise Refused("world.jobs.unfinished is more than the job has")
    path, begins = f"{manager}.matcher.", _begins(world)
    for name, count in (("active", "num_active"), ("dirty", "dirty_count"), ("run.fresh", "run.num_fresh")):
        places = _places(path + name, begins[name], saved[path + count])
        listed = saved[path + name][places]
        if np.unique(listed).size != listed.size:
            raise Refused(f"{path}{name} has one twice")
        marks = saved.get(f"{path}{name.replace('fresh', 'is_fresh').replace('dirty', 'is_dirty')}")
        if (
            marks is not None
            and marks.dtype == bool
            and not np.array_equal(np.flatnonzero(marks), np.sort(listed))
        ):
            raise Refused(f"{path}{name} is not what is marked")


def _begins(world: Any) -> dict[str, np.ndarray]:
    """Where the jobs, stages and machines of each manager begin in the lists of all, [K + 1]."""
    manager, most = world.work.home - world.nodes.size, world.first_node.size - 1
    counts = (np.bincount(manager, None, most), np.bincount(manager, np.diff(world.first_stage), most))
    jobs, stages = (np.append(0, np.cumsum(count)).astype(np.int64) for count in counts)
    return {"active": jobs, "run.jobs": jobs, "run.fresh": stages, "dirty": world.first_node}


def _places(name: str, begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The places that are in use of a list of all managers."""
    if (counts[: begins.size - 1] > np.diff(begins)).any() or counts[begins.size - 1 :].any():
        raise Refused(f"{name} has more than there are of a manager")
    used = [np.arange(first, first + count) for first, count in zip(begins[:-1], counts, strict=False)]
    return np.concatenate(used)


def _check_runnable(run: str, world: Any, saved: Snapshot, ready: np.ndarray) -> None:
    """The stages with tasks that may be launched stand in the list of their job, each once."""
    first, following = saved[f"{run}.first"], saved[f"{run}.next"]
    seen = np.zeros(ready.size, bool)
    walk(f"{run}.next", first[first != NONE].tolist(), following, seen)
    if not np.array_equal(seen, ready > 0):
        raise Refused(f"{run} has other stages than those with tasks to launch")
    places = _places(f"{run}.jobs", _begins(world)["run.jobs"], saved[f"{run}.num_jobs"])
    jobs = saved[f"{run}.jobs"][places]
    if not np.array_equal(np.sort(jobs), np.flatnonzero(first != NONE)):
        raise Refused(f"{run}.jobs has other jobs than those with tasks to launch")
    if (saved[f"{run}.place"][jobs] != places).any():
        raise Refused(f"{run}.place is another place than a job has")
    for job in np.flatnonzero(first != NONE).tolist():
        at = int(first[job])
        while at != NONE:
            if world.stages.job[at] != job:
                raise Refused(f"{run} has a stage in the list of another job")
            at = int(following[at])


def _check_pending(saved: Snapshot, ready: np.ndarray) -> None:
    """What a user's class has launched and has not been sent stands for tasks that may be launched."""
    first, end = int(saved["state.pending.first"][0]), int(saved["state.pending.end"][0])
    stages = saved["state.pending.stage"][first:end]
    if first >= end and (first, end) != (0, 0):
        raise Refused("state.pending has no possible range of tasks")
    if (np.bincount(stages, minlength=ready.size) > ready).any():
        raise Refused("state.pending has more tasks of a stage than may be launched")
