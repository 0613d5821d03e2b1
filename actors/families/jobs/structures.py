"""What a snapshot of a run of jobs says of jobs, queues of nodes, failures, and the lists of their schedulers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.hosting.snapshot import Refused, Snapshot, leaves, walk
from actors.kernel.queue import NONE
from actors.kernel.world import ASKED


def check_jobs(world: Any, state: Any, saved: Snapshot, sizes: Mapping[str, int]) -> None:
    """Jobs, queues of nodes, and lists of schedulers of jobs.

    Raises:
        Refused: what they say does not fit together.
    """
    jobs, work = saved["world.jobs"], world.work
    tasks = work.end_task - work.first_task
    if ((jobs["next_task"] < work.first_task) | (jobs["next_task"] > work.end_task)).any():
        raise Refused("world.jobs.next_task is no task of its job")
    if (jobs["unfinished"] > tasks).any():
        raise Refused("world.jobs.unfinished is more than the job has")
    _check_entries(world, saved)
    if world.eligible.active:
        _check_eligible(world, saved)
    if world.faults.active:
        check_failures(world, saved)
    named = {path.partition(".")[2]: saved[path] for path, _ in leaves(state, "state") if path in saved}
    for path, array in named.items():
        if path.endswith("shared.previous"):
            _check_shared(named, path.rpartition(".")[0])
        elif path.endswith("sampling.first_answer") and named["sampling.answers"].size:
            if (jobs["answers"] > np.diff(array)).any():
                raise Refused("world.jobs.answers is more than the job has asked for")
        elif path == "fifo":
            _check_central(jobs, work, array[0], named["idle"].size)
        elif path == "contention.round":
            row = array[0]
            if not 0 <= row["end"] - row["next"] <= world.nodes.size:
                raise Refused("state.contention.round has more nodes than there are")
        elif path.endswith("reported") and array.ndim == 2:
            if (array & 63 != np.arange(array.shape[1])).any():
                raise Refused(f"state.{path} has a resource in the place of another")
        elif path == "backlog.schedulers":
            _check_backlog(named)
        elif path == "known.open":
            _check_open(named)


def _check_entries(world: Any, saved: Snapshot) -> None:
    """The pool of entries is the free ones and the nodes' queues, each once."""
    rows, nodes = saved["world.entries"], saved["world.nodes"]
    used = int(rows["job"][0])
    if not 1 <= used <= rows.size:
        raise Refused("world.entries has used more rows than there are")
    seen = np.zeros(rows.size, bool)
    seen[0] = True
    seen[used:] = True
    walk("world.entries", [int(rows["next"][0])], rows["next"], seen)
    free = seen.copy()
    following, more, left = (rows[name].tolist() for name in ("next", "more", "left"))
    for head, tail in zip(nodes["head"].tolist(), nodes["tail"].tolist(), strict=True):
        at, last = head, int(NONE)
        while at != NONE:
            run, behind, end = at, 0, int(NONE)
            while run != NONE:
                if seen[run]:
                    raise Refused("world.entries has queues that meet or come round")
                seen[run] = True
                end, run, behind = run, more[run], behind + 1
            first = more[at]
            if first != NONE and (following[first] != end or left[first] != behind - 1 or left[at] >= ASKED):
                raise Refused("world.entries has a run with another end or length")
            at, last = following[at], at
        if head != NONE and last != tail:
            raise Refused("world.nodes.tail is not the end of its queue")
    live = np.flatnonzero(seen & ~free)
    job, task = rows["job"][live], rows["task"][live]
    heads = ~np.isin(live, rows["more"])
    if ((job < 0) | (job >= world.work.size))[heads].any():
        raise Refused("world.entries.job is no job")
    if (rows["level"][live] >= world.eligible.factor.size)[heads].any():
        raise Refused("world.entries.level is no level")
    _check_tasks("world.entries.task", world, task[task != NONE])


def _check_tasks(name: str, world: Any, column: np.ndarray) -> None:
    """Tasks as messages and entries have them: with a level in the upper bits, where there are levels."""
    tasks, levels = world.duration.size, world.eligible.factor.size
    task, level = column & ((1 << 32) - 1), column >> 32
    if not world.eligible.active:
        task, level = column, np.zeros_like(column)
    if ((task < 0) | (task >= tasks) | (level < 0) | (level > levels)).any():
        raise Refused(f"{name} is no task")


