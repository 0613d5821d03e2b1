"""What the rest of Emu must know of tickets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clusters.cluster import load_cluster
from emu.columns import Column, ResultTable, make_table
from emu.configuration.loading import Loaded, Loading, load_workload_of
from emu.families.family import Family
from emu.report.plots import Drawing, TimelineLook
from emu.results.metrics import describe_metrics
from emu.results.paired_comparison import Comparing
from emu.results.result import Summarising
from workloads.arrow import column, optional_column
from workloads.transform import at_load

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from actors.scheduler import Scheduler
    from emu.configuration.config import Config
    from emu.configuration.plan import Plan
    from emu.configuration.workload_cache import WorkloadCache

TICKETS = (
    Column("ticket", pa.int64(), "", "Its place in the workload."),
    Column("arrival_s", pa.float64(), "s", "When it was drawn."),
    Column("turnaround_s", pa.float64(), "s", "Until it was served."),
    Column("width", pa.int64(), "", "1."),
)
TIMELINE = (
    Column("time_s", pa.float64(), "s", "Virtual time of the row."),
    Column("utilisation", pa.float64(), "", "Of the desk."),
    Column("waiting", pa.int64(), "tickets", "Tickets that wait."),
)


def load(config: Config, schedulers: tuple[Scheduler, ...], cache: WorkloadCache) -> Loaded:
    """Load a workload of jobs, which are the tickets, and a cluster of one slot, which is the desk."""
    begin = time.perf_counter()
    source = load_workload_of(config, cache).workload
    load = config["load"]
    return Loaded(
        source=source,
        workload=source if load is None else at_load(source, 1, load),
        cluster=load_cluster("homogeneous", 1, slots=1),
        load=load,
        load_s=time.perf_counter() - begin,
        period_s=10.0,
        notes=(),
        setting={},
        keys={"nodes": 1},
    )


def results(plan: Plan, outcome: Outcome) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
    """Return the tables of a run, and the figures of its summary."""
    arrival_s = column(plan.workload.jobs, "submit_s")
    turnaround_s = (outcome.finish_ns - plan.workload.arrays().submit_ns) / 1e9
    count, timeline = len(arrival_s), outcome.timeline
    tickets = make_table(
        TICKETS,
        {
            "ticket": np.arange(count),
            "arrival_s": arrival_s,
            "turnaround_s": turnaround_s,
            "width": np.ones(count, np.int64),
        },
    )
    rows = make_table(
        TIMELINE,
        {
            "time_s": timeline["time_s"],
            "utilisation": timeline["utilisation"],
            "waiting": timeline["queued_short"],
        },
    )
    return {"tickets": tickets, "timeline": rows}, {"tickets": describe_metrics({"": turnaround_s})}


FAMILY = Family(
    name="tickets",
    one="ticket",
    part="customers",
    node="desk",
    arrival="arrival_s",
    time="turnaround_s",
    width="width",
    tables={"tickets": ResultTable(TICKETS), "timeline": ResultTable(TIMELINE)},
    group_titles={"all": "all tickets"},
    take=lambda given: None,  # a workload of jobs is one, but as it is read it is one of jobs
    functions=(
        Loading(
            load=load,
            capacity=lambda config, workload, cluster: 1.0,
            at_load=at_load,
        ),
        Summarising(
            results=results,
            metrics=lambda run: {"": optional_column(run.heads, "turnaround_s")},
            names={"all": "all tickets"},
        ),
        Comparing(),
        Drawing(timeline=TimelineLook("utilisation", "tickets", {"waiting": "waiting"})),
    ),
)
