"""The configuration keys: names, kinds, defaults, meanings.

`KEYS` is the one registry: validation, ``--set``, the options of ``emu run``, TOML files, ``emu validate``,
the ``config.toml`` of a run directory and ``docs/reference/configuration.md`` are all made from it. How a value of each
kind is read is in `emu.configuration.kinds`.
"""

from __future__ import annotations

from emu.configuration.kinds import Key

PARAMETERS = "parameters"
WORKLOAD_OPTIONS = "workload_options"
VARIANTS = "variants"
JOBS, COFLOWS = "jobs", "coflows"
"""Families of schedulers that have keys of their own."""

KEYS = (
    Key(
        "scheduler",
        "names",
        None,
        "The scheduler, or several to compare: names, `package.module:Class` or `file.py:Class`. `eagle@slack=2` is "
        "one with a setting of its own.",
        option="--scheduler",
        otherwise="required",
    ),
    Key(
        "workload",
        "workload",
        None,
        "A generator's name, a trace, or a folder with `jobs.parquet` and `tasks.parquet`, or with `coflows.parquet`, "
        "`flows.parquet` and `ports.parquet`.",
        option="--workload",
        otherwise="required",
    ),
    Key(
        "nodes",
        "integer",
        None,
        "Number of emulated worker nodes; for coflows, of ports.",
        option="--nodes",
        low=1,
        otherwise="required, unless the cluster is a file with counts of its own, or `load_by` is `nodes`; for coflows "
        "the workload's ports",
    ),
    Key(
        "cluster",
        "path",
        "homogeneous",
        "A preset or the path of a cluster file.",
        option="--cluster",
        family=JOBS,
    ),
    Key(
        "slots",
        "integer",
        None,
        "Tasks a node can run at once.",
        low=1,
        otherwise="the cluster's own",
        family=JOBS,
    ),
    Key(
        "machine_speed",
        "flag",
        False,
        "Whether nodes run tasks by their `speed`, an attribute of the cluster's nodes: durations are divided by it.",
        family=JOBS,
    ),
    Key(
        "cluster_seed",
        "integer",
        0,
        "Seed of a cluster whose machines are drawn or shuffled.",
        low=0,
        family=JOBS,
    ),
    Key(
        "load",
        "load",
        None,
        "Offered load that the workload is brought to: task-seconds over the span of the arrivals times all slots; "
        "for coflows, bytes over that span times what all ports carry in one direction.",
        otherwise="as the workload and the cluster are",
    ),
    Key(
        "load_by",
        "choice",
        "arrivals",
        "How `load` is met: `arrivals` scales the gaps between arrivals, `nodes` picks the number of nodes.",
        choices=("arrivals", "nodes"),
        family=JOBS,
    ),
    Key(
        "constraints.model",
        "text",
        None,
        "Constraints drawn for the workload's jobs, in place of those it has: a model, `phoenix` or `sharma`, or "
        "constraints and their shares of the jobs, such as `cores >= 16: 10%`; `none` takes them away.",
        otherwise="the workload's own",
        family=JOBS,
    ),
    Key(
        "constraints.jobs",
        "choice",
        None,
        "Jobs that they are drawn for.",
        choices=("short", "long", "all"),
        otherwise="as the model has it",
        family=JOBS,
    ),
    Key(
        "constraints.combined",
        "flag",
        None,
        "Whether a job may have several of them.",
        otherwise="as the model has it",
        family=JOBS,
    ),
    Key(
        "constraints.soft",
        "text",
        None,
        "Attributes whose constraints may be relaxed, with commas between: `clock, port`.",
        otherwise="none, but for constraints that say so",
        family=JOBS,
    ),
    Key(
        "constraints.price",
        "number",
        1.5,
        "Factor on the durations of a job's tasks where such a constraint is relaxed.",
        low=1,
        family=JOBS,
    ),
    Key(
        "constraints.seed",
        "integer",
        None,
        "Seed of these draws alone.",
        low=0,
        otherwise="the workload's seed",
        family=JOBS,
    ),
    Key(
        "resample.block",
        "duration",
        None,
        "Resample a trace: blocks of its time of this length are drawn with replacement, by the workload's seed, until "
        "its span is filled.",
        otherwise="the trace as it is",
    ),
    Key(
        "seed",
        "integer",
        1,
        "Seed of all that is random in an emulation: what is drawn of the workload, and what is drawn while it runs.",
        option="--seed",
        low=0,
    ),
    Key(
        "seeds",
        "integer",
        1,
        "Number of seeds to run, from `seed` on; the summary has means and confidence intervals.",
        option="--seeds",
        low=1,
    ),
    Key(
        "workload_seed",
        "integer",
        None,
        "Seed of what is drawn of the workload alone: a generator's jobs or coflows, constraints, the blocks of a "
        "resampled trace.",
        low=0,
        otherwise="`workload_options.seed`, else `seed`",
    ),
    Key(
        "scheduler_seed",
        "integer",
        None,
        "Seed of what is drawn while it runs alone: schedulers' choices, delays, failures, stragglers, errors of "
        "estimates.",
        low=0,
        otherwise="`seed`",
    ),
    Key(
        "short_cutoff",
        "cutoff",
        None,
        "Mean task duration up to which a job is short. A share of the jobs, such as `90%`, is that quantile of their "
        "mean task durations.",
        option="--short-cutoff",
        otherwise="the workload's own",
        family=JOBS,
    ),
    Key(
        "long_partition",
        "share",
        None,
        "Share of the nodes that long jobs may use.",
        option="--long-partition",
        otherwise="the workload's own, or all nodes",
        family=JOBS,
    ),
    Key(
        "infeasible",
        "choice",
        "fail",
        "What to do with a job that no node can run.",
        option="--infeasible",
        choices=("fail", "drop"),
        family=JOBS,
    ),
    Key(
        "warmup",
        "duration",
        0.0,
        "Jobs, or coflows, that arrive within this time of the first are left out of summaries.",
        option="--warmup",
    ),
    Key(
        "slowdown_threshold",
        "duration",
        10.0,
        "Of bounded slowdown, max(1, jct / max(ideal, threshold)): shorter jobs count as this long.",
        family=JOBS,
    ),
    Key(
        "tolerance.absolute",
        "duration",
        "auto",
        "Difference of completion times up to which a comparison calls them equal; `auto` is 20 network delays.",
        words=("auto",),
    ),
    Key(
        "tolerance.relative",
        "share",
        0.001,
        "The same as a share of the longer time; what is within either is equal.",
    ),
    Key(
        "clock",
        "choice",
        "virtual",
        "How time advances: `virtual`, as fast as it goes, in one partition; `windows`, the same results from many "
        "partitions in Ray actors; `live`, many partitions by the wall clock.",
        option="--clock",
        choices=("virtual", "windows", "live"),
    ),
    Key(
        "partitions",
        "integer",
        None,
        "Partitions of the clocks `windows` and `live`, each in a Ray actor of its own.",
        option="--partitions",
        low=1,
        otherwise="4 with `windows`; with `live` one for the nodes and one for each kind of scheduler",
    ),
    Key(
        "quantum",
        "duration",
        None,
        "Of the clock `windows`: time between barriers. What should have crossed one earlier arrives at it, "
        "and is counted.",
        option="--quantum",
        otherwise="the least network delay: exact",
    ),
    Key(
        "windows.transport",
        "choice",
        "auto",
        "How barriers pass through Ray: a compiled graph, calls of actors, or a graph where there is one to be had.",
        choices=("auto", "graph", "calls"),
    ),
    Key(
        "dilation",
        "number",
        1.0,
        "Of the clock `live`: seconds of wall time for a second of emulated time.",
        option="--dilation",
        low=0.001,
    ),
    Key(
        "live.tick",
        "duration",
        0.002,
        "Least wall time between two batches of messages from one partition to another.",
    ),
    Key(
        "live.lateness_bound",
        "duration",
        0.02,
        "Lateness of events, at the 99th percentile and in emulated time, above which a run is called overloaded.",
    ),
    Key("in_process", "flag", False, "Emulate in this process, without Ray.", option="--in-process"),
    Key(
        "address",
        "text",
        None,
        "Address of a running Ray cluster.",
        option="--address",
        otherwise="that of RAY_ADDRESS, or else Ray is started on this machine",
    ),
    Key(
        "network.delay",
        "duration",
        0.0005,
        "Time a message takes; within a rack, where racks differ.",
        for_coflows=0.0,
    ),
    Key(
        "network.spread",
        "duration",
        0.0,
        "Mean of an exponential time added to each message's delay.",
        family=JOBS,
    ),
    Key(
        "network.cross_rack_delay",
        "duration",
        None,
        "Time a message takes between racks.",
        otherwise="`network.delay`",
        family=JOBS,
    ),
    Key(
        "fabric.port_speed",
        "bandwidth",
        1e9,
        "Speed of the ports, in each direction, of which the workload does not say it.",
        family=COFLOWS,
    ),
    Key(
        "fabric.local",
        "choice",
        "network",
        "Flows from a port to itself: `network`, they take bandwidth like any other; `free`, they take none and end "
        "at once.",
        choices=("network", "free"),
        family=COFLOWS,
    ),
    Key(
        "fabric.updates",
        "path",
        None,
        "Updates of coflows under way, tasks that restart or move and coflows that leave: CSV with time_s, coflow_id, "
        "update, side, port, to.",
        otherwise="no coflow changes",
        family=COFLOWS,
    ),
    Key(
        "estimates.error",
        "choice",
        "none",
        "Error of the estimated task duration: `constant` is mean * (1 + size), "
        "`random` is mean * U(1 - size, 1 + size) for each job.",
        choices=("none", "constant", "random"),
        family=JOBS,
    ),
    Key("estimates.size", "number", 0.0, "Size of the estimates' error.", low=-1, family=JOBS),
    Key(
        "cost.model",
        "choice",
        "none",
        "What messages cost schedulers, which handle one at a time: nothing, `fixed` times, the CPU time of their "
        "handlers here (`measured`), or what `cost.file` has (`recorded`).",
        choices=("none", "fixed", "measured", "recorded"),
    ),
    Key("cost.per_job", "duration", 0.0, "Fixed cost of a job that arrives at its scheduler.", family=JOBS),
    Key("cost.per_task", "duration", 0.0, "Fixed cost of each of its tasks, on top.", family=JOBS),
    Key(
        "cost.per_update",
        "duration",
        0.0,
        "Fixed cost of an update that the coordinator receives, on top of that of a message.",
        family=COFLOWS,
    ),
    Key("cost.per_flow", "duration", 0.0, "Fixed cost of each flow scheduled in a decision.", family=COFLOWS),
    Key(
        "cost.per_coflow",
        "duration",
        0.0,
        "Fixed cost of each coflow scheduled in a decision.",
        family=COFLOWS,
    ),
    Key(
        "cost.per_schedule", "duration", 0.0, "Fixed cost of each schedule sent to an agent.", family=COFLOWS
    ),
    Key("cost.per_message", "duration", 0.0, "Fixed cost of any message that a scheduler receives."),
    Key(
        "cost.file",
        "path",
        None,
        "Recorded costs: the `costs.parquet` of a `measured` run of the same scheduler, workload and cluster.",
        otherwise="required with `recorded`",
    ),
    Key(
        "dynamics.failures",
        "path",
        None,
        "A schedule of failures of nodes and schedulers: CSV or Parquet with target, fail_s, repair_s.",
        otherwise="nothing fails, but for `dynamics.mtbf`",
        family=JOBS,
    ),
    Key(
        "dynamics.mtbf",
        "duration",
        None,
        "Mean time between a node's repair and its next failure, exponential; nodes in the schedule fail by it.",
        otherwise="no such failures",
        family=JOBS,
    ),
    Key(
        "dynamics.mttr",
        "duration",
        None,
        "Mean time to repair a node, exponential.",
        otherwise="required with `dynamics.mtbf`",
        family=JOBS,
    ),
    Key("dynamics.detection", "duration", 0.0, "Time until the failure of a node is detected.", family=JOBS),
    Key(
        "dynamics.failover",
        "duration",
        None,
        "Time until the standby of a scheduler that fails takes over, with its journal.",
        otherwise="no standby: its messages wait until it is repaired",
        family=JOBS,
    ),
    Key("dynamics.straggler_share", "share", 0.0, "Share of the tasks that straggle.", family=JOBS),
    Key(
        "dynamics.straggler_slowdown",
        "number",
        3.0,
        "Mean factor of a straggler's duration.",
        low=1,
        family=JOBS,
    ),
    Key(
        "dynamics.straggler_distribution",
        "choice",
        "constant",
        "Distribution of what that factor is above 1.",
        choices=("constant", "pareto", "lognormal"),
        family=JOBS,
    ),
    Key("dynamics.straggler_shape", "number", 2.0, "Shape of `pareto`, above 1.", low=1, family=JOBS),
    Key("dynamics.straggler_sigma", "number", 1.0, "Sigma of `lognormal`.", low=0, family=JOBS),
    Key(
        "timeline.period",
        "duration",
        "auto",
        "Time between two rows of `timeline.parquet`; `auto` is 1/200 of the shortest time the run can take. Where "
        "that makes more than 2,000 rows, or a given one more than 1,000,000, every second, fourth, eighth … is kept.",
        words=("auto",),
    ),
    Key(
        "output.tasks",
        "flag",
        False,
        "Also write `tasks.parquet`, one row per task; for coflows `flows.parquet`.",
    ),
    Key(
        "checkpoint.period",
        "duration",
        60.0,
        "Wall time between two checkpoints, from which a run that was interrupted goes on; `never` and 0 are none.",
        words=("never",),
    ),
    Key("checkpoint.keep", "integer", 2, "Checkpoints that are kept, the newest ones.", low=1),
    Key(
        f"{PARAMETERS}.*",
        "table",
        None,
        "Parameters of the schedulers: `[parameters]` for each that has them, `[parameters.eagle]` for one; "
        "`--set probe_ratio=3` and `--set eagle.slack=4` are short for them.",
        otherwise="the schedulers' defaults",
    ),
    Key(
        f"{WORKLOAD_OPTIONS}.*",
        "table",
        None,
        "Parameters of a workload generator, or of the reader of a trace.",
        otherwise="its defaults",
    ),
    Key(
        f"{VARIANTS}.*",
        "table",
        None,
        "Schedulers with settings of their own under names of their own: `[variants.eagle-2]` with "
        '`scheduler = "eagle"` and `slack = 2` lets `scheduler` name `eagle-2`.',
        otherwise="none",
    ),
)

BY_NAME = {key.name: key for key in KEYS if key.kind != "table"}
TABLES = (PARAMETERS, WORKLOAD_OPTIONS, VARIANTS)
GROUPS = tuple(sorted({name.partition(".")[0] for name in BY_NAME if "." in name}))
