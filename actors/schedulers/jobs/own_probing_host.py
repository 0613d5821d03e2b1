"""A user's own scheduler that probes, on the side of Python: what its handlers see, and what they ask for."""

import math
import pickle
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from actors.families.jobs.worlds import JOB_WORLDS
from actors.kernel.compiled import direct
from actors.kernel.counters import N_ARRIVED
from actors.kernel.faults import EPOCH_SHIFT
from actors.kernel.kinds import ARRIVAL, DONE, OWN_MESSAGE, OWN_WAKE, REJECTED
from actors.kernel.queue import MOST_ACTORS, SOURCE_SHIFT
from actors.kernel.world import NONE
from actors.scheduler import Scheduler
from actors.schedulers.jobs.build import NS
from actors.schedulers.jobs.own_central import Job
from actors.schedulers.jobs.own_probing import (
    MOST_ANYWAY,
    MOST_PER_TASK,
    State,
    accept_probe,
    advance,
    build,
    draw,
    draw_one,
    place_next,
    reject_probe,
    send_own,
    send_probes_to,
    wake_own,
)
from actors.schedulers.own_host import OwnHost
from actors.schedulers.own_parameters import described
from actors.schedulers.own_pickle import unpickled
from actors.setting import Setting
from workloads.errors import InputError

KEPT_JOBS = 1 << 16
LOW = (1 << EPOCH_SHIFT) - 1
"""The bits of a probe's round, above which is the generation of its job."""


def wrap_own_probing(own: Any, name: str | None = None) -> Scheduler:
    """Make a scheduler of a user's object or class that has `on_arrival(job, cluster)`.

    Raises:
        InputError: an argument of the class has no default.
    """
    face = described(own, name)
    kind = own if isinstance(own, type) else type(own)
    return Scheduler(
        **face,
        title=face["about"].partition("\n")[0] or "a user's probing scheduler",
        paper="-",
        worlds=JOB_WORLDS,
        build=build,
        advance=advance,
        host=lambda setting: Host(own, setting),
        remade=(wrap_own_probing, (own, name)),
        hybrid=bool(getattr(kind, "central", False)),
    )


@dataclass(frozen=True)
class NodeView:
    """A node as `on_probe` sees it.

    Attributes:
        node_id: its number.
        idle_slots: slots without a task, and not held for an answer.
        has_long: a long task, or a probe of a long job, runs or waits there.
    """

    node_id: int
    idle_slots: int
    has_long: bool


class Cluster:
    """What a handler of a user's scheduler can do, and what it knows. It is valid until the handler ends.

    Attributes:
        now_s: virtual time.
        num_nodes: nodes are 0 to `num_nodes` - 1.
        first_long: nodes below it are for short jobs alone.
        scheduler: which scheduler this is, from 0; the central one is `num_schedulers`.
        num_schedulers: probe schedulers.
    """

    def __init__(self, host: "Host", num_nodes: int, first_long: int, num_schedulers: int):
        self._host, self.num_nodes, self.first_long = host, num_nodes, first_long
        self.num_schedulers = num_schedulers
        self.now_s, self.scheduler = 0.0, 0

    def draw(self, job: Job, count: int) -> np.ndarray:
        """Return `count` different random nodes, those that `sparrow` draws for the job.

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
        """Bind the job's next tasks to nodes, one to each."""
        self._host.place(job, nodes)

    def send(self, scheduler: int, a: int = 0, b: int = 0, c: int = 0) -> None:
        """Send three whole numbers to another scheduler; `on_message` gets them after the network delay."""
        self._host.send(scheduler, a, b, c)

    def wake(self, after_s: float, number: int = 0) -> None:
        """Have `on_wake(number)` called after a time."""
        self._host.wake(after_s, number)


def _sender(key: int) -> int:
    """Return the actor that sent a message, by the message's key."""
    return (key >> SOURCE_SHIFT) & (MOST_ACTORS - 1)


