"""The keys of configurations as arguments of `emu.run`, `emu.compare` and `emu.size`, with their types.

Made by ``python -m emu.cli.reference docs/reference`` from the registry of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict


class Settings(TypedDict, total=False):
    """Keys with ``_`` for the dot; what is left out, or None, is the default.

    ``docs/reference/configuration.md`` has their meanings.
    """

    load: float | str | None
    workload_steps: str | Sequence[str] | None
    resample_block: float | str | None
    seed: int | str | None
    workload_seed: int | str | None
    scheduler_seed: int | str | None
    warmup: float | str | None
    tolerance_absolute: float | str | None
    tolerance_relative: float | str | None
    clock: Literal["virtual", "windows", "live"] | None
    partitions: int | str | None
    quantum: float | str | None
    windows_transport: Literal["auto", "memory", "calls"] | None
    dilation: float | str | None
    live_tick: float | str | None
    live_lateness_bound: float | str | None
    in_process: bool | None
    address: str | None
    network_delay: float | str | None
    cost_model: Literal["none", "fixed", "measured", "recorded"] | None
    cost_per_message: float | str | None
    cost_file: str | Path | None
    timeline_period: float | str | None
    output_tasks: bool | None
    output_events: bool | str | None
    checkpoint_period: float | str | None
    checkpoint_keep: int | str | None
    workload_options: Mapping[str, Any] | None
    variants: Mapping[str, Any] | None
    cluster: str | Path | None
    slots: int | str | None
    machine_speed: bool | None
    machines: str | Mapping[str, int] | None
    without: float | str | None
    cluster_seed: int | str | None
    resources_use: str | None
    resources_passing: float | str | None
    priorities: bool | None
    preemption_mode: Literal["none", "restart", "checkpoint"] | None
    preemption_cost: float | str | None
    preemption_most: int | str | None
    preemption_below: int | str | None
    preemption_order: Literal["youngest", "oldest"] | None
    load_by: Literal["arrivals", "nodes"] | None
    constraints_model: str | None
    constraints_jobs: Literal["short", "long", "all"] | None
    constraints_combined: bool | None
    constraints_soft: str | None
    constraints_price: float | str | None
    constraints_seed: int | str | None
    short_cutoff: float | str | None
    long_partition: float | str | None
    infeasible: Literal["fail", "drop"] | None
    slowdown_threshold: float | str | None
    network_spread: float | str | None
    network_cross_rack_delay: float | str | None
    estimates_error: Literal["none", "constant", "random"] | None
    estimates_size: float | str | None
    cost_per_job: float | str | None
    cost_per_task: float | str | None
    dynamics_failures: str | Path | None
    dynamics_mtbf: float | str | None
    dynamics_mttr: float | str | None
    dynamics_detection: float | str | None
    dynamics_failover: float | str | None
    dynamics_straggler_share: float | str | None
    dynamics_straggler_slowdown: float | str | None
    dynamics_straggler_distribution: Literal["constant", "pareto", "lognormal"] | None
    dynamics_straggler_shape: float | str | None
    dynamics_straggler_sigma: float | str | None
    fabric_port_speed: float | str | None
    fabric_local: Literal["network", "free"] | None
    fabric_updates: str | Path | None
    cost_per_update: float | str | None
    cost_per_flow: float | str | None
    cost_per_coflow: float | str | None
    cost_per_schedule: float | str | None
    network_scheduler: str | None
    network_registration: Literal["barrier", "pipelined"] | None
    network_shuffle: Literal["pull", "push"] | None
    network_waves: Literal["together", "apart"] | None
    network_skew: float | str | None
    network_input: Literal["outside", "share", "replicas"] | None
    network_local_share: float | str | None
    network_replicas: int | str | None
    network_replica_placement: Literal["random", "racks"] | None
    network_locality_wait: float | str | None
    estimates_demands: bool | None
    overuse: Literal["ignored", "slows"] | None
    fairness_window: float | str | None
