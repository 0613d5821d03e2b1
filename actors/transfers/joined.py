"""DAG jobs whose tasks fetch their input over a network: the loops of both, and their state at time 0."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from actors.environment import Costs, Dynamics
from actors.fabric.fabric_world import CoflowWorld, Ended
from actors.fabric.initial_arrays import at_start, longer, sizes_of
from actors.fabric.max_min import make_fair
from actors.fabric.messages import is_of_coflows
from actors.fabric.port_pairs import active_pairs, grow_pairs, make_pairs
from actors.fabric.ports import build_fabric
from actors.fabric.sampling import sampling_of
from actors.fabric.waves import make_waves
from actors.kernel.compiled import compiled, entry, template
from actors.kernel.cost import take
from actors.kernel.queue import GROW, NONE, PYTHON, RUNNING, lacks_room
from actors.kernel.records import records
from actors.kernel.world import ACTOR
from actors.machines import messages
from actors.machines.dag_world import DagWorld
from actors.machines.manager_state import Manager
from actors.machines.matching import lacks_room_for_pending
from actors.machines.resource_manager import on_event
from actors.scheduler import Scheduler, resolve_parameters
from actors.setting import Setting
from actors.transfers import shuffles
from actors.transfers.fair import Switch, lacks_rows, on_fetch, on_share
from actors.transfers.fetches import make_fetches
from actors.transfers.joined_host import JoinedHost
from actors.transfers.room import make_room
from actors.transfers.runs import free_runs
from actors.transfers.shuffles import Free, Shuffles
from workloads.coflows import no_coflows

FIRST_ROWS = 1024  # of flows; they grow as flows need them
FIRST_COFLOWS = 64
WORK = np.int64(100_000_000)  # pairs whose rates were shared, after which a slice ends: tenths of a second
NO_COORDINATOR = (("network.waves", "max-min fair sharing knows no coflows"),)


class Joined(NamedTuple):
    """Resource managers, and the network that all flows share."""

    manager: Manager
    switch: Switch
    largest: int  # flows that a fetch has at most


class Coordinated(NamedTuple):
    """Resource managers, and the network under a coordinator of coflows."""

    manager: Manager
    shuffles: Shuffles
    world: CoflowWorld  # with the queue of the machines' world
    coordinator: Any


@compiled
def on_task_event(w: DagWorld, manager: Manager, t: int, kind: int, actor: int) -> bool:
    """Handle a message between machines and managers: compiled once for all loops over a network."""
    return on_event(w, manager, t, kind, actor)


@entry
def advance(w: DagWorld, p: Joined, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason: the loop without a coordinator."""
    message, work = w.queue.now, np.int64(0)
    if lacks_room_for_pending(w, p.manager):
        return GROW
    for _ in range(most):
        if lacks_rows(p.switch, p.largest):
            return GROW
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, actor = message.time[0], message.kind[0], message.dst[0]
        if kind == messages.FETCH:
            on_fetch(w, p.switch, t)
        elif kind == messages.SHARE:
            on_share(w, p.switch, t)
            work += w.nodes.size + active_pairs(p.switch.fair.pairs)
            if work > WORK:  # the host has progress to show, and Ctrl-C to see
                return RUNNING
        elif on_task_event(w, p.manager, t, kind, actor):
            return PYTHON
    return RUNNING


