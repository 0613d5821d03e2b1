"""Values that are given but have no effect: keys and parameters that need others, or that every scheduler ignores.

Each is refused by name. In a sweep a value may have no effect at some points, if it has one at others. A note is
printed instead if an option over a file is the cause (``--clock virtual`` over a file with partitions), or a number
given as 0 (``steal_attempts=0`` for the limit of stolen entries). The ``config.toml`` of a run has the default for each
such value, so that it can be run again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from emu.configuration.keys import BY_NAME, PARAMETERS, WORKLOAD_OPTIONS
from emu.families.registry import find_family
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.scheduler import Parameter, Scheduler
    from emu.configuration.config import Config, Place

_NOTHING = (None, False, 0, "none", "never")


class Ineffective(NamedTuple):
    """A value that was given and has no effect."""

    name: str
    error: InputError
    is_note: bool  # a note is printed; otherwise it is refused


def ineffective(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> dict[str, InputError]:
    """Return the given values without effect that are to be refused: name to error."""
    found = _all(config, schedulers, parameters)
    return {one.name: one.error for one in found if not one.is_note}


def leftover_notes(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> tuple[str, ...]:
    """Return notes on values that have no effect because of an option over a file, or of a number given as 0."""
    found = _all(config, schedulers, parameters)
    absent = dict.fromkeys(
        f"{given.place.file}: {PARAMETERS}.{owner}: {owner} is not in this run; they change nothing"
        for name, given in config.parameters
        if (owner := absent_owner(config, name, given.place, schedulers))
    )
    return (*(f"{one.error}; it changes nothing" for one in found if one.is_note), *absent)


def absent_owner(config: Config, name: str, place: Place, schedulers: tuple[Scheduler, ...]) -> str:
    """Return the scheduler of a file's ``SCHEDULER.NAME`` if an option replaced the file's schedulers; else nothing."""
    from actors.schedulers.registry import scheduler_names

    owner = name.rpartition(".")[0]
    chosen = config.places.get("scheduler")
    if place.file is None or chosen is None or chosen.file is not None:
        return ""
    known = owner.partition("(")[0] in scheduler_names() or owner in config.variants
    return owner if known and owner not in [s.name for s in schedulers] else ""


def ineffective_keys(config: Config, schedulers: tuple[Scheduler, ...]) -> dict[str, Any]:
    """Return the defaults of the keys that were given and have no effect under these schedulers."""
    defaults = find_family(schedulers[0].family).defaults
    return {name: defaults.get(name, BY_NAME[name].default) for name, *_ in _keys(config, schedulers)}


def effective_parameters(scheduler: Scheduler, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a scheduler; those that have no effect beside the others are at their defaults."""
    return {
        p.name: given[p.name] if scheduler.fixes(p.name) or not _unmet(p.needs, given) else p.default
        for p in scheduler.parameters
    }


def ignored_notes(config: Config, schedulers: tuple[Scheduler, ...]) -> tuple[str, ...]:
    """Return notes on keys that some of the schedulers ignore, and that are not refused."""
    notes = []
    for scheduler in schedulers:
        ignored = {name: scheduler.why_ignored(name) for name in _given(config, scheduler.family)}
        names = {name: why for name, why in ignored.items() if why is not None}
        if not find_family(scheduler.family).notes_each_ignored_key:
            names = {n: w for n, w in names.items() if all(s.why_ignored(n) is not None for s in schedulers)}
        for why in dict.fromkeys(names.values()):
            which = " and ".join(name for name, own in names.items() if own == why)
            notes.append(f"{scheduler.name} ignores {which}: {why}")
    return tuple(notes)


def needs_text(needs: Iterable[str]) -> str:
    """Return what a key or parameter needs, as Markdown for the reference."""
    return " or ".join(f"`{_need_text(need)}`" for need in needs)


