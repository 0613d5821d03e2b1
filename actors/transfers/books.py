"""The network's books of coflows under a coordinator: which rows they have, and which are free."""

from typing import NamedTuple

import numpy as np

from actors.fabric.initial_arrays import list_per, per
from actors.fabric.sampling import Sampling
from actors.kernel.queue import NEVER
from actors.transfers.fetches import Fetches
from actors.transfers.runs import Runs


class Free(NamedTuple):
    """Rows that no coflow has."""

    flows: Runs
    lines: Runs
    words: Runs
    coflows: np.ndarray  # [C] the first `num_coflows`
    num_coflows: np.ndarray  # [1]


class Cuts(NamedTuple):
    """The flows that are to be cut; those before `next` are left until later."""

    flow: np.ndarray = list_per("flow")  # the first `num`
    num: np.ndarray = per("run")
    next: np.ndarray = per("run")
    left: np.ndarray = per("run")  # how many are left until later, at the front of `flow`
    later: np.ndarray = per("run", NEVER)  # when the first of those may be cut, ns


class Shuffles(NamedTuple):
    """The network's books of coflows: F rows of flows, C of coflows; T tasks, S stages, N machines."""

    fetches: Fetches
    free: Free
    sampling: Sampling
    cuts: Cuts
    lacks: np.ndarray  # [3] flows, lines and words for which no run is free; zeros: none is wanted
    # [S] the first `num_stages`: those with fresh fetches; from `next_stage` on they are not registered
    stages: np.ndarray
    num_stages: np.ndarray  # [1]
    next_stage: np.ndarray  # [1]
    next_edge: np.ndarray  # [1] of that stage, among the edges to it
    num_parents: np.ndarray  # [1] stages of which tasks have ended at this instant, `Outputs.stages`
    next_parent: np.ndarray  # [1] the first of them whose flows are not registered
    next_child: np.ndarray  # [1] of that stage, among the edges from it
    next_layer: np.ndarray  # [1] of that child: its fetches that come as this one on their machines
    newest: np.ndarray  # [S] the last of the fresh fetches of a stage; `Fetches.older` is the one before
    sinks: np.ndarray  # [N] the first `num_sinks`: machines to which the tasks of that stage fetch, in order
    leaders: np.ndarray  # [N] of their fetches
    num_sinks: np.ndarray  # [1]
    at: np.ndarray  # [ports] scratch
    registered: np.ndarray  # [1] coflows so far
    ended: np.ndarray  # [1] coflows that have ended
    took_ns: np.ndarray  # [1] what these took in all, from when their flows were known; float64
    leader: np.ndarray = per("flow")  # of the fetch of a flow
    unended: np.ndarray = per("coflow")  # flows that agents have not ended
    in_use: np.ndarray = per("coflow", False)
    span: np.ndarray = per("coflow")  # [C, 6] first and end of its rows of flows, lines, words
