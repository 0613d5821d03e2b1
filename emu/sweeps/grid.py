"""The grid of a sweep: a base configuration, axes with their values, and every point of their product."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu.configuration.config import (
    Config,
    Given,
    Layer,
    Place,
    flatten,
    layer_from_set,
    plain,
    read_given,
    resolve,
)
from emu.configuration.config_file import beside, check_name, read_toml
from emu.configuration.family_keys import key_for_all
from emu.configuration.keys import BY_NAME, PARAMETERS, TABLES, VARIANTS
from emu.configuration.replicas import INSTANCE, Replica, folders_of, no_seeds, of_replica, replicas_of
from emu.configuration.schedulers import find_one, named_apart, scheduler_parameters, takes
from emu.configuration.seeds import seeds_of, with_first_seed
from emu.configuration.workload_cache import WorkloadCache
from emu.directories.run_directory import safe_name
from emu.families.registry import family_names
from emu.results.run_groups import COMPARED, value_text
from workloads.errors import InputError
from workloads.hints import did_you_mean

if TYPE_CHECKING:
    from actors.scheduler import Scheduler

SWEEP = "sweep"
SCHEDULER, SEED = "scheduler", "seed"
MOST_TEXT = 200
"""Characters of a value in a path, whose parts a file system limits to 255."""
_NO_AXES = {
    "seeds": "give `seed = [1, 2, 3]`, or `seeds = 3` outside of [sweep]",
    "in_process": "it sets where runs are computed: use --in-process",
    "address": "it sets where runs are computed: use --address",
    "load_by": "give it outside of [sweep]",
}


@dataclass(frozen=True)
class Axis:
    """One axis: a key or parameter, and its values."""

    name: str  # full dotted name: ``nodes``, ``network.delay``, ``parameters.eagle.slack``
    label: str  # in paths and tables: the last part of the name, or all of it where that is ambiguous
    values: tuple[Given, ...]  # as given; no two are equal when read
    texts: tuple[str, ...]  # of the values in paths, in base units; no two are equal
    shown: tuple[Any, ...]  # the values in tables, in base units

    @property
    def is_parameter(self) -> bool:
        """Whether the axis is a scheduler's parameter."""
        return self.name.startswith(f"{PARAMETERS}.")

    @property
    def is_own(self) -> bool:
        """Whether runs of different values are compared with each other, as those of schedulers are."""
        return self.is_parameter or self.name in COMPARED


@dataclass(frozen=True)
class Point:
    """One run of a grid."""

    at: dict[str, int]  # name of each axis that has an effect there, to the index of its value
    config: Config
    replica: Replica
    folder: str  # the last part of the run's path: that of its instance, or of its seed

    def only(self, names: Iterable[str]) -> Point:
        """Return the point without other axes."""
        return replace(self, at={name: self.at[name] for name in self.at if name in names})


@dataclass(frozen=True)
class Grid:
    """Axes, the scheduler first and the seed last, and the points in the order of their product."""

    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    base: Config

    def columns(self, point: Point) -> dict[str, Any]:
        """Return label to value, in base units, of the axes that a point has, and of a batch the instance."""
        own = {a.label: a.shown[point.at[a.name]] for a in self.axes if a.name in point.at}
        return {**own, INSTANCE: point.replica.instance} if point.replica.instance else own

    def folder(self, point: Point) -> Path:
        """Return the path of the run of a point: Hive partitions of scheduler, axes that vary, seed or instance."""
        return Path(
            *(
                f"{a.label}={a.texts[point.at[a.name]]}"
                for a in self.axes
                if a.name in point.at and a.name != SEED and (len(a.values) > 1 or a.name == SCHEDULER)
            ),
            point.folder,
        )

    def described(self) -> dict[str, Any]:
        """Return dotted key to value of what identifies the sweep, as a manifest holds it."""
        own = {a.name for a in self.axes} | {"seeds"}
        return {
            **{name: value for name, value in self.base.given().items() if name not in own},
            **{f"{SWEEP}.{a.name}": list(a.shown) for a in self.axes},
        }


