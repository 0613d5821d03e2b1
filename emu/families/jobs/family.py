"""The family of schedulers that place jobs on nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from emu.families.family import Family, Figures

if TYPE_CHECKING:
    import pyarrow as pa

    from actors.hosting.outcome import Outcome
    from actors.scheduler import Scheduler
    from emu.columns import Column
    from emu.configuration.config import Config
    from emu.configuration.kinds import Key
    from emu.configuration.loading import Loaded
    from emu.configuration.memo import Memo
    from emu.configuration.plan import Plan
    from emu.report.drawing import Shown
    from emu.results.measures import Measure
    from emu.results.paired import Row, Runs, Tolerance
    from emu.results.result import Result
    from emu.sweeps.targets import Target


class Jobs(Family):
    """Jobs of tasks on nodes with slots; a DAG is run as the jobs it consists of."""

    name, one, part = "jobs", "job", "tasks"
    time, width = "jct_s", "num_tasks"
    metrics = ("", "wait", "slowdown", "bounded_slowdown")
    all_path = ("all",)
    nested = ("all", "short", "long", "constrained", "unconstrained", "by_constraint")
    group_column = "job_class"
    optional = frozenset({"crv", "tasks", "costs"})
    figures = ("wait-", "crv-")
    no_size = ""
    timeline_caption = "Utilisation of all slots, and tasks that wait, by class of their job"

    @property
    def keys(self) -> tuple[Key, ...]:
        from emu.families.jobs.keys import KEYS

        return KEYS

    @property
    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        from emu.families.jobs.columns import TABLES

        return TABLES

    @property
    def about_tables(self) -> Mapping[str, str]:
        from emu.families.jobs.columns import ABOUT

        return ABOUT

    def columns(self, table: str, names: Sequence[str]) -> tuple[Column, ...]:
        from emu.families.jobs.columns import LIVE_TIMELINE, TABLES

        is_live = table == "timeline" and LIVE_TIMELINE[0].name in names
        return (*TABLES[table], *LIVE_TIMELINE) if is_live else TABLES[table]

    @property
    def form(self) -> Figures:
        from emu.families.jobs.metrics import CLASSES, SIDES

        numbers: Figures = {}
        classes = dict.fromkeys(CLASSES, dict.fromkeys(self.metrics[1:], numbers))
        return {**classes, **dict.fromkeys(SIDES, classes), "by_constraint": {"*": classes}}

    def take(self, given: Any) -> Any:
        from workloads.dags import DagWorkload, as_jobs
        from workloads.frames import is_frame, workload_of_frame
        from workloads.jobs import JobWorkload

        if isinstance(given, DagWorkload):  # runs without precedence, with a note
            return as_jobs(given)
        if isinstance(given, JobWorkload):
            return given
        return workload_of_frame(given) if is_frame(given) else None

    def load(self, config: Config, schedulers: tuple[Scheduler, ...], memo: Memo) -> Loaded:
        from emu.families.jobs.plan import load_jobs

        return load_jobs(config, schedulers, memo)

    def num_parts(self, workload: Any) -> int:
        return int(workload.num_tasks)

    def arrivals_ns(self, workload: Any) -> Any:
        return workload.arrays().submit_ns

    def capacity(self, plan: Plan) -> float:
        return plan.cluster.total_slots

    def at_load(self, workload: Any, capacity: float, load: float) -> Any:
        from workloads.transform import at_load

        return at_load(workload, int(capacity), load)

    def keeps_parts(self, config: Config) -> bool:
        # Decision latency is read off the tasks.
        return bool(config["output.tasks"] or config["clock"] == "live" or config["cost.model"] != "none")

    def results(self, plan: Plan, outcome: Outcome) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
        from emu.families.jobs.results import job_results

        return job_results(plan, outcome)

    def groups(self, figures: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
        from emu.families.jobs.metrics import CLASSES, SIDES

        yield from ((name, (name,)) for name in CLASSES if name in figures)
        for side in SIDES:
            yield from ((f"{side} {name}", (side, name)) for name in figures.get(side, {}))
        for kind, of_kind in figures.get("by_constraint", {}).items():
            names = [name for name in CLASSES if name in of_kind]
            yield from ((f"{kind} {name}", ("by_constraint", kind, name)) for name in names)

    def group_names(self) -> tuple[str, ...]:
        from emu.families.jobs.metrics import SPLIT

        return ("short", "long", *SPLIT)

    def part_of(self, figures: Figures, group: str) -> Figures:
        from emu.families.jobs.metrics import part_of

        return part_of(figures, group)

    def compare(self, results: Runs, warmup_s: float) -> list[Row]:
        from emu.families.jobs.comparison import compare_jobs

        return compare_jobs(results, warmup_s)

    def render_rows(
        self, rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure]
    ) -> str:
        from emu.families.jobs.comparison import render_rows

        return render_rows(rows, head, tolerance, columns)

    def render_more(self, results: Runs, warmup_s: float) -> str:
        from emu.families.jobs.comparison import render_constraints

        return render_constraints(results)

    def render_summary(self, summary: Mapping[str, Any], columns: Sequence[Measure]) -> str:
        from emu.families.jobs.tables import render_summary

        return render_summary(summary, columns)

    def group_figures(self, results: Runs, warmup_s: float) -> list[Shown]:
        from emu.families.jobs.plots import job_figures

        return job_figures(results, warmup_s)

    def group_section(self, results: Runs, warmup_s: float) -> list[str]:
        from emu.families.jobs.report import group_section

        return group_section(results, warmup_s)

    def run_facts(self, run: Result) -> dict[str, str]:
        from emu.families.jobs.report import run_facts

        return run_facts(run)

    def timeline_labels(self) -> tuple[str, str, Mapping[str, str]]:
        return "utilisation", "queued tasks", {"short": "queued_short", "long": "queued_long"}

    def check_targets(self, plan: Plan, targets: Sequence[Target]) -> None:
        from emu.families.jobs.plan import check_targets

        check_targets(plan, targets)

    def nodes_for_load(self, config: Config, plan: Plan, load: float, memo: Memo) -> int:
        from emu.families.jobs.loading import nodes_for_load

        return nodes_for_load(config, plan.workload, load, memo)

    def check_scheduler(self, scheduler: Scheduler, run_twice: Callable[..., Result]) -> None:
        from emu.families.jobs.testing import check_jobs

        check_jobs(scheduler, run_twice)


JOBS = Jobs()
