"""What is known of a node: the cluster table's columns, their units, defaults and limits."""

from __future__ import annotations

import numbers
from typing import Any

import pyarrow as pa

from workloads.errors import InputError

MAX_NODES = 10_000_000
"""Actor ids have 24 bits: room for 16 million actors, schedulers and monitors among them."""

MAX_SLOTS = 1_000_000
RACK_SIZE = 40
DEFAULT_SLOTS = 1
MEMORY_PER_SLOT_BYTES = 4 * 1024**3
PORT_BPS = 1e9
MACHINE_TYPE = "standard"


def _field(name: str, kind: pa.DataType, unit: str, about: str) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"unit": unit, "description": about})


CLUSTER_SCHEMA = pa.schema(
    [
        _field("node_id", pa.int64(), "1", "0, 1, 2, … in row order"),
        _field("slots", pa.int64(), "1", "tasks the node can run at once"),
        _field("rack", pa.int64(), "1", "rack of the node"),
        _field("cpu_cores", pa.float64(), "1", "cores; one a slot where not given"),
        _field("memory_bytes", pa.int64(), "bytes", "memory; 4 GiB a slot where not given"),
        _field("port_bps", pa.float64(), "bit/s", "speed of the network port; 1 Gbps where not given"),
        _field("machine_type", pa.dictionary(pa.int32(), pa.string()), "", "name of the machine type"),
    ],
    metadata={"schema_version": "1"},
)
"""One row per node."""


def check_whole(
    what: str, value: Any, most: int, *, file: object = None, least: int = 1, line: int | None = None
) -> int:
    """Return a whole number in ``least..most``, or refuse it by name."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) <= most:
        raise InputError(
            f"{value!r} is not a whole number from {least:,} to {most:,}", file=file, line=line, field=what
        )
    return int(value)
