"""Jobs whose tasks fetch their input over a network: schedulers and network, and their state at time 0."""

import pickle
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from actors.environment import Dynamics
from actors.fabric.fabric_world import CoflowWorld, Ended, prices_of
from actors.fabric.messages import DECIDE
from actors.fabric.sampling import sampling_of
from actors.fabric.waves import make_waves
from actors.initial_arrays import at_start, longer, sizes_of
from actors.inputs import HasInputs
from actors.kernel.cost import Cost
from actors.kernel.counters import N_STARTED
from actors.kernel.queue import NONE
from actors.kernel.records import as_records, records
from actors.kernel.turns import Turns
from actors.nodes.world import ACTOR
from actors.scheduler import COORDINATOR_COSTS, NO_NETWORK, Host, Scheduler, resolve_parameters
from actors.setting import Setting
from actors.transfers import fair
from actors.transfers.fetches import make_fetches
from actors.transfers.shuffles import (
    Cuts,
    Free,
    Shuffles,
    free_runs,
    make_room,
)
from workloads.coflows import no_coflows
from workloads.errors import InputError

# The Python side of runs over a network in which the resource manager, the coordinator, or both, decide in Python.


class JoinedHost(Host):
    """Asks the host whose decision is due, with the world and the state that this one knows.

    Args:
        manager, coordinator: None: it decides in compiled code.
    """

    def __init__(self, manager: Host | None, coordinator: Host | None):
        self._manager, self._coordinator = manager, coordinator
        self._hosts = [host for host in (manager, coordinator) if host is not None]
        self._asked = self._hosts[0]

    def compile(self, world: Any, state: Any) -> None:
        """Compile the functions that the hosts call."""
        if self._manager is not None:
            self._manager.compile(world, state.schedulers)
        if self._coordinator is not None:
            self._coordinator.compile(state.network.world, state.network.coordinator)

    def __call__(self, world: Any, state: Any) -> None:
        """Handle the event in `world.queue.now`."""
        if self._coordinator is not None and world.queue.now[0].kind == DECIDE:
            self._asked = self._coordinator
            self._coordinator(state.network.world, state.network.coordinator)
        elif self._manager is not None:
            self._asked = self._manager
            self._manager(world, state.schedulers)

    def share_done(self, world: Any, state: Any) -> float:
        """Return the share of the tasks that have been started."""
        return float(world.counts[N_STARTED : N_STARTED + 2].sum()) / world.inputs.node.size

    def placed(self, error: InputError) -> InputError:
        """Return an error about what was decided last, with the place of the code that decided."""
        return self._asked.placed(error)

    def save(self) -> bytes:
        """Return the states of the hosts."""
        return pickle.dumps([host.save() for host in self._hosts])

    def load(self, saved: bytes) -> None:
        """Restore the states that `save` returned."""
        for host, of_it in zip(self._hosts, pickle.loads(saved), strict=True):
            host.load(of_it)


FIRST_ROWS = 1024  # of flows; they grow as flows need them
FIRST_COFLOWS = 64
NO_COORDINATOR = (
    ("network.waves", "max-min fair sharing knows no coflows"),
    *((name, "max-min fair sharing has no coordinator") for name in COORDINATOR_COSTS),
)


class Joined(NamedTuple):
    """The states of the two loops of a run."""

    schedulers: Any
    network: "fair.Switch | Coordinated"


class Coordinated(NamedTuple):
    """The network under a coordinator of coflows."""

    shuffles: Shuffles
    world: CoflowWorld  # with the queue of the machines' world
    coordinator: Any


def grow(scheduler: Scheduler, w: HasInputs, p: Joined) -> Joined:
    """Return the states, with more room where they lack some."""
    if isinstance(p.network, fair.Switch):
        network: Any = fair.grow(p.network)
    else:
        network = grow_coordinated(w, p.network)
    return Joined(scheduler.grow(w, p.schedulers), network)


def grow_coordinated(w: HasInputs, p: Coordinated) -> Coordinated:
    """Return the state with the machines' queue and costs, and with rows for the coflows that lack them."""
    n, coordinator, s = p.world._replace(queue=w.queue, cost=cost_of_network(w)), p.coordinator, p.shuffles
    if s.lacks.any():
        n, coordinator, s = make_room(int(w.queue.now.time[0]), n, coordinator, s)
    return Coordinated(s, n, coordinator)


