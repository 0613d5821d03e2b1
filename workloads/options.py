"""Options of generators and readers: keyword arguments of a function, given as text or as values."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.values import read_value

_NOT_OPTIONS = ("report", "progress")
"""Parameters with a default that are not the user's to set."""


NEEDS: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("burst_ratio", "burst_jobs"), ("arrivals", ("bursty",))),
    **dict.fromkeys(("period_s", "amplitude"), ("arrivals", ("diurnal",))),
    **dict.fromkeys(
        ("rate_per_s", "batch_least", "batch_most"), ("arrivals", ("poisson", "bursty", "diurnal"))
    ),
    **dict.fromkeys(("mean_gap_s", "span_s"), ("arrivals", ("poisson", "bursty", "diurnal"))),
    "heavy_weight": ("heavy_share", ()),
    "cv": ("service", ("lognormal",)),
    "alpha": ("service", ("pareto",)),
    **dict.fromkeys(("long_tasks", "long_ratio"), ("service", ("bimodal",))),
    **dict.fromkeys(("long_tasks_per_job", "long_mean_task_s"), ("long_jobs", ())),
}
"""The option that an option of a generator needs to have an effect, and its values (none: above 0)."""


def without_meaning(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that were given and change nothing: name to what is wrong. A number given as 0 is meant."""
    defaults = option_defaults(function)
    found = {}
    for name, value in given.items():
        other, wanted = NEEDS.get(name, ("", ()))
        if other not in defaults or name not in defaults or value == defaults[name]:
            continue
        holds = given.get(other, defaults[other])
        if holds not in wanted if wanted else other not in given and not holds:
            goes = f"{other}={' or '.join(wanted)}" if wanted else other
            found[name] = f"goes with {goes}, and {other} is {holds}"
    return found


def option_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a function: name to default."""
    return {p.name: p.default for p in _options(function)}


def options_line(function: Callable[..., Any]) -> str:
    """Return the options of a function with their defaults, as one line of help."""
    return ", ".join(f"{p.name}={'' if p.default is None else p.default}" for p in _options(function))


def read_options(what: str, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the function takes them: text becomes what the parameter is.

    Whole numbers may have commas, times, sizes, speeds and shares their units (``10 ms``, ``64 MiB``, ``1 Gbps``,
    ``90%``).

    Parameters
    ----------
    what : str
        Whose options they are, for the error: ``the generator yahoo``.

    Raises
    ------
    InputError
        An option that does not exist, text that is not of its kind, or a value that is not allowed.
    """
    known = {p.name: p for p in _options(function)}
    read = {}
    for name, value in given.items():
        if name not in known:
            raise InputError(f"{what} has no option {name!r}{did_you_mean(name, known)}")
        read[name] = _read(name, value, known[name]) if isinstance(value, str) else value
        choices = _choices(known[name])
        if choices and read[name] not in choices:
            wrong = (
                f"is neither {choices[0]!r} nor {choices[1]!r}"
                if len(choices) == 2
                else f"is not one of {choices}"
            )
            raise InputError(f"{read[name]!r} {wrong}", field=name)
    return read


def _choices(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """Return the values of a parameter that is annotated as a `Literal`, in the source or evaluated; () of others."""
    if get_origin(parameter.annotation) is Literal:
        return get_args(parameter.annotation)
    written = re.fullmatch(r"Literal\[(.*)\]", str(parameter.annotation), re.DOTALL)
    return tuple(ast.literal_eval(f"[{written[1]}]")) if written else ()


def _options(function: Callable[..., Any]) -> list[inspect.Parameter]:
    every = inspect.signature(function).parameters.values()
    return [p for p in every if p.default is not p.empty and p.name not in _NOT_OPTIONS]


def _read(name: str, text: str, parameter: inspect.Parameter) -> Any:
    """Return the value of a text."""
    default = parameter.default
    try:
        return read_value(_kind(name, parameter), text, "")
    except InputError as error:
        such_as = "" if default is None or isinstance(default, bool) else f", such as {default!r}"
        raise InputError(f"{error.message.removeprefix(': ')}{such_as}", field=name) from None


def _kind(name: str, parameter: inspect.Parameter) -> str:
    """Return the kind of a parameter, from its name, or its default or annotation."""
    default, annotation = parameter.default, str(parameter.annotation)
    if isinstance(default, str) or (default is None and "str" in annotation):
        return "text"
    if isinstance(default, bool) or "bool" in annotation:
        return "flag"
    if name.endswith("_bytes"):
        return "size"
    if name.endswith("_bps"):
        return "bandwidth"
    if isinstance(default, int) or "int" in annotation:
        return "integer"
    return "duration" if name.endswith("_s") and not name.endswith("_per_s") else "number"
