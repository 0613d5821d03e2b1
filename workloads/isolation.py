"""What a coflow asks of ports by itself: the time that it takes alone on the switch, which deadlines are factors of."""

from __future__ import annotations

import numpy as np

from workloads.coflows import CoflowArrays, CoflowWorkload
from workloads.errors import InputError
from workloads.jobs import Float64Array


def isolated_s(workload: CoflowWorkload, port_speed_bps: float | None = None) -> Float64Array:
    """Return how long each coflow takes when it has the switch for itself: shape (C,), in seconds.

    That is the most, over the ports that its flows use, of what the port has to carry over the port's speed: the
    time of the bottleneck in Varys (SIGCOMM 2014), and the completion time in isolation of DCoflow (IFIP Networking
    2022). A flow from a port to itself takes both sides of it.

    Parameters
    ----------
    workload : CoflowWorkload
        Of C coflows.
    port_speed_bps : float, optional
        Speed of every port (bit/s) in each direction; by default that which the workload states.

    Raises
    ------
    InputError
        The workload does not state the speed of a port that flows use, and none is given.
    """
    arrays = workload.arrays()
    speeds = (arrays.ingress_bytes_per_s, arrays.egress_bytes_per_s)
    if port_speed_bps is not None:
        speeds = (np.full(len(speeds[0]), port_speed_bps / 8),) * 2
    longest = most_on_a_port(arrays, *speeds)
    if np.isnan(longest).any():
        raise InputError(
            f"{workload.name} does not state the speed of its ports; give it, such as '1 Gbps'",
            field="port_speed_bps",
        )
    return longest


def most_on_a_port(
    arrays: CoflowArrays, ingress_bytes_per_s: Float64Array, egress_bytes_per_s: Float64Array
) -> Float64Array:
    """Return the most, over the ports of each coflow, of its bytes there over the port's speed: shape (C,).

    Speeds are of shape (P,); with speeds of 1 it is the bytes on the coflow's busiest port. NaN where a port that a
    coflow uses has the speed NaN.
    """
    num_ports = len(ingress_bytes_per_s)
    of_flow = np.repeat(np.arange(len(arrays.arrival_ns)), np.diff(arrays.first_flow))
    most = np.zeros(len(arrays.arrival_ns))
    for port, speed in ((arrays.ingress, ingress_bytes_per_s), (arrays.egress, egress_bytes_per_s)):
        found, place = np.unique(of_flow * num_ports + port, return_inverse=True)
        owner, at = np.divmod(found, num_ports)
        with np.errstate(invalid="ignore"):  # a speed that is not known
            np.maximum.at(most, owner, np.bincount(place, weights=arrays.size_bytes) / speed[at])
    return most