@template
def handle_coordinated(w: DagWorld, p: Coordinated, until: int, most: int, on_coflow_event: Callable) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason: the loop under a coordinator.

    Args:
        on_coflow_event: (world of coflows, the coordinator's state), handles a message between agents and coordinator;
            returns whether the host must decide.
    """
    message, s, n = w.queue.now, p.shuffles, p.world
    if lacks_room_for_pending(w, p.manager):
        return GROW
    for _ in range(most):
        if shuffles.is_unfinished(s):
            if s.lacks[0] > 0 or lacks_room(w.queue):
                return GROW
            shuffles.go_on(w, n, s, message.time[0])
            continue
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, actor = message.time[0], message.kind[0], message.dst[0]
        if is_of_coflows(kind):
            asks_host = on_coflow_event(n, p.coordinator)
            if n.ended.num[0] > 0:
                shuffles.on_ended(w, n, s, t)
            if asks_host:
                return PYTHON
        elif kind == messages.FETCH:
            shuffles.on_fetch(w, s, t)
        elif kind == messages.SHARE:
            shuffles.on_share(w, n, s, t)
        elif on_task_event(w, p.manager, t, kind, actor):
            return PYTHON
    return RUNNING


def grow(w: DagWorld, p: Joined) -> Joined:
    """Return the state with twice as many rows of flows, or as many as the next event may need."""
    s = p.switch
    if not lacks_rows(s, p.largest):
        return p
    was = sizes_of(s.fabric)
    rows = max(2 * was["flow"], was["flow"] + int(s.wanted[0]) + p.largest)
    now = was | {"flow": rows}
    unused = np.concatenate([s.unused[: s.num_unused[0]], np.arange(rows - 1, was["flow"] - 1, -1)])
    s.num_unused[0] = unused.size
    fair, more = longer(s.fair, was, now), rows - was["flow"]
    fair = fair._replace(
        pairs=grow_pairs(s.fair.pairs, rows),
        mark=np.concatenate([fair.mark, np.zeros(more)]),
        offset=np.concatenate([fair.offset, np.zeros(more)]),
    )
    switch = s._replace(
        fabric=longer(s.fabric, was, now),
        fair=fair,
        leader=np.concatenate([s.leader, np.zeros(more, np.int64)]),
        unused=np.concatenate([unused, np.zeros(rows - unused.size, np.int64)]),
    )
    return p._replace(switch=switch)


def grow_coordinated(w: DagWorld, p: Coordinated) -> Coordinated:
    """Return the state with the machines' queue, and with rows for the coflows that lack them."""
    n, coordinator, s = p.world._replace(queue=w.queue), p.coordinator, p.shuffles
    if s.lacks.any():
        n, coordinator, s = make_room(int(w.queue.now.time[0]), n, coordinator, s)
    return p._replace(world=n, coordinator=coordinator, shuffles=s)


class Transfers(NamedTuple):
    """What a network has done for T tasks."""

    fetched_ns: np.ndarray  # [T] when all input of a task had come; -1: it needs none, or that did not happen
    moved_bytes: float  # between machines
    local_bytes: float  # that lay on the machine where they were needed
    coflows: int  # that a coordinator has registered; 0: there is none
    mean_cct_s: float  # of those that have ended, from when their flows were known


def transfers(setting: Setting, w: DagWorld, p: Joined | Coordinated) -> Transfers:
    """Return what the network has done; it is all in one partition."""
    moved, local = w.inputs.moved.tolist()
    coflows, mean_ns = 0, 0.0
    if isinstance(p, Coordinated):
        coflows = int(p.shuffles.registered[0])
        mean_ns = float(p.shuffles.took_ns[0]) / max(int(p.shuffles.ended[0]), 1)
    return Transfers(w.inputs.fetched.copy(), moved, local, coflows, mean_ns / 1e9)


def with_network(
    scheduler: Scheduler, coordinator: Scheduler | None = None, rows: int = FIRST_ROWS
) -> Scheduler:
    """Return a scheduler of DAG jobs whose tasks fetch their input over a network.

    A shuffle's flows are those of all machines at once: only the clock `virtual` runs it.

    Args:
        coordinator: of coflows, which schedules the flows; None: they share the ports max-min fairly.
        rows: of flows, at first.
    """
    if coordinator is None:
        parts: dict[str, Any] = {"build": partial(build, scheduler, rows), "advance": advance, "grow": grow}
    else:
        parts = {
            "build": partial(build_coordinated, scheduler, coordinator, rows),
            "advance": coordinator.transfers,
            "grow": grow_coordinated,
        }
    asks = any(half is not None and half.host is not None for half in (scheduler, coordinator))
    return replace(
        scheduler,
        **parts,
        host=partial(make_host, scheduler, coordinator) if asks else None,
        coordinator=coordinator,
        series=transfers,
        preempts=False,
        ignores=NO_COORDINATOR if coordinator is None else (),
        global_view=("always",),
        remade=(with_network, (scheduler, coordinator, rows)),
    )


def make_host(scheduler: Scheduler, coordinator: Scheduler | None, setting: Setting) -> JoinedHost:
    """Return the Python side of a run in which the resource manager, the coordinator, or both, decide in Python."""
    manager = None if scheduler.host is None else scheduler.host(setting)
    if coordinator is None or coordinator.host is None:
        return JoinedHost(manager, None)
    return JoinedHost(manager, coordinator.host(of_coordinator(coordinator, setting)))


def of_coordinator(coordinator: Scheduler, setting: Setting) -> Setting:
    """Return what the coordinator of a run depends on: at first there are no coflows."""
    return replace(
        setting,
        scheduler=coordinator,
        parameters=resolve_parameters(coordinator, {}),
        workload=no_coflows(setting.cluster.num_nodes),
        costs=Costs(),
        dynamics=Dynamics(),
        preemption=None,
        resources=(),
    )


def build(scheduler: Scheduler, rows: int, setting: Setting) -> tuple[DagWorld, Joined]:
    """Return machines, resource managers and the network that all flows share, at time 0."""
    world, manager = scheduler.build(setting)
    fabric = build_fabric(no_coflows(world.nodes.size).arrays(), setting.switch.port_bytes_per_s)
    was = sizes_of(fabric)
    edges = world.inputs.parent.size
    fabric = longer(fabric, was, was | {"flow": rows, "coflow": edges, "group": 2 * edges})
    switch = Switch(
        fetches=make_fetches(world),
        fabric=fabric,
        fair=make_fair(fabric, make_pairs(rows, fabric.speed.size, rows)),
        leader=np.zeros(rows, np.int64),
        unused=np.arange(rows)[::-1].copy(),
        num_unused=np.array([rows]),
        wanted=np.zeros(1, np.int64),
    )
    return world, Joined(manager, switch, flows_at_most(world))


def flows_at_most(w: DagWorld) -> int:
    """Return how many flows a fetch has at most: one from each machine over each edge to its stage.

    Over an edge without parent, as over all that are one-to-one, it has one more with each task.
    """
    inputs, tasks = w.inputs, np.diff(w.stages.first_task)
    of_edge = np.minimum(tasks[inputs.parent], w.nodes.size) * (inputs.size > 0)
    of_edge[inputs.parent == NONE] = 1
    stage = np.repeat(np.arange(tasks.size), np.diff(inputs.first_parent))
    return np.int64(np.bincount(stage, of_edge).max(initial=0))


def build_coordinated(
    scheduler: Scheduler, coordinator: Scheduler, rows: int, setting: Setting
) -> tuple[DagWorld, Coordinated]:
    """Return machines, resource managers and the network under a coordinator, at time 0."""
    world, manager = scheduler.build(setting)
    nodes, alone = world.nodes.size, of_coordinator(coordinator, setting)
    network, state = coordinator.build(alone)
    # One event may send what the coordinator's may, and a message to each machine.
    world = world._replace(queue=world.queue._replace(room=max(network.queue.room + nodes, world.queue.room)))
    edges = world.inputs.parent.size if setting.switch.waves == "together" else 0
    # The coordinator is the actor after the managers; agents are machines.
    network = network._replace(
        queue=world.queue,
        nodes=records(ACTOR, nodes + world.first_node.size - 1),
        ended=at_start(Ended, network.fabric),
        waves=make_waves(0, edges),
    )
    books = make_shuffles(world, network, alone.parameters)
    was = sizes_of(network.fabric)
    now = was | {"coflow": FIRST_COFLOWS, "group": 2 * FIRST_COFLOWS, "flow": rows, "place": 2 * rows}
    now |= {"line": rows, "word": rows, "flow or line": 2 * rows, "flow twice or line": 3 * rows}
    network, state, books = (longer(part, was, now) for part in (network, state, books))
    books = books._replace(free=all_free(rows, FIRST_COFLOWS))
    return world, Coordinated(manager, books, network, state)


def all_free(rows: int, coflows: int) -> Free:
    """Return the free rows when all are."""
    nothing = np.zeros(0, np.int64)
    flows, lines, words = (free_runs(nothing, nothing, rows) for _ in range(3))
    return Free(flows, lines, words, np.arange(coflows)[::-1].copy(), np.array([coflows]))


def make_shuffles(w: DagWorld, n: CoflowWorld, parameters: dict[str, Any]) -> Shuffles:
    """Return the network's books before any coflow."""
    stages, nodes = w.stages.job.size, w.nodes.size
    books = at_start(
        Shuffles,
        n.fabric,
        fetches=make_fetches(w),
        free=all_free(0, 0),
        # All have room for pilots: which are thin is decided by the coordinator.
        sampling=sampling_of(parameters)._replace(thin_limit=0),
        lacks=np.zeros(3, np.int64),
        stages=np.zeros(stages, np.int64),
        **{
            name: np.zeros(1, np.int64)
            for name in ("num_stages", "ended", "next_stage", "next_edge", "num_sinks", "registered")
        },
        newest=np.full(stages, NONE),
        sinks=np.zeros(nodes, np.int64),
        leaders=np.zeros(nodes, np.int64),
        at=np.zeros(n.fabric.speed.size, np.int64),
        took_ns=np.zeros(1),
    )
    return books._replace(span=np.zeros((0, 6), np.int64))
