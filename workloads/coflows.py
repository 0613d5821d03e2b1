"""Workloads of coflows: sets of flows that arrive together over a fabric that is one big switch.

A coflow arrives at a time, has one or more flows, and is done when its last flow is. A flow goes from an ingress
port to an egress port of the switch, each with its bandwidth (M. Chowdhury, I. Stoica. Coflow: a networking
abstraction for cluster applications. HotNets 2012). Ports are machines, or racks: port 3 as ingress and port 3
as egress are two sides of the same one. A flow from a port to itself takes bandwidth of both sides like any
other, as in the simulators of the field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.arrow import WithTables, column, described_field, from_numpy, from_optional, optional_column
from workloads.errors import InputError
from workloads.groups import (
    check_sum,
    checked_ids,
    file_of,
    first_rows,
    nanoseconds,
    refuse_first,
    rows_of_groups,
    same_length,
    whole_numbers,
)
from workloads.jobs import SCHEMA_VERSION, Float64Array, Int64Array, check_times

MAX_PORTS = 1 << 20
MAX_BYTES = 1e18
"""No flow is larger, and no port faster in a second: an exabyte."""
PORT_SPEEDS = ("ingress_bytes_per_s", "egress_bytes_per_s")
"""Columns of `PORTS_SCHEMA` with the speeds of both sides; null where not known."""
NO_DEADLINE_NS = 2**63 - 1
"""The deadline, in arrays, of a coflow that has none."""

COFLOWS_SCHEMA = pa.schema(
    [
        described_field("coflow_id", pa.int64(), "1", "identifies the coflow in flows and results"),
        described_field("arrival_s", pa.float64(), "s", "when the coflow arrives; rows are in this order"),
        described_field("width", pa.int64(), "1", "flows of the coflow, at least one"),
        described_field("senders", pa.int64(), "1", "distinct ingress ports of its flows"),
        described_field("receivers", pa.int64(), "1", "distinct egress ports of its flows"),
        described_field("size_bytes", pa.float64(), "B", "sum over its flows"),
        described_field("weight", pa.float64(), "1", "how much the coflow counts, above 0; 1 by default"),
        described_field(
            "deadline_s", pa.float64(), "s", "absolute time by which it should end, or null", nullable=True
        ),
    ],
    metadata={"schema_version": str(SCHEMA_VERSION)},
)
"""One row per coflow, in order of arrival."""

FLOWS_SCHEMA = pa.schema(
    [
        described_field("coflow_id", pa.int64(), "1", "coflow of the flow; flows lie in coflow order"),
        described_field("ingress", pa.int64(), "1", "port the flow enters the switch by"),
        described_field("egress", pa.int64(), "1", "port it leaves by"),
        described_field("size_bytes", pa.float64(), "B", "to be sent, above 0"),
    ],
    metadata={"schema_version": str(SCHEMA_VERSION)},
)
"""One row per flow, in coflow order and within a coflow in the order of the source."""

PORTS_SCHEMA = pa.schema(
    [
        described_field("port", pa.int64(), "1", "0, 1, ..."),
        described_field("ingress_bytes_per_s", pa.float64(), "B/s", "into the switch, or null", True),
        described_field("egress_bytes_per_s", pa.float64(), "B/s", "out of the switch, or null", True),
    ],
    metadata={"schema_version": str(SCHEMA_VERSION)},
)
"""One row per port; bandwidths are null where the source does not say them."""


class CoflowArrays(NamedTuple):
    """A workload of coflows as the kernel sees it: read-only arrays for C coflows, F flows and P ports.

    Attributes
    ----------
    arrival_ns, deadline_ns : ndarray of int64, shape (C,)
        Absolute; `NO_DEADLINE_NS` where there is no deadline.
    weight : ndarray of float64, shape (C,)
    first_flow : ndarray of int64, shape (C + 1,)
        Flows of coflow c are ``first_flow[c]:first_flow[c + 1]``.
    ingress, egress : ndarray of int64, shape (F,)
    size_bytes : ndarray of float64, shape (F,)
    ingress_bytes_per_s, egress_bytes_per_s : ndarray of float64, shape (P,)
        NaN where not known.
    """

    arrival_ns: Int64Array
    deadline_ns: Int64Array
    weight: Float64Array
    first_flow: Int64Array
    ingress: Int64Array
    egress: Int64Array
    size_bytes: Float64Array
    ingress_bytes_per_s: Float64Array
    egress_bytes_per_s: Float64Array


@dataclass(frozen=True, eq=False)
class CoflowWorkload(WithTables):
    """Coflows with their arrival times and flows; make one with `make_coflow_workload` or a reader.

    Attributes
    ----------
    name : str
        What the workload is called in results.
    coflows, flows, ports : pyarrow.Table
        As `COFLOWS_SCHEMA`, `FLOWS_SCHEMA` and `PORTS_SCHEMA`.
    metadata : dict of str to str
        Origin, units, what was done to the data; travels with the Parquet form.
    notes : tuple of str
        Notes for the user, such as that arrivals were sorted.
    """

    name: str
    coflows: pa.Table
    flows: pa.Table
    ports: pa.Table
    metadata: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def num_coflows(self) -> int:
        """Number of coflows."""
        return self.coflows.num_rows

    @property
    def num_flows(self) -> int:
        """Number of flows of all coflows."""
        return self.flows.num_rows

    @property
    def num_ports(self) -> int:
        """Number of ports of the switch."""
        return self.ports.num_rows

    def arrays(self) -> CoflowArrays:
        """Return the workload as `CoflowArrays`: times rounded to the nanosecond, sizes as they are."""
        return self._arrays

    @cached_property
    def _arrays(self) -> CoflowArrays:
        deadline_s = optional_column(self.coflows, "deadline_s")
        deadline_ns = np.full(self.num_coflows, NO_DEADLINE_NS)
        known = ~np.isnan(deadline_s)
        deadline_ns[known] = nanoseconds(deadline_s[known])
        arrays = CoflowArrays(
            arrival_ns=nanoseconds(column(self.coflows, "arrival_s")),
            deadline_ns=deadline_ns,
            weight=column(self.coflows, "weight"),
            first_flow=first_rows(column(self.coflows, "width")),
            ingress=column(self.flows, "ingress"),
            egress=column(self.flows, "egress"),
            size_bytes=column(self.flows, "size_bytes"),
            ingress_bytes_per_s=optional_column(self.ports, "ingress_bytes_per_s"),
            egress_bytes_per_s=optional_column(self.ports, "egress_bytes_per_s"),
        )
        for array in arrays:
            array.flags.writeable = False
        return arrays

    def fingerprint(self) -> str:
        """Return the sha256 (hex) of all coflows, flows and ports; name, metadata and notes do not count."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        sizes = f"{self.num_coflows} {self.num_flows} {self.num_ports}"
        digest = hashlib.sha256(f"emu coflows {SCHEMA_VERSION} {sizes}".encode())
        for name in ("coflow_id", "arrival_s", "width", "weight"):
            digest.update(column(self.coflows, name).data)
        digest.update(optional_column(self.coflows, "deadline_s").data)
        for name in ("ingress", "egress", "size_bytes"):
            digest.update(column(self.flows, name).data)
        for name in ("ingress_bytes_per_s", "egress_bytes_per_s"):
            digest.update(optional_column(self.ports, name).data)
        return digest.hexdigest()