def cost_of_network(w: HasInputs) -> Cost:
    """Return the cost model of the machines' world for the network: the first server is the coordinator.

    The fixed prices of messages and jobs are not for it: it has its own (`actors.fabric.fabric_world.Prices`).
    """
    servers = np.asarray(w.cost.servers)
    return w.cost._replace(servers=as_records(servers[max(servers.size - 2, 0) :]))


class Transfers(NamedTuple):
    """What a network has done for T tasks."""

    fetched_ns: np.ndarray  # [T] when all input of a task had come; -1: it needs none, or that did not happen
    moved_bytes: float  # between machines
    local_bytes: float  # that lay on the machine where they were needed
    coflows: int  # that a coordinator has registered; 0: there is none
    mean_cct_s: float  # of those that have ended, from when their flows were known
    launched_ns: np.ndarray  # [S] when all tasks of a stage were launched; empty where no edge is pipelined
    # [T] a task's home, when that was asked to receive its input, and when the manager knew that it was there; -1: it
    # has none, or that did not happen; empty where no shuffle is pushed
    home: np.ndarray
    sent_ns: np.ndarray
    ready_ns: np.ndarray
    counts: np.ndarray  # of the coordinator, by `actors.fabric.counters`; empty without one
    waits: np.ndarray  # [BUCKETS] histogram of its messages by how long they waited for it

    def merged(self, parts: "list[Transfers]") -> "Transfers":
        """Return the same of all partitions; each has what its actors know, and what others do as it was at time 0."""
        added = ("moved_bytes", "local_bytes", "coflows", "mean_cct_s", "counts", "waits")
        columns = zip(self._fields, zip(*parts, strict=True), strict=True)
        return Transfers(*(sum(of) if name in added else np.maximum.reduce(of) for name, of in columns))


def transfers(setting: Setting, w: HasInputs, p: Joined) -> Transfers:
    """Return what the network has done, as far as this partition knows."""
    moved, local = w.inputs.moved.tolist()
    coflows, mean_ns, counts = 0, 0.0, np.zeros(0, np.int64)
    if isinstance(p.network, Coordinated):
        shuffles, counts = p.network.shuffles, p.network.world.counts.copy()
        coflows = int(shuffles.registered[0])
        mean_ns = float(shuffles.took_ns[0]) / max(int(shuffles.ended[0]), 1)
    homes = w.inputs.homes
    was_asked = (homes.of_task >= 0) & (w.inputs.node[: homes.of_task.size] >= 0)
    return Transfers(
        fetched_ns=w.inputs.fetched.copy(),
        moved_bytes=moved,
        local_bytes=local,
        coflows=coflows,
        mean_cct_s=mean_ns / 1e9,
        launched_ns=w.inputs.all_launched.copy(),
        home=homes.of_task,
        sent_ns=np.where(was_asked, w.inputs.launched[: homes.of_task.size], NONE),
        ready_ns=homes.ready.copy(),
        counts=counts,
        waits=w.cost.lateness[0].copy(),
    )


def with_network(
    scheduler: Scheduler, coordinator: Scheduler | None = None, rows: int = FIRST_ROWS
) -> Scheduler:
    """Return a scheduler of DAG jobs whose tasks fetch their input over a network.

    Args:
        coordinator: of coflows, which schedules the flows; None: they share the ports max-min fairly.
        rows: of flows, at first.
    """
    network = fair.advance if coordinator is None else coordinator.transfers
    assert network is not None
    asks = any(half is not None and half.host is not None for half in (scheduler, coordinator))
    return replace(
        scheduler,
        build=partial(build, scheduler, coordinator, rows),
        advance=Turns(scheduler.advance, network),
        grow=partial(grow, scheduler),
        host=partial(make_host, scheduler, coordinator) if asks else None,
        coordinator=coordinator,
        series=transfers,
        preempts=False,
        ignores=(
            *(one for one in scheduler.ignores if one not in NO_NETWORK),
            *(NO_COORDINATOR if coordinator is None else ()),
        ),
        remade=(with_network, (scheduler, coordinator, rows)),
    )


def make_host(scheduler: Scheduler, coordinator: Scheduler | None, setting: Setting) -> JoinedHost:
    """Return the Python side of a run in which the resource manager, the coordinator, or both, decide in Python."""
    manager = None if scheduler.host is None else scheduler.host(setting)
    if coordinator is None or coordinator.host is None:
        return JoinedHost(manager, None)
    return JoinedHost(manager, coordinator.host(of_coordinator(coordinator, setting)))


