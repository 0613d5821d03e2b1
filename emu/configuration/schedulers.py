"""The schedulers that a configuration names, their variants, and the parameters of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu.configuration.config import Config, Given
from emu.configuration.ineffective_values import absent_owner
from emu.configuration.keys import BY_NAME, GROUPS, VARIANTS, WORKLOAD_OPTIONS
from emu.directories.run_directory import safe_name
from workloads.errors import InputError
from workloads.hints import did_you_mean

if TYPE_CHECKING:
    from actors.scheduler import Scheduler

SCHEDULER, NETWORK = "scheduler", "network.scheduler"
"""The keys that name schedulers; a run of DAG jobs may have one of coflows, too."""


def find_schedulers(config: Config) -> tuple[Scheduler, ...]:
    """Return the schedulers of a configuration, under distinct names.

    Raise `InputError` for an unknown scheduler, a wrong setting of a variant, or a scheduler that is given twice.
    """
    found = [find_one(config, given, partial(config.error, SCHEDULER)) for given in config[SCHEDULER]]
    with config.errors_name(SCHEDULER):
        return named_apart(found)


def find_one(config: Config, given: Any, wrong: Callable[[str], InputError]) -> Scheduler:
    """Return a scheduler by its name, by that of one of the configuration's variants, or as an object.

    `wrong` makes an error from a message; it adds the place where the scheduler was given.
    """
    from actors.schedulers.registry import find_scheduler, scheduler_names

    if not isinstance(given, str) or given not in config.variants:
        try:
            return find_scheduler(given)
        except InputError as error:
            if error.file is not None:
                raise
            message = error.message
            if config.variants and message.startswith(f"no scheduler {given!r}"):
                hint = did_you_mean(given, [*scheduler_names(), *config.variants])
                message = f"no scheduler {given!r}{hint}"
            raise wrong(message) from None
    settings = config.variants[given]
    place = next(iter(settings.values())).place
    if given in scheduler_names():
        raise place.error(f"{given!r} is a scheduler's own name; give the variant another")
    if SCHEDULER not in settings:
        raise place.error(f"{VARIANTS}.{given} lacks its scheduler; give {SCHEDULER} = …")
    return _variant(given, settings)


def _variant(name: str, settings: dict[str, Given]) -> Scheduler:
    """Return a variant of a file; an error names the place of the setting that is wrong."""
    from actors.scheduler import resolve_parameters
    from actors.schedulers.registry import find_scheduler
    from actors.schedulers.variants import make_variant

    own = {setting: given for setting, given in settings.items() if setting != SCHEDULER}
    with_places = {SCHEDULER: settings[SCHEDULER], **own}
    for setting, given in with_places.items():
        try:
            if setting == SCHEDULER:
                base = find_scheduler(given.value)
            else:
                resolve_parameters(base, {setting: given.value})
        except InputError as error:
            raise (error if error.file is not None else given.place.error(error.message)) from None
    return make_variant(base, {setting: given.value for setting, given in own.items()}, name)


def named_apart(found: Sequence[Scheduler]) -> tuple[Scheduler, ...]:
    """Return schedulers with names that are distinct, also as parts of paths.

    Objects of one class with other parameters get other names; other schedulers with equal names are an `InputError`.
    """
    from actors.schedulers import variants

    made = variants.named_apart(found)
    for how in (lambda s: s.name, lambda s: safe_name(s.name)):
        names = [how(s) for s in made]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            of_it = [s for s in made if how(s) == twice]
            hint = "; give it once, or a variant of it, as eagle@slack=2"
            if any(s.own is not None or s.variant_of for s in of_it):
                hint = "; `[variants.NAME]`, or in Python emu.variant(…, name=…), gives one another name"
            elif any(s.remade is not None for s in of_it):
                hint = (
                    f"; give the one of your file another name, as in name={f'my-{twice}'!r}:"
                    f" `emu new scheduler my-{twice} --from {twice}` writes a copy that has one"
                )
            raise InputError(f"{twice!r} is given twice{hint}")
    return made


def scheduler_parameters(config: Config, schedulers: tuple[Scheduler, ...]) -> tuple[dict[str, Any], ...]:
    """Return the full parameters of each scheduler.

    ``NAME`` goes to every scheduler that has it and does not fix it, of which there must be one; ``SCHEDULER.NAME`` to
    that one. A value of a file for a scheduler that an option has replaced is ignored.
    """
    from actors.scheduler import resolve_parameters

    chosen: list[dict[str, Any]] = [{} for _ in schedulers]
    for name, given in config.parameters:
        if absent_owner(config, name, given.place, schedulers):
            continue
        targets = _targets(config, name, given, schedulers)
        for index, parameter in targets:
            try:
                resolve_parameters(schedulers[index], {parameter: given.value})
            except InputError as error:
                raise given.place.error(error.message) from None
            chosen[index][parameter] = given.value
    return tuple(resolve_parameters(s, own) for s, own in zip(schedulers, chosen, strict=True))


def takes(scheduler: Scheduler, parameter: str) -> bool:
    """Return whether ``NAME`` or ``SCHEDULER.NAME`` is a parameter of a scheduler that can be set."""
    free = [p.name for p in scheduler.parameters if not scheduler.fixes(p.name)]
    return parameter in free or parameter in (f"{scheduler.name}.{p.name}" for p in scheduler.parameters)


def _targets(
    config: Config, name: str, given: Given, schedulers: tuple[Scheduler, ...]
) -> list[tuple[int, str]]:
    """Return (index, parameter) of the schedulers a parameter goes to."""
    for index, scheduler in enumerate(schedulers):
        if name.startswith(f"{scheduler.name}."):
            return [(index, name.removeprefix(f"{scheduler.name}."))]
    having = [i for i, s in enumerate(schedulers) if any(p.name == name for p in s.parameters)]
    if free := [i for i in having if not schedulers[i].fixes(name)]:
        return [(i, name) for i in free]
    if having:
        fixing = " and ".join(schedulers[i].name for i in having)
        raise given.place.error(f"{name!r} is set already: {fixing} has it of its own")
    owners = [s.name for s in schedulers]
    if "." in name:
        owner = name.rpartition(".")[0]
        near = did_you_mean(owner, [*owners, *GROUPS])
        raise given.place.error(f"no scheduler {owner!r} in this run, nor keys of that name{near}")
    known = {p.name for s in schedulers for p in s.parameters} | set(BY_NAME)
    what = f"neither a key nor a parameter of {' or '.join(owners)}"
    raise given.place.error(f"{name!r} is {what}{_as_option(config, name) or did_you_mean(name, known)}")


def _as_option(config: Config, name: str) -> str:
    """Return how to give an option of the workload's generator or reader; empty for what is none."""
    from workloads.catalogue import options_of

    workload = config["workload"]
    if not isinstance(workload, str | Path):
        return ""
    try:
        options = options_of(workload)
    except InputError:  # about the workload, which is checked later
        return ""
    if name not in options:
        return ""
    return f", but an option of {Path(workload).name}: give --set {WORKLOAD_OPTIONS}.{name}=…"


