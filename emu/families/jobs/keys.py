"""The keys that runs of jobs have."""

from __future__ import annotations

from actors.environment import Costs, Dynamics, Estimates, Network, Preemption
from emu.configuration.key import Key
from workloads.defaults import PRICE

THRESHOLD_S = 10.0
"""The default threshold of bounded slowdown: as in its definition, and in most papers since."""

_EVICTS = ("preemption.mode=restart|checkpoint",)
_FAILS = ("dynamics.failures", "dynamics.mtbf")
_CONSTRAINED = ("constraints.model",)

KEYS = (
    Key("cluster", "path", "homogeneous", "A preset or the path of a cluster file.", option="--cluster"),
    Key("slots", "integer", None, "Tasks a node can run at once.", low=1, otherwise="the cluster's own"),
    Key(
        "machine_speed",
        "flag",
        False,
        "Whether nodes run tasks by their `speed`, an attribute of the cluster's nodes: durations are divided by it.",
    ),
    Key(
        "machines",
        "machines",
        None,
        "Number of nodes of each machine type of the cluster, in place of `nodes`: `fast=3, plain=5`; 0 of a type that "
        "is not named.",
        otherwise="in the cluster's proportions",
    ),
    Key(
        "without",
        "share",
        0.0,
        "Share of the nodes that are missing all through the run, drawn from `scheduler_seed`: at least one.",
        option="--without",
    ),
    Key("cluster_seed", "integer", 0, "Seed of a cluster whose machines are drawn or shuffled.", low=0),
    Key(
        "resources.use",
        "text",
        "auto",
        "What tasks hold of nodes: `slots`, one each; `stated`, all resources of which the workload states demands; or "
        "names of some of these with commas between: `cpu_cores, memory`. `auto` is `stated` where the cluster is not "
        "the default one, whose nodes are so many slots.",
    ),
    Key(
        "resources.passing",
        "number",
        0.0,
        "With resources: what fits on a node passes an entry of its queue that does not, by at most this many times "
        "the estimated work of the latter; 0: nothing passes.",
        low=0,
    ),
    Key(
        "priorities",
        "flag",
        True,
        "Whether jobs of a higher priority go first, where some is stated: in queues of nodes and of schedulers of "
        "gangs, and with resource managers of DAG jobs.",
    ),
    Key(
        "preemption.mode",
        "choice",
        "none",
        "Whether running tasks make room for those of higher priority. Evicted tasks begin again (`restart`), or go on "
        "from where they were (`checkpoint`).",
        choices=("none", "restart", "checkpoint"),
    ),
    Key(
        "preemption.cost",
        "duration",
        Preemption.cost_s,
        "What is added to the run time of a task that was evicted: to start it again, or to read its checkpoint.",
        needs=_EVICTS,
    ),
    Key(
        "preemption.most",
        "integer",
        Preemption.most,
        "How often a task is evicted at the most.",
        low=1,
        needs=_EVICTS,
    ),
    Key(
        "preemption.below",
        "integer",
        None,
        "Tasks of this priority or a higher one are not evicted.",
        otherwise="all may be evicted for a task of higher priority",
        needs=_EVICTS,
    ),
    Key(
        "preemption.order",
        "choice",
        "youngest",
        "Which running tasks of the lowest priority are evicted first: those that started last, or first.",
        choices=("youngest", "oldest"),
        needs=_EVICTS,
    ),
    Key(
        "load_by",
        "choice",
        "arrivals",
        "How `load` is met: `arrivals` scales the gaps between arrivals, `nodes` picks the number of nodes.",
        choices=("arrivals", "nodes"),
        needs=("load",),
    ),
    Key(
        "constraints.model",
        "text",
        None,
        "Constraints drawn for the workload's jobs, in place of those it has: a model, `phoenix` or `sharma`, or "
        "constraints and their shares of the jobs, such as `cores >= 16: 10%`; `none` takes them away.",
        otherwise="the workload's own",
    ),
    Key(
        "constraints.jobs",
        "choice",
        None,
        "Jobs that they are drawn for.",
        choices=("short", "long", "all"),
        otherwise="as the model has it",
        needs=_CONSTRAINED,
    ),
    Key(
        "constraints.combined",
        "flag",
        None,
        "Whether a job may have several of them.",
        otherwise="as the model has it",
        needs=_CONSTRAINED,
    ),
    Key(
        "constraints.soft",
        "text",
        None,
        "Attributes whose constraints may be relaxed, with commas between: `clock, port`.",
        otherwise="none, except constraints that state it",
        needs=_CONSTRAINED,
    ),
    Key(
        "constraints.price",
        "number",
        PRICE,
        "Factor on the durations of a job's tasks where such a constraint is relaxed.",
        low=1,
        needs=("constraints.soft",),
    ),
    Key(
        "constraints.seed",
        "integer",
        None,
        "Seed of these draws alone.",
        low=0,
        otherwise="the workload's seed",
        needs=_CONSTRAINED,
    ),
    Key(
        "short_cutoff",
        "cutoff",
        None,
        "Mean task duration up to which a job is short. A share of the jobs, such as `90%`, is that quantile of their "
        "mean task durations; `auto` is the workload's own, or `90%` where it states none.",
        option="--short-cutoff",
        words=("auto",),
        otherwise="the workload's own; where it states none, `90%` if a scheduler treats short and long jobs apart, "
        "else all jobs are short",
    ),
    Key(
        "long_partition",
        "share",
        None,
        "Share of the nodes that long jobs may use.",
        option="--long-partition",
        otherwise="the workload's own, or all nodes",
        describes=True,
    ),
    Key(
        "infeasible",
        "choice",
        "fail",
        "What to do with a job that no node can run.",
        option="--infeasible",
        choices=("fail", "drop"),
    ),
    Key(
        "slowdown_threshold",
        "duration",
        THRESHOLD_S,
        "Of bounded slowdown, max(1, jct / max(ideal, threshold)): shorter jobs count as this long.",
    ),
    Key(
        "network.spread",
        "duration",
        Network.spread_s,
        "Mean of an exponential time added to each message's delay.",
    ),
    Key(
        "network.cross_rack_delay",
        "duration",
        None,
        "Time a message takes between racks.",
        otherwise="`network.delay`",
    ),
    Key(
        "estimates.error",
        "choice",
        Estimates.error,
        "Error of the estimated task duration: `constant` is mean * (1 + size), "
        "`random` is mean * U(1 - size, 1 + size) for each job.",
        choices=("none", "constant", "random"),
        needs=("estimates.size",),
        describes=True,
    ),
    Key(
        "estimates.size",
        "number",
        Estimates.size,
        "Size of the estimates' error.",
        low=-1,
        needs=("estimates.error",),
        describes=True,
    ),
    Key(
        "cost.per_job",
        "duration",
        Costs.per_job_s,
        "Fixed cost of a job that arrives at its scheduler.",
        needs=("cost.model=fixed",),
    ),
    Key(
        "cost.per_task",
        "duration",
        Costs.per_task_s,
        "Fixed cost of each of its tasks, on top.",
        needs=("cost.model=fixed",),
    ),
    Key(
        "dynamics.failures",
        "path",
        None,
        "A schedule of failures of nodes, racks, machine types, shares of these, and schedulers: CSV or Parquet with "
        "target, fail_s, repair_s.",
        otherwise="nothing fails, except by `dynamics.mtbf`",
    ),
    Key(
        "dynamics.mtbf",
        "duration",
        None,
        "Mean time between a node's repair and its next failure, exponential; nodes in the schedule fail by it.",
        otherwise="no such failures",
    ),
    Key(
        "dynamics.mttr",
        "duration",
        None,
        "Mean time to repair a node, exponential.",
        otherwise="required with `dynamics.mtbf`",
    ),
    Key(
        "dynamics.detection",
        "duration",
        Dynamics.detection_s,
        "Time until the failure of a node is detected.",
        needs=_FAILS,
    ),
    Key(
        "dynamics.failover",
        "duration",
        None,
        "Time until the standby of a scheduler that fails takes over, with its journal.",
        otherwise="no standby: its messages wait until it is repaired",
        needs=_FAILS,
    ),
    Key("dynamics.straggler_share", "share", Dynamics.straggler_share, "Share of the tasks that straggle."),
    Key(
        "dynamics.straggler_slowdown",
        "number",
        Dynamics.straggler_slowdown,
        "Mean factor of a straggler's duration.",
        low=1,
        needs=("dynamics.straggler_share",),
    ),
    Key(
        "dynamics.straggler_distribution",
        "choice",
        Dynamics.straggler_distribution,
        "Distribution of what that factor is above 1.",
        choices=("constant", "pareto", "lognormal"),
        needs=("dynamics.straggler_share",),
    ),
    Key(
        "dynamics.straggler_shape",
        "number",
        Dynamics.straggler_shape,
        "Shape of `pareto`, above 1.",
        low=1,
        needs=("dynamics.straggler_distribution=pareto",),
    ),
    Key(
        "dynamics.straggler_sigma",
        "number",
        Dynamics.straggler_sigma,
        "Sigma of `lognormal`.",
        low=0,
        needs=("dynamics.straggler_distribution=lognormal",),
    ),
)
