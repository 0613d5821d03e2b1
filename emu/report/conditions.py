"""The conditions of runs, for the beginning of a page: load, failures, seeds, and settings other than defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.schedulers.registry import find_scheduler
from emu.configuration.config import flatten
from emu.configuration.keys import BY_NAME, PARAMETERS
from emu.configuration.seeds import instances_of, replicas_part, replicas_text
from emu.families.registry import find_family
from emu.results.result import Result
from emu.results.run_groups import NO_AXES, base_value, is_number, value_text
from emu.results.text_tables import number
from workloads.arrow import optional_column
from workloads.errors import InputError

Conditions = dict[str, str]
"""The name of a condition, to its value."""
ALWAYS = {"short_cutoff": "short cut-off", "cluster": "cluster", "network.delay": "network delay"}
"""Keys that are shown where a run has them, to their names."""
CALLED = {
    "cost.model": "cost of decisions",
    "constraints.model": "constraints",
    "warmup": "warm-up",
    "estimates.error": "error of estimates",
}
"""Names of other keys."""
ELSEWHERE = ("workload", "nodes", "load", "short_cutoff", "long_partition", "clock", "partitions", "dilation")
"""Keys that headings show, or whose values are the workload's unless they are given."""
MOST_VALUES = 4


def conditions_of(runs: Sequence[Result]) -> Conditions:
    """Return the conditions of one or more runs; where they differ, the range or the values."""
    configs = [dict(flatten(run.manifest.get("config", {}))) for run in runs]
    loads = [load for run in runs if (load := run.summary.get("offered_load")) is not None]
    found = {"offered load": _span(loads)} if loads else {}
    family = find_family(runs[0].family)
    found[family.heads] = _span([run.heads.num_rows for run in runs])
    found[family.part] = _span([int(optional_column(run.heads, family.width).sum()) for run in runs])
    found["seeds"] = _seeds(runs)
    found |= _dynamics(configs)
    if any(config.get("clock") == "live" for config in configs):
        found["dilation"] = _values("dilation", configs)
    for name, label in ALWAYS.items():
        if values := _values(name, configs):
            found[label] = values
    for name in dict.fromkeys(name for config in configs for name in config):
        if _is_setting(name) and _is_given(name, runs, configs):
            found[CALLED.get(name, name)] = _values(name, configs)
    return found | _parameters(runs, configs)


def as_text(conditions: Mapping[str, str]) -> str:
    """Return conditions as a line."""
    return ", ".join(f"{label} {value}" for label, value in conditions.items())


def _span(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _seeds(runs: Sequence[Result]) -> str:
    """Return the seeds, what they vary, and for a single one that figures have no interval."""
    by_replica = {(run.summary["seed"], run.summary.get("instance")): run.summary for run in runs}
    own = list(by_replica.values())
    text = replicas_text({**own[0], **replicas_part(own)}).removeprefix("seeds ").removeprefix("seed ")
    return text if len(own) > 1 or instances_of(own) else f"{text} alone, so no figure has an interval"


def _dynamics(configs: Sequence[Mapping[str, Any]]) -> Conditions:
    """Return the conditions of failures and stragglers; none of families without them."""
    names = [name for name in BY_NAME if name.startswith("dynamics.")]
    if not any(name in config for config in configs for name in names):
        return {}
    given = [
        name for name in names if any(_differs(name, c.get(name), BY_NAME[name].default) for c in configs)
    ]
    parts: dict[str, list[str]] = {"failures": [], "stragglers": []}
    for name in given:
        short = name.removeprefix("dynamics.")
        kind = "stragglers" if short.startswith("straggler_") else "failures"
        parts[kind].append(f"{short.removeprefix('straggler_')} {_values(name, configs)}")
    return {kind: "; ".join(texts) or "none" for kind, texts in parts.items() if texts or kind == "failures"}


def _is_setting(name: str) -> bool:
    table = name.partition(".")[0]
    shown = name in ALWAYS or name in ELSEWHERE or table == "dynamics" or "seed" in name.rpartition(".")[2]
    return name in BY_NAME and not shown and not {name, table} & {*NO_AXES, "windows", "live"}


def _is_given(name: str, runs: Sequence[Result], configs: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a run has another value of a key than the default."""
    return any(
        _differs(name, config.get(name), find_family(run.family).defaults.get(name, BY_NAME[name].default))
        for run, config in zip(runs, configs, strict=True)
    )


def _differs(name: str, value: Any, default: Any) -> bool:
    return value is not None and base_value(name, value) != default


def _values(name: str, configs: Sequence[Mapping[str, Any]]) -> str:
    """Return the values of a key: one, a range of numbers, or a list."""
    values = list(dict.fromkeys(base_value(name, config[name]) for config in configs if name in config))
    if len(values) > 1 and all(map(is_number, values)):
        return f"{value_text(name, min(values))} to {value_text(name, max(values))}"
    shown = [value_text(name, value) for value in values[:MOST_VALUES]]
    return ", ".join([*shown, *(["…"] if len(values) > MOST_VALUES else [])])


def _parameters(runs: Sequence[Result], configs: Sequence[Mapping[str, Any]]) -> Conditions:
    """Return the parameters of schedulers that differ from their defaults."""
    found: dict[str, dict[str, None]] = {}
    given = set()
    for run, config in zip(runs, configs, strict=True):
        name = run.summary["scheduler"]
        try:
            known = {p.name: p for p in find_scheduler(run.summary.get("policy", name)).parameters}
        except InputError:  # from a user's file that does not exist any more
            continue
        for key, value in config.items():
            table, _, parameter = key.rpartition(".")
            if table != f"{PARAMETERS}.{name}" or parameter not in known:
                continue
            label = f"{name}.{parameter}"
            found.setdefault(label, {})[value_text(parameter, value)] = None
            if known[parameter].parse(value, name) != known[parameter].default:
                given.add(label)
    return {label: ", ".join(values) for label, values in found.items() if label in given}
