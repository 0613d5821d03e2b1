"""Invariants of every scheduler of coflows, checked on small drawn cases, from the tables of results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from emu.families.drawn_cases import (
    Case,
    draw_parameters,
    drawn_features,
    draws_of,
    effective_settings,
)
from emu.families.result_checks import SLACK_S, head, hold
from emu.results.result import Result
from workloads import coflow_updates
from workloads.arrow import column
from workloads.coflows import CoflowWorkload, make_coflow_workload, with_demands
from workloads.errors import InputError
from workloads.isolation import isolated_s

if TYPE_CHECKING:
    import pandas as pd

    from actors.scheduler import Scheduler

SHAPES = ("mixed", "burst", "one port", "mixed", "wide", "few")
"""What the coflows of a case are like, in turn."""
MIB = 2.0**20
PORT = MIB / 0.008
"""The speed of a port, bytes per second: a MiB in an interval of 8 ms, so that much falls on its end."""
SIZES = (*(MIB / 4 * n for n in range(1, 9)), 1.0, 1000.0, 77_777.0, 3 * MIB + 1)
GAPS_S = (0.0, 0.0, 0.001, 0.008, 0.0123456, 0.1)
FAR_PORTS = (0, 1, 2, 70, 140)
"""Ports whose bits stand in several words."""


def features_of(scheduler: Scheduler) -> tuple[str, ...]:
    """Return what cases of a scheduler may have."""
    ignored = dict(scheduler.ignores)
    return (
        "deadlines",
        "weights",
        "speeds",
        "far ports",
        "local is free",
        *(("updates",) if scheduler.updatable else ()),
        *(("delays",) if "network.delay" not in ignored else ()),
        *(("costs",) if "cost" not in ignored else ()),
    )


def draw_case(
    scheduler: Scheduler, seed: int, given: Mapping[str, Any] | None = None, features: str | None = None
) -> Case:
    """Return the case of a seed, with features that the scheduler declares: each by chance, or `drawn_cases.ALL`.

    `given` are values of parameters; others are drawn.
    """
    from actors.scheduler import resolve_parameters, takes_updates

    rng, shape = draws_of(scheduler, seed), SHAPES[seed % len(SHAPES)]
    has = drawn_features(rng, features_of(scheduler), features)
    wanted = dict(given or {})
    if features is not None and "=" in scheduler.updatable:
        name, _, value = scheduler.updatable.partition("=")
        wanted.setdefault(name, value)
    parameters = draw_parameters(rng, scheduler, wanted, scale_s=0.006)
    workload = _draw_coflows(rng, shape, has, scheduler.uses_deadlines)
    settings: dict[str, Any] = {
        "fabric_port_speed": PORT * 8,
        "fabric_local": "free" if "local is free" in has else "network",
        "network_delay": float(rng.choice([0.0005, 0.003])) if "delays" in has else 0.0,
        "timeline_period": 0.01,
    }
    if "costs" in has:
        settings |= {"cost_model": "fixed", "cost_per_update": 1e-5, "cost_per_flow": 2e-5,
                     "cost_per_coflow": 1e-4, "cost_per_schedule": 1e-5}  # fmt: skip
    files = {}
    if "updates" in has and takes_updates(scheduler, resolve_parameters(scheduler, parameters)):
        updates = draw_updates(rng, workload)
        files = {"fabric_updates": updates} if updates.num_rows else {}
    name = ", ".join([f"case {seed} ({shape}", *sorted(has)]) + ")"
    return Case(name, workload, effective_settings(scheduler, settings), parameters, None, files)


def _draw_coflows(
    rng: np.random.Generator, shape: str, has: set[str], uses_deadlines: bool
) -> CoflowWorkload:
    """Return coflows of one to twelve flows, some of them from a port to itself."""
    at = np.array(FAR_PORTS if "far ports" in has else range(4 if shape == "one port" else 5))
    coflows = 2 if shape == "few" else int(rng.integers(6, 13))
    pairs = at.size**2 if shape != "one port" else at.size
    width = np.minimum(rng.integers(1, 13 if shape == "wide" else 6, coflows), pairs)
    chosen = np.concatenate([rng.choice(pairs, k, replace=False) for k in width])
    arrival_s = np.zeros(coflows) if shape == "burst" else np.cumsum(rng.choice(GAPS_S, coflows))
    ports = int(at[-1]) + 1
    speed = PORT * (1 + np.arange(ports) % 3) if "speeds" in has else np.full(ports, PORT)
    workload = make_coflow_workload(
        "drawn", arrival_s, width, at[chosen // at.size], at[chosen % at.size], rng.choice(SIZES, chosen.size),
        ports, ingress_bytes_per_s=speed, egress_bytes_per_s=speed[::-1],
    )  # fmt: skip
    demands: dict[str, Any] = {}
    if "deadlines" in has or uses_deadlines:
        # Some are tight to the nanosecond, some cannot be met, some are none.
        slack = rng.choice([np.nan, 1.0, 1.0 + 1e-9, 1.2, 1.4, 3.0], coflows)
        demands["deadline_s"] = column(workload.coflows, "arrival_s") + isolated_s(workload) * slack
    if "weights" in has:
        demands["weight"] = rng.integers(1, 4, coflows)
    return with_demands(workload, **demands) if demands else workload


def draw_updates(rng: np.random.Generator, workload: CoflowWorkload) -> pa.Table:
    """Return updates of tasks of coflows that are there: they restart, move, or their coflow is deregistered."""
    a = workload.arrays()
    ids, ports = column(workload.coflows, "coflow_id"), np.unique(np.concatenate([a.ingress, a.egress]))
    updates: list[coflow_updates.Row] = []
    for _ in range(int(rng.integers(4, 12))):
        coflow = int(rng.integers(workload.num_coflows))
        time_s = float(a.arrival_ns[coflow] / 1e9 + rng.choice([0.0, 0.004, 0.008, 0.0213, 0.05, 0.1]))
        kind = int(
            rng.choice(
                [coflow_updates.RESTART, coflow_updates.MOVE, coflow_updates.DEREGISTER], p=[0.4, 0.5, 0.1]
            )
        )
        side, flow = int(rng.integers(2)), int(rng.integers(a.first_flow[coflow], a.first_flow[coflow + 1]))
        port = int((a.ingress, a.egress)[side][flow])
        to = int(rng.choice(ports)) if kind == coflow_updates.MOVE else -1
        if kind == coflow_updates.DEREGISTER:
            side, port = coflow_updates.NO_SIDE, -1
        row = coflow_updates.Row(time_s, int(ids[coflow]), kind, side, port, to)
        try:
            coflow_updates.make_updates([*updates, row], workload)
        except InputError:
            continue
        updates.append(row)
    updates.sort(key=lambda row: row.time_s)
    sides = ["sender", "receiver", ""]
    columns = zip(
        *[
            (r.time_s, r.coflow_id, coflow_updates.KINDS[r.kind], sides[r.side], r.port, r.to)
            for r in updates
        ],
        strict=True,
    )
    table = (
        dict(zip(coflow_updates.COLUMNS, columns, strict=True))
        if updates
        else dict.fromkeys(coflow_updates.COLUMNS, ())
    )
    missing = {
        name: pa.array([None if v == -1 else v for v in table[name]], pa.int64()) for name in ("port", "to")
    }
    return pa.table({name: missing.get(name, pa.array([*values])) for name, values in table.items()})


def check_case(scheduler: Scheduler, case: Case, result: Result) -> None:
    """Check the result of a drawn case by its tables alone; raises as `check_scheduler`."""
    changes = "fabric_updates" in case.files
    check_coflow_result(result, case.workload, case.name, drops=scheduler.uses_deadlines, changes=changes)
    assert result.flows is not None
    flows, coflows = result.flows.to_pandas(), result.coflows.to_pandas()
    if case.settings.get("fabric_local") == "free" and not changes:
        local = flows[flows.ingress == flows.egress]
        arrival_s = coflows.set_index("coflow_id").arrival_s.loc[local.coflow_id].to_numpy()
        at_once = (local.start_s - arrival_s < SLACK_S) & (local.finish_s - arrival_s < SLACK_S)
        hold(bool(at_once.all()), case.name, "a flow from a port to itself took time")
        flows = flows[flows.ingress != flows.egress]
    if not scheduler.global_view and not changes:
        arrival_s = coflows.set_index("coflow_id").arrival_s.loc[flows.coflow_id].to_numpy()
        least_s = 2 * case.settings["network_delay"] - SLACK_S
        early = flows.start_s < arrival_s + least_s
        hold(not early.any(), case.name, "a flow started before its schedule could be at its port")
    started_s = flows.groupby("coflow_id").start_s.min()
    if not changes and case.settings.get("fabric_local") != "free":
        same = (started_s.loc[coflows.coflow_id].to_numpy() - coflows.start_s).abs()
        off = (same > SLACK_S) & coflows.finish_s.notna()
        hold(not off.any(), case.name, "a coflow did not start with its first flow")


def check_coflow_result(
    result: Result,
    workload: CoflowWorkload,
    case: str = "the run",
    *,
    drops: bool = False,
    changes: bool = False,
) -> None:
    """Check a result with flows against its workload, whose ports have speeds; raises as `check_scheduler`.

    Parameters
    ----------
    drops : bool
        Whether coflows that miss their deadline may stay unfinished.
    changes : bool
        Whether tasks of coflows restart or move, so that flows end elsewhere, or leave.
    """
    assert result.flows is not None, "the result has no flows; run with output_tasks=True"
    assert result.coflows is not None
    flows, coflows = result.flows.to_pandas(), result.coflows.to_pandas()
    count = f"{workload.num_flows} flows arrived, {len(flows)} are reported"
    hold(len(flows) == workload.num_flows, case, count)
    of_coflow = coflows.set_index("coflow_id").loc[flows.coflow_id]
    never = flows.start_s.isna() | flows.finish_s.isna()
    may_be_dropped = of_coflow.met_deadline.eq(False).to_numpy() if drops else np.zeros(len(flows), bool)
    if changes:
        may_be_dropped |= of_coflow.finish_s.isna().to_numpy()
        gone, counted = int(coflows.finish_s.isna().sum()), result.counters.get("deregistered", 0)
        hold(drops or gone == counted, case, f"{gone} coflows never ended, {counted} were deregistered")
    lost = flows.index[never & ~may_be_dropped]
    hold(len(lost) == 0, case, f"{len(lost)} flows never ended, the first of coflow {head(flows, lost)}")
    early = flows.index[flows.start_s < of_coflow.arrival_s.to_numpy() - SLACK_S]
    hold(len(early) == 0, case, f"a flow of coflow {head(flows, early)} started before the coflow arrived")
    for side in () if changes else ("ingress", "egress"):
        speeds = column(workload.ports, f"{side}_bytes_per_s")
        for port, sent in _crossing(result, flows[~never]).groupby(side):
            most = _most_bytes_over(sent, speeds[port])
            hold(
                most <= speeds[port] * SLACK_S, case, f"{side} port {port} carried {most:.0f} bytes too many"
            )
    last_s = flows.assign(never=never).groupby("coflow_id").agg({"finish_s": "max", "never": "any"})
    last_s = last_s.finish_s.where(~last_s.never).loc[coflows.coflow_id].to_numpy()
    ended = np.abs(last_s - coflows.finish_s) < SLACK_S
    unended = np.isnan(last_s) & coflows.finish_s.isna()
    hold(changes or bool((ended | unended).all()), case, "a coflow did not finish with its last flow")


def _crossing(result: Result, flows: pd.DataFrame) -> pd.DataFrame:
    """Return the flows that take bandwidth."""
    free = result.manifest["config"].get("fabric", {}).get("local") == "free"
    return flows[flows.ingress != flows.egress] if free else flows


def _most_bytes_over(flows: pd.DataFrame, bytes_per_s: float) -> float:
    """Return the most bytes by which flows of a port exceed its capacity between the start and the end of any two.

    A flow that starts and ends between two times has been sent between them, whatever its rates were.
    """
    most = 0.0
    by_end = flows.sort_values("finish_s")
    for begin_s in flows.start_s.unique():
        within = by_end[by_end.start_s >= begin_s]
        room = (within.finish_s - begin_s) * bytes_per_s
        most = max(most, float((within.size_bytes.cumsum() - room).max()))
    return most
