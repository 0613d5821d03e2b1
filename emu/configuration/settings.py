"""The keys of configurations as arguments of `emu.run`, `emu.compare` and `emu.size`, for editors.

Made by ``python -m emu.cli.reference docs/reference`` from the registry of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict


class Settings(TypedDict, total=False):
    """Keys with ``_`` for the dot; what is left out, or None, is the default."""

    load: float | str | None
    """Offered load that the workload is brought to: task-seconds over the span of the arrivals times all slots; for
    coflows, bytes over that span times what all ports carry in one direction.
    """
    workload_steps: str | Sequence[str] | None
    """Transformations that are laid over the workload when it is loaded, in this order: what `emu workload` does of
    one workload, such as `deadlines most=4` or `sample --share 10%`. What a step draws follows the workload's
    seed, unless the step has a `seed`.
    """
    resample_block: float | str | None
    """Resample a trace: blocks of its time of this length are drawn with replacement, by the workload's seed, until
    its span is filled.
    """
    seed: int | str | None
    """Seed of all that is random in an emulation: what is drawn of the workload, and what is drawn while it runs."""
    workload_seed: int | str | None
    """Seed of what is drawn of the workload alone: a generator's jobs or coflows, constraints, what `workload_steps`
    draw, the blocks of a resampled trace.
    """
    scheduler_seed: int | str | None
    """Seed of what is drawn while it runs alone: schedulers' choices, delays, failures, stragglers, errors of
    estimates.
    """
    warmup: float | str | None
    """Jobs, or coflows, that arrive within this time of the first are left out of summaries."""
    tolerance_absolute: float | str | None
    """Difference of completion times up to which a comparison calls them equal; `auto` is 20 network delays."""
    tolerance_relative: float | str | None
    """The same as a share of the longer time; what is within either is equal."""
    clock: Literal["virtual", "windows", "live"] | None
    """How time advances: `virtual`, as fast as it goes, in one partition; `windows`, the same results from many
    partitions in Ray actors; `live`, many partitions by the wall clock.
    """
    partitions: int | str | None
    """Partitions of the clocks `windows` and `live`, each in a Ray actor of its own. Goes with `clock=windows or
    live`.
    """
    quantum: float | str | None
    """Of the clock `windows`: time between barriers. What should have crossed one earlier arrives at it, and is
    counted. Goes with `clock=windows`.
    """
    windows_transport: Literal["auto", "graph", "calls"] | None
    """How barriers pass through Ray: a compiled graph, calls of actors, or a graph where there is one to be had.
    Goes with `clock=windows`.
    """
    dilation: float | str | None
    """Of the clock `live`: seconds of wall time for a second of emulated time. Goes with `clock=live`."""
    live_tick: float | str | None
    """Least wall time between two batches of messages from one partition to another. Goes with `clock=live`."""
    live_lateness_bound: float | str | None
    """Lateness of events, at the 99th percentile and in emulated time, above which a run is called overloaded. Goes
    with `clock=live`.
    """
    in_process: bool | None
    """Emulate in this process, without Ray."""
    address: str | None
    """Address of a running Ray cluster. Goes with `in_process=false`."""
    network_delay: float | str | None
    """Time a message takes; within a rack, where racks differ."""
    cost_model: Literal["none", "fixed", "measured", "recorded"] | None
    """What messages cost schedulers, which handle one at a time: nothing, `fixed` times, the CPU time of their
    handlers here (`measured`), or what `cost.file` has (`recorded`).
    """
    cost_per_message: float | str | None
    """Fixed cost of any message that a scheduler receives. Goes with `cost.model=fixed`."""
    cost_file: str | Path | None
    """Recorded costs: the `costs.parquet` of a `measured` run of the same scheduler, workload and cluster."""
    timeline_period: float | str | None
    """Time between two rows of `timeline.parquet`; `auto` is 1/200 of the shortest time the run can take. Where that
    makes more than 2,000 rows, or a given one more than 1,000,000, every second, fourth, eighth … is kept.
    """
    output_tasks: bool | None
    """Also write `tasks.parquet`, one row per task; for coflows `flows.parquet`."""
    output_events: bool | str | None
    """Also write `events.parquet`, a row for each message and start: `all`, or those of some jobs: `job=3,17` by
    number, `class=short`, the `slowest=20`, `random=50`; `time=10s..60s` is a span of virtual time; `rates` adds
    those of the flows of coflows. Several stand with `;` between them.
    """
    checkpoint_period: float | str | None
    """Wall time between two checkpoints, from which a run that was interrupted goes on; `never` and 0 are none. Goes
    with `clock=virtual or windows`.
    """
    checkpoint_keep: int | str | None
    """Checkpoints that are kept, the newest ones. Goes with `checkpoint.period`."""
    workload_options: Mapping[str, Any] | None
    """Parameters of a workload generator, or of the reader of a trace."""
    variants: Mapping[str, Any] | None
    """Schedulers with settings of their own under names of their own: `[variants.eagle-2]` with `scheduler =
    "eagle"` and `slack = 2` lets `scheduler` name `eagle-2`.
    """
    cluster: str | Path | None
    """A preset or the path of a cluster file."""
    slots: int | str | None
    """Tasks a node can run at once."""
    machine_speed: bool | None
    """Whether nodes run tasks by their `speed`, an attribute of the cluster's nodes: durations are divided by it."""
    cluster_seed: int | str | None
    """Seed of a cluster whose machines are drawn or shuffled."""
    load_by: Literal["arrivals", "nodes"] | None
    """How `load` is met: `arrivals` scales the gaps between arrivals, `nodes` picks the number of nodes. Goes with
    `load`.
    """
    constraints_model: str | None
    """Constraints drawn for the workload's jobs, in place of those it has: a model, `phoenix` or `sharma`, or
    constraints and their shares of the jobs, such as `cores >= 16: 10%`; `none` takes them away.
    """
    constraints_jobs: Literal["short", "long", "all"] | None
    """Jobs that they are drawn for. Goes with `constraints.model`."""
    constraints_combined: bool | None
    """Whether a job may have several of them. Goes with `constraints.model`."""
    constraints_soft: str | None
    """Attributes whose constraints may be relaxed, with commas between: `clock, port`. Goes with
    `constraints.model`.
    """
    constraints_price: float | str | None
    """Factor on the durations of a job's tasks where such a constraint is relaxed. Goes with `constraints.soft`."""
    constraints_seed: int | str | None
    """Seed of these draws alone. Goes with `constraints.model`."""
    short_cutoff: float | str | None
    """Mean task duration up to which a job is short. A share of the jobs, such as `90%`, is that quantile of their
    mean task durations.
    """
    long_partition: float | str | None
    """Share of the nodes that long jobs may use."""
    infeasible: Literal["fail", "drop"] | None
    """What to do with a job that no node can run."""
    slowdown_threshold: float | str | None
    """Of bounded slowdown, max(1, jct / max(ideal, threshold)): shorter jobs count as this long."""
    network_spread: float | str | None
    """Mean of an exponential time added to each message's delay."""
    network_cross_rack_delay: float | str | None
    """Time a message takes between racks."""
    estimates_error: Literal["none", "constant", "random"] | None
    """Error of the estimated task duration: `constant` is mean * (1 + size), `random` is mean * U(1 - size, 1 +
    size) for each job. Goes with `estimates.size`.
    """
    estimates_size: float | str | None
    """Size of the estimates' error. Goes with `estimates.error`."""
    cost_per_job: float | str | None
    """Fixed cost of a job that arrives at its scheduler. Goes with `cost.model=fixed`."""
    cost_per_task: float | str | None
    """Fixed cost of each of its tasks, on top. Goes with `cost.model=fixed`."""
    dynamics_failures: str | Path | None
    """A schedule of failures of nodes, racks, machine types, shares of these, and schedulers: CSV or Parquet with
    target, fail_s, repair_s.
    """
    dynamics_mtbf: float | str | None
    """Mean time between a node's repair and its next failure, exponential; nodes in the schedule fail by it."""
    dynamics_mttr: float | str | None
    """Mean time to repair a node, exponential."""
    dynamics_detection: float | str | None
    """Time until the failure of a node is detected. Goes with `dynamics.failures` or `dynamics.mtbf`."""
    dynamics_failover: float | str | None
    """Time until the standby of a scheduler that fails takes over, with its journal. Goes with `dynamics.failures`
    or `dynamics.mtbf`.
    """
    dynamics_straggler_share: float | str | None
    """Share of the tasks that straggle."""
    dynamics_straggler_slowdown: float | str | None
    """Mean factor of a straggler's duration. Goes with `dynamics.straggler_share`."""
    dynamics_straggler_distribution: Literal["constant", "pareto", "lognormal"] | None
    """Distribution of what that factor is above 1. Goes with `dynamics.straggler_share`."""
    dynamics_straggler_shape: float | str | None
    """Shape of `pareto`, above 1. Goes with `dynamics.straggler_distribution=pareto`."""
    dynamics_straggler_sigma: float | str | None
    """Sigma of `lognormal`. Goes with `dynamics.straggler_distribution=lognormal`."""
    fabric_port_speed: float | str | None
    """Speed of the ports, in each direction, of which the workload does not say it."""
    fabric_local: Literal["network", "free"] | None
    """Flows from a port to itself: `network`, they take bandwidth like any other; `free`, they take none and end at
    once.
    """
    fabric_updates: str | Path | None
    """Updates of coflows under way, tasks that restart or move and coflows that leave: CSV with time_s, coflow_id,
    update, side, port, to.
    """
    cost_per_update: float | str | None
    """Fixed cost of an update that the coordinator receives, on top of that of a message. Goes with
    `cost.model=fixed`.
    """
    cost_per_flow: float | str | None
    """Fixed cost of each flow scheduled in a decision. Goes with `cost.model=fixed`."""
    cost_per_coflow: float | str | None
    """Fixed cost of each coflow scheduled in a decision. Goes with `cost.model=fixed`."""
    cost_per_schedule: float | str | None
    """Fixed cost of each schedule sent to an agent. Goes with `cost.model=fixed`."""
    estimates_demands: bool | None
    """Whether the demands of tasks are misestimated as their durations are: what a scheduler places is not what
    tasks use. Goes with `estimates.size`.
    """
    fairness_window: float | str | None
    """Length of the windows of time over which Jain's fairness index is computed."""
