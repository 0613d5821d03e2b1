"""What a scheduler of coflows records besides ends: what its coordinator has learned, or which coflows it admitted."""

from typing import NamedTuple

import numpy as np

from actors.fabric.admission import ADMITTED, LATE, UNDECIDED, Admission
from actors.fabric.fabric_world import CoflowWorld
from actors.kernel.queue import NEVER, is_here


class Learned(NamedTuple):
    """What the coordinator has learned; C coflows in workload order."""

    learned_ns: np.ndarray  # [C] int64, when; -1: never
    learned_bytes: np.ndarray  # [C] float64, what the coflow had sent by then
    estimated_bytes: np.ndarray  # [C] float64, its size as estimated then; NaN: no estimate


def learned_by(
    world: CoflowWorld, when: np.ndarray, sent: np.ndarray, estimated: np.ndarray | None = None
) -> Learned | None:
    """Return what the coordinator has learned; None in a partition without the coordinator.

    Args:
        world: of the partition.
        when: [C] int64 ns, NEVER: nothing was learned.
        sent: [C] float64, bytes sent by then.
        estimated: [C] float64, bytes; None: the scheduler makes no estimates.
    """
    if not is_here(world.queue, world.nodes.size):  # the coordinator's id comes after those of the agents
        return None
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


def admitted_by(world: CoflowWorld, admission: Admission, solved: np.ndarray) -> Admitted | None:
    """Return what the coordinator has admitted; None in a partition without the coordinator."""
    if not is_here(world.queue, world.nodes.size):
        return None
    admitted_ns, rejected_ns = (
        np.where(when < NEVER, when, -1) for when in (admission.admitted, admission.rejected)
    )
    # Undecided: the scheduler has no admission. Late: it was not rejected before its deadline.
    admitted = np.isin(admission.verdict, (UNDECIDED, ADMITTED, LATE))
    return Admitted(admitted, admitted_ns, rejected_ns, solved.copy(), admission.bytes_sent.copy())
