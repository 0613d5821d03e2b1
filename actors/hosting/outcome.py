"""The result of an emulation, merged from the shares of its partitions."""

import resource
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from actors.failures import ATTEMPT, Faults, count_dynamics, nodes_up
from actors.hosting.recording import Recording
from actors.hosting.timeline import MOST_ROWS, merge_samples
from actors.kernel.cost import LINE
from actors.kernel.counters import Counters
from actors.kernel.queue import NEVER
from actors.kernel.sums import WHOLE
from actors.schedulers.user.own import defined_at
from actors.setting import Setting
from workloads.errors import InputError

NS = 1_000_000_000


@dataclass(frozen=True)
class Observe:
    """What to record besides the jobs."""

    timeline_period_s: float | None = None  # of virtual time; None: no timeline
    most_rows: int = (
        MOST_ROWS  # of the timeline; if there would be more, every second, fourth, eighth … is kept
    )
    tasks: bool = False  # node, start and end of each
    events: Recording | None = None  # which events are written, and where


@dataclass(frozen=True, eq=False)
class Paced:
    """What one partition of a live run measured; times in ns.

    Attributes:
        lateness: [2, BUCKETS] histogram of events of nodes and of schedulers, by when they were handled less when
            they were due, in emulated time.
        latency: [1, BUCKETS] of batches of messages that came here, from sending to receipt, in wall time.
        floor: [1, BUCKETS] the same of the empty batches before the run: what sending takes by itself.
        batches, sent: batches sent, and messages in them.
        turns: times it looked for events and found some.
        backlog_sum, backlog_max: events that were due and not handled when a turn began.
        backlogs: by row of the timeline, the most since the row before.
        cpu: CPU time of its process during the run, or of its thread if it has no process of its own.
        awake: time in which it only looked whether there is anything to do.
        wall: how long the run was.
        apart: other partitions that do not share its memory.
    """

    lateness: np.ndarray
    latency: np.ndarray
    floor: np.ndarray
    batches: int
    sent: int
    turns: int
    backlog_sum: int
    backlog_max: int
    backlogs: np.ndarray
    cpu: int
    awake: int
    wall: int
    apart: int


@dataclass(frozen=True, eq=False)
class Share:
    """The part of the result that one partition has: of its schedulers' jobs, its nodes' tasks, its counters.

    Attributes:
        jobs: ids of the jobs whose scheduler is here.
        start_ns, finish_ns, unfinished: of those jobs.
        samples: rows of the timeline (`actors.hosting.timeline`).
        first_ns, period_ns: when the timeline begins, and the time between two rows; 0: no timeline.
        most_rows: of the timeline, as `Observe` has it.
        tasks: ids, nodes, starts and finishes of the tasks that ended here, or None.
        attempts: ATTEMPT records of those that failures and evictions ended here, or None: none, or not recorded.
        counts: [len(COUNTERS)].
        servers: SERVER records of all scheduler actors, or empty; those of other partitions are zero.
        costs: COST records, measured here.
        waits: [BUCKETS] histogram of the messages of schedulers by how long they waited (`actors.kernel.histogram`).
        delayed: [4] messages that came late because of a quantum: how many, by how many ns in total and at most, and
            the multiples of WHOLE of that total.
        events: handled.
        wall_s: in the partition's loop.
        compile_s: to compile it or load it.
        peak_rss_mb: the most memory its process has held.
        recorded: rows of events that were written.
        paced: of a live run.
        faults: the outages that were planned, None where nothing fails; the same in all partitions.
        series: what `Scheduler.series` gave: an object of the family's type, or None.
        evicted: [2, J] by job how often its tasks were evicted here, and the work that was lost by that, us.
    """

    jobs: np.ndarray
    start_ns: np.ndarray
    finish_ns: np.ndarray
    unfinished: np.ndarray
    samples: np.ndarray
    first_ns: int
    period_ns: int
    most_rows: int
    tasks: tuple[np.ndarray, ...] | None
    attempts: np.ndarray | None
    counts: np.ndarray
    servers: np.ndarray
    costs: np.ndarray
    waits: np.ndarray
    delayed: np.ndarray
    events: int
    wall_s: float
    compile_s: float
    peak_rss_mb: float
    recorded: int = 0
    paced: Paced | None = None
    faults: Faults | None = None
    series: Any = None
    evicted: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of an emulation. J jobs and T tasks in workload order; times in ns, -1 for never.

    Attributes:
        is_long: [J] bool: mean task duration, as the workload states it, above the cut-off.
        attempts: as in `Share`, of all partitions, in order of task and start; empty where tasks are not recorded.
        servers: SERVER records, by scheduler actor; empty without costs.
        costs: COST records of a measured run.
        waits: as in `Share`.
        windows: number of barriers.
        delayed: as in `Share`, the sum in one number.
        timeline_step: periods between two rows of the timeline: more than 1 if there would have been too many rows.
        recorded: rows of events that each partition has written.
        restarts: times the run was continued from a checkpoint.
        live: what a live run measured (`actors.hosting.live_report`); None with other clocks.
        stall: the longest time in which no task ended and its likely cause, in one line; None if none was long.
        series: of the one partition that has any, or of all together.
        evicted: as in `Share`, of all partitions.
    """

    start_ns: np.ndarray
    finish_ns: np.ndarray
    is_long: np.ndarray
    timeline: dict[str, np.ndarray]
    tasks: dict[str, np.ndarray] | None  # node, start_ns, finish_ns
    counters: dict[str, int]
    servers: np.ndarray
    costs: np.ndarray
    waits: np.ndarray
    delayed: tuple[int, int, int]
    events: int
    wall_s: float
    compile_s: float
    peak_rss_mb: float
    timeline_step: int = 1
    partitions: int = 1
    windows: int = 0
    restarts: int = 0
    live: dict[str, Any] | None = None
    stall: str | None = None
    recorded: tuple[int, ...] = ()
    series: Any = None
    evicted: np.ndarray | None = None
    attempts: np.ndarray = field(default_factory=lambda: np.zeros(0, ATTEMPT))

    def spans(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the task of each attempt that ended, its start and its end, ns, whether it came to something or not.

        The run must have recorded its tasks.
        """
        assert self.tasks is not None
        done, rows = np.flatnonzero(self.tasks["finish_ns"] >= 0), self.attempts
        start, end = (self.tasks[name][done] for name in ("start_ns", "finish_ns"))
        parts = ((done, rows["task"]), (start, rows["start"]), (end, rows["end"]))
        task, start, end = (np.concatenate(pair) for pair in parts)
        return task, start, end


