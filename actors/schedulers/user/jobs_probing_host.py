"""A user's own scheduler that probes, on the side of Python: what its handlers see, and what they ask for."""

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
from actors.kernel.queue import MESSAGE, MOST_ACTORS, NEVER, SOURCE_SHIFT
from actors.kernel.sums import total_ns
from actors.kernel.world import NONE
from actors.nodes.messages import DONE, REJECTED
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import Scheduler
from actors.schedulers.jobs.build import NS
from actors.schedulers.user.host import OwnHost
from actors.schedulers.user.jobs_central import Job
from actors.schedulers.user.jobs_cluster import Cluster, NodeView, with_meanings
from actors.schedulers.user.jobs_messages import OWN_FREED, OWN_LOAD, OWN_MESSAGE, OWN_TASKS, OWN_WAKE
from actors.schedulers.user.jobs_probing import (
    MOST_ANYWAY,
    MOST_PER_TASK,
    State,
    accept_probe,
    advance,
    ask_nodes,
    build,
    draw,
    draw_one,
    hand_next,
    load_of,
    place_handed,
    place_next,
    reject_probe,
    send_own,
    send_probes_to,
    wake_own,
)
from actors.schedulers.user.parameters import described
from actors.schedulers.user.pickling import unpickled
from actors.setting import Setting
from workloads.errors import InputError

KEPT_JOBS = 1 << 16
MESSAGE_WORDS = MESSAGE.itemsize // 8


def wrap_own_probing(own: Any, name: str | None = None) -> Scheduler:
    """Make a scheduler of a user's object or class that has `on_arrival(job, cluster)`.

    Raises:
        InputError: an argument of the class has no default, or a number of schedulers or the like is none.
    """
    face = described(own, name)
    face["parameters"] = with_meanings(face["parameters"], face["name"])
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


def _sender(key: int) -> int:
    """Return the actor that sent a message, by the message's key."""
    return (key >> SOURCE_SHIFT) & (MOST_ACTORS - 1)


