"""Plans of coflow schedulers: coflows and a switch with their ports, with checks and notes before a run."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from emu.configuration.loading import TIMELINE_ROWS, Keyed, Loaded, at_load_of, load_of_family
from emu.configuration.schedulers import scheduler_parameters
from emu.configuration.workload_cache import WorkloadCache
from emu.results.metrics import after_warmup
from workloads.arrow import column
from workloads.coflow_updates import load_updates
from workloads.coflows import CoflowWorkload
from workloads.isolation import most_on_a_port, with_port_speeds
from workloads.jobs import Float64Array
from workloads.transform import scale

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from actors.setting import Switch
    from clusters.cluster import Cluster
    from emu.configuration.config import Config


class Ports(NamedTuple):
    """The load of coflows on the ports of a switch.

    Attributes
    ----------
    isolated_s : ndarray of float64, shape (C,)
        Completion time of each coflow alone on the switch: that of its busiest port.
    bytes_per_s : float
        Of all ports together, in the slower direction.
    busiest : tuple of (str, int, float)
        ``ingress`` or ``egress``, the port that needs most time for all its bytes, and that time (s).
    """

    isolated_s: Float64Array
    bytes_per_s: float
    busiest: tuple[str, int, float]


def load_coflows(config: Config, schedulers: tuple[Scheduler, ...], cache: WorkloadCache) -> Loaded:
    """Load the coflows of a configuration, make a cluster of their ports, and check them.

    Raises
    ------
    InputError
        What is missing or wrong, and where it was given.
    """
    _check_clock(config)
    _check_updates(config, schedulers)
    if config["fabric.port_speed"] == 0:
        raise config.error("fabric.port_speed", "is 0; want a speed such as '1 Gbps'")
    started = time.perf_counter()
    if config["fabric.updates"] is not None and config["resample.block"] is not None:
        raise config.error(
            "resample.block", "not with fabric.updates, whose coflows are those of the trace as it is"
        )
    source, key = load_of_family(config, cache, "coflows", schedulers[0].name)
    load_s = time.perf_counter() - started
    cluster = _cluster(config, source, cache)
    switch = switch_of(config)
    workload = at_load_of(config, cache, "coflows", Keyed(source, key), cluster)
    arrival_s = column(workload.coflows, "arrival_s")
    span_s = float(arrival_s[-1] - arrival_s[0])
    if not after_warmup(arrival_s, config["warmup"]).any():
        raise config.error("warmup", f"leaves no coflow: the last arrives {span_s:g} s after the first")
    ports = ports_of(workload, switch)
    updates = None
    if config["fabric.updates"] is not None:
        with config.errors_name("fabric.updates"):
            updates = load_updates(config["fabric.updates"], workload)
    load = offered_load(workload, ports, span_s)
    period_s = config["timeline.period"]
    if period_s == "auto":
        least_s = max(span_s + float(ports.isolated_s.max()), ports.busiest[2], 1e-6)
        period_s = least_s / TIMELINE_ROWS
    return Loaded(
        source=source,
        workload=workload,
        cluster=cluster,
        load=load,
        load_s=load_s,
        period_s=period_s,
        notes=workload.notes
        + _load_notes(config, workload, ports, load, span_s)
        + _deadline_notes(workload, schedulers)
        + (updates.notes if updates is not None else ()),
        setting={"switch": switch, "updates": updates},
        keys={},
    )


def _check_updates(config: Config, schedulers: tuple[Scheduler, ...]) -> None:
    """Refuse updates of coflows where a scheduler does not take them; the error names those that do."""
    from actors.scheduler import takes_updates
    from actors.schedulers.registry import find_scheduler, scheduler_names

    if config["fabric.updates"] is None:
        return
    for scheduler, own in zip(schedulers, scheduler_parameters(config, schedulers), strict=True):
        if takes_updates(scheduler, own):
            continue
        wrong = f"{scheduler.name} takes updates of coflows only with {scheduler.updatable}"
        if not scheduler.updatable:
            able = [s for s in map(find_scheduler, scheduler_names("coflows")) if s.updatable]
            names = [s.name if s.updatable == "always" else f"{s.name} ({s.updatable})" for s in able]
            wrong = f"{scheduler.name} does not take updates of coflows; those that do are {', '.join(names)}"
        raise config.error("fabric.updates", wrong)


def switch_of(config: Config) -> Switch:
    """Return the switch that a configuration asks for."""
    from actors.setting import Switch

    return Switch(config["fabric.port_speed"] / 8, config["fabric.local"] == "free")


@lru_cache(maxsize=1)
def ports_of(workload: CoflowWorkload, switch: Switch) -> Ports:
    """Return the load of coflows on the ports of a switch; cached for all runs of a plan."""
    arrays = workload.arrays()
    crossing = arrays.ingress != arrays.egress if switch.local_is_free else np.ones(workload.num_flows, bool)
    stated = (arrays.ingress_bytes_per_s, arrays.egress_bytes_per_s)
    ingress, egress = (np.where(np.isnan(speed), switch.port_bytes_per_s, speed) for speed in stated)
    speeds = (ingress, egress)
    busiest = ("ingress", 0, 0.0)
    for side, speed in zip(("ingress", "egress"), speeds, strict=True):
        port = getattr(arrays, side)[crossing]
        all_s = np.bincount(port, arrays.size_bytes[crossing], workload.num_ports) / speed
        if all_s.max() > busiest[2]:
            busiest = (side, int(all_s.argmax()), float(all_s.max()))
    return Ports(most_on_a_port(arrays, *speeds, crossing), min(float(s.sum()) for s in speeds), busiest)


def offered_load(workload: CoflowWorkload, ports: Ports, span_s: float) -> float | None:
    """Return bytes over what all ports carry while coflows arrive; None when all arrive at once."""
    size = float(column(workload.coflows, "size_bytes").sum())
    return size / (span_s * ports.bytes_per_s) if span_s > 0 else None


def _check_clock(config: Config) -> None:
    """Refuse clocks that cannot run coflows."""
    if config["clock"] == "windows" and config["network.delay"] == 0:
        raise config.error(
            "clock",
            "'windows' needs messages that take time, and for coflows network.delay is 0 unless it is given; "
            "--set network.delay='1 ms' gives it",
        )


def _cluster(config: Config, workload: CoflowWorkload, cache: WorkloadCache) -> Cluster:
    """Return a node of one slot for each port."""
    from clusters.cluster import load_cluster

    own, nodes = workload.num_ports, config["nodes"]
    if nodes is not None and nodes < own:
        raise config.error("nodes", f"{nodes:,} is fewer than the {own:,} ports of {workload.name}")
    nodes = own if nodes is None else nodes
    with config.errors_name("nodes"):
        return cache.get(("cluster of ports", nodes), lambda: load_cluster("homogeneous", nodes, slots=1))


def _load_notes(
    config: Config, workload: CoflowWorkload, ports: Ports, load: float | None, span_s: float
) -> tuple[str, ...]:
    """Return notes on ports that are offered more than they carry while coflows arrive."""
    if load is None:
        return ()
    side, port, all_s = ports.busiest
    times = all_s / span_s
    if load > 1:
        note = f"offered load is {load:.2f}: more bytes arrive than {workload.num_ports:,} ports carry; queues grow"
    elif times > 1:
        note = f"the {side} of port {port} is offered {times:.2f} times what it carries; its queue grows"
    else:
        return ()
    return (note + _advice(config, workload, load, times),)


def _deadline_notes(workload: CoflowWorkload, schedulers: tuple[Scheduler, ...]) -> tuple[str, ...]:
    """Return a note where schedulers that use deadlines have none to use."""
    names = [scheduler.name for scheduler in schedulers if scheduler.uses_deadlines]
    if not names or workload.coflows["deadline_s"].null_count < workload.num_coflows:
        return ()
    return (
        f"{workload.name} has no deadlines, and {', '.join(names)} would order by them; "
        "emu workload deadlines draws some",
    )


def _advice(config: Config, workload: CoflowWorkload, load: float, times: float) -> str:
    """Return settings with which the busiest port, now offered `times` what it carries, would keep up."""
    ways = []
    if percent := math.floor(100 * load / times):
        ways.append(f"--set load={percent}%")
    arrays = workload.arrays()
    if np.isnan(arrays.ingress_bytes_per_s).all() and np.isnan(arrays.egress_bytes_per_s).all():
        mbps = math.ceil(config["fabric.port_speed"] * times / 1e6)
        ways.append(f"--set fabric.port_speed='{f'{mbps / 1000:g} G' if mbps >= 1000 else f'{mbps} M'}bps'")
    return f"; it would keep up with {', or with '.join(ways)}" if ways else ""


def at_load(workload: CoflowWorkload, port_bytes_per_s: float, load: float) -> CoflowWorkload:
    """Return the coflows with arrivals scaled to a load of ports, of this speed or their own."""
    scaled = scale(with_port_speeds(workload, port_bytes_per_s), load)
    return replace(workload, coflows=scaled.coflows, metadata=scaled.metadata)
