"""Variants: a scheduler with fixed values of some parameters and a name of its own, beside others of the policy.

On the command line `eagle@slack=2`, in a file `[variants.eagle-2]`, in Python `variant("eagle", slack=2)`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actors.scheduler import Scheduler, name_with, resolve_parameters, value_text
from workloads.errors import InputError

_TEXT = re.compile(r"(?P<scheduler>.+?)(?P<settings>(@[A-Za-z_]\w*=[^@]*)+)")


@dataclass(frozen=True, eq=False)
class Variant:
    """A scheduler with settings; `variant` makes one.

    Attributes:
        scheduler: as `find_scheduler` takes it.
        settings: values of some of its parameters.
        name: empty: the policy's name and the settings, as in `eagle(slack=2)`.
    """

    scheduler: Any
    settings: Mapping[str, Any]
    name: str = ""


def variant(scheduler: Any, /, name: str = "", **settings: Any) -> Variant:
    """Return a scheduler with settings of its own, which can stand beside others of the same policy.

    Parameters
    ----------
    scheduler : str, class or object
        As `emu.run` takes it.
    name : str, optional
        In tables, plots and folders; by default the policy's name with the settings, as in ``eagle(slack=2)``.
    **settings
        Values of some of its parameters; ``--set`` and ``parameters`` do not change them.

    Raises
    ------
    InputError
        The name has a character that names in a configuration file cannot have. Settings are checked later, when the
        scheduler is looked up.

    Examples
    --------
    >>> variant("eagle", slack=2)
    Variant(scheduler='eagle', settings={'slack': 2}, name='')
    """
    if set(name) & set(".,@"):
        raise InputError(f"variant: the name {name!r} has one of . , @")
    return Variant(scheduler, settings, name)


def read_variant(text: str) -> Variant | None:
    """Read a text such as `eagle@sticky=no@slack=2` as a variant; None if it does not describe one."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    pairs = [setting.split("=", 1) for setting in match["settings"].split("@")[1:]]
    settings = {name: value.strip() for name, value in pairs}
    if len(settings) < len(pairs):
        raise InputError(f"{text!r} gives a parameter twice")
    return Variant(match["scheduler"], settings)


def variant_text(scheduler: str, settings: Mapping[str, Any]) -> str:
    """Return the text that `read_variant` reads."""
    return scheduler + "".join(f"@{name}={value_text(value)}" for name, value in settings.items())


def make_variant(scheduler: Scheduler, settings: Mapping[str, Any], name: str = "") -> Scheduler:
    """Return the scheduler with these settings as fixed defaults of its parameters.

    Raises:
        InputError: a parameter is unknown, or a value is not one of the parameter's kind.
    """
    own = resolve_parameters(scheduler, settings)
    fixed = tuple(p.name for p in scheduler.parameters if p.name in settings or p.name in scheduler.fixed)
    return replace(
        scheduler,
        name=name or name_with(scheduler.policy, {p: own[p] for p in fixed}),
        parameters=tuple(replace(p, default=own[p.name]) for p in scheduler.parameters),
        remade=(make_variant, (scheduler, dict(settings), name)),
        variant_of=scheduler.policy,
        fixed=fixed,
    )


def named_apart(schedulers: Sequence[Scheduler]) -> tuple[Scheduler, ...]:
    """Return the schedulers; objects of one class get the parameters in which they differ into their names."""
    places: dict[tuple[str, Any], list[int]] = {}
    for i, s in enumerate(schedulers):
        if s.is_object and "name" not in getattr(s.own, "__dict__", {}):
            places.setdefault((s.policy, type(s.own)), []).append(i)
    made = list(schedulers)
    for own in places.values():
        values = [{p.name: p.default for p in made[i].parameters} for i in own]
        differ = [name for name in values[0] if len({repr(of_it.get(name)) for of_it in values}) > 1]
        for i, of_it in zip(own, values, strict=True):
            if differ:
                shown = {name: of_it[name] for name in differ if name in of_it}
                renamed = make_variant(made[i], {}, name_with(made[i].policy, shown))
                made[i] = replace(renamed, fixed=tuple(shown))
    return tuple(made)