def read_grid(
    source: str | Path | Mapping[str, Any], sets: Sequence[str] = (), cache: WorkloadCache | None = None
) -> Grid:
    """Return the grid of a sweep file, or of a mapping of the same form.

    Parameters
    ----------
    source : path or mapping
        Keys of ``docs/reference/configuration.md``, and under ``sweep`` the axes: key to a list or one value.
    sets : sequence of str
        ``NAME=VALUE``: beats the base, and takes the place of the axis of that name.
    cache : WorkloadCache, optional
        Keeps what archives hold, for the plans of the points.

    Raises
    ------
    InputError
        An unknown key, a key that cannot be an axis, a value that is wrong or given twice, an axis without values, a
        parameter that no scheduler has; names the file, the line and the key.
    """
    base, given_axes = _read(source)
    if (given := base.get("workload")) is not None:  # a frame is read once, for all points
        base["workload"] = given._replace(value=read_given(BY_NAME["workload"], given))
    over = layer_from_set(sets)
    given_axes = {name: given for name, given in given_axes.items() if name not in over}
    whole = resolve([base, over])
    if SCHEDULER not in given_axes:
        if whole[SCHEDULER] is None:
            raise InputError("no scheduler: give `scheduler = [...]` in [sweep]", file=_file(source))
        place = whole.places[SCHEDULER]
        given_axes[SCHEDULER] = Given(list(whole[SCHEDULER]), place)
    if SEED in given_axes and whole["seeds"] != 1:
        raise whole.error("seeds", f"not allowed with [{SWEEP}] seed, which names the seeds")
    if SEED not in given_axes:
        seeds = seeds_of(with_first_seed(whole))
        given_axes[SEED] = Given(list(seeds), whole.places.get("seeds", Place("seeds")))
    schedulers = _schedulers(whole, given_axes[SCHEDULER])
    given_axes[SCHEDULER] = _under_their_names(given_axes[SCHEDULER], schedulers)
    _check_parameters(whole, schedulers, given_axes)
    key = key_for_all(schedulers)
    if key is not None and key not in given_axes and key not in whole.places:
        base[key] = Given(BY_NAME[key].default, given_axes[SCHEDULER].place)
    labels = _labels(given_axes)
    axes = {name: _axis(name, labels[name], given, schedulers) for name, given in given_axes.items()}
    ordered = [axes.pop(SCHEDULER), *(axes.pop(n) for n in list(axes) if n != SEED), axes.pop(SEED)]
    layers = (base, over)
    return Grid(tuple(ordered), tuple(_points(ordered, schedulers, layers, cache)), whole)


def _read(source: str | Path | Mapping[str, Any]) -> tuple[Layer, dict[str, Given]]:
    """Return the base and the axes by full name, each with its place."""
    if isinstance(source, Mapping):
        items = [(name, Given(value, Place(name))) for name, value in flatten(source)]
    else:
        items = read_toml(source)
    base: Layer = {}
    axes: dict[str, Given] = {}
    for name, given in items:
        table, _, inner = name.partition(".")
        if table != SWEEP:
            if name not in BY_NAME and table not in TABLES:
                _refuse(name, given.place, [*BY_NAME, *TABLES, SWEEP])
            check_name(name, given.place)
            base[name] = given if isinstance(source, Mapping) else _beside(source, name, given)
            continue
        if not inner:
            raise given.place.error(f"{SWEEP!r} is a table: [{SWEEP}], and below it the axes")
        if inner.partition(".")[0] == VARIANTS:
            raise given.place.error(f"{inner!r} cannot be an axis; name variants in [{SWEEP}] {SCHEDULER}")
        if inner in _NO_AXES:
            raise given.place.error(f"{inner!r} cannot be an axis; {_NO_AXES[inner]}")
        if inner not in BY_NAME and inner.partition(".")[0] not in TABLES:
            known = [*(n for n in BY_NAME if n not in _NO_AXES), *(f"{t}.NAME" for t in TABLES)]
            _refuse(inner, given.place, known)
        check_name(inner, given.place)
        values = list(given.value) if isinstance(given.value, list | tuple | range) else [given.value]
        if not values:
            raise given.place.error("an axis needs at least one value; the list is empty")
        if inner in axes:
            raise given.place.error(f"the axis {inner!r} is given twice")
        listed = Given(values, given.place)
        axes[inner] = listed if isinstance(source, Mapping) else _beside(source, inner, listed)
    return base, axes


def _file(source: str | Path | Mapping[str, Any]) -> str | Path | None:
    return None if isinstance(source, Mapping) else source


def _beside(path: str | Path, name: str, given: Given) -> Given:
    return Given(beside(path, name, given.value), given.place)


def _refuse(name: str, place: Place, known: Iterable[str]) -> None:
    raise place.error(f"unknown key {name!r}{did_you_mean(name, known)}")


def _schedulers(whole: Config, given: Given) -> list[Scheduler]:
    found = [find_one(whole, value, given.place.error) for value in given.value]
    try:
        return list(named_apart(found))
    except InputError as error:
        raise given.place.error(error.message) from None


def _under_their_names(given: Given, schedulers: Sequence[Scheduler]) -> Given:
    """Return the axis of schedulers, objects under their distinct names, as a point has only one of them."""
    from actors.schedulers.variants import Variant

    pairs = zip(given.value, schedulers, strict=True)
    return given._replace(value=[Variant(v, {}, s.name) if s.is_object else v for v, s in pairs])


def _check_parameters(whole: Config, schedulers: list[Scheduler], axes: Mapping[str, Given]) -> None:
    """Refuse parameters that no scheduler of the sweep has, and values that are out of range."""
    pairs = list(whole.parameters)
    for name, given in axes.items():
        table, _, inner = name.partition(".")
        if table == PARAMETERS:
            pairs += [(inner, Given(value, given.place)) for value in given.value]
    for pair in pairs:  # one by one, so that each value of an axis is looked at
        scheduler_parameters(replace(whole, parameters=(pair,)), tuple(schedulers))


