"""Parameters of a user's own scheduler: keywords of its `__init__` and attributes of its class, with their defaults.

    class LeastLoaded:
        slack = 1.5                     # a parameter: an attribute of the class
        def __init__(self, choices=2):  # another: a keyword with a default
            self.choices = choices

A parameter's kind is that of its default: a truth value, a whole number, a number, a text; a number whose name ends in
`_s` is a duration, in `_bytes` a size. What is None takes anything. Names that begin with `_` or are all capitals, the
attribute `name`, and what holds anything else (a list, an array, a function) are not parameters.

An object has the values it was made with, of those that it keeps under the same names: `LeastLoaded(choices=4)`.
"""

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.scheduler import Parameter, name_with
from workloads.errors import InputError
from workloads.units import parse_duration

_SIMPLE = (bool, int, float, str)


def described(own: Any, name: str | None, what: str) -> dict[str, Any]:
    """Return the fields of `Scheduler` for a user's class or object: its names, its docstring, its parameters.

    Without a docstring its title is `what` it is.

    Raises:
        InputError: a class that cannot be made without arguments; the message names the first without a default.
    """
    kind = own if isinstance(own, type) else type(own)
    policy = name or getattr(kind, "name", None) or kind.__name__
    parameters = parameters_of(own)
    if own is kind:
        if missing := _required(kind):
            raise InputError(
                f"scheduler {policy}: __init__ has no default for {missing[0]}; give it one, or in Python an object:"
                f" {kind.__name__}({missing[0]}=…)"
            )
        found: dict[str, Any] = {"name": policy}
    else:
        own_values = _changed(own, parameters)
        shown = getattr(own, "__dict__", {}).get("name") or name_with(policy, own_values)
        found = {"name": shown, "variant_of": policy if shown != policy else "", "fixed": tuple(own_values)}
    about = inspect.cleandoc(kind.__doc__ or "")
    title = about.partition("\n")[0] or what
    return {**found, "title": title, "paper": "-", "parameters": parameters, "own": own, "about": about}


def parameters_of(own: Any) -> tuple[Parameter, ...]:
    """Return the parameters of a user's class or object; the defaults of an object are its own values."""
    kind = own if isinstance(own, type) else type(own)
    found = _attributes(kind) | _keywords(kind)
    if own is not kind:
        wanted = [*found, *_required(kind)]
        found = {name: getattr(own, name) for name in wanted if hasattr(own, name)}
    meanings = dict.fromkeys(_attributes(kind), "attribute of the class")
    meanings |= dict.fromkeys(_init(kind), "argument of `__init__`")
    return tuple(
        _parameter(name, value, meanings[name])
        for name, value in ((name, _plain(value)) for name, value in found.items())
        if _may_be(name, value)
    )


def make_own(kind: Any, parameters: Mapping[str, Any]) -> Any:
    """Make an object of a user's class with these parameters; attributes are set before `__init__` is called."""
    keywords = {name: value for name, value in parameters.items() if name in _init(kind)}
    own = kind.__new__(kind, **keywords) if kind.__new__ is not object.__new__ else object.__new__(kind)
    for name, value in parameters.items():
        if name not in keywords and getattr(kind, name) != value:
            setattr(own, name, value)
    own.__init__(**keywords)
    return own


def _changed(own: Any, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """The parameters of an object whose values are not the defaults of its class."""
    usual = {p.name: p.default for p in parameters_of(type(own))}
    return {p.name: p.default for p in parameters if p.name not in usual or usual[p.name] != p.default}


def _attributes(kind: type) -> dict[str, Any]:
    """Return public attributes of the class and its base classes, in order of appearance."""
    found: dict[str, Any] = {}
    for place in reversed(kind.__mro__[:-1]):
        found |= vars(place)
    return {name: value for name, value in found.items() if _may_be(name, value)}


def _init(kind: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of `__init__` that can be given by name."""
    try:
        _, *taken = inspect.signature(kind.__init__).parameters.values()
    except (TypeError, ValueError):  # written in C
        return {}
    return {p.name: p for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _keywords(kind: type) -> dict[str, Any]:
    return {name: p.default for name, p in _init(kind).items() if _may_be(name, p.default)}


def _required(kind: type) -> list[str]:
    return [name for name, p in _init(kind).items() if p.default is p.empty]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _may_be(name: str, value: Any) -> bool:
    public = not name.startswith("_") and name != name.upper() and name != "name"
    return public and (value is None or isinstance(_plain(value), _SIMPLE))


def _parameter(name: str, value: Any, meaning: str) -> Parameter:
    return Parameter(name, _in_seconds(name, value), _kind(name, value), meaning)


def _in_seconds(name: str, value: Any) -> Any:
    """Return the default in seconds, if it is a duration that the user has written with its unit."""
    if isinstance(value, str) and name.endswith("_s"):
        try:
            return parse_duration(value, name)
        except InputError:
            pass
    return value


def _kind(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(_in_seconds(name, value), str):
        return "text"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "any"
    if name.endswith("_s") and _in_seconds(name, value) >= 0:
        return "duration"
    if name.endswith("_bytes") and isinstance(value, int) and value >= 0:
        return "size"
    return "integer" if isinstance(value, int) else "number"
