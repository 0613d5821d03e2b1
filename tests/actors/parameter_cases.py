"""For each parameter of each scheduler: values that must change what comes out, and where.

Booleans and choices need no line here: both values, or all, are tried. A number needs one. What a parameter goes with
(`Parameter.needs`) is set by itself; `WHERE` has what else it takes for a parameter to count.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
from emulations import SETS, constrained, mixed_cluster, mixed_workload, setting_of

from actors.scheduler import Parameter, Scheduler
from actors.setting import Costs, Setting
from clusters.cluster import Cluster, build_cluster
from tests.actors.coflow_emulations import SPEED, coflows, fit_for, with_deadlines
from tests.actors.coflow_emulations import mixed_workload as mixed_coflows
from tests.actors.coflow_emulations import setting_of as coflow_setting
from tests.actors.dag_settings import mixed_dags
from tests.actors.dag_settings import setting_of as dag_setting
from workloads.arrow import column
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload, make_dag_workload
from workloads.generators.deadline_coflows import deadline_coflows
from workloads.jobs import JobWorkload
from workloads.requests import add_requests
from workloads.transform.primitives import set_column, with_tables

VALUES: dict[str, Any] = {
    # of schedulers of jobs
    "probe_ratio": 4.0,
    "least_probes": 2,
    "schedulers": 1,
    "slack": 0.1,
    "steal_attempts": 1,
    "steal_limit": 1,
    "reprobe_rounds": 0,
    "heartbeat_s": 3.0,
    "jitter_s": 0.0,
    "jitter_step_s": 3.0,
    "crv_threshold": 5.0,
    "candidates": 5,
    "window": 2,
    "rho_cap": 0.3,
    "report_change": 0.9,
    "load_gate": 0.1,
    "choices": 1,
    "queue_limit": 1,
    "queue_wait_s": 3.0,
    "tries": 0,
    "rebalance_s": 0.0,
    # of schedulers of coflows
    "queues": 2,
    "first_limit_bytes": 1 << 19,
    "factor": 2.0,
    "interval_s": 0.003,
    "reserve_s": 0.005,
    "slot_intervals": 4,
    "share": 2,
    "least_intervals": 0,
    "deadline_factor": 0.0,
    "thin_limit": 0,
    "pilot_share": 0.5,
    "pilot_number": 2,
    "contention_unit_bytes": 1 << 20,
    "congested": 1.0,
    "admit_from": 0.3,
    "padding": 0.5,
    "least_s": 0.01,
    "update_period_s": 0.01,
    # of schedulers of DAG jobs
    "altruism": 0.0,
    "remaining_weight": 0.0,
    "fairness": 0.7,
    "remote_penalty": 0.9,
    "plan_share": 0.9,
    "managers": 2,
    "sees": "memory",
    "unfairness": 0.0,
    "guarantees": "t0=0.7,t1=0.1",
    "weights": "t0=5",
    "ceilings": "t0=0.3",
}
"""A value of each number, by the parameter's name."""


class Where(NamedTuple):
    """What it takes for a parameter to count."""

    parameters: Mapping[str, Any] = MappingProxyType({})
    costs: Costs = Costs()
    workload: JobWorkload | CoflowWorkload | DagWorkload | None = None
    nodes: Cluster | list[int] | None = None


SMALL_QUEUES = {"first_limit_bytes": 1 << 20}
"""Limits that coflows of some megabytes pass more than once."""
ONE_SENDER = coflows(
    *((0.001 * k, [(0, egress, 0.2e6 * (1 + k % 4) ** 3) for egress in range(3)]) for k in range(12)), ports=3
)
"""Coflows of all sizes at one port, where queues and their slots count."""
SLOTS = Where({**SMALL_QUEUES, "factor": 3.0, "slot_intervals": 16, "thin_limit": 0}, workload=ONE_SENDER)
CONTENDED = Where(
    {"crv_threshold": 0.0, "heartbeat_s": 1.0, "least_probes": 3},
    workload=constrained(mixed_workload(40, seed=3), "cores >= 8 soft 1.5", "", "cores >= 4"),
    nodes=build_cluster("contended", [1] * 12, cpu_cores=[2, 4, 8, 8] * 3),
)
"""Any demand for a resource counts as contention; of what is asked for most there are six nodes of twelve."""
DUE = Where(workload=deadline_coflows(coflows=30, ports=5, seed=0, heavy_share=0.5, heavy_weight=3.0))
"""More coflows with deadlines than can meet them, all at once."""

_WIDE = mixed_workload(24, seed=3)
REQUESTED = Where(
    {"gangs": "all"},
    workload=with_tables(
        _WIDE, jobs=add_requests(_WIDE.jobs, {"requested_s": 3 * column(_WIDE.jobs, "mean_task_s")})
    ),
    nodes=[2, 2, 2],
)
"""Jobs whose users have requested three times as long as they run."""

TENANTS = Where(
    workload=with_tables(
        _WIDE, jobs=set_column(_WIDE.jobs, "tenant", pa.array([f"t{i % 3}" for i in range(24)]))
    ),
    nodes=[2, 2, 1],
)
"""Jobs of three tenants, on a cluster that is too small for them."""

WEIGHED = Where(
    {"unfairness": 1e6},
    workload=make_dag_workload("w", [0, 0], [1, 1], [2, 4], [13] * 2 + [7] * 4, [], cpu_cores=[2, 1]),
    nodes=build_cluster("one machine", [4], cpu_cores=[4]),
)
"""Two jobs at once on one machine, of which the second has less work left, and the first the tasks that fit better."""

