"""What a user's probing scheduler sees, and what it can do: `Cluster`, and `NodeView` of one node."""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.conditions import NS, read_only
from actors.kernel.compiled import direct
from actors.kernel.queue import NONE
from actors.scheduler import Parameter
from actors.schedulers.jobs.sparrow import SCHEDULERS
from actors.schedulers.user import jobs_probing
from actors.schedulers.user.host import first_outside
from actors.schedulers.user.jobs_central import Job, check_fits
from actors.schedulers.user.jobs_messages import send_own_message, send_own_wake
from workloads.errors import InputError

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
        capacity: [N] what nodes have, by resource; empty in runs where tasks take slots; read-only.
        scheduler: which scheduler this is, from 0: probe schedulers, then coordinators, then the central one.
        num_schedulers: probe schedulers.
        coordinators: numbers of the coordinators.
    """

    def __init__(
        self,
        host: Any,
        slots: np.ndarray,
        first_long: int,
        schedulers: int,
        coordinators: int,
        capacity: dict[str, np.ndarray],
    ):
        self._host, self.num_nodes, self.first_long = host, slots.size, first_long
        self.capacity = capacity
        self.slots = read_only(slots.view())
        self.num_schedulers = schedulers
        self.coordinators = range(schedulers, schedulers + coordinators)
        self.now_s, self.scheduler = 0.0, int(NONE)
        self._held: dict[tuple[int, int], deque[tuple[int, int]]] = {}  # tasks handed over, by actor and job

    def draw(self, job: Job, count: int) -> np.ndarray:
        """Return `count` different random nodes, others at each call; at first those that `sparrow` draws for the job.

        Tasks of the job fit on them. Where there are fewer such nodes, all come in turn before any comes again.
        """
        world, state, _, me = self._at
        count = self._counted("draw", count)
        self._draw(world, state, me, job.job_id, count)
        return state.probing.nodes[:count].copy()

    def draw_again(self, job: Job, first: int = 0) -> int:
        """Return another random node that is up and on which the job's tasks fit, from `first` on; -1 for none.

        Where no node from `first` on is large enough, it is one before it.
        """
        world, state, _, me = self._at
        if not 0 <= first < self.num_nodes:
            raise self._error("draw_again", f"first node {first}, which is not there")
        return int(self._draw_one(world, state, me, job.job_id, int(first)))

    def probe(self, job: Job, nodes: Any, times: int = 0) -> None:
        """Send a probe to each of some nodes; `times` is how often it has been sent back, 0 for a first one."""
        self._arrived_here("probe", job)
        count = self._to("probe", nodes, job)
        self._probe(*self._at, job.job_id, count, int(times))

    def place(self, job: Job, nodes: Any) -> None:
        """Bind the job's next tasks to nodes, one to each: of a job that arrived here, or was handed over."""
        index, me = job.job_id, self._at[3]
        held = self._held.get((me, index))
        if held is not None:
            left, here = sum(size for _, size in held), " here"
        elif self._homes.item(index) == me:
            left, here = self._left(index), ""
        else:
            left, here = 0, " here"
        count = self._to("place", nodes, job)
        if count > left:
            raise self._error("place", f"{count} nodes, and job {index} has {left} tasks left{here}")
        if held is None:
            self._place(*self._at, index, count)
            return
        begin = 0
        while begin < count:
            first, size = held.popleft()
            now = min(size, count - begin)
            self._place_handed(*self._at, index, first, begin, now)
            begin += now
            if now < size:
                held.appendleft((first + now, size - now))
        if count == left:
            del self._held[me, index]

    def hand_over(self, job: Job, scheduler: int, count: int) -> None:
        """Have another scheduler place the job's next `count` tasks; its `on_tasks` gets them a network delay later."""
        self._host.require("on_tasks", "tasks are handed over")
        self._arrived_here("hand_over", job)
        to, left = self._other("hand_over", scheduler), self._left(job.job_id)
        if not 1 <= count <= left:
            raise self._error("hand_over", f"{count} tasks, and job {job.job_id} has {left} left")
        if to == self._at[3]:
            raise self._error("hand_over", f"scheduler {scheduler}, which it is")
        self._counted("hand_over", 1)
        self._hand(*self._at, job.job_id, to, int(count))

    def ask(self, nodes: Any, number: int = 0) -> None:
        """Ask nodes how much work they have; `on_load` gets each answer, with the number, after two network delays."""
        self._host.require("on_load", "it asks nodes for their load")
        self._ask_nodes(*self._at, self._to("ask", nodes), int(number))

    def is_down(self, node: int) -> bool:
        """Return whether a node is down, as far as schedulers know."""
        if not 0 <= node < self.num_nodes:
            raise self._error("is_down", f"node {node}; node ids are 0 to {self.num_nodes - 1}")
        faults = self._at[0].faults
        return bool(faults.active and not int(faults.actors.heard[node]) & 1)

    def send(self, scheduler: int, a: int = 0, b: int = 0, c: int = 0) -> None:
        """Send three whole numbers to another scheduler; `on_message` gets them after the network delay."""
        world, _, t, me = self._at
        to = self._other("send", scheduler)
        self._counted("send", 1)
        self._send(world, t, me, to, int(a), int(b), int(c))

    def wake(self, after_s: float, number: int = 0) -> None:
        """Have `on_wake(number)` called after a time."""
        world, _, t, me = self._at
        if not (math.isfinite(after_s) and after_s >= 0):
            raise self._error("wake", f"{after_s!r} s; want a time from 0 on")
        self._counted("wake", 1)
        self._wake(world, t + round(after_s * NS), me, int(number))

    def _compile(self, world: Any, state: jobs_probing.State) -> None:
        """Compile what the methods call."""
        n = np.int64(0)
        self._draw = direct(jobs_probing.draw, world, state, n, n, n)
        self._draw_one = direct(jobs_probing.draw_one, world, state, n, n, n)
        self._probe = direct(jobs_probing.send_probes_to, world, state, n, n, n, n, n)
        self._place = direct(jobs_probing.place_next, world, state, n, n, n, n)
        self._send = direct(send_own_message, world, n, n, n, n, n, n)
        self._wake = direct(send_own_wake, world, n, n, n)
        if state.loads.work.size:
            self._ask_nodes = direct(jobs_probing.ask_nodes, world, state, n, n, n, n)
        if state.handed.size:
            self._hand = direct(jobs_probing.hand_next, world, state, n, n, n, n, n)
            self._place_handed = direct(jobs_probing.place_handed, world, state, n, n, n, n, n, n)
        self._last_scheduler = world.queue.seq.size - 2 - self.num_nodes
        self._homes = np.asarray(world.work.home)
        self._ends, self._next = np.asarray(world.work.end_task), np.asarray(world.jobs.next_task)

    def _begin(self, world: Any, state: jobs_probing.State, time: int, actor: int) -> None:
        """Note for which actor, and when, a handler is called."""
        self._at, self._sends = (world, state, time, actor), 0
        self.now_s = time / NS
        self.scheduler = actor - self.num_nodes if actor >= self.num_nodes else int(NONE)

    def _error(self, what: str, got: str) -> InputError:
        return InputError(f"scheduler {self._host.name}: {what}() got {got}")

    def _left(self, index: int) -> int:
        """Return how many tasks of a job its scheduler has not handed out."""
        return int(self._ends.item(index) - self._next.item(index))

    def _other(self, what: str, scheduler: int) -> int:
        """Return the actor of a scheduler's number."""
        if not 0 <= scheduler <= self._last_scheduler:
            raise self._error(what, f"scheduler {scheduler}; they are 0 to {self._last_scheduler}")
        return self.num_nodes + int(scheduler)

    def _arrived_here(self, what: str, job: Job) -> None:
        """Refuse a job of another scheduler, of which only that one knows what is left."""
        home = self._homes.item(job.job_id)
        if home != self._at[3]:
            there = f"job {job.job_id}, which arrived at scheduler {home - self.num_nodes}"
            raise self._error(what, f"{there}; only that one can do this")

    def _to(self, what: str, nodes: Any, job: Job | None = None) -> int:
        """Put node ids where the kernel reads them; return how many. Tasks of a job that is given must fit there."""
        if job is not None and self.capacity:
            self._check_fits(what, nodes, job)
        drawn = self._at[1].probing.nodes
        one = nodes[0] if type(nodes) is list and len(nodes) == 1 else None
        if type(one) is int and 0 <= one < self.num_nodes:
            drawn[0] = one
            return self._counted(what, 1)
        found = np.asarray(nodes)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise self._error(what, f"{found.dtype} of shape {found.shape}; want node ids")
        if (wrong := first_outside(found, self.num_nodes)) is not None:
            raise self._error(what, f"node {wrong}; node ids are 0 to {self.num_nodes - 1}")
        count = self._counted(what, found.size)
        drawn[:count] = found
        return count

    def _check_fits(self, what: str, nodes: Any, job: Job) -> None:
        """Refuse a node that is too small: an entry of the job would wait there for ever."""
        found = np.asarray(nodes)
        if found.ndim == 1 and found.dtype.kind in "iu" and first_outside(found, self.num_nodes) is None:
            known = self._host.known(job)  # whatever the class has changed of its own
            check_fits(
                found, known, self.capacity, f"scheduler {self._host.name}: {what}() got", "cluster.capacity"
            )

    def _counted(self, what: str, count: int) -> int:
        """Count messages that one handler sends.

        Raises:
            InputError: they are more than there is room for.
        """
        self._sends += 0 if what == "draw" else count
        most = self._at[1].probing.nodes.size
        if count < 0 or max(count, self._sends) > most:
            raise InputError(
                f"scheduler {self._host.name}: {what}() of {count} nodes or messages; a handler sends at most {most:,}"
                f" ({jobs_probing.MOST_PER_TASK} for each task of the largest job, and {jobs_probing.MOST_ANYWAY} more)"
            )
        return int(count)
