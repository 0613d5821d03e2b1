"""DAG jobs whose tasks fetch their input over a network: the loop of both, and their state at time 0."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from actors.fabric.max_min import make_fair
from actors.fabric.port_pairs import active_pairs, grow_pairs, make_pairs
from actors.fabric.ports import Coflows, Fabric, Flows, Lines
from actors.kernel.compiled import entry
from actors.kernel.cost import take
from actors.kernel.queue import GROW, NEVER, NONE, RUNNING
from actors.machines import messages
from actors.machines.dag_world import DagWorld
from actors.machines.manager_state import Manager
from actors.machines.resource_manager import on_free, on_match, on_message
from actors.scheduler import Scheduler
from actors.setting import Setting
from actors.transfers.fair import Switch, lacks_rows, on_fetch, on_share

FIRST_ROWS = 1024  # of flows; they grow as flows need them
WORK = np.int64(100_000_000)  # pairs whose rates were shared, after which a slice ends: tenths of a second


class Joined(NamedTuple):
    """Resource managers and the network."""

    manager: Manager
    switch: Switch
    largest: int  # flows that a fetch has at most


@entry
def advance(w: DagWorld, p: Joined, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message, work = w.queue.now, np.int64(0)
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
        elif kind == messages.MATCH:
            on_match(w, p.manager, actor - w.nodes.size, t)
        elif kind == messages.FREE or kind == messages.FREE_AGAIN:
            on_free(w, p.manager, actor - w.nodes.size, t)
        else:
            on_message(w, p.manager, t, kind, actor)
    return RUNNING


def grow(w: DagWorld, p: Joined) -> Joined:
    """Return the state with twice as many rows of flows, or as many as the next event may need."""
    s = p.switch
    if not lacks_rows(s, p.largest):
        return p
    was = s.leader.size
    rows = max(2 * was, was + int(s.wanted[0]) + p.largest)
    fair = s.fair

    def longer(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.zeros(rows - was, array.dtype)]) if array.size else array

    unused = np.concatenate([s.unused[: s.num_unused[0]], np.arange(rows - 1, was - 1, -1)])
    s.num_unused[0] = unused.size
    pairs = grow_pairs(fair.pairs, rows)
    switch = s._replace(
        fabric=s.fabric._replace(flows=Flows(*map(longer, s.fabric.flows))),
        fair=fair._replace(
            pairs=pairs,
            mark=longer(fair.mark),
            offset=longer(fair.offset),
            until=longer(fair.until),
            ended=longer(fair.ended),
        ),
        leader=longer(s.leader),
        unused=np.concatenate([unused, np.zeros(rows - unused.size, np.int64)]),
    )
    return p._replace(switch=switch)


class Transfers(NamedTuple):
    """What a network has done for T tasks."""

    fetched_ns: np.ndarray  # [T] when all input of a task had come; -1: it needs none, or that did not happen
    moved_bytes: float  # between machines
    local_bytes: float  # that lay on the machine where they were needed


def transfers(setting: Setting, w: DagWorld, p: Joined) -> Transfers:
    """Return what the network has done; it is all in one partition."""
    return Transfers(w.inputs.fetched.copy(), *p.switch.moved.tolist())


def with_network(scheduler: Scheduler, network: str, rows: int = FIRST_ROWS) -> Scheduler:
    """Return a scheduler of DAG jobs whose tasks fetch their input over a network, that of `Switch.scheduler`.

    The rates of flows depend on all flows at once: only the clock `virtual` runs it. `rows`: of flows, at first.
    """
    return replace(
        scheduler,
        build=partial(build, scheduler, rows),
        advance=advance,
        grow=grow,
        series=transfers,
        preempts=False,
        ignores=(),
        global_view=("always",),
        remade=(with_network, (scheduler, network, rows)),
    )


def build(scheduler: Scheduler, rows: int, setting: Setting) -> tuple[DagWorld, Joined]:
    """Return machines, resource managers and network at time 0."""
    world, manager = scheduler.build(setting)
    fabric = empty_fabric(world.nodes.size, setting.switch.port_bytes_per_s, rows, world.inputs.parent.size)
    tasks = world.inputs.node.size
    switch = Switch(
        fabric=fabric,
        fair=make_fair(fabric, make_pairs(rows, fabric.speed.size, rows)),
        leader=np.zeros(rows, np.int64),
        unused=np.arange(rows)[::-1].copy(),
        num_unused=np.array([rows]),
        fresh=np.zeros(tasks, np.int64),
        num_fresh=np.zeros(1, np.int64),
        done=np.zeros(tasks, np.int64),
        num_done=np.zeros(1, np.int64),
        newest=np.full(world.nodes.size, NONE),
        older=np.full(tasks, NONE),
        due=np.full(1, NEVER),
        wanted=np.zeros(1, np.int64),
        moved=np.zeros(2),
    )
    return world, Joined(manager, switch, flows_at_most(world))


def flows_at_most(w: DagWorld) -> int:
    """Return how many flows a fetch has at most: one from each machine over each edge to its stage."""
    inputs, tasks = w.inputs, np.diff(w.stages.first_task)
    of_edge = np.minimum(tasks[inputs.parent], w.nodes.size) * (inputs.size > 0)
    stage = np.repeat(np.arange(tasks.size), np.diff(inputs.first_parent))
    return np.int64(np.bincount(stage, of_edge).max(initial=0))


def empty_fabric(ports: int, speed_bytes_per_s: float, rows: int, coflows: int) -> Fabric:
    """Return a switch without flows, with rows for some; their coflows have no lines."""
    side = (ports + 63) // 64 * 64
    nothing = np.zeros(0, np.int64)
    floats, ints = np.zeros(0), np.zeros((coflows, 2), np.int64)
    speed = np.zeros(2 * side)
    speed[:ports] = speed[side : side + ports] = speed_bytes_per_s / 1e9
    zeros, row = np.zeros(coflows, np.int64), np.zeros(rows, np.int64)
    flows = Flows(
        coflow=row,
        source=row.copy(),
        sink=row.copy(),
        size=np.zeros(rows),
        line=np.zeros((0, 2), np.int64),
        left=np.zeros(rows),
        since=row.copy(),
        end=row.copy(),
        finish=row.copy(),
    )
    no_set = np.zeros(0, np.uint64)
    of_lines, of_words = (nothing, nothing, nothing, floats), (nothing, nothing, nothing, nothing)
    lines = Lines(ints, ints.copy(), *of_lines, *of_words, no_set, no_set, nothing, nothing)
    of_coflows = Coflows(
        zeros,
        zeros.copy(),
        zeros.copy(),
        np.ones(coflows),
        zeros.copy(),
        np.full(coflows, NEVER),
        np.full(coflows, NEVER),
        np.zeros(coflows),
        np.zeros(coflows),
        zeros.copy(),
    )
    return Fabric(np.int64(side), speed, flows, of_coflows, lines, True)