WAITING = {"schedulers": 1, "queue_limit": 0}
"""Tasks of yacc-d wait at one scheduler."""

WHERE: dict[str, Where] = {
    "yacc-d.backlog_order": TENANTS._replace(parameters={**WAITING, "guarantees": VALUES["guarantees"]}),
    "yacc-d.weights": TENANTS._replace(parameters=WAITING),
    "yacc-d.guarantees": TENANTS._replace(parameters=WAITING),
    "yacc-d.ceilings": TENANTS._replace(parameters=WAITING),
    **{
        f"{scheduler}.{parameter}": TENANTS._replace(
            parameters={"guarantees": VALUES["guarantees"]} if parameter == "order" else {}
        )
        for scheduler in ("central-fifo", "central-fcfs-gang", "easy")
        for parameter in ("order", "weights", "guarantees", "ceilings")
    },
    "plan_by": REQUESTED,
    "schedulers": Where(
        costs=Costs("fixed", per_message_s=0.3)
    ),  # it is all the same how many share the jobs for nothing
    "queues": SLOTS,
    "factor": Where(SMALL_QUEUES),
    "starvation": SLOTS,
    "slot_intervals": SLOTS,
    "share": SLOTS,
    "least_intervals": SLOTS,
    "philae.policy": SLOTS,
    "philae.pilots": Where({"policy": "C", "pilot_share": 0.3, "thin_limit": 0}),
    "philae.contention_unit_bytes": Where({**SMALL_QUEUES, "thin_limit": 0}, workload=ONE_SENDER),
    "drop_expired": Where(workload=with_deadlines(mixed_coflows(30, 5, seed=7, mean_gap=0.002), most=1.5)),
    "reject": DUE,
    "congested": DUE,
    "chronos.order": DUE,
    "examine": Where(workload=deadline_coflows(coflows=30, ports=5, seed=3)),
    "sincronia.weights": Where(workload=with_deadlines(mixed_coflows(14, 5, seed=7))),
    "carbyne.intra_job": Where({"altruism": 0.0}),
    "carbyne.plan_share": Where({"packing": "dagps", "altruism": 0.5}),
    "carbyne.leftover": Where(
        {"completion": "kept"}
    ),  # without leftovers jobs need an end that does not move
    "carbyne.leftover_tasks": Where({"completion": "kept"}),
    "weight": WEIGHED,
    "phoenix.order": CONTENDED,
    "phoenix.candidates": CONTENDED,
    "phoenix.negotiate": CONTENDED,
}
"""By a parameter's name, or `scheduler.name` for that of one scheduler."""


class Case(NamedTuple):
    """A parameter, and the values that are tried one against the other; the first is the default, or what is needed."""

    scheduler: Scheduler
    parameter: Parameter
    values: tuple[Any, ...]
    where: Where

    def settings(self) -> list[Setting]:
        """Emulations that differ in nothing but this parameter."""
        return [
            setting_for(self.scheduler, self.where, {self.parameter.name: value}) for value in self.values
        ]


def case_of(scheduler: Scheduler, parameter: Parameter) -> Case:
    """The case of a parameter; the error tells what to add if it lacks."""
    found = WHERE.get(f"{scheduler.name}.{parameter.name}", WHERE.get(parameter.name, Where()))
    own = [p.name for p in scheduler.parameters]
    given = {name: value for name, value in found.parameters.items() if name in own}
    for need in parameter.needs:
        name, _, wanted = need.partition("=")
        default = next((p.default for p in scheduler.parameters if p.name == name), None)
        if name in own and name not in given and wanted and str(default) not in wanted.split("|"):
            given[name] = wanted.split("|")[0]
    where = found._replace(parameters=given)
    default = given.get(parameter.name, parameter.default)
    if parameter.kind == "flag":
        values = (default, not default)
    elif parameter.kind == "choice":
        values = tuple(dict.fromkeys((default, *parameter.choices)))
    else:
        assert parameter.name in VALUES, (
            f"no value is tried of the parameter {parameter.name} of {scheduler.name}: add one that changes the "
            "result to VALUES of tests/actors/parameter_cases.py, and to WHERE what it takes for that"
        )
        values = (default, VALUES[parameter.name])
    return Case(scheduler, parameter, values, where)


JOBS = mixed_workload(24, seed=3)
COFLOWS = mixed_coflows(14, 5, seed=7)
DAGS = mixed_dags()


def setting_for(scheduler: Scheduler, where: Where, changed: dict[str, Any]) -> Setting:
    """The emulation of a case, or of a scheduler as it is by default."""
    given = {**where.parameters, **changed}
    if scheduler.family == "coflows":
        work = where.workload or fit_for(scheduler.name, COFLOWS)
        assert isinstance(work, CoflowWorkload)
        return coflow_setting(scheduler.name, work, speed=SPEED, costs=where.costs, seed=3, **given)
    if scheduler.family == "dags":
        dags = where.workload or DAGS
        assert isinstance(dags, DagWorkload)
        nodes = where.nodes if isinstance(where.nodes, Cluster) else None
        return dag_setting(scheduler.name, dags, nodes, costs=where.costs, seed=3, **given)
    jobs_of = where.workload or (constrained(JOBS, *SETS) if scheduler.constrained else JOBS)
    assert isinstance(jobs_of, JobWorkload)
    nodes = where.nodes or mixed_cluster()
    return setting_of(scheduler.name, jobs_of, nodes, long_partition=0.7, costs=where.costs, seed=3, **given)
