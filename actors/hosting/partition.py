"""One partition: the state of its actors, run by its policy's compiled loop."""

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from actors.kernel.compiled import is_warm
from actors.kernel.queue import GROW, HORIZON, IDLE, PYTHON, RUNNING, grow_queue, records
from actors.kernel.world import (
    COUNTERS,
    N_ARRIVED,
    N_FINISHED,
    N_PROBES,
    N_STARTED,
    NEVER,
    TASK_RECORD,
    grow_entries,
)
from actors.schedulers.jobs.build import NS
from actors.setting import Setting
from workloads.errors import InputError

TIMELINE = ("time_s", "utilisation", "queued_short", "queued_long", "running_short", "running_long")


Report = Callable[[int, int, float], None]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Observe:
    """What to record besides the jobs: the timeline at a period (None: not at all), and every task."""

    timeline_period_s: float | None = None
    tasks: bool = False


@dataclass(frozen=True)
class Outcome:
    """What an emulation gave. J jobs and T tasks in workload order; times in ns, -1 for never."""

    start_ns: np.ndarray
    finish_ns: np.ndarray
    is_long: np.ndarray  # [J] bool: mean task duration, as the workload states it, above the cut-off
    timeline: dict[str, np.ndarray]
    tasks: dict[str, np.ndarray] | None  # node, start_ns, finish_ns
    counters: dict[str, int]
    events: int
    wall_s: float
    compile_s: float
    peak_rss_mb: float


@dataclass(frozen=True)
class Progress:
    """How far a partition has come."""

    tasks_done: int
    events: int
    virtual_s: float
    done: bool


class Partition:
    """A world and the loop that drives it.

    `start` compiles the loop, or loads it from the disk cache; `run` goes on for a while; `outcome` hands out
    the result when all is done.
    """

    def __init__(self, setting: Setting, observe: Observe):
        self.setting = setting
        self.observe = observe
        self.world, self.state = setting.scheduler.build(setting)
        self._answer = setting.scheduler.host(setting) if setting.scheduler.host else None
        if observe.tasks:
            self.world = self.world._replace(task_records=records(TASK_RECORD, setting.workload.num_tasks))
        self.wall_s = 0.0
        self.compile_s = 0.0
        self._samples: list[tuple[float, ...]] = []
        self._period_ns = round((observe.timeline_period_s or 0.0) * NS)
        first = int(self.world.work.submit[0])
        # A sample is taken at a horizon: when all before it is done, and nothing at or after it.
        self._horizon = first + self._period_ns if self._period_ns else int(NEVER)

    def is_warm(self) -> bool:
        """Whether the loop can be loaded from the disk cache."""
        return is_warm(self.setting.scheduler.advance)

    def start(self) -> float:
        """Compile or load the loop; returns the seconds that took."""
        begin = time.perf_counter()
        with np.errstate(over="ignore"):
            self.setting.scheduler.advance(self.world, self.state, np.int64(-1), np.int64(1))
        self.compile_s = time.perf_counter() - begin
        return self.compile_s

    def run(self, most_s: float) -> Progress:
        """Go on for about `most_s` seconds, or to the end."""
        begin = time.perf_counter()
        done = False
        # Plain Python warns of the wrap-around that the random numbers rely on; compiled code does not.
        with np.errstate(over="ignore"):
            while not done and time.perf_counter() - begin < most_s:
                done = self._step(np.int64(200_000))
        self.wall_s += time.perf_counter() - begin
        now = self.world.queue.now[0]
        return Progress(int(self._tasks(N_FINISHED).sum()), int(now.events), now.time / NS, done)

    def _tasks(self, which: int) -> np.ndarray:
        """[2] tasks that arrived, started or finished, short and long."""
        return self.world.counts[which : which + 2]

    def _step(self, most: np.int64) -> bool:
        """One call of the loop, and what it asked for; True when nothing is left to do."""
        scheduler = self.setting.scheduler
        why = scheduler.advance(self.world, self.state, np.int64(self._horizon), most)
        if why == GROW:
            self._grow()
        elif why == HORIZON:
            if self._horizon >= NEVER:
                raise InputError(
                    f"virtual time has reached {NEVER / NS:.2g} s, 146 years, and {scheduler.name} has tasks left;"
                    " are the workload's times in seconds, and does the cluster have nodes enough?"
                )
            self._sample()
            self._horizon += self._period_ns
        elif why == PYTHON:
            assert self._answer is not None
            self._answer(self.world, self.state)
        elif why == IDLE:
            left = int(self.world.jobs.unfinished.sum())
            if left:
                raise RuntimeError(
                    f"{scheduler.name}: nothing left to do, but {left} tasks have not finished"
                )
        else:
            assert why == RUNNING
        return why == IDLE

    def _grow(self) -> None:
        world = self.world
        self.world = world._replace(entries=grow_entries(world.entries), queue=grow_queue(world.queue))

    def _sample(self) -> None:
        """Note how many tasks are queued and running now."""
        queued = self._tasks(N_ARRIVED) - self._tasks(N_STARTED)
        running = self._tasks(N_STARTED) - self._tasks(N_FINISHED)
        time_ns = self._horizon
        busy = running.sum() / self.setting.cluster.total_slots
        self._samples.append((time_ns / NS, busy, *queued.tolist(), *running.tolist()))

    def outcome(self) -> Outcome:
        """The result; call it when `run` has said that it is done."""
        jobs = self.world.jobs
        columns = np.array(self._samples, dtype=np.float64).reshape(-1, len(TIMELINE)).T
        timeline = {
            name: column if i < 2 else column.astype(np.int64)
            for i, (name, column) in enumerate(zip(TIMELINE, columns, strict=True))
        }
        tasks = None
        if self.observe.tasks:
            record = self.world.task_records
            tasks = {"node": record.node, "start_ns": record.start, "finish_ns": record.finish}
        counters = dict(zip(COUNTERS, self.world.counts.tolist(), strict=True))
        return Outcome(
            start_ns=np.where(jobs.start == NEVER, -1, jobs.start),
            finish_ns=np.where(jobs.unfinished == 0, jobs.finish, -1),
            is_long=self.world.work.report_class == 1,
            timeline=timeline,
            tasks=tasks,
            counters={name: counters[name] for name in COUNTERS[N_PROBES:] if counters[name]},
            events=int(self.world.queue.now.events[0]),
            wall_s=self.wall_s,
            compile_s=self.compile_s,
            peak_rss_mb=peak_rss_mb(),
        )


def peak_rss_mb() -> float:
    """The most memory this process has held, MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
