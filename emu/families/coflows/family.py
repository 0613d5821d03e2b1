"""The family of schedulers that share the ports of one big switch among coflows."""

from __future__ import annotations

from collections.abc import Iterator

from actors.causes import Remedy
from emu.configuration.loading import Loading
from emu.explaining.causes import Causes
from emu.families.coflows.deadlines import answers, compare_gains
from emu.families.coflows.explain import causes_of_all, explain_coflow
from emu.families.coflows.metrics import BINS, GROUPS, in_group, part_of, values_of
from emu.families.coflows.plan import at_load, load_coflows, switch_of
from emu.families.coflows.plots import coflow_figures
from emu.families.coflows.results import TABLES, coflow_results
from emu.families.coflows.tables import FACTORS, FACTS, NAMES, WAITS, further_tables, rows_title
from emu.families.coflows.testing import check_case, draw_case
from emu.families.family import Family, Figures
from emu.report.plots import Drawing, TimelineLook
from emu.report.report_sections import comparison_sections
from emu.results.paired_comparison import Comparing
from emu.results.result import Summarising
from workloads.coflows import CoflowWorkload

METRICS = ("", "wait", "slowdown")
_NUMBERS: Figures = {}
_OF_METRICS: Figures = dict.fromkeys(METRICS[1:], _NUMBERS)
_SAME_TIME = "schedules must reach all agents at the same time"
_OUR_PORTS = "the nodes of a run of coflows are the workload's ports, all alike"


def groups(figures: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield all coflows, and bins by width and size."""
    yield "all", ()
    yield from ((name, ("bins", name)) for name in figures.get("bins", {}))


def counters() -> dict[str, str]:
    """Return the meaning of each counter."""
    from actors.fabric.counters import COUNTERS

    return COUNTERS.about


REMEDIES = {
    "fabric.port_speed": (Remedy("contention", "the speed of the ports; a lower load has the same effect"),),
    "cost.per_message": (
        Remedy("decision", "what a message costs the coordinator, with the other keys of cost"),
    ),
    "network.delay": (Remedy("network", "the time of each message"),),
}
FAMILY = Family(
    name="coflows",
    one="coflow",
    part="flows",
    node="port",
    arrival="arrival_s",
    time="cct_s",
    width="width",
    tables=TABLES,
    metrics=METRICS,
    form={
        **_OF_METRICS,
        "bins": dict.fromkeys(BINS, _OF_METRICS),
        "learning": dict.fromkeys(("latency", "cct_share", "bytes", "bytes_share"), _NUMBERS),
        "estimates": _NUMBERS,
        "admission": dict.fromkeys(("admitted_after", "rejected_after"), _NUMBERS),
        "normalised_cct": _NUMBERS,
        "wasted": _NUMBERS,
    },
    group_titles={group: "all coflows" if group == "all" else group for group in GROUPS},
    defaults={"network.delay": 0.0},
    without={
        **dict.fromkeys(
            (
                "cluster",
                "machines",
                "without",
                "cluster_seed",
                "slots",
                "machine_speed",
                "infeasible",
                "load_by",
            ),
            _OUR_PORTS,
        ),
        "constraints": _OUR_PORTS,
        "resources": _OUR_PORTS,
        "preemption": _OUR_PORTS,
        "priorities": "a coflow has a weight",
        "network.spread": _SAME_TIME,
        "network.cross_rack_delay": _SAME_TIME,
        "slowdown_threshold": "coflows are compared with what they would take alone, however short that is",
        "short_cutoff": "coflows are neither short nor long",
        "long_partition": "coflows are neither short nor long",
        "estimates": "coflows have no tasks whose durations could be estimated",
        "dynamics": "nothing fails or straggles in a run of coflows",
        "cost": "for coflows there are cost.per_message, .per_update, .per_flow, .per_coflow and .per_schedule",
    },
    figures=("learning", "speedup", "estimates-", "deadlines", "gains"),
    notes_each_ignored_key=True,
    take=lambda given: given if isinstance(given, CoflowWorkload) else None,
    groups=groups,
    part_of=part_of,
    in_group=in_group,
    counters=counters,
    draw_case=draw_case,
    check_case=check_case,
    functions=(
        Loading(
            load=load_coflows,
            capacity=lambda config, workload, cluster: switch_of(config).port_bytes_per_s,
            at_load=at_load,
        ),
        Summarising(
            results=coflow_results,
            metrics=lambda run: values_of(run.coflows),
            sections=comparison_sections,
            names=NAMES,
            facts=FACTS,
            reasons=lambda summaries: WAITS,
        ),
        Comparing(
            groups=GROUPS,
            title=rows_title,
            factors=FACTORS,
            only_finished=True,
            gains=compare_gains,
            tables=further_tables,
        ),
        Drawing(
            figures=coflow_figures,
            answers=answers,
            timeline=TimelineLook(
                "flows under way\nper port",
                "flows",
                {"waiting": "waiting_flows", "running": "running_flows"},
                "Flows that have begun and not ended per port, and flows that wait and that have begun",
            ),
            statistics=("mean", "p50", "p90"),
            shares={"met their deadline": "acceptance_rate", "of the weight": "weighted_acceptance_rate"},
        ),
        Causes(explain=explain_coflow, needs_all=True, of_all=causes_of_all, remedies=REMEDIES),
    ),
)