def _check_eligible(world: Any, saved: Snapshot) -> None:
    """A job's level is one of its set, and its nodes are on the list of that."""
    rows, eligible = saved["world.eligible.jobs"], world.eligible
    sets = eligible.set_of_job
    has = np.flatnonzero(sets != NONE)
    level = rows["level"][has]
    if (rows["level"][sets == NONE] != NONE).any():
        raise Refused("world.eligible.jobs.level is one of a job without constraints")
    first, end = eligible.first_level[sets[has]], eligible.first_level[sets[has] + 1]
    if ((level < first) | (level >= end)).any():
        raise Refused("world.eligible.jobs.level is none of its job's")
    most = eligible.num_nodes[eligible.list_of_level[level]]
    if (rows["begin"][has] + rows["count"][has] > most).any() or (rows["count"][has] < 1).any():
        raise Refused("world.eligible.jobs.count is more than there are on the list")
    if (rows["held"] > world.work.end_task - world.work.first_task).any():
        raise Refused("world.eligible.jobs.held is more than the job has tasks")


def check_failures(world: Any, saved: Snapshot) -> None:
    """Lists of tasks that run on nodes, and of lost ones."""
    actors, tasks, jobs = (saved[f"world.faults.{name}"] for name in ("actors", "tasks", "jobs"))
    if (actors["next_outage"] > actors["end_outage"]).any():
        raise Refused("world.faults.actors.next_outage is behind the end")
    running = actors["running"]
    seen = np.zeros(tasks.size, bool)
    walk("world.faults.tasks.next", running[running != NONE].tolist(), tasks["next"], seen)
    if (tasks["node"][seen] == NONE).any():
        raise Refused("world.faults.tasks.node is none of a task that runs")
    followed = np.flatnonzero(seen & (tasks["next"] != NONE))
    if (tasks["previous"][tasks["next"][followed]] != followed).any():
        raise Refused("world.faults.tasks.previous is another one")
    if (tasks["previous"][running[running != NONE]] != NONE).any():
        raise Refused("world.faults.tasks.previous is another one")
    listed = np.flatnonzero(tasks["node"] != NONE)
    if not seen[listed].all():
        raise Refused("world.faults.tasks.node is that of a task that does not run")
    lost = np.zeros(tasks.size, bool)
    for job in np.flatnonzero(jobs["lost"]).tolist():
        at = int(jobs["again"][job])
        for _ in range(int(jobs["lost"][job])):
            if at == NONE or lost[at]:
                raise Refused("world.faults.jobs.again has lists that end early, meet or come round")
            lost[at] = True
            at = int(tasks["again"][at])


def _check_shared(named: Snapshot, path: str) -> None:
    """Changes refer to earlier ones."""
    latest, previous, length = (named[f"{path}.{name}"] for name in ("latest", "previous", "length"))
    made = previous[: int(length[0])]
    if (latest >= 2 * length[0]).any() or (made >= 2 * np.arange(made.size)).any():
        raise Refused(f"state.{path} has changes that refer to later ones")


def _check_central(jobs: np.ndarray, work: Any, fifo: np.void, slots: int) -> None:
    """The queue of jobs and the ring of idle slots of a central scheduler."""
    taken, added, job, arrived = (int(fifo[name]) for name in ("taken", "added", "job", "arrived"))
    if not 0 <= added - taken <= slots or not 0 <= job <= arrived <= work.size:
        raise Refused("state.fifo is none")
    waits = slice(job, arrived)
    if (jobs["next_task"][waits] >= work.end_task[waits]).any():
        raise Refused("state.fifo is at a job that has no task left")


def _check_backlog(named: Snapshot) -> None:
    """Jobs and tasks that wait for room."""
    schedulers, jobs, tasks = (named[f"backlog.{name}"] for name in ("schedulers", "jobs", "tasks"))
    seen, waits = np.zeros(jobs.size, bool), np.zeros(tasks.size, bool)
    for row in schedulers:
        at, last = int(row["head"]), int(NONE)
        for _ in range(int(row["jobs"])):
            if at == NONE or seen[at]:
                raise Refused("state.backlog has lists that end early, meet or come round")
            if jobs["task"][at] == NONE:
                raise Refused("state.backlog has a job without a task")
            seen[at] = True
            at, last = int(jobs["next"][at]), at
        if at != NONE or (row["jobs"] and last != row["tail"]):
            raise Refused("state.backlog has a list with another end")
    walk("state.backlog.tasks", jobs["task"][jobs["task"] != NONE].tolist(), tasks["next"], waits)


def _check_open(named: Snapshot) -> None:
    """The list of nodes with room, and each node's place in it."""
    nodes, count = named["known.nodes"], int(named["known.totals"]["open"][0])
    listed = named["known.open"][:count]
    if np.unique(listed).size != count or not np.array_equal(nodes["place"][listed], np.arange(count)):
        raise Refused("state.known.open is no list of the nodes with room")
    if (nodes["place"] != NONE).sum() != count:
        raise Refused("state.known.nodes.place is none of the list")
