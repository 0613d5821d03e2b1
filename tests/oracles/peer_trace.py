"""The trace as the public simulators of coflows see it, for the small simulators that have their rules.

Times are in ms.
"""

from typing import NamedTuple

import numpy as np

from emu.results.metrics import Float64Array
from workloads.coflows import CoflowWorkload
from workloads.jobs import Int64Array

BYTES_PER_MS = 131_072.0
STEP_MS = 8.0
EPOCH_MS = 10_240.0


class Trace(NamedTuple):
    """C coflows, each with all flows from its senders to its receivers, by receiver and then by sender."""

    arrival: Float64Array  # [C]
    first: Int64Array  # [C + 1] flows of a coflow
    senders: Int64Array  # [C] how many
    source: Int64Array  # [F] ports
    sink: Int64Array  # [F]
    size: Float64Array  # [F] bytes
    column: Int64Array  # [C, P] which of its senders a port is, -1: none
    row: Int64Array  # [C, P] which of its receivers
    narrow: Int64Array  # [C] the lesser of senders and receivers
    bottleneck: Float64Array  # [C] bytes at its busiest port
    draw: Float64Array  # [C] of the random deadline
    owed: Float64Array  # [C, P] bytes that a receiver is to get


def trace_of(workload: CoflowWorkload) -> Trace:
    """The arrays of a workload of coflows."""
    work = workload.arrays()
    coflows, ports = work.arrival_ns.size, workload.num_ports
    coflow = np.repeat(np.arange(coflows), np.diff(work.first_flow))
    order = np.lexsort((work.ingress, work.egress, coflow))
    source, sink, size = (np.array(a)[order] for a in (work.ingress, work.egress, work.size_bytes))
    sides = []
    bottleneck = np.zeros(coflows)
    for port in (source, sink):
        there = np.zeros((coflows, ports), bool)
        there[coflow, port] = True
        sides.append(np.where(there, there.cumsum(1) - 1, -1))
        load = np.bincount(coflow * ports + port, size, coflows * ports).reshape(coflows, ports)
        bottleneck = np.maximum(bottleneck, load.max(1))
    senders, receivers = (side.max(1) + 1 for side in sides)
    assert (np.diff(work.first_flow) == senders * receivers).all(), "a coflow without some of its flows"
    return Trace(
        work.arrival_ns / 1e6,
        np.array(work.first_flow),
        senders,
        source.astype(np.int64),
        sink.astype(np.int64),
        size.astype(np.float64),
        sides[0],
        sides[1],
        np.minimum(senders, receivers),
        bottleneck,
        java_doubles(17, coflows),
        load.astype(np.float64),
    )


def first_coflows(trace: Trace, count: int) -> Trace:
    """The trace up to a coflow: what has ended when the next one begins is as in all of it."""
    flows = trace.first[count]
    per_flow = {"source", "sink", "size"}
    cut = {
        name: a[:flows] if name in per_flow else a[: count + (name == "first")]
        for name, a in trace._asdict().items()
    }
    return Trace(**cut)


def java_doubles(seed: int, count: int) -> Float64Array:
    """What `nextDouble` of java.util.Random gives, as its documentation has it."""
    state, mask, draws = (seed ^ 0x5DEECE66D), (1 << 48) - 1, []
    for _ in range(2 * count):
        state = (state * 0x5DEECE66D + 0xB) & mask
        draws.append(state)
    return np.array(
        [((a >> 22 << 27) + (b >> 21)) / (1 << 53) for a, b in zip(draws[::2], draws[1::2], strict=True)]
    )


def begin_ms(trace: Trace, epoch: float) -> Float64Array:
    """When coflows begin: with the epoch at whose end they have arrived."""
    if epoch == 0:
        return trace.arrival
    return np.maximum(np.ceil(trace.arrival / epoch) - 1, 0) * epoch
