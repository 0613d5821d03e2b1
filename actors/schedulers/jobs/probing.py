"""Batch sampling: probes of a job to randomly chosen nodes (Sparrow, SOSP'13, section 3.3)."""

import math
from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.queue import PROBE, send
from actors.kernel.random import PROBES, below, random_bits
from actors.kernel.world import N_PROBES, NONE

FIRST_ROUND = np.int64(0)


class Probing(NamedTuple):
    """How many probes a job sends, and scratch space to draw their nodes."""

    ratio: float  # probes per task
    least: int  # probes of the smallest job
    replacement: int  # 1: nodes are drawn with replacement
    marked: np.ndarray  # [N] scratch, all False between draws
    nodes: np.ndarray  # [most probes of a job] scratch


def make_probing(ratio: float, least: int, replacement: bool, nodes: int, most_tasks: int) -> Probing:
    """Probing over `nodes` nodes for jobs of up to `most_tasks` tasks."""
    return Probing(
        float(ratio),
        int(least),
        int(replacement),
        np.zeros(nodes, np.bool_),
        np.zeros(most_probes(ratio, least, most_tasks), np.int64),
    )


def most_probes(ratio: float, least: int, most_tasks: int) -> int:
    """The most probes a job of up to `most_tasks` tasks sends."""
    return max(math.ceil(ratio * most_tasks), least)


@inlined
def probes_of(probing, tasks):
    """Probes that a job of `tasks` tasks sends."""
    return max(np.int64(math.ceil(probing.ratio * tasks)), probing.least)


@inlined
def draw_nodes(w, probing, job, count):
    """Draw `count` nodes into `probing.nodes`: all different, or with replacement.

    If there are more probes than nodes, every node comes in turn first, and the rest is drawn.
    """
    n, nodes = w.nodes.size, probing.nodes
    in_turn = 0 if probing.replacement == 1 else count - count % n
    for i in range(in_turn):
        nodes[i] = i % n
    for i in range(in_turn, count):
        # Floyd's method: one draw each, from a range that grows by one; what is drawn twice gives the newest.
        last = n - 1 if probing.replacement == 1 else n - count + i
        node = below(random_bits(w.seed, PROBES, job, i), last + 1)
        if probing.replacement == 0:
            if probing.marked[node]:
                node = last
            probing.marked[node] = True
        nodes[i] = node
    for i in range(in_turn, count):
        probing.marked[nodes[i]] = False


@inlined
def send_probes(w, t, me, probing, job, tasks, count, first_round):
    """Probe `count` nodes for a job of `tasks` tasks."""
    draw_nodes(w, probing, job, count)
    w.counts[N_PROBES] += count
    for i in range(count):
        send(w, t, me, probing.nodes[i], PROBE, job, tasks, first_round, NONE)