def merge_shares(setting: Setting, shares: list[Share]) -> Outcome:
    """Return the outcome of all partitions of a setting.

    Tasks that never finished are a RuntimeError, with a user's scheduler an InputError.
    """
    family, is_long = setting.scheduler.worlds, setting.scheduler.worlds.is_long(setting)
    start, finish, unfinished = np.full((3, is_long.size), -1, np.int64)
    for share in shares:
        start[share.jobs] = np.where(share.start_ns == NEVER, -1, share.start_ns)
        finish[share.jobs] = np.where(share.unfinished == 0, share.finish_ns, -1)
        unfinished[share.jobs] = share.unfinished
    if unfinished.any():
        raise _unfinished(setting, int(unfinished.sum()), int(np.flatnonzero(unfinished)[0]))
    first, last_ns, faults = shares[0], int(finish.max()), shares[0].faults
    span = (first.first_ns, first.period_ns, last_ns)
    samples = [share.samples for share in shares]
    timeline, step = merge_samples(samples, *span, setting.cluster.total_slots, first.most_rows)
    counters = _counters(shares, family.counters)
    if faults is not None or setting.dynamics.straggler_share:
        counters |= count_dynamics(setting, faults, last_ns)
    if faults is not None:
        timeline["up_nodes"] = nodes_up(setting, faults, np.round(timeline["time_s"] * NS).astype(np.int64))
    evicted = [share.evicted for share in shares if share.evicted is not None]
    late = np.array([share.delayed for share in shares], object)
    return Outcome(
        start_ns=start,
        finish_ns=finish,
        is_long=is_long,
        timeline=timeline,
        timeline_step=step,
        tasks=_tasks(shares, setting.num_tasks),
        counters=counters,
        servers=_servers(shares),
        costs=np.concatenate([share.costs for share in shares]),
        waits=np.sum([share.waits for share in shares], axis=0),
        delayed=(late[:, 0].sum(), late[:, 1].sum() + int(WHOLE) * late[:, 3].sum(), late[:, 2].max()),
        events=sum(share.events for share in shares),
        wall_s=max(share.wall_s for share in shares),
        compile_s=max(share.compile_s for share in shares),
        peak_rss_mb=sum(share.peak_rss_mb for share in shares),
        recorded=tuple(share.recorded for share in shares),
        partitions=len(shares),
        series=_series(shares),
        evicted=np.sum(evicted, axis=0) if evicted else None,
        attempts=_attempts(shares),
    )


