"""A user's own scheduler that probes, on the side of Python: what its handlers see."""

import inspect
import math
import pickle
from collections import deque
from functools import lru_cache
from typing import Any

import numpy as np

from actors.kernel.compiled import direct
from actors.kernel.counters import N_ARRIVED
from actors.kernel.message_kinds import KINDS
from actors.kernel.messages import ARRIVAL
from actors.kernel.queue import MESSAGE, MOST_ACTORS, NEVER, NONE, SOURCE_SHIFT
from actors.kernel.sums import total_ns
from actors.nodes.messages import DONE, REJECTED
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import idle_slots, node_slots
from actors.scheduler import Scheduler
from actors.schedulers.jobs.build import NS
from actors.schedulers.user.host import OwnHost
from actors.schedulers.user.jobs_central import Job, capacity_of, demand_of
from actors.schedulers.user.jobs_cluster import Cluster, NodeView, with_meanings
from actors.schedulers.user.jobs_messages import OWN_FREED, OWN_LOAD, OWN_MESSAGE, OWN_TASKS, OWN_WAKE
from actors.schedulers.user.jobs_probing import State, advance, build, handle_at_node, load_of, turn_back
from actors.schedulers.user.parameters import described
from actors.schedulers.user.pickling import unpickled
from actors.setting import Setting
from workloads.errors import InputError

KEPT_JOBS = 1 << 16
MESSAGE_WORDS = MESSAGE.itemsize // 8


def wrap_own_probing(own: Any, name: str | None = None) -> Scheduler:
    """Make a scheduler of a user's object or class that has `on_arrival(job, cluster)`.

    Raises:
        InputError: an argument of the class has no default, or an attribute with a meaning has an invalid value.
    """
    face = described(own, name, "a user's probing scheduler")
    face["parameters"] = with_meanings(face["parameters"], face["name"])
    kind = own if isinstance(own, type) else type(own)
    return Scheduler(
        **face,
        worlds=JOB_WORLDS,
        build=build,
        advance=advance,
        host=lambda setting: Host(own, setting),
        remade=(wrap_own_probing, (own, name)),
        hybrid=bool(getattr(kind, "central", False)),
    )


def _sender(key: int) -> int:
    """Return the actor that sent a message, by the message's key."""
    return (key >> SOURCE_SHIFT) & (MOST_ACTORS - 1)


