"""The configuration keys: names, kinds, defaults, meanings.

`KEYS` is the one registry: validation, ``--set``, the options of ``emu run``, TOML files, ``emu validate``,
the ``config.toml`` of a run directory and ``docs/reference/configuration.md`` are all made from it. How a value of each
kind is read is in `emu.configuration.key_types`.
"""

from __future__ import annotations

from actors.environment import Costs, Network, Pace
from emu.configuration.key import Key
from emu.families.registry import family_names, keys_of
from workloads.defaults import DEFAULT_SEED

PARAMETERS = "parameters"
WORKLOAD_OPTIONS = "workload_options"
VARIANTS = "variants"
WINDOWS_PARTITIONS = 4
"""Partitions of the clock `windows` where none are asked for."""
NETWORK_PARTITIONS = 2
"""The same where tasks fetch their input over a network: one has that with all nodes, the other one the schedulers."""
SHARED = (
    Key(
        "scheduler",
        "names",
        None,
        "The scheduler, or several to compare: names, `package.module:Class` or `file.py:Class`. `eagle@slack=2` is "
        "`eagle` with a parameter of its own.",
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
        "load",
        "load",
        None,
        "Offered load that the workload is brought to: task-seconds over the span of the arrivals times all slots; "
        "for coflows, bytes over that span times what all ports carry in one direction.",
        otherwise="as the workload and the cluster are",
    ),
    Key(
        "workload_steps",
        "steps",
        None,
        "Transformations that are applied to the workload when it is loaded, in this order: those of `emu workload` of "
        "one workload, such as `deadlines most=4` or `sample --share 10%`. The draws of a step follow the workload's "
        "seed, unless the step has a `seed`.",
        otherwise="the workload as it is",
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
        DEFAULT_SEED,
        "Seed of all random draws of an emulation: those of the workload, and those during the run.",
        option="--seed",
        low=0,
    ),
    Key(
        "seeds",
        "seeds",
        1,
        "Number of seeds to run, from `seed` on, or these seeds; the summary has means and confidence intervals.",
        option="--seeds",
    ),
    Key(
        "workload_seed",
        "integer",
        None,
        "Seed of the draws of the workload alone: a generator's jobs or coflows, constraints, the draws of "
        "`workload_steps`, the blocks of a resampled trace.",
        low=0,
        otherwise="`workload_options.seed`, else `seed`",
    ),
    Key(
        "scheduler_seed",
        "integer",
        None,
        "Seed of the draws during the run alone: schedulers' choices, delays, failures, stragglers, errors of "
        "estimates.",
        low=0,
        otherwise="`seed`",
    ),
    Key(
        "warmup",
        "duration",
        0.0,
        "Jobs, or coflows, that arrive within this time of the first are left out of summaries.",
        option="--warmup",
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
        "The same as a share of the longer time; differences within either are equal.",
    ),
    Key(
        "clock",
        "choice",
        "virtual",
        "How time advances: `virtual`, as fast as possible, in one partition; `windows`, the same results from many "
        "partitions in Ray actors; `live`, many partitions by the wall clock.",
        option="--clock",
        choices=("virtual", "windows", "live"),
    ),
    Key(
        "partitions",
        "integer",
        None,
        "Partitions of the clocks `windows` and `live`, each in a Ray actor of its own; with `windows` also `auto`: as "
        "many as make the run faster.",
        option="--partitions",
        words=("auto",),
        low=1,
        otherwise=f"{WINDOWS_PARTITIONS} with `windows`, {NETWORK_PARTITIONS} of DAG jobs over a network; with `live` "
        "2, or 3 where both probe schedulers and a central one have jobs",
        needs=("clock=windows|live",),
    ),
    Key(
        "quantum",
        "duration",
        None,
        "Of the clock `windows`: time between barriers. Messages that should have arrived earlier arrive at a barrier, "
        "and are counted.",
        option="--quantum",
        otherwise="the least network delay: exact",
        needs=("clock=windows",),
    ),
    Key(
        "windows.transport",
        "choice",
        "auto",
        "How partitions exchange messages: in the memory of their machine, and machines over TCP; by calls of Ray "
        "actors; or `auto`: memory where it can be shared.",
        choices=("auto", "memory", "calls"),
        needs=("clock=windows",),
    ),
    Key(
        "dilation",
        "number",
        Pace.dilation,
        "Of the clock `live`: seconds of wall time for a second of emulated time.",
        option="--dilation",
        low=0.001,
        needs=("clock=live",),
    ),
    Key(
        "live.tick",
        "duration",
        Pace.tick_s,
        "Least wall time between two calls with messages to a partition that shares no memory with this one.",
        needs=("clock=live",),
    ),
    Key(
        "live.lateness_bound",
        "duration",
        Pace.lateness_bound_s,
        "Lateness of events, at the 99th percentile and in emulated time, above which a run is called overloaded.",
        needs=("clock=live",),
    ),
    Key("in_process", "flag", False, "Emulate in this process, without Ray.", option="--in-process"),
    Key(
        "address",
        "text",
        None,
        "Address of a running Ray cluster.",
        option="--address",
        otherwise="that of RAY_ADDRESS, or else Ray is started on this machine",
        needs=("in_process=false",),
    ),
    Key(
        "network.delay",
        "duration",
        Network.delay_s,
        "Time a message takes; within a rack, where racks differ.",
    ),
    Key(
        "cost.model",
        "choice",
        Costs.model,
        "What messages cost schedulers, which handle one at a time: nothing, `fixed` times, the CPU time of their "
        "handlers here (`measured`), or what `cost.file` has (`recorded`).",
        choices=("none", "fixed", "measured", "recorded"),
    ),
    Key(
        "cost.per_message",
        "duration",
        Costs.per_message_s,
        "Fixed cost of any message that a scheduler receives; of DAG jobs also of any that the coordinator of their "
        "network receives.",
        needs=("cost.model=fixed",),
    ),
    Key(
        "cost.file",
        "path",
        None,
        "Recorded costs: the `costs.parquet` of a `measured` run of the same scheduler, workload and cluster.",
        otherwise="required with `recorded`",
    ),
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
        "output.events",
        "events",
        "none",
        "Also write `events.parquet`, a row for each message and start: `all`, or those of some jobs: `job=3,17` by "
        "number, `class=short`, the `slowest=20`, `random=50`; `time=10s..60s` is a span of virtual time; "
        "`rates` adds those of the flows of coflows. Several stand with `;` between them.",
    ),
    Key(
        "checkpoint.period",
        "duration",
        60.0,
        "Wall time between two checkpoints, from which an interrupted run continues; `never` and 0: no checkpoints.",
        words=("never",),
        needs=("clock=virtual|windows",),
    ),
    Key(
        "checkpoint.keep",
        "integer",
        2,
        "Checkpoints that are kept, the newest ones.",
        low=1,
        needs=("checkpoint.period",),
    ),
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
"""The keys of all families."""
KEYS = SHARED + tuple(dict.fromkeys(key for name in family_names() for key in keys_of(name)))
"""All keys: those of all families, then each family's own."""

BY_NAME = {key.name: key for key in KEYS if key.kind != "table"}
TABLES = (PARAMETERS, WORKLOAD_OPTIONS, VARIANTS)
GROUPS = tuple(sorted({name.partition(".")[0] for name in BY_NAME if "." in name}))
