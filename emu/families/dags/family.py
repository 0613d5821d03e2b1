"""The family of schedulers of DAG jobs: stages of tasks with demands of resources, on machines that have them."""

from __future__ import annotations

from typing import Any

from actors.causes import Remedy
from emu.configuration.loading import Loading
from emu.explaining.causes import Causes
from emu.families.dags.explain import causes_of_all, explain_dag
from emu.families.dags.keys import KEYS
from emu.families.dags.network import on_network
from emu.families.dags.plan import at_load, load_dags, nodes_for_load, slots_equal_to
from emu.families.dags.plots import dag_figures
from emu.families.dags.results import TABLES, dag_results
from emu.families.dags.tables import FACTORS, FACTS, GROUPS, further_tables
from emu.families.dags.testing import check_case, draw_case
from emu.families.family import Family, Figures
from emu.families.jobs.divisions import check_targets, jobs_of
from emu.families.jobs.family import FAMILY as JOBS
from emu.families.jobs.keys import KEYS as OF_JOBS
from emu.families.jobs.metrics import CLASSES, job_metrics
from emu.families.jobs.tables import ALL_FACTS, division_rows, jobs_title, reasons
from emu.report.plots import Drawing, TimelineLook
from emu.report.report_sections import comparison_sections
from emu.results.measures import TERMINAL
from emu.results.paired_comparison import Comparing
from emu.results.result import Summarising
from emu.sweeps.targets import Sizing
from workloads.conversion import as_dags
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload

_NUMBERS: Figures = {}
_HAS = {key.name for key in KEYS}
_WITHOUT = {
    "constraints": "schedulers of DAG jobs place by resources, and ignore constraints",
    "resources": "tasks of DAG jobs hold all that their stages state",
    "machine_speed": "machines run tasks for the durations of the workload",
}


def take(given: Any) -> DagWorkload | None:
    """Return the workload of DAG jobs that was read; jobs without stages have one each, with a note."""
    if isinstance(given, JobWorkload):
        return as_dags(given)
    return given if isinstance(given, DagWorkload) else None


def counters() -> dict[str, str]:
    """Return the meaning of each counter; what counts is imported with the compiler, which few commands need."""
    from actors.failures import COUNTED
    from actors.machines.dag_world import COUNTERS
    from actors.nodes.world import COUNTERS as OF_JOBS

    return {**OF_JOBS.about, **COUNTERS.about, **COUNTED}


REMEDIES = {
    "network.delay": (Remedy("network", "the time of each message"),),
    "cost.per_message": (
        Remedy("decision", "what a message costs the manager, with the other keys of cost"),
    ),
    "fabric.port_speed": (Remedy("fetching", "the speed of the ports"),),
    "nodes": (
        Remedy("queueing", "more of them, or a lower load, leave room under any scheduler"),
        Remedy("fetching", "more of them have more ports, and each has less to send"),
    ),
    **{key: of for key, of in JOBS[Causes].remedies.items() if key.startswith(("dynamics.", "preemption."))},
}
FAMILY = Family(
    name="dags",
    one="job",
    part="tasks",
    coordinator="the coordinator of the network under {}",
    arrival="submit_s",
    time="jct_s",
    width="num_tasks",
    tables=TABLES,
    metrics=JOBS.metrics,
    form=dict.fromkeys(("used", "fairness", "fairness_running", "fairness_up_to_share"), _NUMBERS),
    group_column=JOBS.group_column,
    group_titles={name: f"{name} jobs" for name in ("all", "short", "long")},
    defaults={"cluster": "carbyne"},
    also_runs=("jobs",),
    asked_by=("network.scheduler",),
    without={
        key.name: why
        for key in OF_JOBS
        if key.name not in _HAS
        and (why := _WITHOUT.get(key.name) or _WITHOUT.get(key.name.partition(".")[0]))
    },
    figures=("improvement", "fairness", "wait-", "resources-", "tenants-", "running", "gantt-"),
    take=take,
    groups=JOBS.groups,
    part_of=JOBS.part_of,
    in_group=JOBS.in_group,
    counters=counters,
    draw_case=draw_case,
    check_case=check_case,
    functions=(
        Loading(
            load=load_dags,
            capacity=lambda config, workload, cluster: slots_equal_to(workload, cluster),
            at_load=at_load,
            joined=on_network,
        ),
        Summarising(
            results=dag_results,
            keeps_parts=lambda plan: True,  # what is written of a run is read off its tasks
            metrics=job_metrics,
            sections=comparison_sections,
            title="job completion time (s)",
            names={name: name for name in CLASSES},
            tables=division_rows,
            reasons=reasons,
            facts=(*(fact for fact in ALL_FACTS if fact.only != TERMINAL), *FACTS),
        ),
        Comparing(
            groups=GROUPS,
            classes=("short", "long"),
            title=jobs_title,
            factors=FACTORS,
            tables=further_tables,
        ),
        Drawing(
            figures=dag_figures,
            timeline=TimelineLook(
                "utilisation",
                "tasks",
                {"run": "running_tasks", "wait": "runnable_tasks"},
                "Share of the most used resource that tasks hold, tasks that run, and tasks that could",
            ),
            statistics=("mean", "p50", "p95"),
        ),
        Sizing(nodes_for_load, check_targets, jobs_of),
        Causes(explain=explain_dag, needs_all=True, of_all=causes_of_all, remedies=REMEDIES),
    ),
)
