"""What is given and would change nothing: keys and parameters that go with others, or that every scheduler ignores.

Each is refused by name. In a sweep a value may mean nothing at some points, as long as it means something at others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from emu.keys import BY_NAME, COFLOWS, WORKLOAD_OPTIONS
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.schedulers.policy import Scheduler
    from emu.config import Config

_FIXED = ("cost.model=fixed",)
_FAILS = ("dynamics.failures", "dynamics.mtbf")
NEEDS: dict[str, tuple[str, ...]] = {
    "load_by": ("load",),
    **dict.fromkeys(("constraints.jobs", "constraints.combined"), ("constraints.model",)),
    **dict.fromkeys(("constraints.soft", "constraints.seed"), ("constraints.model",)),
    "constraints.price": ("constraints.soft",),
    "partitions": ("clock=windows|live",),
    **dict.fromkeys(("quantum", "windows.transport"), ("clock=windows",)),
    **dict.fromkeys(("dilation", "live.tick", "live.lateness_bound"), ("clock=live",)),
    "address": ("in_process=false",),
    "estimates.error": ("estimates.size",),
    "estimates.size": ("estimates.error",),
    **{name: _FIXED for name in BY_NAME if name.startswith("cost.per_")},
    "dynamics.detection": _FAILS,
    "dynamics.failover": _FAILS,
    "dynamics.straggler_slowdown": ("dynamics.straggler_share",),
    "dynamics.straggler_distribution": ("dynamics.straggler_share",),
    "dynamics.straggler_shape": ("dynamics.straggler_distribution=pareto",),
    "dynamics.straggler_sigma": ("dynamics.straggler_distribution=lognormal",),
    "checkpoint.period": ("clock=virtual|windows",),
    "checkpoint.keep": ("checkpoint.period",),
}
"""What keys go with, and mean nothing without: one of other keys, or of values of a key."""
_NOTHING = (None, False, "none", "never")
DESCRIBES = ("long_partition", "estimates")
"""Keys that describe cluster and workload to whoever looks at them: that nobody does is told, and not refused."""


def meaningless(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> dict[str, InputError]:
    """Return what was given and changes nothing: name to the error that says why."""
    given = {name: config.error(name, why) for name, why in _keys(config, schedulers)}
    return given | dict(_parameters(config, schedulers, parameters)) | _options(config)


def refuse(found: Mapping[str, InputError]) -> None:
    """Raise the first error, if there is any."""
    for error in found.values():
        raise error


def ignored_notes(config: Config, schedulers: tuple[Scheduler, ...]) -> tuple[str, ...]:
    """Return what must be told of keys that some of the schedulers ignore, and that are not refused."""
    notes = []
    for scheduler in schedulers:
        ignored = {name: _ignored(scheduler, name) for name in _given(config, scheduler.family)}
        names = {name: why for name, why in ignored.items() if why is not None}
        if scheduler.family != COFLOWS:  # of jobs it is told where all ignore it
            names = {n: w for n, w in names.items() if all(_ignored(s, n) is not None for s in schedulers)}
        for why in dict.fromkeys(names.values()):
            which = " and ".join(name for name, own in names.items() if own == why)
            notes.append(f"{scheduler.name} ignores {which}: {why}")
    return tuple(notes)


def told(needs: Iterable[str]) -> str:
    """Return what a key or parameter goes with, as the reference has it."""
    return " or ".join(f"`{spelt(need)}`" for need in needs)


def spelt(need: str) -> str:
    """Return a need as people read it: ``clock=windows or live``."""
    return need.replace("|", " or ")


def _given(config: Config, family: str) -> Iterator[str]:
    """Yield the keys that were given and are not at their default."""
    for name in config.places:
        key = BY_NAME[name]
        default = key.for_coflows if family == COFLOWS and key.for_coflows is not None else key.default
        if config[name] != default:
            yield name


def _keys(config: Config, schedulers: tuple[Scheduler, ...]) -> Iterator[tuple[str, str]]:
    for name in _given(config, schedulers[0].family):
        needs = NEEDS.get(name, ())
        if needs and not any(_is_met(need, config.values, name_of(need) in config.places) for need in needs):
            yield name, f"goes with {' or '.join(map(spelt, needs))}, and {_state(needs, config.values)}"
            continue
        whys = [_ignored(scheduler, name) for scheduler in schedulers]
        if None not in whys and not _belongs(name, DESCRIBES):
            names = " and ".join(scheduler.name for scheduler in schedulers)
            yield name, f"means nothing to {names}: {whys[0]}"


def _parameters(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> Iterator[tuple[str, InputError]]:
    """Yield parameters that mean nothing to any of the schedulers that have them."""
    chosen = {name.rpartition(".")[2] for name, _ in config.parameters}
    for name, given in config.parameters:
        whys = []
        for scheduler, own in zip(schedulers, parameters, strict=True):
            for p in scheduler.parameters:
                if name not in (p.name, f"{scheduler.name}.{p.name}"):
                    continue
                needs = [need for need in p.needs if name_of(need) in own]
                means = not needs or any(_is_met(need, own, name_of(need) in chosen) for need in needs)
                means = means or p.parse(given.value, scheduler.name) == p.default
                state = (
                    f"goes with {' or '.join(map(spelt, needs))}, and {_state(needs, own)}" if needs else ""
                )
                whys.append("" if means else f"parameter {p.name} of {scheduler.name} {state}")
        if whys and all(whys):
            yield f"parameters.{name}", given.place.error(whys[0])


def _options(config: Config) -> dict[str, InputError]:
    """Return options of the workload's generator that change nothing; wrong ones are told when it is made."""
    from workloads.catalogue import options_without_meaning

    try:
        values = {name: given.value for name, given in config.workload_options.items()}
        found = options_without_meaning(config["workload"], values)
    except InputError:
        return {}
    return {
        f"{WORKLOAD_OPTIONS}.{name}": config.workload_options[name].place.error(why)
        for name, why in found.items()
    }


def name_of(need: str) -> str:
    """Return the key or parameter that a need is about."""
    return need.partition("=")[0]


def _is_met(need: str, values: Mapping[str, Any], is_given: bool) -> bool:
    """Whether a value is one of those that are wanted, or is there at all; a number is also if it was given as 0."""
    name, _, wanted = need.partition("=")
    value = values[name]
    if wanted:
        return _text(value) in wanted.split("|")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value != 0 or is_given
    return value not in _NOTHING


def _state(needs: Iterable[str], values: Mapping[str, Any]) -> str:
    names = list(dict.fromkeys(name_of(need) for need in needs))
    if all(values[name] is None for name in names):
        return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not given"
    return " and ".join(f"{name} is {_text(values[name])}" for name in names)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ignored(scheduler: Scheduler, name: str) -> str | None:
    """Return why a scheduler ignores a key; None if it does not."""
    return next((why for own, why in scheduler.ignores if _belongs(name, [own])), None)


def _belongs(name: str, tables: Iterable[str]) -> bool:
    return any(name == table or name.startswith(f"{table}.") for table in tables)
