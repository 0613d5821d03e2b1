"""What tests of coflows share: a few small ones, and results of them made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from actors.hosting.outcome import Outcome
from actors.kernel.histogram import BUCKETS
from actors.schedulers.coflows.learned_and_admitted import Admitted, Learned
from actors.setting import Switch
from emu.families.coflows.metrics import describe_coflows
from emu.families.coflows.results import coflows_table, coordinator_figures, flows_table, timeline_table
from emu.results.result import Result
from tests.workloads.family_examples import coflows_of
from workloads.coflows import CoflowWorkload

SWITCH = Switch(port_bytes_per_s=1e6)
MB = 1e6


def four_coflows() -> CoflowWorkload:
    """Coflows over four ports of 1 MB/s, one in each bin and 10 s apart; the first two have deadlines.

    Alone on the switch they take 4 s (port 1 receives 3 + 1 MB), 1 s, 200 s and 200 s.
    """
    wide = [(i, e) for i in range(4) for e in range(4)][:8]
    return coflows_of(
        [
            (0.0, 5.0, {(0, 1): 3 * MB, (2, 1): 1 * MB, (2, 2): 1 * MB}),
            (10.0, 12.0, dict.fromkeys(wide, 0.25 * MB)),
            (20.0, None, {(3, 0): 200 * MB}),
            (30.0, None, dict.fromkeys(wide, 50 * MB)),
        ],
        ports=4,
    )


def outcome_of(
    workload: CoflowWorkload,
    cct_s: Sequence[float | None],
    learned_s: Sequence[float | None] | None = None,
    estimated: Sequence[float] | None = None,
    admitted: Admitted | None = None,
    **counters: int,
) -> Outcome:
    """What a run gave in which coflows took these times, None for never; each starts a second after it arrives."""
    arrays = workload.arrays()
    never = np.array([t is None for t in cct_s])
    took_ns = np.array([round(1e9 * (t or 0)) for t in cct_s])
    finish_ns = np.where(never, -1, arrays.arrival_ns + took_ns)
    start_ns = np.where(never, -1, arrays.arrival_ns + 10**9)
    width = np.diff(arrays.first_flow)
    series: Learned | Admitted | None = admitted
    if learned_s is not None:
        known = np.array([t is not None for t in learned_s])
        learned_ns = np.array([round(1e9 * (t or 0)) for t in learned_s]) + arrays.arrival_ns
        series = Learned(
            np.where(known, learned_ns, -1),
            np.where(known, 1e6, 0.0),
            np.full(len(never), np.nan) if estimated is None else np.array(estimated),
        )
    timeline = {
        "time_s": np.arange(3.0),
        "utilisation": np.array([0.0, 0.5, 0.25]),
        **{f"{name}_{size}": np.arange(3) for name in ("queued", "running") for size in ("short", "long")},
    }
    empty = np.zeros(0, np.int64)
    return Outcome(
        start_ns=start_ns,
        finish_ns=finish_ns,
        is_long=np.zeros(len(never), bool),
        timeline=timeline,
        tasks={
            "node": workload.arrays().ingress,
            "start_ns": np.repeat(start_ns, width),
            "finish_ns": np.repeat(finish_ns, width),
        },
        counters=counters,
        servers=empty,
        costs=empty,
        waits=np.zeros(BUCKETS, np.int64),
        delayed=(0, 0, 0),
        events=40,
        wall_s=0.5,
        compile_s=0.0,
        peak_rss_mb=90.0,
        series=series,
    )


def result_of(scheduler: str, outcome: Outcome, seed: int = 1) -> Result:
    """A run of `four_coflows` that gave an outcome."""
    workload = four_coflows()
    tables = {
        "coflows": coflows_table(workload, outcome, SWITCH),
        "timeline": timeline_table(outcome.timeline),
        "flows": flows_table(workload, outcome.tasks, SWITCH) if outcome.tasks else None,
    }
    engine = {"wall_s": 0.5, "load_s": 0.1, "compile_s": 0.0, "events": 40, "flows": 20, "tasks": 20}
    summary = {
        "scheduler": scheduler,
        "workload": "coflows",
        "nodes": 4,
        "seed": seed,
        "clock": "virtual",
        "coflows": describe_coflows(tables["coflows"]),
        **coordinator_figures(outcome.counters),
        "engine": engine | {"tasks_per_s": 40.0, "peak_rss_mb": 90.0},
        "counters": outcome.counters,
    }
    inputs = [{"what": "workload", "name": "coflows", "sha256": workload.fingerprint()}]
    manifest = {"config": {"warmup": "0.0 s"}, "inputs": inputs, "versions": {"python": "3"}}
    return Result(
        tables={name: table for name, table in tables.items() if table is not None},
        summary=summary,
        counters=outcome.counters,
        config=f'scheduler = "{scheduler}"\n',
        manifest=manifest,
    )
