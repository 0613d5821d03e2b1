"""What a scheduler of coflows records besides ends: what its coordinator has learned, or which coflows it admitted."""

from typing import Any, NamedTuple

import numpy as np

from actors.fabric.admission import ADMITTED, LATE, UNDECIDED, Admission
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.priority_queues import Queues
from actors.initial_arrays import parts_of
from actors.kernel.queue import NEVER, is_here
from actors.setting import Setting


class Learned(NamedTuple):
    """What the coordinator has learned; C coflows in workload order."""

    learned_ns: np.ndarray  # [C] int64, when; -1: never
    learned_bytes: np.ndarray  # [C] float64, what the coflow had sent by then
    estimated_bytes: np.ndarray  # [C] float64, its size as estimated then; NaN: no estimate


def learned_by(
    setting: Setting, world: CoflowWorld, state: Any, estimated: np.ndarray | None = None
) -> Learned | None:
    """Return what the coordinator has learned; None in a partition without the coordinator.

    Args:
        state: of the coordinator, with the `Queues` into which it puts coflows by what it has learned.
        estimated: [C] float64, bytes; None: the scheduler makes no estimates.
    """
    if not is_here(world.queue, world.nodes.size):  # the coordinator's id comes after those of the agents
        return None
    (queues,) = parts_of(state, Queues)
    when, sent = queues.learned, queues.learned_bytes
    known = when < NEVER
    return Learned(
        np.where(known, when, -1),
        np.where(known, sent, 0.0),
        np.full(when.size, np.nan) if estimated is None else np.where(known, estimated, np.nan),
    )


class Admitted(NamedTuple):
    """Which coflows the coordinator admitted, and when; C coflows in workload order."""

    admitted: np.ndarray  # [C] bool, by its last decision; true if the scheduler has no admission
    admitted_ns: np.ndarray  # [C] int64, when it last admitted the coflow; -1: never
    rejected_ns: np.ndarray  # [C] int64, when it last rejected it; -1: never
    # [3] float64, of programs: how many, how many the time limit ended, and the largest gap
    solved: np.ndarray
    sent_bytes: np.ndarray  # [C] float64, what a dropped coflow had sent by then; 0.0 for others


def admitted_by(setting: Setting, world: CoflowWorld, state: Any) -> Admitted | None:
    """Return which coflows the coordinator has admitted; None in a partition without the coordinator."""
    if not is_here(world.queue, world.nodes.size):
        return None
    (admission,) = parts_of(state, Admission)
    admitted_ns, rejected_ns = (
        np.where(when < NEVER, when, -1) for when in (admission.admitted, admission.rejected)
    )
    # Undecided: the scheduler has no admission. Late: it was not rejected before its deadline.
    admitted = np.isin(admission.verdict, (UNDECIDED, ADMITTED, LATE))
    return Admitted(admitted, admitted_ns, rejected_ns, admission.solved.copy(), admission.bytes_sent.copy())