def _unfinished(setting: Setting, tasks: int, job: int) -> Exception:
    """Return the error about tasks that never finished."""
    why = f"nothing left to do, but {tasks} tasks have not finished, the first of job {job}"
    users = setting.scheduler.users
    if not users:
        return RuntimeError(f"{setting.scheduler.name}: {why}")
    own, names = users[0].own, " and ".join(user.name for user in users)
    place = defined_at(own if isinstance(own, type) else type(own), "")
    return InputError(f"scheduler {names}: {why}; it must serve each", **place)


def _counters(shares: list[Share], known: Counters) -> dict[str, int]:
    """Return the counters that results have, if they are not 0."""
    counts = np.sum([share.counts.astype(object) for share in shares], axis=0)
    counters: dict[str, int] = dict(zip(known.names, counts.tolist(), strict=True))
    if "lost_work_ns" in counters:
        counters["lost_work_ns"] += int(WHOLE) * counters["lost_work_wholes"]
        counters["lost_work_wholes"] = 0
    return {name: counters[name] for name in known.reported if counters[name]}


def _series(shares: list[Share]) -> Any:
    """Return what a partition kept besides what is recorded of every job; of several, their parts as one."""
    found = [share.series for share in shares if share.series is not None]
    return found[0].merged(found) if len(found) > 1 else next(iter(found), None)


def _tasks(shares: list[Share], num_tasks: int) -> dict[str, np.ndarray] | None:
    """Where and when every task ran."""
    if shares[0].tasks is None:
        return None
    columns = np.full((3, num_tasks), -1, np.int64)
    for share in shares:
        assert share.tasks is not None
        ids, *values = share.tasks
        last = values[-1] >= columns[2, ids]  # a flow that was moved may have ended in two partitions
        columns[:, ids[last]] = np.array(values)[:, last]
    return dict(zip(("node", "start_ns", "finish_ns"), columns, strict=True))


def _attempts(shares: list[Share]) -> np.ndarray:
    """All attempts that came to nothing, in an order that does not depend on the partitions."""
    lost = np.concatenate([np.zeros(0, ATTEMPT), *(s.attempts for s in shares if s.attempts is not None)])
    rows = np.concatenate([lost, _ended_before(shares, lost)])
    return rows[np.lexsort((rows["start"], rows["task"]))]


def _ended_before(shares: list[Share], lost: np.ndarray) -> np.ndarray:
    """Attempts that ended in another partition than the last one of their task: it ran again with its gang.

    The last run that a partition knows of may be among those that were `lost`.
    """
    ran = [s.tasks for s in shares if s.attempts is not None and s.tasks is not None]
    if not ran:
        return np.zeros(0, ATTEMPT)
    task, node, start, end = (np.concatenate(column) for column in zip(*ran, strict=True))
    order = np.lexsort((end, task))
    before = order[:-1][task[order[:-1]] == task[order[1:]]]
    known = {*zip(lost["task"].tolist(), lost["start"].tolist(), strict=True)}
    before = np.array([i for i in before.tolist() if (task[i], start[i]) not in known], np.int64)
    rows = np.zeros(before.size, ATTEMPT)
    for name, values in zip(ATTEMPT.names or (), (task, node, start, end, np.ones_like(end)), strict=True):
        rows[name] = values[before]
    return rows


def _servers(shares: list[Share]) -> np.ndarray:
    """All schedulers' records, each from the partition it was in."""
    merged = shares[0].servers.copy()
    for share in shares[1:]:
        mine = share.servers["served"] > merged["served"]
        merged[mine] = share.servers[mine]
    for place in LINE:  # in the memory of a partition
        merged[place] = 0
    return merged


def busy_arriving_ns(servers: np.ndarray, last_arrival_ns: int) -> np.ndarray:
    """[S] of SERVER records, the time that each server worked until the last job, or coflow, arrived."""
    left_over = np.maximum(servers["free"] - last_arrival_ns, 0)
    return np.maximum(np.where(servers["arriving"] < 0, servers["busy"] - left_over, servers["arriving"]), 0)


def peak_rss_mb() -> float:
    """The most memory this process has held, MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
