"""The family of schedulers that place jobs on nodes: jobs of tasks on nodes with slots; a DAG is run as its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emu.configuration.loading import Loading
from emu.explaining.causes import Causes
from emu.families.family import Family, Figures
from emu.families.jobs.divisions import DIVISIONS, check_targets, division_of, jobs_of, tenant_groups
from emu.families.jobs.explain import explain_job, others_of
from emu.families.jobs.loading import nodes_for_load, slots_equal_to
from emu.families.jobs.metrics import CLASSES, SIDES, SPLIT, in_group, job_metrics, part_of, shown_classes
from emu.families.jobs.plan import load_jobs
from emu.families.jobs.plots import job_figures
from emu.families.jobs.results import TABLES, job_results, times_decisions
from emu.families.jobs.run_causes import REMEDIES, causes_of_all, finer_causes_of_all, waits_by_reason
from emu.families.jobs.tables import ALL_FACTS, GROUPS, further_tables, jobs_title, reasons, summary_tables
from emu.families.jobs.task_waits import add_waits
from emu.families.jobs.testing import check_case, draw_case
from emu.report.plots import Drawing, TimelineLook
from emu.report.report_sections import comparison_sections
from emu.results.paired_comparison import Comparing
from emu.results.result import Summarising
from emu.sweeps.targets import Sizing
from workloads.conversion import as_jobs
from workloads.dags import DagWorkload
from workloads.frames import is_frame, workload_of_frame
from workloads.jobs import JobWorkload
from workloads.transform import at_load

if TYPE_CHECKING:
    from emu.configuration.plan import Plan

METRICS = ("", "wait", "slowdown", "bounded_slowdown")
_NUMBERS: Figures = {}
_OF_GROUP: Figures = dict.fromkeys(METRICS[1:], _NUMBERS)
_OF_CLASSES: Figures = dict.fromkeys(CLASSES, _OF_GROUP)


def take(given: Any) -> JobWorkload | None:
    """Return the workload of jobs that was read, or given as a frame; a DAG runs without precedence, with a note."""
    if isinstance(given, DagWorkload):
        jobs = as_jobs(given)
        return replace(jobs, notes=(*jobs.notes, "with --network, also of none, stages run in their order"))
    if isinstance(given, JobWorkload):
        return given
    return workload_of_frame(given) if is_frame(given) else None


def keeps_tasks(plan: Plan) -> bool:
    """Whether tasks must be recorded: decision latency is read off them, and what is held, also by tenant."""
    return times_decisions(plan.config) or bool(plan.own["resources"] or tenant_groups(plan.workload.jobs))


def groups(figures: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield classes, classes of jobs with constraints and without, classes by kind of them, priorities, tenants."""
    yield from ((name, (name,)) for name in shown_classes(figures))
    for side in SIDES:
        yield from ((f"{side} {name}", (side, name)) for name in figures.get(side, {}))
    for kind, of_kind in figures.get("by_constraint", {}).items():
        names = [name for name in CLASSES if name in of_kind]
        yield from ((f"{kind} {name}", ("by_constraint", kind, name)) for name in names)
    for division in DIVISIONS:
        yield from ((group, (division.key, division_of(group)[1])) for group in division.groups(figures))


def counters() -> dict[str, str]:
    """Return the meaning of each counter; what counts is imported with the compiler, which few commands need."""
    from actors.failures import COUNTED
    from actors.nodes.world import COUNTERS

    return {**COUNTERS.about, **COUNTED}


FAMILY = Family(
    name="jobs",
    one="job",
    part="tasks",
    arrival="submit_s",
    time="jct_s",
    width="num_tasks",
    tables=TABLES,
    metrics=METRICS,
    form={
        **_OF_CLASSES,
        **dict.fromkeys(SIDES, _OF_CLASSES),
        "by_constraint": {"*": _OF_CLASSES},
        **{division.key: {"*": _OF_GROUP} for division in DIVISIONS},
        "used": _NUMBERS,
    },
    group_column="job_class",
    group_titles={name: f"{name} jobs" for name in ("short", "long", *SPLIT)},
    figures=("wait-", "resources-", "tenants-", "crv-"),
    take=take,
    groups=groups,
    part_of=part_of,
    in_group=in_group,
    counters=counters,
    draw_case=draw_case,
    check_case=check_case,
    functions=(
        Loading(load=load_jobs, capacity=slots_equal_to, at_load=at_load),
        Summarising(
            results=job_results,
            keeps_parts=keeps_tasks,
            add_waits=add_waits,
            metrics=job_metrics,
            sections=comparison_sections,
            title="job completion time (s)",
            names={name: name for name in (*CLASSES, *SPLIT)},
            tables=summary_tables,
            facts=ALL_FACTS,
            reasons=reasons,
        ),
        Comparing(groups=GROUPS, classes=("short", "long"), title=jobs_title, tables=further_tables),
        Drawing(
            figures=job_figures,
            timeline=TimelineLook(
                "utilisation",
                "queued tasks",
                {"short": "queued_short", "long": "queued_long"},
                "Utilisation of all slots, or of the resource used most, and tasks that wait, by class of their job",
            ),
        ),
        Sizing(nodes_for_load, check_targets, jobs_of, waits_by_reason),
        Causes(
            explain=explain_job,
            others=others_of,
            of_all=causes_of_all,
            finer=finer_causes_of_all,
            remedies=REMEDIES,
        ),
    ),
)