def text_of(config: Config, given: Any, scheduler: Scheduler) -> str:
    """Return how a configuration file names a scheduler: a file by absolute path, an object by its class."""
    from actors.schedulers.variants import variant_text

    if _has_own_name(scheduler):
        return scheduler.name
    return variant_text(_base(config, given), _settings(scheduler))


def variants_of(config: Config, given: Any, scheduler: Scheduler) -> dict[str, dict[str, Any]]:
    """Return the table of a variant by its name; empty for what `text_of` describes."""
    if not _has_own_name(scheduler):
        return {}
    return {scheduler.name: {SCHEDULER: _base(config, given), **_settings(scheduler)}}


def scheduler_file(config: Config, given: Any) -> Path | None:
    """Return the file that a scheduler is read from; None for other schedulers."""
    given = _innermost(config, given)
    if not isinstance(given, str) or ".py:" not in given:
        return None
    file = Path(f"{given.partition('.py:')[0]}.py")
    return file if file.is_file() else None


def _innermost(config: Config, given: Any) -> Any:
    """Return the name, class or object that a variant is made of; of others what is given."""
    from actors.schedulers.variants import Variant, read_variant

    if isinstance(given, str) and given in config.variants:
        return _innermost(config, config.variants[given][SCHEDULER].value)
    variant = given if isinstance(given, Variant) else read_variant(given) if isinstance(given, str) else None
    return given if variant is None else _innermost(config, variant.scheduler)


def is_object(given: Any) -> bool:
    """Return whether a scheduler is an object that a configuration file cannot name."""
    from actors.schedulers.variants import Variant

    if isinstance(given, Variant):
        return is_object(given.scheduler)
    return not isinstance(given, str | type) or getattr(given, "__module__", None) == "__main__"


def _settings(scheduler: Scheduler) -> dict[str, Any]:
    return {p.name: p.default for p in scheduler.parameters if p.name in scheduler.fixed}


def _has_own_name(scheduler: Scheduler) -> bool:
    """Return whether the name differs from that of policy and settings."""
    from actors.scheduler import name_with

    return scheduler.name != name_with(scheduler.policy, _settings(scheduler))


def _base(config: Config, given: Any) -> str:
    """Return how a configuration file names the scheduler that a variant is made of, or the scheduler itself."""
    given = _innermost(config, given)
    if isinstance(given, str):
        file, colon, inner = given.partition(".py:")
        return f"{Path(file).resolve()}.py:{inner}" if colon else given
    made = given if isinstance(given, type) else type(given)
    known = made.__module__ != "__main__"
    return f"{made.__module__}:{made.__qualname__}" if known else getattr(made, "name", None) or made.__name__
