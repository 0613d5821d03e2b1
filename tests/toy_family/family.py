"""What the rest of Emu must know of tickets."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from emu.columns import Column, make_table, numbers
from emu.families.family import Family, Figures
from workloads.arrow import column

if TYPE_CHECKING:
    from emu.configuration.loading import Loaded
    from emu.results.measures import Measure
    from emu.results.paired import Row, Runs, Tolerance

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


class TicketFamily(Family):
    """Tickets at a desk."""

    name, one, part, node = "tickets", "ticket", "customers", "desk"
    time, width = "turnaround_s", "width"

    @property
    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        return {"tickets": TICKETS, "timeline": TIMELINE}

    def take(self, given: Any) -> Any:
        return None  # a workload of jobs is one, but as it is read it is one of jobs

    def load(self, config: Any, schedulers: Any, memo: Any) -> Loaded:
        from clusters.cluster import load_cluster
        from emu.configuration.loading import Loaded, load_workload_of

        begin = time.perf_counter()
        source = load_workload_of(config, memo).workload
        load = config["load"]
        workload = source if load is None else self.at_load(source, 1.0, load)
        return Loaded(
            source=source,
            workload=workload,
            cluster=load_cluster("homogeneous", 1, slots=1),
            load=load,
            load_s=time.perf_counter() - begin,
            period_s=10.0,
            notes=(),
            setting={},
            keys={"nodes": 1},
        )

    def num_parts(self, workload: Any) -> int:
        return int(workload.num_jobs)

    def arrivals_ns(self, workload: Any) -> Any:
        return workload.arrays().submit_ns

    def capacity(self, plan: Any) -> float:
        return 1.0

    def at_load(self, workload: Any, capacity: float, load: float) -> Any:
        from workloads.transform import at_load

        return at_load(workload, int(capacity), load)

    def results(self, plan: Any, outcome: Any) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
        from emu.results.metrics import describe_metrics

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

    def compare(self, results: Runs, warmup_s: float) -> list[Row]:
        from emu.results.measures import all_measures
        from emu.results.paired import compare_parts

        parts = {name: [run.summary["tickets"] for run in runs] for name, runs in results.items()}
        return compare_parts(
            results,
            parts,
            "all",
            all_measures("tickets"),
            lambda run: numbers(run.tables["tickets"], "turnaround_s"),
            lambda run: np.ones(run.tables["tickets"].num_rows, bool),
        )

    def render_rows(
        self, rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure]
    ) -> str:
        from emu.results.tables import align, number

        table = [[row.scheduler, *(number(row.figures[m.name][0]) for m in columns)] for row in rows]
        return "\n".join([head, *align([["", *(m.name for m in columns)], *table])]) + "\n"

    def render_summary(self, summary: Figures, columns: Sequence[Measure]) -> str:
        from emu.results.tables import number

        return f"{summary['tickets']['count']} tickets, mean {number(summary['tickets']['mean'])} s\n"

    def timeline_labels(self) -> tuple[str, str, Mapping[str, str]]:
        return "utilisation", "tickets", {"waiting": "waiting"}


FAMILY = TicketFamily()
