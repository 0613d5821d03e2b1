"""The configuration of an emulation: layers of values, each with its place, that become one.

Values come in layers: defaults, a file, ``--set``, options (or the arguments of `emu.run`); the
later one counts. An error about a value names where it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from emu.configuration.key import Key
from emu.configuration.key_types import read_key
from emu.configuration.keys import BY_NAME, GROUPS, PARAMETERS, TABLES, VARIANTS, WORKLOAD_OPTIONS
from workloads.errors import InputError
from workloads.hints import did_you_mean


class Place(NamedTuple):
    """The place where a value was given: an option, or a file's line and key."""

    label: str
    file: str | None = None
    line: int | None = None

    def error(self, message: str) -> InputError:
        """Return the error about the value given here."""
        if self.file is not None:
            return InputError(message, file=self.file, line=self.line, field=self.label)
        return InputError(f"{self.label}: {message}")


class Given(NamedTuple):
    """A value as the user gave it, and where."""

    value: Any
    place: Place


Layer = dict[str, Given]
"""Values by full dotted name; scheduler parameters are ``parameters.NAME``, ``parameters.SCHEDULER.NAME``."""


@dataclass(frozen=True)
class Config:
    """Values of all keys, parsed, and what schedulers and generators were given.

    Attributes
    ----------
    values : dict
        Every name in `BY_NAME`, in base units.
    parameters : tuple of (str, Given)
        ``NAME`` or ``SCHEDULER.NAME``, in rising precedence.
    workload_options : dict of str to Given
    places : dict of str to Place
        Where the keys that are not at their default were given.
    variants : dict of str to dict of str to Given
        Name to settings, ``scheduler`` among them.
    """

    values: dict[str, Any]
    parameters: tuple[tuple[str, Given], ...]
    workload_options: dict[str, Given]
    places: dict[str, Place]
    variants: dict[str, dict[str, Given]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self) -> dict[str, Any]:
        """Return dotted name to plain value, in base units, of all that is not left at its default."""
        return {
            **{name: plain(self.values[name]) for name in self.places if self.values[name] is not None},
            **{f"{PARAMETERS}.{name}": plain(given.value) for name, given in self.parameters},
            **{
                f"{WORKLOAD_OPTIONS}.{name}": plain(given.value)
                for name, given in self.workload_options.items()
            },
            **{
                f"{VARIANTS}.{name}.{setting}": plain(given.value)
                for name, settings in self.variants.items()
                for setting, given in settings.items()
            },
        }

    def but(self, **values: Any) -> Config:
        """Return the configuration with other values of keys, in base units."""
        return replace(self, values={**self.values, **values})

    def error(self, name: str, message: str) -> InputError:
        """Return the error about the value of a key; it names the option, or file and line, that gave it."""
        return self.places.get(name, Place(BY_NAME[name].option or name)).error(message)

    @contextmanager
    def errors_name(self, name: str) -> Iterator[None]:
        """Within, an `InputError` that names no file is about the value of this key, and gets its place."""
        try:
            yield
        except InputError as error:
            if error.file is not None:
                raise
            about = error.field if error.field in BY_NAME else name
            message = error.message
            if error.field is not None and about != error.field:
                message = f"{error.field}: {message}"
            raise self.error(about, message) from None


def resolve(layers: Iterable[Layer], defaults: Mapping[str, Any] | None = None) -> Config:
    """Return the configuration of layers given in rising precedence; `defaults` replace those of the registry.

    Names are checked when a layer is made, values here.
    """
    values = {name: key.default for name, key in BY_NAME.items()} | dict(defaults or {})
    places: dict[str, Place] = {}
    parameters: list[tuple[str, Given]] = []
    options: dict[str, Given] = {}
    variants: dict[str, dict[str, Given]] = {}
    for layer in layers:
        own: list[tuple[str, Given]] = []
        for name, given in layer.items():
            table, _, rest = name.partition(".")
            if table == PARAMETERS:
                own.append((rest, given))
            elif table == WORKLOAD_OPTIONS:
                options[rest] = given
            elif table == VARIANTS:
                variants.setdefault(_variant_name(rest, given), {})[rest.rpartition(".")[2]] = given
            else:
                values[name] = read_given(BY_NAME[name], given)
                places[name] = given.place
        parameters += sorted(own, key=lambda pair: "." in pair[0])  # one scheduler's beats that of all
    return Config(values, tuple(parameters), options, places, variants)


def _variant_name(setting: str, given: Given) -> str:
    """Return the variant that ``NAME.SETTING`` is of."""
    name, dot, _ = setting.rpartition(".")
    if not dot or "." in name:
        raise given.place.error(f"want {VARIANTS}.NAME.PARAMETER, and a name without dots")
    return name


def plain(value: Any) -> Any:
    """Return a value as files and tables hold it; an object by its name."""
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, bool | int | float) else str(getattr(value, "name", value))


def read_given(key: Key, given: Given) -> Any:
    """Return a value in base units, or raise the error that names where it was given."""
    if isinstance(given.value, str) and given.value.strip() in key.words:
        return given.value.strip()
    try:
        return read_key(key, given.value)
    except InputError as error:
        message = error.message.removeprefix(f"{key.name}: ")
        if key.words:
            message += f", or {' or '.join(map(repr, key.words))}"
        raise given.place.error(message) from None


def full_name(name: str) -> str:
    """Return the full name of a key or a parameter that ``--set`` names, possibly by its short form."""
    table = name.partition(".")[0]
    if name in BY_NAME or table in TABLES:
        return name
    if table in GROUPS and "." in name:
        raise InputError(f"--set: unknown key {name!r}{did_you_mean(name, BY_NAME)}")
    return f"{PARAMETERS}.{name}"


def layer_from_set(texts: Iterable[str]) -> Layer:
    """Return the layer of ``--set NAME=VALUE`` options; the last one of a name counts."""
    layer: Layer = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--set: {text!r} is not of the form name=value, such as network.delay='1 ms'")
        layer[full_name(name)] = Given(value.strip(), Place(f"--set {name}"))
    return layer


def layer_from_options(options: Mapping[str, Any]) -> Layer:
    """Return the layer of command-line options: name of the key to value; None means not given."""
    return {
        name: Given(value, Place(BY_NAME[name].option or name))
        for name, value in options.items()
        if value is not None
    }


def layer_from_arguments(arguments: Mapping[str, Any]) -> Layer:
    """Return the layer of keyword arguments: keys with ``_`` for the dot; the two tables are mappings."""
    by_argument = {name.replace(".", "_"): name for name in BY_NAME}
    layer: Layer = {}
    for argument, value in arguments.items():
        if value is None:
            continue
        if argument in TABLES:
            for name, inner in flatten(value):
                layer[f"{argument}.{name}"] = Given(inner, Place(f"{argument}[{name!r}]"))
        elif argument in by_argument:
            layer[by_argument[argument]] = Given(value, Place(argument))
        else:
            hint = did_you_mean(argument, [*by_argument, *TABLES])
            of_workload = f"an option of the workload is given by {WORKLOAD_OPTIONS}={{{argument!r}: …}}"
            raise InputError(f"unknown argument {argument!r}{hint}; {of_workload}")
    return layer


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) of nested tables."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
