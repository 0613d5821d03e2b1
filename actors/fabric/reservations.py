"""Reserved bandwidth: a coflow with a deadline has of each port what it needs to end at its deadline, and no more.

With T left until its deadline, each flow of the coflow gets what it has left divided by T, so that all end at the
deadline: MADD with the desired duration T (M. Chowdhury et al., Varys, SIGCOMM 2014, section 5). That is possible if
the coflow needs no longer than T with the residual bandwidth of its ports. As time goes on, what the coflow has left
and its time left shrink in one proportion (the former faster if the coflow is backfilled), so that all reservations
still fit at any later time.
"""

import numpy as np

from actors.fabric.madd import Madd, has_residual, slowest, take_residual
from actors.fabric.ports import Fabric, lines_of
from actors.fabric.service_order import Order
from actors.kernel.arrays import fill
from actors.kernel.compiled import compiled, inlined

# The error of the time that a coflow needs, relative and in ns; at most that much of a port may be reserved twice.
_ROUNDING, _ROUNDING_NS = 1e-10, 1e-3


@inlined
def fits(fabric: Fabric, a: Madd, coflow: int, time_left: float, bandwidth: np.ndarray) -> bool:
    """Return whether a coflow can end within `time_left` ns with this bandwidth of each port, [N] bytes per ns."""
    return slowest(fabric, a, coflow, bandwidth) <= time_left * (1.0 + _ROUNDING) + _ROUNDING_NS


@inlined
def reserve(fabric: Fabric, a: Madd, coflow: int, time_left: float) -> None:
    """Let a coflow that has no rate yet end in `time_left` ns, at least 1, out of `residual`."""
    a.need[coflow] = time_left
    take_residual(fabric, a, coflow, time_left)


@compiled
def share_by_demand(fabric: Fabric, order: Order, a: Madd, load: np.ndarray, first: int) -> None:
    """Share the residual bandwidth of each port by bytes left between the coflows of an order from level `first` on.

    A coflow gets of its slowest port the share that its bytes are of the bytes of all these coflows there, and of its
    other ports what lets all its flows end together. A coflow that finds a port full gets nothing.

    Args:
        load: [N] scratch: bytes of these coflows at each port.
    """
    lines = fabric.lines
    fill(load, 0.0)
    for level in range(first, order.used[0]):
        coflow = order.groups[level]
        for side in range(2):
            for line in lines_of(lines, coflow, side):
                load[lines.port[line]] += lines.bytes[line] * a.scale[coflow]
    for level in range(first, order.used[0]):
        a.need[order.groups[level]] = needed_share(fabric, a, load, order.groups[level])
    for level in range(first, order.used[0]):
        if a.need[order.groups[level]] < np.inf:
            take_residual(fabric, a, order.groups[level], a.need[order.groups[level]])


@inlined
def needed_share(fabric: Fabric, a: Madd, load: np.ndarray, coflow: int) -> float:
    """Return in how many ns a coflow ends with its share of the residual bandwidth, at least 1; inf: a port is full."""
    lines, need = fabric.lines, 1.0
    for side in range(2):
        for line in lines_of(lines, coflow, side):
            if lines.left[line] > 0:
                port = lines.port[line]
                if not has_residual(fabric, a, port):
                    return np.inf
                need = max(need, load[port] / a.residual[port])
    return need