def no_coflows(num_ports: int) -> CoflowWorkload:
    """Return a workload without coflows: those of DAG jobs come into being as tasks are launched."""
    unknown = pa.nulls(num_ports, pa.float64())
    ports = pa.table([from_numpy(np.arange(num_ports)), unknown, unknown], schema=PORTS_SCHEMA)
    return CoflowWorkload("transfers", COFLOWS_SCHEMA.empty_table(), FLOWS_SCHEMA.empty_table(), ports)


def make_coflow_workload(
    name: str,
    arrival_s: npt.ArrayLike,
    width: npt.ArrayLike,
    ingress: npt.ArrayLike,
    egress: npt.ArrayLike,
    size_bytes: npt.ArrayLike,
    num_ports: int,
    *,
    coflow_id: npt.ArrayLike | None = None,
    weight: npt.ArrayLike | None = None,
    deadline_s: npt.ArrayLike | None = None,
    ingress_bytes_per_s: npt.ArrayLike | None = None,
    egress_bytes_per_s: npt.ArrayLike | None = None,
    metadata: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    origin: object = None,
) -> CoflowWorkload:
    """Build a workload of C coflows, F flows and P ports from arrays, check it, and sort it by arrival.

    Parameters
    ----------
    name : str
    arrival_s : array_like, shape (C,)
        Arrival times in seconds. When they are not in order coflows are sorted (stable), and there is a note.
    width : array_like of int, shape (C,)
        Flows of each coflow.
    ingress, egress : array_like of int, shape (F,)
        Ports of the flows, ``0..num_ports - 1``, coflow after coflow in the order of `arrival_s`.
    size_bytes : array_like, shape (F,)
        Above 0. Two flows of a coflow may share both ports.
    num_ports : int
        Ports of the switch, P.
    coflow_id : array_like of int, shape (C,), optional
        Distinct ids; by default the position after sorting.
    weight : array_like, shape (C,), optional
        Above 0; by default 1.
    deadline_s : array_like, shape (C,), optional
        Absolute, not before the arrival; NaN for a coflow without one.
    ingress_bytes_per_s, egress_bytes_per_s : array_like, shape (P,), optional
        Above 0; NaN where not known.
    metadata, notes
        As in `CoflowWorkload`.
    origin : optional
        File named in errors and notes; or a mapping of table (coflows, flows, ports) to file.

    Raises
    ------
    InputError
        No coflows; lengths that do not match; a time that is negative, not finite or too large; a deadline before
        its arrival; a coflow without flows; a width that does not add up; a port that is not there; a size,
        weight or bandwidth that is not above 0; a coflow id given twice.
    """
    coflows_file, flows_file, ports_file = (file_of(origin, t) for t in ("coflows", "flows", "ports"))
    if not 1 <= num_ports <= MAX_PORTS:
        raise InputError(f"{num_ports} ports; want 1 to {MAX_PORTS:,}", file=ports_file, field="port")
    arrival = check_times(arrival_s, "arrival_s", file=coflows_file)
    count = len(arrival)
    if count == 0:
        raise InputError("the workload has no coflows", file=coflows_file)
    sizes = _amounts(size_bytes, None, "size_bytes", "flows", flows_file)
    ports = [
        _ports(values, side, num_ports, len(sizes), flows_file)
        for values, side in ((ingress, "ingress"), (egress, "egress"))
    ]
    widths = whole_numbers(width, "width", 1, 2**40, file=coflows_file)
    same_length(widths, count, "width", "coflows", file=coflows_file)
    check_sum(widths, len(sizes), "width", "flows", file=coflows_file)
    weights = np.ones(count) if weight is None else _amounts(weight, count, "weight", "coflows", coflows_file)
    deadlines = _deadlines(deadline_s, arrival, coflows_file)
    speeds = [
        _amounts(np.full(num_ports, np.nan) if s is None else s, num_ports, side, "ports", ports_file, True)
        for s, side in (
            (ingress_bytes_per_s, PORTS_SCHEMA.names[1]),
            (egress_bytes_per_s, PORTS_SCHEMA.names[2]),
        )
    ]
    ids = None
    if coflow_id is not None:
        ids = checked_ids(coflow_id, count, "coflow_id", "coflows", file=coflows_file)
    if np.any(arrival[1:] < arrival[:-1]):
        order = np.argsort(arrival, kind="stable")
        moved = int(np.count_nonzero(order != np.arange(count)))
        note = (
            f"arrivals of {coflows_file or name} were not in order: {moved} coflows moved; sorted by arrival"
        )
        notes = (*notes, note)
        flows = rows_of_groups(widths, order)
        sizes, ports = sizes[flows], [values[flows] for values in ports]
        arrival, widths = arrival[order], widths[order]
        weights, deadlines = weights[order], deadlines[order]
        ids = None if ids is None else ids[order]
    ids = np.arange(count) if ids is None else ids
    of_flow = np.repeat(np.arange(count), widths)
    distinct = [_distinct(of_flow * num_ports + p, num_ports, count) for p in ports]
    totals = np.add.reduceat(sizes, first_rows(widths)[:-1])
    numbers = (ids, arrival, widths, *distinct, totals, weights)
    return CoflowWorkload(
        name=name,
        coflows=pa.Table.from_arrays(
            [*map(from_numpy, numbers), from_optional(deadlines)], schema=COFLOWS_SCHEMA
        ),
        flows=pa.Table.from_arrays(
            [from_numpy(a) for a in (ids[of_flow], *ports, sizes)], schema=FLOWS_SCHEMA
        ),
        ports=pa.Table.from_arrays(
            [from_numpy(np.arange(num_ports)), *map(from_optional, speeds)], schema=PORTS_SCHEMA
        ),
        metadata=dict(metadata or {}),
        notes=tuple(notes),
    )


