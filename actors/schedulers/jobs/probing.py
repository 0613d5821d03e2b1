"""Batch sampling: probes of a job to randomly chosen nodes (Sparrow, SOSP'13, section 3.3)."""

import math
from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.queue import PROBE, send
from actors.kernel.random import PROBES, below, random_bits
from actors.kernel.world import N_PROBES, NONE


class Probing(NamedTuple):
    """How many probes a job sends, and scratch space to draw their nodes."""

    ratio: float  # probes per task
    least: int  # probes of the smallest job
    replacement: int  # 1: nodes are drawn with replacement
    marked: np.ndarray  # [nodes] scratch, all False between draws
    drawn: np.ndarray  # [nodes] scratch


def make_probing(ratio: float, least: int, replacement: bool, nodes: int) -> Probing:
    """Probing over `nodes` nodes."""
    return Probing(
        float(ratio), int(least), int(replacement), np.zeros(nodes, np.bool_), np.zeros(nodes, np.int64)
    )


def most_probes(ratio: float, least: int, most_tasks: int) -> int:
    """The most probes a job of up to `most_tasks` tasks sends."""
    return max(math.ceil(ratio * most_tasks), least)


@inlined
def probes_of(probing, tasks):
    """Probes that a job of `tasks` tasks sends."""
    return max(np.int64(math.ceil(probing.ratio * tasks)), probing.least)


@inlined
def send_probes(w, t, me, probing, job, tasks, count, kind_of_round):
    """Probe `count` nodes, all different; if there are more probes than nodes, every node in turn first."""
    n = w.nodes.size
    w.counts[N_PROBES] += count
    in_turn = 0 if probing.replacement == 1 else count - count % n
    for i in range(count):
        if i < in_turn:
            node = i % n
        elif probing.replacement == 1:
            node = below(random_bits(w.seed, PROBES, job, i), n)
        else:
            node = draw_another(w, probing, job, i - in_turn, n - count + i)
        send(w, t, me, node, PROBE, job, tasks, kind_of_round, NONE)
    if probing.replacement == 0:
        for i in range(count - in_turn):
            probing.marked[probing.drawn[i]] = False


@inlined
def draw_another(w, probing, job, i, last):
    """The `i`-th of a sample without replacement, by Floyd's method: one draw each, `last` grows by one."""
    node = below(random_bits(w.seed, PROBES, job, i), last + 1)
    if probing.marked[node]:
        node = last
    probing.marked[node] = True
    probing.drawn[i] = node
    return node