def _axis(name: str, label: str, given: Given, schedulers: list[Scheduler]) -> Axis:
    """Read the values of an axis; two that are equal when read are an error."""
    values = [Given(value, given.place) for value in given.value]
    if name == "workload":  # a frame is read once, for all points
        values = [value._replace(value=read_given(BY_NAME[name], value)) for value in values]
    shown = [_shown(name, value, i, schedulers) for i, value in enumerate(values)]
    for i, value in enumerate(shown):
        if value in shown[:i]:
            raise given.place.error(f"{given.value[i]!r} is given twice")
    texts: list[str] = []
    for value in shown:
        text = _text(value)[:MOST_TEXT]
        text = safe_name(text.replace("=", " ") if _is_of_steps(name) else text)
        number = itertools.count(2)
        texts.append(text)
        while texts[-1] in texts[:-1]:
            texts[-1] = f"{text}-{next(number)}"
    return Axis(name, label, tuple(values), tuple(texts), tuple(shown))


def _shown(name: str, given: Given, index: int, schedulers: list[Scheduler]) -> Any:
    """Return a value of an axis in base units."""
    if name == SCHEDULER:
        return schedulers[index].name
    if name in BY_NAME:
        read = read_given(BY_NAME[name], given)
        return value_text(name, read) if _is_of_steps(name) else plain(read)
    table, _, inner = name.partition(".")
    if table == PARAMETERS:
        parameter = inner.rpartition(".")[2]
        for s in schedulers:
            for p in s.parameters:
                if p.name == parameter and inner in (p.name, f"{s.name}.{p.name}"):
                    return p.parse(given.value, s.name)
    return plain(given.value)


def _is_of_steps(name: str) -> bool:
    return name in BY_NAME and BY_NAME[name].kind == "steps"


def _labels(axes: Mapping[str, Given]) -> dict[str, str]:
    """Return the last part of each name, or as much of it as distinguishes it from the others.

    The name of a family is a part of the summary, where an axis such as ``workload_options.coflows`` has its own place.
    """
    made = {}
    parts = family_names()
    for name in axes:
        last = name.rpartition(".")[2]
        taken = [other for other in axes if other.rpartition(".")[2] == last]
        whole = name.removeprefix(f"{PARAMETERS}.") if name.count(".") > 1 else name
        alone = len(taken) == 1 and last not in parts
        whole = COMPARED.get(name, whole)
        made[name] = last if alone or "." not in name else whole
    return made


def _points(
    axes: list[Axis], schedulers: list[Scheduler], layers: tuple[Layer, ...], cache: WorkloadCache | None
) -> Iterator[Point]:
    """Yield the points; an axis of a parameter is skipped for a scheduler that lacks it, or has an axis of its own.

    A workload that is a batch gives a point for each instance.
    """
    cache = WorkloadCache() if cache is None else cache
    several = len(axes[-1].values) > 1
    for index, scheduler in enumerate(schedulers):
        own = [
            a for a in axes[1:] if not a.is_parameter or _applies(a.name, scheduler, [b.name for b in axes])
        ]
        for choice in itertools.product(*(range(len(a.values)) for a in own)):
            at = {SCHEDULER: index} | {a.name: i for a, i in zip(own, choice, strict=True)}
            top: Layer = {a.name: a.values[at[a.name]] for a in axes if a.name in at}
            top["seeds"] = Given(1, Place("seeds"))
            below = [
                {name: given for name, given in layer.items() if _concerns(name, scheduler)}
                for layer in layers
            ]
            config = resolve([*below, top])
            yield from _replicas(at, config, axes[-1].texts[at[SEED]], cache, several)


def _replicas(
    at: dict[str, int], config: Config, seed: str, cache: WorkloadCache, several: bool
) -> Iterator[Point]:
    """Yield the point of one seed, or one for each instance of a batch, which may not have several seeds."""
    replicas = (Replica(config[SEED]),) if config["workload"] is None else replicas_of(config, cache)
    if several and replicas[0].instance:
        raise no_seeds(config, len(replicas))
    folders = folders_of(replicas)
    for replica in replicas:
        folder = folders[replica] if replica.instance else f"{SEED}={seed}"
        yield Point(at, of_replica(config, replica), replica, folder)


def _concerns(name: str, scheduler: Scheduler) -> bool:
    """Whether a name of a layer is for this scheduler too."""
    table, _, inner = name.partition(".")
    return table != PARAMETERS or takes(scheduler, inner)


def _applies(name: str, scheduler: Scheduler, axes: Sequence[str]) -> bool:
    inner = name.removeprefix(f"{PARAMETERS}.")
    return takes(scheduler, inner) and f"{PARAMETERS}.{scheduler.name}.{inner}" not in axes


def _text(value: Any) -> str:
    """Return a value for a path: ``2`` for 2.0, the end of a path for a path."""
    from actors.scheduler import value_text

    return value_text(value).rstrip("/").rpartition("/")[2]
