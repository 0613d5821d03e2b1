"""The family of schedulers of DAG jobs: stages of tasks with demands of resources, on machines that have them."""

from __future__ import annotations

from typing import Any

from emu.families.dags.columns import ABOUT, FURTHER_TIMELINE, TABLES
from emu.families.dags.comparison import compare_dags
from emu.families.dags.explain import causes_of_all, explain_dag
from emu.families.dags.keys import KEYS
from emu.families.dags.plan import arrivals_ns, at_load, capacity, load_dags, nodes_for_load
from emu.families.dags.plots import dag_figures
from emu.families.dags.reference import HEAD, SUMMARY
from emu.families.dags.report import group_section, run_facts
from emu.families.dags.results import dag_results
from emu.families.dags.terminal_text import render_more, render_rows, render_summary
from emu.families.dags.testing import check_dags
from emu.families.family import Family, Figures, Remedy
from emu.families.jobs.family import FAMILY as JOBS
from emu.families.jobs.keys import KEYS as OF_JOBS
from emu.families.jobs.plan import check_targets
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload
from workloads.one_stage import as_dags

_NUMBERS: Figures = {}
_HAS = {key.name for key in KEYS}
_WITHOUT = {
    "constraints": "schedulers of DAG jobs place by resources, and ignore constraints",
    "long_partition": "all machines are for all jobs",
    "machine_speed": "machines run tasks for the durations of the workload",
}


def take(given: Any) -> DagWorkload | None:
    """Return the workload of DAG jobs that was read; jobs without stages have one each, with a note."""
    if isinstance(given, JobWorkload):
        return as_dags(given)
    return given if isinstance(given, DagWorkload) else None


def counters() -> dict[str, str]:
    """Return the meaning of each counter; what counts is imported with the compiler, which few commands need."""
    from actors.dynamics import COUNTED
    from actors.machines.dag_world import COUNTERS

    return {**COUNTERS.about, **COUNTED}


REMEDIES = {
    "queueing": (Remedy("nodes", "more of them, or a lower load, leave room under any scheduler"),),
    "network": (
        Remedy("heartbeat_s", "the time between two reports of a machine"),
        Remedy("network.delay", "the time of each message"),
    ),
    "decision": (
        Remedy("cost.per_message", "what a message costs the manager, with the other keys of cost"),
    ),
    "failure": JOBS.remedies["failure"],
}
FAMILY = Family(
    name="dags",
    heads="jobs",
    one="job",
    part="tasks",
    arrival="submit_s",
    time="jct_s",
    width="num_tasks",
    tables=TABLES,
    further_columns={"timeline": FURTHER_TIMELINE},
    about_tables=ABOUT,
    reference=(HEAD, SUMMARY),
    timeline_labels=("utilisation", "tasks", {"run": "running_tasks", "wait": "runnable_tasks"}),
    timeline_caption="Share of the most used resource that tasks hold, tasks that run, and tasks that could",
    metrics=JOBS.metrics,
    form=dict.fromkeys(("used", "fairness", "fairness_running"), _NUMBERS),
    all_path=JOBS.all_path,
    nested=JOBS.nested,
    group_column=JOBS.group_column,
    group_titles={name: f"{name} jobs" for name in ("all", "short", "long")},
    shown=("mean", "p50", "p95"),
    defaults={"cluster": "carbyne"},
    without={
        key.name: why
        for key in OF_JOBS
        if key.name not in _HAS
        and (why := _WITHOUT.get(key.name) or _WITHOUT.get(key.name.partition(".")[0]))
    },
    optional=frozenset({"tasks", "costs"}),
    figures=("improvement", "fairness", "resources-", "running", "gantt-"),
    no_size="",
    take=take,
    load=load_dags,
    num_parts=lambda workload: int(workload.num_tasks),
    arrivals_ns=arrivals_ns,
    capacity=capacity,
    at_load=at_load,
    keeps_parts=lambda config: True,  # what is written of a run is read off its tasks
    results=dag_results,
    groups=JOBS.groups,
    part_of=JOBS.part_of,
    values=JOBS.values,
    compare=compare_dags,
    render_rows=render_rows,
    render_more=render_more,
    render_summary=render_summary,
    group_figures=dag_figures,
    group_section=group_section,
    run_facts=run_facts,
    check_targets=check_targets,
    nodes_for_load=lambda config, plan, load, cache: nodes_for_load(config, plan.workload, load, cache),
    check_scheduler=check_dags,
    counters=counters,
    explained_from_all=True,
    explain=explain_dag,
    causes=causes_of_all,
    remedies=REMEDIES,
)