class Host(OwnHost):
    """The Python side of an emulation: calls the handlers."""

    def __init__(self, own: Any, setting: Setting):
        self._own, self._setting = own, setting
        self.schedulers: dict[int, Any] = {}  # by actor; that of the nodes by NONE
        parameters, cluster = setting.parameters, setting.cluster
        counts = (int(parameters.get("schedulers", 10)), int(parameters.get("coordinators", 0)))
        first_long = cluster.partition(setting.long_partition or 1.0)
        self._cluster = Cluster(self, node_slots(setting), first_long, *counts, capacity_of(setting))
        super().__init__(own, setting)
        self.schedulers[int(NONE)] = self.scheduler

    def start_arguments(self, setting: Setting) -> tuple[Any, ...]:
        """Return what `start` gets: the number of nodes, a seed of the object's own, and `cluster` if it takes that."""
        index = self._cluster.scheduler
        seed = setting.seed
        if index >= 0:
            seed = int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1, np.uint64)[0] >> 1)
        given = (setting.cluster.num_nodes, seed, self._cluster)
        try:
            inspect.signature(self.scheduler.start).bind(*given)
        except (TypeError, ValueError):  # it takes two, or is written in C
            return given[:2]
        return given

    def compile(self, world: Any, state: State) -> None:
        """Compile the functions that the host calls."""
        self._cluster._compile(world, state)
        if state.asks_nodes:
            n = np.int64(0)
            self._accept = direct(handle_at_node, world, state, n, n)
            self._reject = direct(turn_back, world, n, n)
            self._load = direct(load_of, world, state, n, n)
        self._seen: Any = None
        info = world.work
        facts = (info.submit, info.first_task, info.end_task, info.estimate, info.is_long)
        self._job_facts = tuple(map(np.asarray, facts))
        self._world = world
        self._job = lru_cache(KEPT_JOBS)(self._describe)

    def share_done(self, world: Any, state: State) -> float:
        """Return the share of the tasks that have arrived."""
        return float(world.counts[N_ARRIVED : N_ARRIVED + 2].sum()) / float(world.work.end_task[-1])

    def __call__(self, world: Any, state: State) -> None:
        """Call the handler of the message at which the loop has stopped."""
        if world is not self._seen:
            self._seen, self._message = world, np.asarray(world.queue.now).view(np.int64)[:MESSAGE_WORDS]
        time, key, kind, actor, *columns = self._message.tolist()
        carried = KINDS[kind].read(columns)
        cluster = self._cluster
        cluster._begin(world, state, time, actor)
        if actor < cluster.num_nodes:
            self._probed(world, state, time, actor, carried["job"])
            return
        scheduler = self.schedulers.get(actor)
        self.scheduler = self._made(actor) if scheduler is None else scheduler
        if kind == ARRIVAL:
            job = carried["job"]
            self.ask("on_arrival", self._job(job), cluster, about=f" (job {job})")
        elif kind == DONE or kind == OWN_FREED:
            name = "on_done" if kind == DONE else "on_freed"
            start_s, finish_s = carried["start"] / NS, carried["finish"] / NS
            self.ask(name, self._job(carried["job"]), carried["node"], start_s, finish_s, cluster)
        elif kind == OWN_TASKS:
            self._handed_over(actor, *carried.values())
        elif kind == OWN_LOAD:
            node, question, work_left, has_long, idle, waiting = carried.values()
            work_left_s = math.inf if work_left >= NEVER else total_ns(work_left) / NS
            view = NodeView(node, idle, bool(has_long), waiting, work_left_s)
            self.ask("on_load", view, question, cluster)
        elif kind == REJECTED:
            self.require("on_rejected", "a probe came back")
            self.ask("on_rejected", self._job(carried["job"]), _sender(key), carried["round"], cluster)
        elif kind == OWN_WAKE:
            self.require("on_wake", "it asked to be woken")
            self.ask("on_wake", *carried.values(), cluster)
        elif kind == OWN_MESSAGE:
            self.require("on_message", "a message came")
            self.ask("on_message", _sender(key) - cluster.num_nodes, tuple(carried.values()), cluster)

    def _probed(self, world: Any, state: State, t: int, node: int, job: int) -> None:
        """Ask whether a node accepts a probe."""
        self.scheduler = self.schedulers[int(NONE)]
        queued, work, has_long = self._load(world, state, t, node)
        idle = int(idle_slots(world, node))
        view = NodeView(node, idle, bool(has_long), int(queued), total_ns(int(work)) / NS)
        answer = self.ask("on_probe", self._job(job), view, self._cluster)
        try:
            accepts = bool(answer)
        except BaseException as error:  # such as of an array
            raise self._raised("on_probe", error) from error
        if accepts:
            self._accept(world, state, t, node)
        else:
            self._reject(world, t, node)

    def _handed_over(self, actor: int, job: int, first: int, count: int, lost_at: int) -> None:
        """Note tasks that another scheduler has handed over, or that were lost with their node, and tell of them."""
        self._cluster._held.setdefault((actor, job), deque()).append((first, count))
        if lost_at != NONE and callable(getattr(self.scheduler, "on_lost", None)):
            self.ask("on_lost", self._job(job), lost_at, self._cluster)
        self.ask("on_tasks", self._job(job), count, self._cluster)

    def require(self, name: str, why: str) -> None:
        """Refuse a scheduler that lacks a method."""
        if not callable(getattr(self.scheduler, name, None)):
            raise InputError(f"scheduler {self.name}: {why}, and it has no method {name}")

    def _made(self, actor: int) -> Any:
        """Return the object of an actor, made when its first message comes."""
        OwnHost.__init__(self, self._own, self._setting)
        self.schedulers[actor] = self.scheduler
        return self.scheduler

    def known(self, job: Job) -> Job:
        """Return what is known of a job, by its id."""
        found: Job = self._job(job.job_id)
        return found

    def _describe(self, index: int) -> Job:
        submit, first, end, estimate, is_long = (column[index].item() for column in self._job_facts)
        demand = demand_of(self._world, self._setting.resources, index)
        return Job(index, submit / NS, end - first, estimate / NS, bool(is_long), demand)

    def save(self) -> bytes:
        """Return the objects of all actors, pickled, and what was handed over to each."""
        saved = {}
        for actor, one in self.schedulers.items():
            self.scheduler = one
            saved[actor] = super().save()
        return pickle.dumps((saved, self._cluster._held))

    def load(self, saved: bytes) -> None:
        """Restore what `save` saved."""
        kind = type(self.schedulers[int(NONE)])
        objects, self._cluster._held = pickle.loads(saved)
        self.schedulers = {actor: unpickled(own, kind) for actor, own in objects.items()}
        self.scheduler = self.schedulers[int(NONE)]