def with_demands(
    workload: CoflowWorkload, *, deadline_s: npt.ArrayLike | None = None, weight: npt.ArrayLike | None = None
) -> CoflowWorkload:
    """Return the coflows with other deadlines (absolute, NaN for none), other weights, or both: shape (C,).

    Raises
    ------
    InputError
        As `make_coflow_workload`.
    """
    table = workload.coflows
    for name, values in (("weight", weight), ("deadline_s", deadline_s)):
        if values is None:
            continue
        if name == "weight":
            array = from_numpy(_amounts(values, len(table), name, "coflows", None))
        else:
            array = from_optional(_deadlines(values, column(table, "arrival_s"), None))
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), array)
    return replace(workload, coflows=table)


def _distinct(keys: Int64Array, num_ports: int, count: int) -> Int64Array:
    """Return how many distinct ports each coflow has, of keys coflow * num_ports + port."""
    keys = np.sort(keys)  # np.unique hashes, which takes seconds for the keys of a million flows
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    return np.bincount(keys[first] // num_ports, minlength=count)


def _amounts(
    values: npt.ArrayLike, count: int | None, name: str, of: str, file: object, optional: bool = False
) -> Float64Array:
    """Return amounts above 0 and up to `MAX_BYTES`, or name the first that is not one."""
    amounts = np.array(values, np.float64)
    if count is not None:
        same_length(amounts, count, name, of, file=file)
    good = (amounts > 0) & (amounts <= MAX_BYTES)
    if optional:
        good |= np.isnan(amounts)
    refuse_first(~good, amounts, f"is not a number above 0 and up to {MAX_BYTES:.0e}", name, file=file)
    return amounts


def _ports(values: npt.ArrayLike, side: str, num_ports: int, count: int, file: object) -> np.ndarray:
    ports = whole_numbers(values, side, 0, num_ports - 1, file=file)
    same_length(ports, count, side, "flows", file=file)
    return ports


def _deadlines(deadline_s: npt.ArrayLike | None, arrival: Float64Array, file: object) -> Float64Array:
    if deadline_s is None:
        return np.full(len(arrival), np.nan)
    deadlines = np.array(deadline_s, np.float64)
    same_length(deadlines, len(arrival), "deadline_s", "coflows", file=file)
    known = ~np.isnan(deadlines)
    check_times(deadlines[known], "deadline_s", file=file, lines=np.flatnonzero(known) + 1)
    early = known & (deadlines < arrival)
    refuse_first(
        early, deadlines, "is before the arrival; deadlines are absolute times", "deadline_s", file=file
    )
    return np.where(known, deadlines + 0.0, np.nan)