def effective_options(config: Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the workload; those that have no effect beside the others are at their defaults."""
    from workloads.catalogue import options_of, options_without_meaning

    found = options_without_meaning(config["workload"], options)
    defaults = options_of(config["workload"], {}) if found else {}
    return {name: defaults[name] if name in found else value for name, value in options.items()}


def _given(config: Config, family: str) -> Iterator[str]:
    """Yield the keys that were given and are not at their default."""
    defaults = find_family(family).defaults
    for name in config.places:
        if config[name] != defaults.get(name, BY_NAME[name].default):
            yield name


def _all(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> Iterator[Ineffective]:
    for name, why, deciding in _keys(config, schedulers):
        places = [config.places[other] for other in deciding if other in config.places]
        is_note = _is_over(config.places[name], places) or _is_off(deciding, config.values, config.places)
        yield Ineffective(name, config.error(name, why), is_note)
    yield from _parameters(config, schedulers, parameters)
    yield from _options(config)


def _is_over(place: Place, deciding: Iterable[Place]) -> bool:
    """Whether a file gave a value, and an option decides that it has no effect."""
    return place.file is not None and any(other.file is None for other in deciding)


def _is_off(deciding: Iterable[str], values: Mapping[str, Any], given: Container[str]) -> bool:
    """Whether one of these was given explicitly as 0."""
    numbers = [values[name] for name in deciding if name in given and name in values]
    return any(number == 0 for number in numbers if not isinstance(number, bool))


def _keys(config: Config, schedulers: tuple[Scheduler, ...]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the keys that were given and have no effect, why, and the keys that cause that."""
    for name in _given(config, schedulers[0].family):
        if why := _why_none(config, schedulers, name):
            yield name, *why


def _why_none(
    config: Config, schedulers: tuple[Scheduler, ...], name: str
) -> tuple[str, list[str]] | tuple[()]:
    """Return why a key has no effect, and the keys that cause that; empty if it has one."""
    key = BY_NAME[name]
    if why := _unmet(key.needs, config.values):
        return why, [_name_of(need) for need in key.needs]
    whys = [scheduler.why_ignored(name) for scheduler in schedulers]
    if None in whys or key.describes:
        return ()
    names = " and ".join(scheduler.name for scheduler in schedulers)
    return f"has no effect on {names}: {whys[0]}", ["scheduler"]


def without_effect(
    config: Config,
    schedulers: tuple[Scheduler, ...],
    parameters: tuple[dict[str, Any], ...],
    names: Iterable[str],
) -> set[str]:
    """Return which of some keys and parameters (``parameters.NAME``) change nothing, whatever their values."""
    idle = {
        f"{PARAMETERS}.{name}"
        for scheduler, own in zip(schedulers, parameters, strict=True)
        for p in scheduler.parameters
        if _unmet(p.needs, own)
        for name in (p.name, f"{scheduler.name}.{p.name}")
    }
    return {n for n in names if n in idle or (n in BY_NAME and _why_none(config, schedulers, n))}


def _parameters(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> Iterator[Ineffective]:
    """Yield parameters without effect on all schedulers that have them, and settings of variants without effect."""
    owned = [(s, p, own) for s, own in zip(schedulers, parameters, strict=True) for p in s.parameters]
    chosen = {name.rpartition(".")[2]: given.place for name, given in config.parameters}
    for name, given in config.parameters:
        having = [one for one in owned if name in (one[1].name, f"{one[0].name}.{one[1].name}")]
        whys = [
            "" if p.parse(given.value, s.name) == p.default else _why_idle(s, p, own) for s, p, own in having
        ]
        if whys and all(whys):
            deciding = [name for _, p, _ in having for name in map(_name_of, p.needs) if name in chosen]
            is_note = any(_is_off(map(_name_of, p.needs), own, chosen) for _, p, own in having)
            is_note = is_note or _is_over(given.place, [chosen[name] for name in deciding])
            yield Ineffective(f"{PARAMETERS}.{name}", given.place.error(whys[0]), is_note)
    for s, p, own in owned:
        if p.name in s.fixed and not s.is_object and (why := _why_idle(s, p, own)):
            setting = config.variants.get(s.name, {}).get(p.name)
            error = config.error("scheduler", why) if setting is None else setting.place.error(why)
            yield Ineffective(f"{s.name}.{p.name}", error, False)


def _why_idle(scheduler: Scheduler, p: Parameter, own: Mapping[str, Any]) -> str:
    """Return why a parameter has no effect beside the others of its scheduler; empty if it has one."""
    why = _unmet(p.needs, own)
    return why and f"parameter {p.name} of {scheduler.name} {why}"


def _options(config: Config) -> Iterator[Ineffective]:
    """Yield options of the workload's generator without effect; wrong ones are reported when the workload is made."""
    from workloads.catalogue import options_without_meaning

    options = config.workload_options
    try:
        values = {name: given.value for name, given in options.items()}
        found = options_without_meaning(config["workload"], values)
    except InputError:
        return
    for name, why in found.items():
        deciding = [given.place for other, given in options.items() if other != name]
        place = options[name].place
        yield Ineffective(f"{WORKLOAD_OPTIONS}.{name}", place.error(why), _is_over(place, deciding))


def _unmet(needs: Iterable[str], values: Mapping[str, Any]) -> str:
    """Return that none of some needs is met, and what the values are; empty if one is, or no value is there."""
    needs = [need for need in needs if _name_of(need) in values]
    if not needs or any(_is_met(need, values) for need in needs):
        return ""
    names = list(dict.fromkeys(map(_name_of, needs)))
    state = " and ".join(f"{name} is {_text(values[name])}" for name in names)
    if all(values[name] is None for name in names):
        state = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not given"
    return f"goes with {' or '.join(map(_need_text, needs))}, and {state}"


def _is_met(need: str, values: Mapping[str, Any]) -> bool:
    """Whether a value is one of those that are wanted, or is there at all."""
    name, _, wanted = need.partition("=")
    if wanted:
        return _text(values[name]) in wanted.split("|")
    return values[name] not in _NOTHING


def _name_of(need: str) -> str:
    """Return the key or parameter that a need is about."""
    return need.partition("=")[0]


def _need_text(need: str) -> str:
    """Return a need as readable text: ``clock=windows or live``."""
    return need.replace("|", " or ")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