class Host(OwnHost):
    """The Python side of an emulation: calls the handlers, and does what they ask for."""

    def __init__(self, own: Any, setting: Setting):
        self._own, self._setting = own, setting
        self.schedulers: dict[int, Any] = {}  # by actor; that of the nodes by NONE
        self._held: dict[tuple[int, int], deque[tuple[int, int]]] = {}  # tasks handed over, by actor and job
        parameters, cluster = setting.parameters, setting.cluster
        counts = (int(parameters.get("schedulers", 10)), int(parameters.get("coordinators", 0)))
        self._cluster = Cluster(
            self, cluster.slots(), cluster.partition(setting.long_partition or 1.0), *counts
        )
        self._cluster.scheduler = int(NONE)
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
        n = np.int64(0)
        self._draw = direct(draw, world, state, n, n, n)
        self._draw_one = direct(draw_one, world, state, n, n, n)
        self._probe = direct(send_probes_to, world, state, n, n, n, n, n)
        self._place = direct(place_next, world, state, n, n, n, n)
        self._send = direct(send_own, world, state, n, n, n, n, n, n)
        self._wake = direct(wake_own, world, state, n, n, n)
        if state.asks_nodes:
            self._accept = direct(accept_probe, world, state, n, n)
            self._reject = direct(reject_probe, world, state, n, n)
            self._load = direct(load_of, world, state, n, n)
        if state.load.size:
            self._ask_nodes = direct(ask_nodes, world, state, n, n, n, n)
        if state.handed.size:
            self._hand = direct(hand_next, world, state, n, n, n, n, n)
            self._place_handed = direct(place_handed, world, state, n, n, n, n, n, n)
        self._seen: Any = None
        self._last_scheduler = world.queue.seq.size - 2 - self._cluster.num_nodes
        info = world.work
        facts = (info.submit, info.first_task, info.end_task, info.estimate, info.is_long)
        self._job_facts = tuple(map(np.asarray, facts))
        self._homes = np.asarray(info.home)
        self._ends, self._next = np.asarray(info.end_task), np.asarray(world.jobs.next_task)
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
        self._at = (world, state, time, actor)
        self._sends = 0
        cluster = self._cluster
        cluster.now_s = time / NS
        cluster.scheduler = actor - cluster.num_nodes
        if actor < cluster.num_nodes:
            cluster.scheduler = int(NONE)
            self._probed(actor, carried["job"])
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
            self._handled("on_rejected", "a probe came back")
            self.ask("on_rejected", self._job(carried["job"]), _sender(key), carried["round"], cluster)
        elif kind == OWN_WAKE:
            self._handled("on_wake", "it asked to be woken")
            self.ask("on_wake", *carried.values(), cluster)
        elif kind == OWN_MESSAGE:
            self._handled("on_message", "a message came")
            self.ask("on_message", _sender(key) - cluster.num_nodes, tuple(carried.values()), cluster)

    def _probed(self, node: int, job: int) -> None:
        """Ask whether a node accepts a probe."""
        world, state, t, me = self._at
        self.scheduler = self.schedulers[int(NONE)]
        queued, work, has_long = self._load(world, state, t, me)
        view = NodeView(
            node, world.nodes.idle[node].item(), bool(has_long), int(queued), total_ns(int(work)) / NS
        )
        answer = self.ask("on_probe", self._job(job), view, self._cluster)
        try:
            accepts = bool(answer)
        except BaseException as error:  # such as of an array
            raise self._raised("on_probe", error) from error
        if accepts:
            self._accept(world, state, t, me)
        else:
            self._reject(world, state, t, me)

    def _handed_over(self, actor: int, job: int, first: int, count: int, lost_at: int) -> None:
        """Note tasks that another scheduler has handed over, or that were lost with their node, and tell of them."""
        self._held.setdefault((actor, job), deque()).append((first, count))
        if lost_at != NONE and callable(getattr(self.scheduler, "on_lost", None)):
            self.ask("on_lost", self._job(job), lost_at, self._cluster)
        self.ask("on_tasks", self._job(job), count, self._cluster)

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
        world, state, _, me = self._at
        count = self._counted("draw", count, state)
        self._draw(world, state, me, job.job_id, count)
        return state.probing.nodes[:count].copy()

    def draw_again(self, job: Job, first: int) -> int:
        """Draw another node for a job.

        Raises:
            InputError: there is no node from `first` on.
        """
        world, state, _, me = self._at
        if not 0 <= first < world.nodes.size:
            raise InputError(
                f"scheduler {self.name}: draw_again() got first node {first}, which is not there"
            )
        return int(self._draw_one(world, state, me, job.job_id, int(first)))

    def probe(self, job: Job, nodes: Any, times: int) -> None:
        """Send probes."""
        world, state, t, me = self._at
        self._arrived_here("probe", job)
        count = self._to("probe", nodes, world, state)
        self._probe(world, state, t, me, job.job_id, count, int(times))

    def place(self, job: Job, nodes: Any) -> None:
        """Bind tasks to nodes."""
        world, state, t, me = self._at
        index = job.job_id
        held = self._held.get((me, index))
        if held is not None:
            left, here = sum(size for _, size in held), " here"
        elif self._homes.item(index) == me:
            left, here = self._ends.item(index) - self._next.item(index), ""
        else:
            left, here = 0, " here"
        count = self._to("place", nodes, world, state)
        if count > left:
            raise InputError(
                f"scheduler {self.name}: place() got {count} nodes, and job {index} has {left} tasks left{here}"
            )
        if held is None:
            self._place(world, state, t, me, index, count)
            return
        begin = 0
        while begin < count:
            first, size = held.popleft()
            now = min(size, count - begin)
            self._place_handed(world, state, t, me, index, first, begin, now)
            begin += now
            if now < size:
                held.appendleft((first + now, size - now))
        if count == left:
            del self._held[me, index]

    def hand_over(self, job: Job, scheduler: int, count: int) -> None:
        """Hand tasks over to another scheduler."""
        world, state, t, me = self._at
        self._handled("on_tasks", "tasks are handed over")
        self._arrived_here("hand_over", job)
        to = self._other("hand_over", scheduler)
        left = self._ends.item(job.job_id) - self._next.item(job.job_id)
        if not 1 <= count <= left:
            raise InputError(
                f"scheduler {self.name}: hand_over() got {count} tasks, and job {job.job_id} has {left} left"
            )
        if to == me:
            raise InputError(f"scheduler {self.name}: hand_over() got scheduler {scheduler}, which it is")
        self._counted("hand_over", 1, state)
        self._hand(world, state, t, me, job.job_id, to, int(count))

    def ask_nodes(self, nodes: Any, number: int) -> None:
        """Ask nodes for their load."""
        world, state, t, me = self._at
        self._handled("on_load", "it asks nodes for their load")
        count = self._to("ask", nodes, world, state)
        self._ask_nodes(world, state, t, me, count, int(number))

    def is_down(self, node: int) -> bool:
        """Return whether a node is known to be down."""
        last = self._cluster.num_nodes - 1
        if not 0 <= node <= last:
            raise InputError(f"scheduler {self.name}: is_down() got node {node}; node ids are 0 to {last}")
        faults = self._at[0].faults
        return bool(faults.active and not int(faults.actors.heard[node]) & 1)

    def send(self, scheduler: int, a: int, b: int, c: int) -> None:
        """Send numbers to another scheduler."""
        world, state, t, me = self._at
        to = self._other("send", scheduler)
        self._counted("send", 1, state)
        self._send(world, state, t, me, to, int(a), int(b), int(c))

    def _other(self, what: str, scheduler: int) -> int:
        """Return the actor of a scheduler's number."""
        last = self._last_scheduler
        if not 0 <= scheduler <= last:
            raise InputError(
                f"scheduler {self.name}: {what}() got scheduler {scheduler}; they are 0 to {last}"
            )
        return self._cluster.num_nodes + int(scheduler)

    def _arrived_here(self, what: str, job: Job) -> None:
        """Refuse a job of another scheduler, of which only that one knows what is left."""
        nodes = self._cluster.num_nodes
        if self._homes.item(job.job_id) != self._at[3]:
            raise InputError(
                f"scheduler {self.name}: {what}() got job {job.job_id}, which arrived at scheduler"
                f" {self._homes[job.job_id] - nodes}; only that one can do this"
            )

    def wake(self, after_s: float, number: int) -> None:
        """Wake this scheduler after a time."""
        world, state, t, me = self._at
        if not (math.isfinite(after_s) and after_s >= 0):
            raise InputError(f"scheduler {self.name}: wake() got {after_s!r} s; want a time from 0 on")
        self._counted("wake", 1, state)
        self._wake(world, state, t + round(after_s * NS), me, int(number))

    def _to(self, what: str, nodes: Any, world: Any, state: State) -> int:
        """Put node ids where the kernel reads them; returns how many."""
        one = nodes[0] if type(nodes) is list and len(nodes) == 1 else None
        if type(one) is int and 0 <= one < self._cluster.num_nodes:
            state.probing.nodes[0] = one
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
        """Return the objects of all actors, pickled, and what was handed over to each."""
        saved = {}
        for actor, one in self.schedulers.items():
            self.scheduler = one
            saved[actor] = super().save()
        return pickle.dumps((saved, self._held))

    def load(self, saved: bytes) -> None:
        """Restore what `save` saved."""
        kind = type(self.schedulers[int(NONE)])
        objects, self._held = pickle.loads(saved)
        self.schedulers = {actor: unpickled(own, kind) for actor, own in objects.items()}
        self.scheduler = self.schedulers[int(NONE)]
