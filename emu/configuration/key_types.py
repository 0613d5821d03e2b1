"""The kinds of values that only keys of the configuration have, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emu.configuration.key import Key
from workloads import values
from workloads.errors import InputError
from workloads.units import parse_duration, parse_share
from workloads.values import Kind


def _read_names(value: Any, what: str) -> tuple[Any, ...]:
    """Read names: comma-separated text, a list, or one object (a user's scheduler in the Python API)."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    elif not isinstance(value, list | tuple):
        value = [value]
    if not value or any(v == "" or isinstance(v, bool | int | float) for v in value):
        raise InputError(f"{what}: is not a name or a list of names")
    return tuple(value)


def _read_name(value: Any, what: str) -> Any:
    if isinstance(value, bool | int | float | list | tuple) or not str(value).strip():
        raise InputError(f"{what}: {value!r} is not a name")
    return str(value) if isinstance(value, str) else value


def _read_workload(value: Any, what: str) -> Any:
    """Read a workload: a name, a path, an object, or a frame of jobs."""
    from emu.families.registry import family_of_workload
    from workloads.transform.primitives import Workload

    if isinstance(value, str | Path):
        return _read_name(value, what)
    if (found := family_of_workload(value)) is not None:
        return value if isinstance(value, Workload) else found[1]
    raise InputError(
        f"{what}: a {type(value).__name__} is not a workload; want a generator's name, a path, a workload, or a frame "
        "with the columns submit_s and durations_s"
    )


def _read_cutoff(value: Any, what: str) -> float | str:
    """Read a duration, or a share of the jobs, which stays text: its value in seconds follows from the workload."""
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            return f"{100 * parse_share(value, what):.12g}%"
        except InputError:
            raise InputError(f"{what}: {value!r} is not a share of the jobs such as '90%'") from None
    try:
        return parse_duration(value, what)
    except InputError:
        wrong = f"{value!r} is not a duration such as '90.58s', nor a share of the jobs such as '90%'"
        raise InputError(f"{what}: {wrong}") from None


def _read_steps(value: Any, what: str) -> tuple[str, ...]:
    """Read steps, lines of text (`workloads.transform.registry`), as one text or a list; in their shortest form."""
    from workloads.transform.registry import parse_steps

    texts = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(
            f"{what}: {value!r} is neither a step such as 'deadlines most=4' nor a list of steps"
        )
    try:
        return tuple(str(step) for text in texts for step in parse_steps(text))
    except InputError as error:
        raise InputError(f"{what}: {error.message}") from None


MOST_SEEDS = 100_000
"""Each is a run of its own."""


def _read_seeds(value: Any, what: str) -> int | tuple[int, ...]:
    """Read how many seeds, or the seeds themselves, as a list or as text with commas."""
    if isinstance(value, str) and "," in value:
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list | tuple | range):
        count: int = values.read_value("integer", value, what, low=1, high=MOST_SEEDS)
        return count
    if not 1 <= len(value) <= MOST_SEEDS:
        raise InputError(
            f"{what}: has {len(value):,} seeds; want their number, or the seeds, as [3, 7, 11], at most {MOST_SEEDS:,}"
        )
    seeds = tuple(values.read_value("integer", seed, what, low=0) for seed in value)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"{what}: has seed {next(seed for seed in seeds if seeds.count(seed) > 1)} twice")
    return seeds


def _read_events(value: Any, what: str) -> str:
    """Read which events are recorded, as text in its shortest form."""
    from emu.configuration.event_selection import events_text, parse_events

    return events_text(parse_events(value, what))


def _read_machines(value: Any, what: str) -> str:
    """Read the number of nodes of each machine type, as text in its shortest form, or from a mapping."""
    from clusters.machine_types import counts_text, read_counts

    text = counts_text(value) if isinstance(value, Mapping) else value
    if not isinstance(text, str):
        raise InputError(f"{what}: {value!r} is not a text such as 'fast=3, plain=5'")
    return counts_text(read_counts(text, what))


KINDS = values.KINDS | {
    "names": Kind("", 'text, or a list: `"hawk"`, `["hawk", "eagle"]`', _read_names),
    "path": Kind("", 'text: `"homogeneous"`, `"mixed.toml"`', _read_name),
    "workload": Kind("", 'text: `"yahoo"`, `"traces/YH1_sub.tr"`', _read_workload),
    "text": Kind("", "text", _read_name),
    "steps": Kind(
        "", 'steps, as text with `;` between them, or a list: `["deadlines most=4", "weights"]`', _read_steps
    ),
    "seeds": Kind("", "whole number, or the seeds: `5`, `[3, 7, 11]`, `3,7,11`", _read_seeds),
    "cutoff": Kind("s", 'duration, or a share of the jobs: `"90.58s"`, `"90%"`', _read_cutoff),
    "events": Kind("", 'text: `"all"`, `"job=3,17"`, `"slowest=20; class=short"`', _read_events),
    "machines": Kind("", 'text: `"fast=3, plain=5"`', _read_machines),
    "table": Kind("", "table", lambda value, what: value),
}
"""The kinds of values of keys."""


def read_key(key: Key, value: Any) -> Any:
    """Return the value of a key in its type and base unit; errors begin with the key's name."""
    return values.read_value(key.kind, value, key.name, low=key.low, choices=key.choices, kinds=KINDS)
