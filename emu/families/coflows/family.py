"""The family of schedulers that share the ports of a switch among coflows."""

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

_SAME_TIME = "schedules must reach all agents at the same time"
_OUR_PORTS = "the nodes of a run of coflows are the workload's ports, all alike"


class Coflows(Family):
    """Coflows of flows over the ports of one big switch."""

    name, one, part, node = "coflows", "coflow", "flows", "port"
    time, width = "cct_s", "width"
    metrics = ("", "wait", "slowdown")
    nested = ("bins",)
    shown = ("mean", "p50", "p90")
    defaults = {"network.delay": 0.0}  # noqa: RUF012
    without = {  # noqa: RUF012
        **dict.fromkeys(
            ("cluster", "cluster_seed", "slots", "machine_speed", "infeasible", "load_by"), _OUR_PORTS
        ),
        "constraints": _OUR_PORTS,
        "network.spread": _SAME_TIME,
        "network.cross_rack_delay": _SAME_TIME,
        "slowdown_threshold": "coflows are compared with what they would take alone, however short that is",
        "short_cutoff": "coflows are neither short nor long",
        "long_partition": "coflows are neither short nor long",
        "estimates": "coflows have no tasks whose durations could be estimated",
        "dynamics": "nothing fails or straggles in a run of coflows",
        "cost": "for coflows there are cost.per_message, .per_update, .per_flow, .per_coflow and .per_schedule",
    }
    optional = frozenset({"flows", "costs"})
    figures = ("learning", "speedup", "estimates-")
    notes_each_ignored_key = True
    no_size = "coflows, whose number of ports is the workload's"
    timeline_caption = "Flows that have begun and not ended per port, and flows that wait and that have begun"

    @property
    def keys(self) -> tuple[Key, ...]:
        from emu.families.coflows.keys import KEYS

        return KEYS

    @property
    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        from emu.families.coflows.columns import TABLES

        return TABLES

    @property
    def about_tables(self) -> Mapping[str, str]:
        from emu.families.coflows.columns import ABOUT

        return ABOUT

    def reference(self) -> tuple[str, str]:
        from emu.families.coflows import reference

        return reference.HEAD, reference.SUMMARY

    @property
    def form(self) -> Figures:
        from emu.families.coflows.metrics import BINS

        numbers: Figures = {}
        metrics = dict.fromkeys(self.metrics[1:], numbers)
        return {
            **metrics,
            "bins": dict.fromkeys(BINS, metrics),
            "learning": dict.fromkeys(("latency", "cct_share", "bytes", "bytes_share"), numbers),
            "estimates": numbers,
        }

    def take(self, given: Any) -> Any:
        from workloads.coflows import CoflowWorkload

        return given if isinstance(given, CoflowWorkload) else None

    def check(
        self, config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
    ) -> None:
        from emu.families.coflows.plan import check_updates

        check_updates(config, schedulers, parameters)

    def load(self, config: Config, schedulers: tuple[Scheduler, ...], memo: Memo) -> Loaded:
        from emu.families.coflows.plan import load_coflows

        return load_coflows(config, schedulers, memo)

    def num_parts(self, workload: Any) -> int:
        return int(workload.num_flows)

    def arrivals_ns(self, workload: Any) -> Any:
        return workload.arrays().arrival_ns

    def capacity(self, plan: Plan) -> float:
        from emu.families.coflows.plan import switch_of

        return switch_of(plan.config).port_bytes_per_s

    def at_load(self, workload: Any, capacity: float, load: float) -> Any:
        from emu.families.coflows.plan import at_load

        return at_load(workload, capacity, load)

    def results(self, plan: Plan, outcome: Outcome) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
        from emu.families.coflows.results import coflow_results

        return coflow_results(plan, outcome)

    def groups(self, figures: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "all", ()
        yield from ((name, ("bins", name)) for name in figures.get("bins", {}))

    def group_names(self) -> tuple[str, ...]:
        from emu.families.coflows.metrics import GROUPS

        return GROUPS

    def part_of(self, figures: Figures, group: str) -> Figures:
        from emu.families.coflows.metrics import part_of

        return part_of(figures, group)

    def group_title(self, group: str) -> str:
        return "all coflows" if group == "all" else group

    def compare(self, results: Runs, warmup_s: float) -> list[Row]:
        from emu.families.coflows.comparison import compare_coflows

        return compare_coflows(results, warmup_s)

    def render_rows(
        self, rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure]
    ) -> str:
        from emu.families.coflows.tables import render_rows

        return render_rows(rows, head, tolerance, columns)

    def render_more(self, results: Runs, warmup_s: float) -> str:
        from emu.families.coflows.tables import render_more

        return render_more(results, warmup_s)

    def render_summary(self, summary: Mapping[str, Any], columns: Sequence[Measure]) -> str:
        from emu.families.coflows.tables import render_summary

        return render_summary(summary, columns)

    def group_figures(self, results: Runs, warmup_s: float) -> list[Shown]:
        from emu.families.coflows.plots import coflow_figures

        return coflow_figures(results, warmup_s)

    def group_section(self, results: Runs, warmup_s: float) -> list[str]:
        from emu.families.coflows.report import group_section

        return group_section(results, warmup_s)

    def run_facts(self, run: Result) -> dict[str, str]:
        from emu.families.coflows.report import run_facts

        return run_facts(run)

    def timeline_labels(self) -> tuple[str, str, Mapping[str, str]]:
        return (
            "flows under way\nper port",
            "flows",
            {"waiting": "waiting_flows", "running": "running_flows"},
        )

    def check_scheduler(self, scheduler: Scheduler, run_twice: Callable[..., Result]) -> None:
        from emu.families.coflows.testing import check_coflows

        check_coflows(scheduler, run_twice)


COFLOWS = Coflows()
