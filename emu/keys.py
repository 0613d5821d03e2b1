"""The configuration keys: names, kinds, defaults, meanings, and how a value of each kind is read.

`KEYS` is the one registry: validation, ``--set``, the options of ``emu run``, TOML files, ``emu validate``,
the ``config.toml`` of a run directory and ``docs/reference/configuration.md`` are all made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import parse_duration, parse_share

PARAMETERS = "parameters"
WORKLOAD_OPTIONS = "workload_options"
MAX_LOAD = 10


@dataclass(frozen=True)
class Key:
    """One configuration key.

    Attributes
    ----------
    name : str
        Dotted: ``network.delay`` is ``delay`` in the table ``[network]``.
    kind : str
        A key of `KINDS`.
    default : object
        In base units (seconds, shares 0..1); None where `otherwise` says what holds instead.
    meaning : str
        One sentence for ``--help`` and the reference page.
    option : str | None
        The option of ``emu run`` and ``emu compare`` that gives it.
    choices, words : tuple of str
        All allowed values of a ``choice``; words allowed beside the kind's own values.
    low : float | None
        Smallest allowed number.
    otherwise : str
        What holds when the key is not given and has no default.
    """

    name: str
    kind: str
    default: Any
    meaning: str
    option: str | None = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    low: float | None = None
    otherwise: str = ""


KEYS = (
    Key(
        "scheduler",
        "names",
        None,
        "The scheduler, or several to compare: names, `package.module:Class` or `file.py:Class`.",
        option="--scheduler",
        otherwise="required",
    ),
    Key(
        "workload",
        "path",
        None,
        "A generator's name, a `.tr` file, or a folder with `jobs.parquet` and `tasks.parquet`.",
        option="--workload",
        otherwise="required",
    ),
    Key(
        "nodes",
        "integer",
        None,
        "Number of emulated worker nodes.",
        option="--nodes",
        low=1,
        otherwise="required, unless the cluster is a file with counts of its own, or `load_by` is `nodes`",
    ),
    Key("cluster", "path", "homogeneous", "A preset or the path of a cluster file.", option="--cluster"),
    Key("slots", "integer", None, "Tasks a node can run at once.", low=1, otherwise="the cluster's own"),
    Key(
        "load",
        "load",
        None,
        "Offered load that the workload is brought to: task-seconds over the span of the arrivals times all slots.",
        otherwise="as the workload and the cluster are",
    ),
    Key(
        "load_by",
        "choice",
        "arrivals",
        "How `load` is met: `arrivals` scales the gaps between arrivals, `nodes` picks the number of nodes.",
        choices=("arrivals", "nodes"),
    ),
    Key("seed", "integer", 1, "Seed of the schedulers' random choices.", option="--seed", low=0),
    Key(
        "seeds",
        "integer",
        1,
        "Number of seeds to run, from `seed` on; the summary has means and confidence intervals.",
        option="--seeds",
        low=1,
    ),
    Key(
        "short_cutoff",
        "duration",
        None,
        "Mean task duration up to which a job is short.",
        option="--short-cutoff",
        otherwise="the workload's own",
    ),
    Key(
        "long_partition",
        "share",
        None,
        "Share of the nodes that long jobs may use.",
        option="--long-partition",
        otherwise="the workload's own, or all nodes",
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
        "warmup",
        "duration",
        0.0,
        "Jobs that arrive within this time of the first are left out of summaries.",
        option="--warmup",
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
        otherwise="Ray is started on this machine",
    ),
    Key("network.delay", "duration", 0.0005, "Time a message takes; within a rack, where racks differ."),
    Key("network.spread", "duration", 0.0, "Mean of an exponential time added to each message's delay."),
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
        "none",
        "Error of the estimated task duration: `constant` is mean * (1 + size), "
        "`random` is mean * U(1 - size, 1 + size) for each job.",
        choices=("none", "constant", "random"),
    ),
    Key("estimates.size", "number", 0.0, "Size of the estimates' error.", low=-1),
    Key(
        "cost.model",
        "choice",
        "none",
        "What messages cost schedulers, which handle one at a time: nothing, `fixed` times, the CPU time of their "
        "handlers here (`measured`), or what `cost.file` has (`recorded`).",
        choices=("none", "fixed", "measured", "recorded"),
    ),
    Key("cost.per_job", "duration", 0.0, "Fixed cost of a job that arrives at its scheduler."),
    Key("cost.per_task", "duration", 0.0, "Fixed cost of each of its tasks, on top."),
    Key("cost.per_message", "duration", 0.0, "Fixed cost of any message, on top."),
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
    Key("dynamics.detection", "duration", 0.0, "Time until the failure of a node is detected."),
    Key(
        "dynamics.failover",
        "duration",
        None,
        "Time until the standby of a scheduler that fails takes over, with its journal.",
        otherwise="no standby: its messages wait until it is repaired",
    ),
    Key("dynamics.straggler_share", "share", 0.0, "Share of the tasks that straggle."),
    Key("dynamics.straggler_slowdown", "number", 3.0, "Mean factor of a straggler's duration.", low=1),
    Key(
        "dynamics.straggler_distribution",
        "choice",
        "constant",
        "Distribution of what that factor is above 1.",
        choices=("constant", "pareto", "lognormal"),
    ),
    Key("dynamics.straggler_shape", "number", 2.0, "Shape of `pareto`, above 1.", low=1),
    Key("dynamics.straggler_sigma", "number", 1.0, "Sigma of `lognormal`.", low=0),
    Key(
        "timeline.period",
        "duration",
        "auto",
        "Time between two rows of `timeline.parquet`; `auto` is 1/200 of the shortest time the run can take.",
        words=("auto",),
    ),
    Key("output.tasks", "flag", False, "Also write `tasks.parquet`, one row per task."),
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
        "Parameters of a workload generator, its `seed` among them.",
        otherwise="the generator's defaults",
    ),
)

BY_NAME = {key.name: key for key in KEYS if key.kind != "table"}
TABLES = (PARAMETERS, WORKLOAD_OPTIONS)
GROUPS = tuple(sorted({name.partition(".")[0] for name in BY_NAME if "." in name}))


class Kind(NamedTuple):
    """What values of a key look like: the unit it is kept in, an example in words, and how it is read."""

    unit: str
    wants: str
    read: Callable[[Key, Any], Any]


def _read_names(key: Key, value: Any) -> tuple[Any, ...]:
    """Read names: comma-separated text, a list, or one object (a user's scheduler in the Python API)."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    elif not isinstance(value, list | tuple):
        value = [value]
    if not value or any(v == "" or isinstance(v, bool | int | float) for v in value):
        raise InputError("is not a name or a list of names")
    return tuple(value)


def _read_text(key: Key, value: Any) -> Any:
    if isinstance(value, bool | int | float | list | tuple) or not str(value).strip():
        raise InputError(f"{value!r} is not a name")
    return str(value) if isinstance(value, str) else value


def _read_integer(key: Key, value: Any) -> int:
    low = int(key.low or 0)
    try:
        if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
            raise ValueError
        number = int(value.replace(",", "_")) if isinstance(value, str) else int(value)
        if not low <= number < 2**63:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{value!r} is not a whole number, {low} or more") from None
    return number


def _read_number(key: Key, value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        text = str(value).strip()
        number = parse_share(text, "") if text.endswith("%") else float(text)
        if not (-float("inf") if key.low is None else key.low) <= number < float("inf"):
            raise ValueError
    except (ValueError, InputError):
        least = "" if key.low is None else f", {key.low:g} or more"
        raise InputError(f"{value!r} is not a number{least}") from None
    return number


def _read_load(key: Key, value: Any) -> float:
    """Read a load: a share that may be more than the whole, though hardly ten times."""
    try:
        if isinstance(value, bool):
            raise ValueError
        text = str(value).strip()
        load = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        if not 0 < load < float("inf"):
            raise ValueError
    except ValueError:
        raise InputError(f"{value!r} is not a load such as '80%' or 0.8") from None
    if load > MAX_LOAD:
        percent = f"; did you mean '{text}%'?" if "%" not in text and load <= 100 * MAX_LOAD else ""
        raise InputError(f"{value!r} is more than {MAX_LOAD} times what a cluster can do{percent}")
    return load


def _read_flag(key: Key, value: Any) -> bool:
    words = {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "false": False,
        "no": False,
        "off": False,
        "0": False,
    }
    if isinstance(value, bool):
        return value
    if str(value).strip().lower() not in words:
        raise InputError(f"{value!r} is neither true nor false")
    return words[str(value).strip().lower()]


def _read_choice(key: Key, value: Any) -> str:
    if not isinstance(value, str) or value not in key.choices:
        raise InputError(f"{value!r} is not one of its values{did_you_mean(str(value), key.choices)}")
    return value


KINDS = {
    "names": Kind("", 'text, or a list: `"hawk"`, `["hawk", "eagle"]`', _read_names),
    "path": Kind("", 'text: `"yahoo"`, `"traces/YH1_sub.tr"`', _read_text),
    "text": Kind("", "text", _read_text),
    "integer": Kind("", "whole number", _read_integer),
    "number": Kind("", "number", _read_number),
    "duration": Kind("s", 'duration: `"90.58s"`, `"10 ms"`, `8`', lambda key, v: parse_duration(v, key.name)),
    "share": Kind("", 'share: `"98%"`, `0.98`', lambda key, v: parse_share(v, key.name)),
    "load": Kind("", 'share, may be more than 1: `"80%"`, `1.2`', _read_load),
    "flag": Kind("", "`true` or `false`", _read_flag),
    "choice": Kind("", "one of its values", _read_choice),
    "table": Kind("", "table", lambda key, v: v),
}
"""The kinds of values."""