def of_coordinator(coordinator: Scheduler, setting: Setting) -> Setting:
    """Return what the coordinator of a run depends on: at first there are no coflows.

    Recorded costs are those of all schedulers: the machines' world has them.
    """
    recorded = setting.costs.recorded
    return replace(
        setting,
        scheduler=coordinator,
        parameters=resolve_parameters(coordinator, {}),
        workload=no_coflows(setting.cluster.num_nodes),
        costs=replace(setting.costs, recorded=None if recorded is None else recorded[:0]),
        dynamics=Dynamics(),
        preemption=None,
        resources=(),
    )


def build(
    scheduler: Scheduler, coordinator: Scheduler | None, rows: int, setting: Setting
) -> tuple[Any, Joined]:
    """Return machines, schedulers and the network, at time 0."""
    world, schedulers = scheduler.build(setting)
    world.queue.now.two_loops[0] = 1
    if coordinator is None:
        return world, Joined(schedulers, fair.build(world, rows, setting.switch.port_bytes_per_s))
    world, network = build_coordinated(world, coordinator, rows, setting)
    return world, Joined(schedulers, network)


def build_coordinated(
    world: Any, coordinator: Scheduler, rows: int, setting: Setting
) -> tuple[Any, Coordinated]:
    """Return machines with room for the messages of a coordinator, and the network under it, at time 0."""
    nodes, alone = world.nodes.size, of_coordinator(coordinator, setting)
    network, state = coordinator.build(alone)
    # One event may send what the coordinator's may, and a message to each machine.
    world = world._replace(queue=world.queue._replace(room=max(network.queue.room + nodes, world.queue.room)))
    edges = world.inputs.parent.size if setting.switch.waves == "together" else 0
    # The coordinator is the actor after the schedulers; agents are machines.
    network = network._replace(
        queue=world.queue,
        nodes=records(ACTOR, world.queue.seq.size - 2),
        cost=cost_of_network(world),
        intervals=network.intervals._replace(origin=int(world.work.submit[0])),
        prices=prices_of(setting.costs, *flows_and_coflows(world), nodes),
        ended=at_start(Ended, network.fabric),
        waves=make_waves(0, edges),
    )
    books = make_shuffles(world, network, alone.parameters)
    was = sizes_of(network.fabric)
    now = was | {"coflow": FIRST_COFLOWS, "group": 2 * FIRST_COFLOWS, "flow": rows, "place": 2 * rows}
    now |= {"line": rows, "word": rows, "flow or line": 2 * rows, "flow twice or line": 3 * rows}
    network, state, books = (longer(part, was, now) for part in (network, state, books))
    books = books._replace(free=all_free(rows, FIRST_COFLOWS))
    return world, Coordinated(books, network, state)


def flows_and_coflows(w: HasInputs) -> tuple[int, int]:
    """Return how many flows, and coflows, there are at most: one to each task, from each machine, over each edge."""
    tasks, inputs = np.diff(w.stages.first_task), w.inputs
    senders = np.where(inputs.one_to_one == 1, 1, np.minimum(tasks[inputs.parent], w.nodes.size))
    waves = np.repeat(tasks, np.diff(inputs.first_parent)) * senders
    return int(waves.sum()), int(waves.sum())


def all_free(rows: int, coflows: int) -> Free:
    """Return the free rows when all are."""
    nothing = np.zeros(0, np.int64)
    flows, lines, words = (free_runs(nothing, nothing, rows) for _ in range(3))
    return Free(flows, lines, words, np.arange(coflows)[::-1].copy(), np.array([coflows]))


def make_shuffles(w: HasInputs, n: CoflowWorld, parameters: dict[str, Any]) -> Shuffles:
    """Return the network's books before any coflow."""
    stages, nodes = w.stages.job.size, w.nodes.size
    books = at_start(
        Shuffles,
        n.fabric,
        fetches=make_fetches(w),
        free=all_free(0, 0),
        cuts=at_start(Cuts, n.fabric),
        # All have room for pilots: which are thin is decided by the coordinator.
        sampling=sampling_of(parameters)._replace(thin_limit=0),
        lacks=np.zeros(3, np.int64),
        stages=np.zeros(stages, np.int64),
        newest=np.full(stages, NONE),
        sinks=np.zeros(nodes, np.int64),
        leaders=np.zeros(nodes, np.int64),
        at=np.zeros(n.fabric.speed.size, np.int64),
    )
    return books._replace(span=np.zeros((0, 6), np.int64))
