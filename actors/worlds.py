"""What the hosts of partitions must know of the worlds of a family of schedulers, in one place.

A world is what a partition computes on: `actors.nodes.world.World` for jobs, `CoflowWorld` of
`actors.fabric.fabric_world` for coflows. Hosts use what these two have in common (`queue`, `network`, `work`, `nodes`,
`counts`, `cost`, `faults`); where they differ, hosts ask the family. A family is a subclass of `Worlds` and one object
of it, which its schedulers carry. What the rest of Emu must know of a family is in `emu.families`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from actors.kernel.counters import Counters
from workloads.jobs import make_workload


class Worlds(ABC):
    """The worlds of one family.

    Attributes:
        family: its name.
        counters: what is counted in them.
        also: another family whose messages are sent in them, too.
        part: the word for what a job, or whatever is scheduled, consists of.
        schedulers_share: the share of an emulation's work that its schedulers do; the rest is the nodes'.
        events_a_part: events of a run over its parts.
        event_ns: what an event takes, ns, on one core.
        longest: the words for how long the longest of these takes, which stands at `{}`.
    """

    family: ClassVar[str]
    counters: ClassVar[Counters]
    also: ClassVar[str] = ""
    part: ClassVar[str] = "task"
    schedulers_share: ClassVar[float] = 3 / 8  # of a probed task's eight events, three are its scheduler's
    events_a_part: ClassVar[float] = 8.0
    event_ns: ClassVar[float] = 150.0
    longest: ClassVar[str] = "the longest task takes {}"

    @property
    def messages(self) -> str:
        """The families whose messages are sent in them, with spaces between."""
        return f"{self.family} {self.also}".rstrip()

    def num_jobs(self, workload: Any) -> int:
        """Jobs, or what else the family schedules."""
        return int(workload.num_jobs)

    def num_tasks(self, workload: Any) -> int:
        """Tasks, or what else these consist of."""
        return int(workload.num_tasks)

    def span_ns(self, setting: Any) -> tuple[np.ndarray, int]:
        """Return the arrivals, [J] in order, and how long the workload lasts at least if all arrive at once, ns."""
        arrays = setting.workload.arrays()
        return arrays.submit_ns, int(arrays.duration_ns.max())

    def is_long(self, setting: Any) -> np.ndarray:
        """Return [J] bool: which jobs are in the report class `long`."""
        return np.zeros(self.num_jobs(setting.workload), bool)

    def start_nodes(self, world: Any, setting: Any, own: slice) -> None:
        """Write the rows of a partition's own nodes as they are at time 0; those of others stay zero: no memory."""
        return

    def ends(self, world: Any, is_here: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return jobs whose scheduler is here, when each started and ended, ns, and how many tasks have not ended.

        Args:
            is_here: [rows of `world.work`] bool.
        """
        mine, jobs = np.flatnonzero(is_here), world.jobs
        return mine, jobs.start[mine], jobs.finish[mine], jobs.unfinished[mine]

    @abstractmethod
    def needed_bytes(self, setting: Any) -> tuple[int, int]:
        """Return bounds of the bytes that each partition needs besides its process, and that all need together."""

    def evicted(self, world: Any) -> np.ndarray | None:
        """Return [2, J] by job how often tasks were evicted in a partition, and lost work, us; None: none ever is."""
        preemption = getattr(world, "preemption", None)
        if preemption is None or preemption.jobs.size == 0:
            return None
        return np.stack([preemption.jobs.times, preemption.jobs.lost])

    def rehearsal(self, workload: Any) -> Any:
        """Return a workload like this one of one job that takes no time: a user's scheduler is called with it first."""
        return make_workload("rehearsal", [0.0], [1], [0.0])

    def owners(self, world: Any) -> dict[str, np.ndarray]:
        """Return the job, or coflow, of each thing that column a of messages numbers, by the name of its kind.

        ``jobs`` and ``tasks`` are there at least.
        """
        work = world.work
        return {
            "jobs": np.arange(work.size),
            "tasks": np.repeat(np.arange(work.size), work.end_task - work.first_task),
        }
