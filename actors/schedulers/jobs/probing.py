"""Batch sampling: probes of a job to randomly chosen nodes (Sparrow, SOSP'13, section 3, "Batch sampling")."""

import math
from typing import NamedTuple

import numpy as np

from actors import constraints
from actors.failures import epoch_of
from actors.kernel.compiled import inlined
from actors.kernel.queue import NONE
from actors.kernel.random import DRAW_ORDER, PROBES, below, random_bits
from actors.nodes.messages import send_probe
from actors.nodes.world import N_PROBES, World
from actors.schedulers.jobs.spreading import NODE_0, settle_rack

FIRST_ROUND = np.int64(0)
NO_VERSION = NONE  # a message that carries no version of a shared state
ONE = np.int64(1)  # what a task that is placed again states as the tasks that its job has left


class Probing(NamedTuple):
    """How many probes a job sends, and scratch space to draw their nodes."""

    ratio: float  # probes per task
    least: int  # probes of the smallest job
    replacement: bool  # nodes are drawn with replacement
    marked: np.ndarray  # [N] scratch, all False between draws
    nodes: np.ndarray  # [most probes of a job] scratch


def make_probing(ratio: float, least: int, replacement: bool, nodes: int, most_tasks: int) -> Probing:
    """Probing over `nodes` nodes for jobs of up to `most_tasks` tasks."""
    return Probing(
        float(ratio),
        int(least),
        replacement,
        np.zeros(nodes, np.bool_),
        np.zeros(most_probes(ratio, least, most_tasks), np.int64),
    )


def most_probes(ratio: float, least: int, most_tasks: int) -> int:
    """The most probes a job of up to `most_tasks` tasks sends."""
    return max(math.ceil(ratio * most_tasks), least)


@inlined
def probes_of(probing: Probing, tasks: int) -> int:
    """Probes that a job of `tasks` tasks sends."""
    wanted: int = np.int64(math.ceil(probing.ratio * tasks))
    return max(wanted, probing.least)


@inlined
def draw_nodes(w: World, probing: Probing, job: int, count: int) -> None:
    """Draw `count` nodes that the job may use into `probing.nodes`, as `draw_places` does their places."""
    draw_places(w, probing, PROBES, job, np.int64(0), count, constraints.eligible_count(w, job))
    if constraints.is_constrained(w, job):
        for i in range(count):
            probing.nodes[i] = constraints.eligible_node(w, job, probing.nodes[i])


@inlined
def draw_places(w: World, probing: Probing, stream: int, owner: int, drawn: int, count: int, n: int) -> None:
    """Draw `count` of `n` places into `probing.nodes`: all different, or with replacement.

    They are the draws from `drawn` on of an owner in a stream (`actors.kernel.random`).
    If there are more probes than nodes, every node comes in turn first, and the rest is drawn.
    """
    nodes = probing.nodes
    in_turn = 0 if probing.replacement else count - count % n
    for i in range(in_turn):
        nodes[i] = i % n
    for i in range(in_turn, count):
        # Floyd's method: one draw each, from a range that grows by one; what is drawn twice gives the newest.
        last = n - 1 if probing.replacement else n - count + i
        node = below(random_bits(w.seed, stream, owner, drawn + i), last + 1)
        if not probing.replacement:
            if probing.marked[node]:
                node = last
            probing.marked[node] = True
        nodes[i] = node
    for i in range(in_turn, count):
        probing.marked[nodes[i]] = False


@inlined
def shuffle_nodes(w: World, probing: Probing, job: int, count: int) -> None:
    """Put the `count` nodes that were drawn for the job in random order; that of the draws is not random."""
    nodes = probing.nodes
    for i in range(count - 1, 0, -1):
        j = below(random_bits(w.seed, DRAW_ORDER, job, i), i + 1)
        nodes[i], nodes[j] = nodes[j], nodes[i]


@inlined
def send_probes(w: World, t: int, me: int, probing: Probing, job: int, tasks: int) -> None:
    """Probe nodes for a job of `tasks` tasks that arrives; where no two may share a node, each at most once."""
    settle_rack(w, job, NODE_0)
    count = probes_of(probing, tasks)
    if constraints.placement_of(w, job) & constraints.OVER_NODES != 0:
        count = min(count, constraints.eligible_count(w, job))
    draw_nodes(w, probing, job, count)
    w.counts[N_PROBES] += count
    for i in range(count):
        probe(w, t, me, probing.nodes[i], job, tasks, FIRST_ROUND, NO_VERSION)


@inlined
def probe(w: World, t: int, me: int, node: int, job: int, left: int, this_round: int, version: int) -> None:
    """Send one probe of a job that has `left` tasks to hand out."""
    send_probe(w, t, me, node, job, left, constraints.level_of(w, job), this_round, epoch_of(w, job), version)
