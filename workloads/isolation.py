"""The time that a coflow takes alone on the switch; deadlines are factors of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from workloads.arrow import from_numpy, optional_column
from workloads.coflows import PORT_SPEEDS, PORTS_SCHEMA, CoflowArrays, CoflowWorkload
from workloads.errors import InputError
from workloads.jobs import Float64Array


def isolated_s(workload: CoflowWorkload) -> Float64Array:
    """Return how long each coflow takes when it has the switch for itself: shape (C,), in seconds.

    That is the most, over the ports that its flows use, of what the port has to carry over the port's speed: the
    time of the bottleneck in Varys (SIGCOMM 2014), and the completion time in isolation of DCoflow (IFIP Networking
    2022). A flow from a port to itself takes both sides of it.

    Raises
    ------
    InputError
        The workload does not state the speed of a port that flows use: see `with_port_speeds`.
    """
    arrays = workload.arrays()
    longest = most_on_a_port(arrays, arrays.ingress_bytes_per_s, arrays.egress_bytes_per_s)
    if np.isnan(longest).any():
        raise InputError(
            f"{workload.name} does not state the speed of its ports; give it, such as '1 Gbps'",
            field="port_speed_bps",
        )
    return longest


def with_port_speeds(workload: CoflowWorkload, port_bytes_per_s: float) -> CoflowWorkload:
    """Return the coflows on ports that have this speed in each direction in which they state none."""
    ports = workload.ports
    for at, name in enumerate(PORT_SPEEDS, start=1):
        speed = optional_column(ports, name)
        filled = from_numpy(np.where(np.isnan(speed), port_bytes_per_s, speed))
        ports = ports.set_column(at, PORTS_SCHEMA.field(at), filled)
    return replace(workload, ports=ports)


def most_on_a_port(
    arrays: CoflowArrays,
    ingress_bytes_per_s: Float64Array,
    egress_bytes_per_s: Float64Array,
    counted: npt.NDArray[np.bool_] | None = None,
) -> Float64Array:
    """Return the most, over the ports of each coflow, of its bytes there over the port's speed: shape (C,).

    Speeds are of shape (P,); with speeds of 1 it is the bytes on the coflow's busiest port. NaN where a port that a
    coflow uses has the speed NaN. `counted`, of shape (F,): the flows that count, by default all.
    """
    which = slice(None) if counted is None else counted
    num_ports = len(ingress_bytes_per_s)
    of_flow = np.repeat(np.arange(len(arrays.arrival_ns)), np.diff(arrays.first_flow))[which]
    most = np.zeros(len(arrays.arrival_ns))
    for port, speed in ((arrays.ingress, ingress_bytes_per_s), (arrays.egress, egress_bytes_per_s)):
        found, place = np.unique(of_flow * num_ports + port[which], return_inverse=True)
        owner, at = np.divmod(found, num_ports)
        with np.errstate(invalid="ignore"):  # a speed that is not known
            np.maximum.at(most, owner, np.bincount(place, arrays.size_bytes[which], len(found)) / speed[at])
    return most