class Host(OwnHost):
    """The Python side of an emulation: calls the handlers, and does what they ask for."""

    def __init__(self, own: Any, setting: Setting):
        self._own, self._setting = own, setting
        self.schedulers: dict[int, Any] = {}  # by actor; that of the nodes by NONE
        super().__init__(own, setting)
        self.schedulers[int(NONE)] = self.scheduler

    def compile(self, world: Any, state: State) -> None:
        """Compile the functions that the host calls."""
        n = np.int64(0)
        self._draw = direct(draw, world, state, n, n)
        self._draw_one = direct(draw_one, world, n, n)
        self._probe = direct(send_probes_to, world, state, n, n, n, n, n)
        self._place = direct(place_next, world, state, n, n, n, n)
        self._send = direct(send_own, world, state, n, n, n, n, n, n)
        self._wake = direct(wake_own, world, state, n, n, n)
        if state.asks_nodes:
            self._accept = direct(accept_probe, world, state, n, n)
            self._reject = direct(reject_probe, world, state, n, n, n, n)
        nodes = world.nodes.size
        self._cluster = Cluster(self, nodes, state.stealing.first, world.queue.seq.size - 2 - nodes)
        info = world.work
        facts = (info.submit, info.first_task, info.end_task, info.estimate, info.is_long)
        self._job_facts = tuple(map(np.asarray, facts))
        self._job = lru_cache(KEPT_JOBS)(self._describe)

    def share_done(self, world: Any, state: State) -> float:
        """Return the share of the tasks that have arrived."""
        return float(world.counts[N_ARRIVED : N_ARRIVED + 2].sum()) / float(world.work.end_task[-1])

    def __call__(self, world: Any, state: State) -> None:
        """Call the handler of the message at which the loop has stopped."""
        time, key, kind, actor, a, b, c, d, *_ = world.queue.now[0].item()
        self._at = (world, state, np.int64(time), np.int64(actor))
        self._sends = 0
        cluster = self._cluster
        cluster.now_s = time / NS
        if actor < cluster.num_nodes:
            self._probed(actor, a, c)
            return
        cluster.scheduler = actor - cluster.num_nodes
        self.scheduler = self.schedulers.get(actor) or self._made(actor)
        if kind == ARRIVAL:
            self.ask("on_arrival", self._job(a), cluster, about=f" for job {a}")
        elif kind == DONE:
            self.ask("on_done", self._job(a), b, c / NS, d / NS, cluster)
        elif kind == REJECTED:
            self._handled("on_rejected", "a probe came back")
            self.ask("on_rejected", self._job(a), _sender(key), c, cluster)
        elif kind == OWN_WAKE:
            self._handled("on_wake", "it asked to be woken")
            self.ask("on_wake", a, cluster)
        elif kind == OWN_MESSAGE:
            self._handled("on_message", "a message came")
            self.ask("on_message", _sender(key) - cluster.num_nodes, (a, b, c), cluster)

    def _probed(self, node: int, job: int, times: int) -> None:
        """Ask whether a node accepts a probe."""
        world, state, t, me = self._at
        self.scheduler = self.schedulers[int(NONE)]
        view = NodeView(node, world.nodes.idle[node].item(), world.nodes.longs[node].item() > 0)
        if self.ask("on_probe", self._job(job), view, self._cluster):
            self._accept(world, state, t, me)
        else:
            self._reject(world, state, t, me, np.int64(job), np.int64((times & LOW) + 1))

    def _handled(self, name: str, why: str) -> None:
        if not callable(getattr(self.scheduler, name, None)):
            raise InputError(f"scheduler {self.name}: {why}, and it has no method {name}")

    def _made(self, actor: int) -> Any:
        """Return the object of an actor, made when its first message comes."""
        OwnHost.__init__(self, self._own, self._setting)
        self.schedulers[actor] = self.scheduler
        return self.scheduler

    def _describe(self, index: int) -> Job:
        submit, first, end, estimate, is_long = (column[index].item() for column in self._job_facts)
        return Job(index, submit / NS, end - first, estimate / NS, bool(is_long))

    # What handlers ask for.

    def draw(self, job: Job, count: int) -> np.ndarray:
        """Draw nodes for a job."""
        world, state, *_ = self._at
        count = self._counted("draw", count, state)
        self._draw(world, state, np.int64(job.job_id), np.int64(count))
        return state.probing.nodes[:count].copy()

    def draw_again(self, job: Job, first: int) -> int:
        """Draw another node for a job.

        Raises:
            InputError: there is no node from `first` on.
        """
        if not 0 <= first < self._at[0].nodes.size:
            raise InputError(
                f"scheduler {self.name}: draw_again() got first node {first}, which is not there"
            )
        return int(self._draw_one(self._at[0], np.int64(job.job_id), np.int64(first)))

    def probe(self, job: Job, nodes: Any, times: int) -> None:
        """Send probes."""
        world, state, t, me = self._at
        count = self._to("probe", nodes, world, state)
        self._probe(world, state, t, me, np.int64(job.job_id), np.int64(count), np.int64(times))

    def place(self, job: Job, nodes: Any) -> None:
        """Bind tasks to nodes."""
        world, state, t, me = self._at
        count = self._to("place", nodes, world, state)
        left = int(world.work.end_task[job.job_id] - world.jobs.next_task[job.job_id])
        if count > left:
            raise InputError(
                f"scheduler {self.name}: place() got {count} nodes, and job {job.job_id} has {left} tasks left"
            )
        self._place(world, state, t, me, np.int64(job.job_id), np.int64(count))

    def send(self, scheduler: int, a: int, b: int, c: int) -> None:
        """Send numbers to another scheduler."""
        world, state, t, me = self._at
        last = world.queue.seq.size - 2 - world.nodes.size
        if not 0 <= scheduler <= last:
            raise InputError(f"scheduler {self.name}: send() got scheduler {scheduler}; they are 0 to {last}")
        self._counted("send", 1, state)
        to = np.int64(world.nodes.size + scheduler)
        self._send(world, state, t, me, to, np.int64(a), np.int64(b), np.int64(c))

    def wake(self, after_s: float, number: int) -> None:
        """Wake this scheduler after a time."""
        world, state, t, me = self._at
        if not (math.isfinite(after_s) and after_s >= 0):
            raise InputError(f"scheduler {self.name}: wake() got {after_s!r} s; want a time from 0 on")
        self._counted("wake", 1, state)
        self._wake(world, state, np.int64(t + round(after_s * NS)), me, np.int64(number))

    def _to(self, what: str, nodes: Any, world: Any, state: State) -> int:
        """Put node ids where the kernel reads them; returns how many."""
        if (
            type(nodes) is list
            and len(nodes) == 1
            and type(nodes[0]) is int
            and 0 <= nodes[0] < world.nodes.size
        ):
            state.probing.nodes[0] = nodes[0]
            return self._counted(what, 1, state)
        found = np.asarray(nodes)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise InputError(
                f"scheduler {self.name}: {what}() got {found.dtype} of shape {found.shape}; want node ids"
            )
        if found.size and not (found.min() >= 0 and found.max() < world.nodes.size):
            wrong = found[(found < 0) | (found >= world.nodes.size)][0]
            raise InputError(
                f"scheduler {self.name}: {what}() got node {wrong}; node ids are 0 to {world.nodes.size - 1}"
            )
        count = self._counted(what, found.size, state)
        state.probing.nodes[:count] = found
        return count

    def _counted(self, what: str, count: int, state: State) -> int:
        """Count messages that one handler sends.

        Raises:
            InputError: there is no room for so many.
        """
        self._sends += 0 if what == "draw" else count
        most = state.probing.nodes.size
        if count < 0 or max(count, self._sends) > most:
            raise InputError(
                f"scheduler {self.name}: {what}() of {count} nodes or messages; a handler sends at most {most:,}"
                f" ({MOST_PER_TASK} for each task of the largest job, and {MOST_ANYWAY} more)"
            )
        return int(count)

    def save(self) -> bytes:
        """Return the objects of all actors, pickled."""
        saved = {}
        for actor, one in self.schedulers.items():
            self.scheduler = one
            saved[actor] = super().save()
        return pickle.dumps(saved)

    def load(self, saved: bytes) -> None:
        """Restore the objects that `save` saved."""
        kind = type(self.schedulers[int(NONE)])
        self.schedulers = {actor: unpickled(own, kind) for actor, own in pickle.loads(saved).items()}
        self.scheduler = self.schedulers[int(NONE)]
