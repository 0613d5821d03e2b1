"""Kinds of configuration values: the unit each is kept in, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import parse_bandwidth, parse_duration, parse_share

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
    family : str
        Family of the schedulers it is for, ``jobs`` or ``coflows``; empty: for all.
    for_coflows : object
        The default with schedulers of coflows, where that is another.
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
    family: str = ""
    for_coflows: Any = None


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


def _read_workload(key: Key, value: Any) -> Any:
    """Read what is run: a name, a path, a workload, or a frame of jobs."""
    from workloads.coflows import CoflowWorkload
    from workloads.dags import DagWorkload, as_jobs
    from workloads.frames import is_frame, workload_of_frame
    from workloads.jobs import JobWorkload

    if isinstance(value, str | Path):
        return _read_text(key, value)
    if isinstance(value, DagWorkload):
        return as_jobs(value)
    if isinstance(value, JobWorkload | CoflowWorkload):
        return value
    if is_frame(value):
        return workload_of_frame(value)
    raise InputError(
        f"a {type(value).__name__} is no workload; want a generator's name, a path, a workload, or a frame with the "
        "columns submit_s and durations_s"
    )


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


def _read_cutoff(key: Key, value: Any) -> float | str:
    """Read a duration, or a share of the jobs, which stays text: what it is in seconds the workload says."""
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            return f"{100 * parse_share(value, key.name):.12g}%"
        except InputError:
            raise InputError(f"{value!r} is not a share of the jobs such as '90%'") from None
    try:
        return parse_duration(value, key.name)
    except InputError:
        wrong = f"{value!r} is not a duration such as '90.58s', nor a share of the jobs such as '90%'"
        raise InputError(wrong) from None


KINDS = {
    "names": Kind("", 'text, or a list: `"hawk"`, `["hawk", "eagle"]`', _read_names),
    "path": Kind("", 'text: `"homogeneous"`, `"mixed.toml"`', _read_text),
    "workload": Kind("", 'text: `"yahoo"`, `"traces/YH1_sub.tr"`', _read_workload),
    "text": Kind("", "text", _read_text),
    "integer": Kind("", "whole number", _read_integer),
    "number": Kind("", "number", _read_number),
    "duration": Kind("s", 'duration: `"90.58s"`, `"10 ms"`, `8`', lambda key, v: parse_duration(v, key.name)),
    "cutoff": Kind("s", 'duration, or a share of the jobs: `"90.58s"`, `"90%"`', _read_cutoff),
    "bandwidth": Kind("bit/s", 'speed: `"1 Gbps"`, `1e9`', lambda key, v: parse_bandwidth(v, key.name)),
    "share": Kind("", 'share: `"98%"`, `0.98`', lambda key, v: parse_share(v, key.name)),
    "load": Kind("", 'share, may be more than 1: `"80%"`, `1.2`', _read_load),
    "flag": Kind("", "`true` or `false`", _read_flag),
    "choice": Kind("", "one of its values", _read_choice),
    "table": Kind("", "table", lambda key, v: v),
}
"""The kinds of values."""
