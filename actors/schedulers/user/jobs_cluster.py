"""What a user's probing scheduler sees, and what it can do: `Cluster`, and `NodeView` of one node."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.scheduler import Parameter
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.schedulers.user.jobs_central import Job

MEANT = {
    p.name: p
    for p in (
        SCHEDULERS,
        Parameter("coordinators", 0, "integer", "schedulers to which no job comes", low=0, high=10_000),
        Parameter("central", False, "flag", "a central scheduler for long jobs"),
        Parameter("refuse_behind_long", False, "flag", "nodes with long work send probes of short jobs back"),
        Parameter("steal_attempts", 0, "integer", "victims asked before a thief gives up", low=0, high=1000),
        Parameter(
            "steal_limit", 10_000, "integer", "the most probes taken from one victim", low=1, high=1_000_000
        ),
    )
}
"""Attributes of a class that have a meaning, by name."""


def with_meanings(parameters: Iterable[Parameter], scheduler: str) -> tuple[Parameter, ...]:
    """Return the parameters of a user's class or object, those that have a meaning with their kinds and bounds.

    Raises:
        InputError: the class's own value of one of these is invalid.
    """
    return tuple(
        replace(known, default=known.parse(p.default, scheduler)) if (known := MEANT.get(p.name)) else p
        for p in parameters
    )


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a node tells of itself, in `on_probe` there and then, in `on_load` as it was when it answered.

    Attributes:
        node_id: its number.
        idle_slots: slots without a task, and not held for an answer.
        has_long: a long task, or a probe of a long job, runs or waits there.
        queued: tasks and probes that wait.
        work_left_s: estimated work of tasks and probes that wait, and of tasks that run, less the time for which the
            one has run that started last; infinite: the node is down.
    """

    node_id: int
    idle_slots: int
    has_long: bool
    queued: int
    work_left_s: float


class Cluster:
    """What a handler of a user's scheduler can do, and what it knows. It is valid until the handler ends.

    Attributes:
        now_s: virtual time.
        num_nodes: nodes are 0 to `num_nodes` - 1.
        slots: [N] tasks that each node can run at once; read-only.
        first_long: nodes below it are for short jobs alone.
        scheduler: which scheduler this is, from 0: probe schedulers, then coordinators, then the central one.
        num_schedulers: probe schedulers.
        coordinators: numbers of the coordinators.
    """

    def __init__(self, host: Any, slots: np.ndarray, first_long: int, schedulers: int, coordinators: int):
        self._host, self.num_nodes, self.first_long = host, slots.size, first_long
        self.slots = slots.view()
        self.slots.flags.writeable = False
        self.num_schedulers = schedulers
        self.coordinators = range(schedulers, schedulers + coordinators)
        self.now_s, self.scheduler = 0.0, 0

    def draw(self, job: Job, count: int) -> np.ndarray:
        """Return `count` different random nodes, others at each call; at first those that `sparrow` draws for the job.

        Where there are fewer nodes, all of them come in turn before any comes again.
        """
        return self._host.draw(job, count)

    def draw_again(self, job: Job, first: int = 0) -> int:
        """Return another random node that is up, from `first` on; -1 if there is none."""
        return self._host.draw_again(job, first)

    def probe(self, job: Job, nodes: Any, times: int = 0) -> None:
        """Send a probe to each of some nodes; `times` is how often it has been sent back, 0 for a first one."""
        self._host.probe(job, nodes, times)

    def place(self, job: Job, nodes: Any) -> None:
        """Bind the job's next tasks to nodes, one to each: of a job that arrived here, or was handed over."""
        self._host.place(job, nodes)

    def hand_over(self, job: Job, scheduler: int, count: int) -> None:
        """Have another scheduler place the job's next `count` tasks; its `on_tasks` gets them a network delay later."""
        self._host.hand_over(job, scheduler, count)

    def ask(self, nodes: Any, number: int = 0) -> None:
        """Ask nodes how much work they have; `on_load` gets each answer, with the number, after two network delays."""
        self._host.ask_nodes(nodes, number)

    def is_down(self, node: int) -> bool:
        """Return whether a node is down, as far as schedulers know."""
        return self._host.is_down(node)

    def send(self, scheduler: int, a: int = 0, b: int = 0, c: int = 0) -> None:
        """Send three whole numbers to another scheduler; `on_message` gets them after the network delay."""
        self._host.send(scheduler, a, b, c)

    def wake(self, after_s: float, number: int = 0) -> None:
        """Have `on_wake(number)` called after a time."""
        self._host.wake(after_s, number)
