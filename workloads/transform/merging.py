"""Several workloads from one, one from several: copies on more nodes, merging, splitting by tenant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from workloads.arrow import coded_labels, column, optional_column
from workloads.coflows import MAX_PORTS, PORT_SPEEDS, CoflowWorkload
from workloads.dags import memory_in_two_units
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.file_extensions import extension_of
from workloads.generators.draws import check_whole, generator
from workloads.jobs import Float64Array
from workloads.limits import check_tasks
from workloads.transform.history import recorded
from workloads.transform.primitives import (
    JobsOrDags,
    W,
    arrivals_s,
    arriving_at,
    family,
    joined,
    set_column,
    take,
    with_tables,
)

NO_TENANT = "none"


def replicate(workload: W, copies: int, jitter_s: float | None = None, seed: int = DEFAULT_SEED) -> W:
    """Return a workload for `copies` times as many nodes, with the same load on each: so many copies of it.

    The first copy arrives as the original does, the others up to half of `jitter_s` earlier or later, each
    job by itself, and never before the first or after the last arrival: the span, and so the load per node,
    stays. The copies of a coflow use ports of their own, 150 further each for a workload of 150 ports.
    Jobs and coflows are numbered again, in order of arrival.

    Parameters
    ----------
    workload
        Jobs, DAGs or coflows.
    copies : int
        From 1 on, as far as the tasks and the ports stay within their limits; 1 is the workload itself.
    jitter_s : float, optional
        Width of the uniform distribution of shifts (s). By default the mean gap between arrivals for jobs
        and DAGs, and 0 for coflows, as the 900-port trace of Philae (its evaluation of scale).
    seed : int

    Raises
    ------
    InputError
        An option is out of range.
    """
    if isinstance(workload, CoflowWorkload):
        most, tasks, what = max(MAX_PORTS // workload.num_ports, 1), workload.num_flows, "flows"
    else:
        most, tasks, what = 10**12, workload.num_tasks, "tasks"
    check_whole("copies", copies, 1, most)
    if copies > 1:
        check_tasks(copies * tasks, what, field="copies")
    times_s = arrivals_s(workload)
    span_s = float(times_s[-1] - times_s[0])
    if jitter_s is None:
        jitter_s = 0.0 if isinstance(workload, CoflowWorkload) else span_s / max(len(times_s) - 1, 1)
    if not 0 <= jitter_s <= span_s:
        raise InputError(
            f"{jitter_s!r} s is not a shift from 0 to the {span_s:g} s that the arrivals span",
            field="jitter_s",
        )
    rng = generator(seed)
    made = []
    for copy in range(copies):
        shift_s = rng.uniform(-0.5, 0.5, len(times_s)) * jitter_s
        moved = (
            workload if copy == 0 or jitter_s == 0 else arriving_at(workload, _reflected(times_s, shift_s))
        )
        made.append(_on_ports_from(moved, copy))
    together = joined(made)
    if isinstance(workload, CoflowWorkload):
        together = with_tables(together, ports=_repeated_ports(workload.ports, copies))
    options = {"copies": copies, "jitter_s": jitter_s, "seed": seed}
    return recorded(together, "replicate", options, f"for {copies} times the nodes, at the same load on each")


def merge(workloads: Sequence[W], label: bool = False, align: bool = False, name: str | None = None) -> W:
    """Return the jobs or coflows of several workloads as one workload, numbered again in order of arrival.

    Coflows share the ports, so that the workload with the most determines their number. A cut-off or a long
    partition stays where all have the same; otherwise the result has neither, and there is a note. The metadata of the
    n-th workload is under ``merged.n.``.

    Parameters
    ----------
    workloads : sequence of one kind
    label : bool
        Make the workload's name the tenant of its jobs, in front of the tenant a job may have (``a/x``).
    align : bool
        Let each workload's first arrival be at time 0; by default they keep their times.
    name : str, optional
        By default the names with ``+`` between.

    Raises
    ------
    InputError
        Fewer than two workloads, or of different kinds; ports that differ in speed; coflows to be labelled.
    """
    if len(workloads) < 2:
        raise InputError("merging wants two workloads or more")
    first = workloads[0]
    for other in workloads[1:]:
        if family(other) != family(first):
            raise InputError(
                f"{first.name} has {family(first).kind} and {other.name} has {family(other).kind}; "
                "only workloads of one kind can be merged"
            )
    names = _distinct([w.name for w in workloads])
    parts = list(workloads)
    if align:
        parts = [arriving_at(w, arrivals_s(w) - arrivals_s(w)[0]) for w in parts]
    if label:
        parts = [_labelled(w, n) for w, n in zip(parts, names, strict=True)]
    changed: dict[str, Any] = {"name": name or "+".join(names), "notes": _notes(workloads)}
    changed["metadata"] = {
        f"merged.{n}.{key}": value
        for n, w in enumerate(workloads, start=1)
        for key, value in {"name": w.name, **w.metadata}.items()
    }
    if isinstance(first, CoflowWorkload):
        changed["ports"] = _shared_ports(cast(Sequence[CoflowWorkload], workloads))
    else:
        agreed, notes = _agreed(workloads)
        changed |= agreed
        changed["notes"] += notes
    together = with_tables(joined(parts), **changed)
    if not isinstance(together, CoflowWorkload) and (both := memory_in_two_units(together)):
        note = f"{both}: these are of the same memory, and tasks can hold one of them alone"
        together = with_tables(together, notes=(*together.notes, note))
    sizes = ", ".join(f"{len(arrivals_s(w)):,} of {n}" for w, n in zip(workloads, names, strict=True))
    options = {"label": label, "align": align, "name": name}
    return recorded(together, "merge", options, f"{sizes}")


def split(workload: JobsOrDags) -> dict[str, JobsOrDags]:
    """Return the workload of each tenant by the tenant's name, in order of first arrival.

    Times and ids stay. Jobs without a tenant are under ``none``. The tenant ends the workload's name, with what
    a file's name had better not have as ``_``; no two names are the same.

    Raises
    ------
    InputError
        No job has a tenant, or one is really called ``none`` where others have none.
    """
    if isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} has coflows, which have no tenants")
    found, codes = coded_labels(workload.jobs["tenant"])
    if not found:
        raise InputError(f"no job of {workload.name} has a tenant", field="tenant")
    if NO_TENANT in found and codes.min() < 0:
        raise InputError(
            f"{workload.name} has a tenant called {NO_TENANT!r} and jobs without one", field="tenant"
        )
    tenants_of = {code: (*found, NO_TENANT)[code] for code in dict.fromkeys(codes.tolist())}
    names = _distinct([_plain(tenant) for tenant in tenants_of.values()])
    made = {}
    for (code, tenant), name in zip(tenants_of.items(), names, strict=True):
        part = take(workload, np.flatnonzero(codes == code))
        part = with_tables(part, name=f"{workload.name}-{name}")
        made[tenant] = recorded(
            part, "split", {"tenant": tenant}, f"{part.num_jobs:,} of {len(codes):,} jobs"
        )
    return made


def _reflected(times_s: Float64Array, shift_s: Float64Array) -> Float64Array:
    """Return times shifted, and turned back into the span where they would leave it."""
    first, last = times_s[0], times_s[-1]
    moved = first + np.abs(times_s + shift_s - first)
    return np.clip(last - np.abs(last - moved), first, last)


def _on_ports_from(workload: W, copy: int) -> W:
    """Return coflows moved to the ports of a copy; jobs and DAGs have none."""
    if not isinstance(workload, CoflowWorkload) or copy == 0:
        return workload
    flows = workload.flows
    for side in ("ingress", "egress"):
        flows = set_column(flows, side, column(flows, side) + copy * workload.num_ports)
    return with_tables(workload, flows=flows)


def _repeated_ports(ports: pa.Table, copies: int) -> pa.Table:
    table = pa.concat_tables([ports] * copies).combine_chunks()
    return set_column(table, "port", np.arange(table.num_rows, dtype=np.int64))


def _shared_ports(workloads: Sequence[CoflowWorkload]) -> pa.Table:
    """Return the ports of the workload that has the most, if the others say the same of theirs."""
    widest = max(workloads, key=lambda w: w.num_ports)
    for other in workloads:
        for side in PORT_SPEEDS:
            speed = optional_column(other.ports, side)
            want = optional_column(widest.ports, side)[: len(speed)]
            differ = (speed != want) & ~(np.isnan(speed) & np.isnan(want))
            if differ.any():
                port = int(np.argmax(differ))
                raise InputError(
                    f"port {port} has {speed[port]:g} B/s in {other.name} and {want[port]:g} B/s in "
                    f"{widest.name}; only coflows on the same ports can be merged",
                    field=side,
                )
    return widest.ports


def _labelled(workload: W, name: str) -> W:
    if isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} has coflows, which have no tenants to label", field="label")
    tenants = [name if t is None else f"{name}/{t}" for t in workload.jobs["tenant"].to_pylist()]
    return with_tables(workload, jobs=set_column(workload.jobs, "tenant", pa.array(tenants, pa.string())))


def _agreed(workloads: Sequence[W]) -> tuple[dict[str, float | None], tuple[str, ...]]:
    """Return cut-off and long partition where all have the same, and notes where they differ."""
    agreed: dict[str, float | None] = {}
    notes: tuple[str, ...] = ()
    for key, about in (("short_cutoff_s", "cut-off"), ("long_partition", "long partition")):
        values = [getattr(w, key) for w in workloads]
        agreed[key] = values[0] if len(set(values)) == 1 else None
        if len(set(values)) > 1:
            given = ", ".join(f"{w.name}: {v}" for w, v in zip(workloads, values, strict=True))
            notes += (f"merged workloads differ in the {about} ({given}), so that the result has none",)
    return agreed, notes


def _notes(workloads: Sequence[W]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{w.name}: {note}" for w in workloads for note in w.notes))


def _plain(tenant: str) -> str:
    """Return a tenant as it can end a folder's name."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", tenant)
    return plain.replace(".", "_") if extension_of(plain) else plain


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that come more than once."""
    often = Counter(names)
    seen: Counter[str] = Counter()
    made = []
    for name in names:
        seen[name] += 1
        made.append(f"{name}#{seen[name]}" if often[name] > 1 else name)
    return made
