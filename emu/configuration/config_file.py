"""Configuration files: TOML read with the line of every key, and written so that it can be run again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from emu.configuration.config import Given, Layer, Place, flatten, layer_from_set
from emu.configuration.keys import BY_NAME, GROUPS, PARAMETERS, TABLES, VARIANTS, WORKLOAD_OPTIONS
from workloads.hints import did_you_mean
from workloads.small_files import parse_toml, read_small_text
from workloads.units import parse_bandwidth

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_\-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_\-]+|"[^"]*"|'[^']*'))*)\s*="""
)


def layer_from_file(path: str | Path) -> Layer:
    """Read a TOML file of configuration keys; unknown keys are an `InputError`.

    Relative paths (with a slash or a suffix) are looked for beside the file first, then from the current folder.
    """
    layer: Layer = {}
    for name, given in read_toml(path):
        check_name(name, given.place)
        layer[name] = Given(beside(path, name, given.value), given.place)
    return layer


def read_toml(path: str | Path) -> list[tuple[str, Given]]:
    """Return (dotted name, value and its place) of everything in a TOML file, whatever the names are."""
    text = read_small_text(path)
    lines = key_lines(text)
    return [
        (name, Given(value, Place(name, str(path), _line_of(name, lines))))
        for name, value in flatten(parse_toml(text, path))
    ]


def code_of(path: str | Path, sets: Iterable[str] = ()) -> list[tuple[str, Place]]:
    """Return the schedulers of a file and of ``--set`` that are code, ``FILE.py:CLASS`` or ``MODULE:CLASS``."""
    given = [*read_toml(path), *layer_from_set(sets).items()]
    found = []
    for name, (value, place) in given:
        if name == "scheduler" or name.endswith(".scheduler"):
            texts = value if isinstance(value, list) else str(value).split(",")
            found += [(text.strip(), place) for text in map(str, texts) if ":" in text]
    return found


def check_name(name: str, place: Place) -> None:
    """Refuse a name that is neither a key nor in the tables of parameters and options."""
    if (name not in BY_NAME and name.partition(".")[0] not in TABLES) or name in TABLES:
        raise place.error(_unknown(name))


def beside(path: str | Path, name: str, value: Any) -> Any:
    """Return the value of a key with relative paths, or those in a list, looked for beside the file first."""
    if name.startswith(f"{VARIANTS}.") and name.endswith(".scheduler"):
        return _beside(path, value)
    if name not in BY_NAME or BY_NAME[name].kind not in ("path", "workload", "names"):
        return value
    return [_beside(path, v) for v in value] if isinstance(value, list) else _beside(path, value)


def key_lines(text: str) -> dict[str, int]:
    """Return the 1-based line of each key and table header of a TOML text that is written one key a line."""
    lines: dict[str, int] = {}
    header = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _HEADER.match(line):
            header = _plain(match[1]) + "."
            lines.setdefault(header[:-1], number)
        elif match := _KEY.match(line):
            lines.setdefault(header + _plain(match[1]), number)
    return lines


def write_config(
    values: Mapping[str, Any],
    parameters: Mapping[str, Any],
    options: Mapping[str, Any],
    variants: Mapping[str, Any],
) -> str:
    """Return the TOML text of a fully resolved configuration; reading it gives the same values.

    `values` are keys in base units, `parameters` those of each scheduler, `options` those of the workload's generator
    or reader, `variants` the scheduler and the settings of each variant. What is None is left out.
    """
    document: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or name not in BY_NAME:
            continue
        group, _, inner = name.rpartition(".")
        table = document.setdefault(group, {}) if group else document
        table[inner] = as_toml(name, value)
    tables = {
        WORKLOAD_OPTIONS: without_none(options),
        VARIANTS: variants,
        PARAMETERS: {name: without_none(own) for name, own in parameters.items() if own},
    }
    document |= {name: table for name, table in tables.items() if table}
    return tomli_w.dumps(document)


def without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as TOML can hold it."""
    return {name: value for name, value in table.items() if value is not None}


def as_toml(name: str, value: Any) -> Any:
    """Return a value of a key as it is written: durations and speeds with their unit, one scheduler as plain text."""
    kind = BY_NAME[name].kind
    if kind in ("duration", "cutoff") and not isinstance(value, str):
        return f"{value!r} s"  # repr reads back to the same float
    if kind == "steps" or (kind == "seeds" and isinstance(value, tuple)):
        return list(value)
    if kind == "bandwidth":
        text = f"{value / 1e9:g} Gbps"
        return text if parse_bandwidth(text, name) == value else f"{value!r} bps"
    if kind == "names":
        names = [str(v) for v in value]
        return names if len(names) > 1 or "," in names[0] else names[0]  # text is divided at commas
    return str(value) if kind in ("path", "workload") else value


def _unknown(name: str) -> str:
    if name in GROUPS:
        inner = [key.partition(".")[2] for key in BY_NAME if key.startswith(f"{name}.")]
        return f"{name!r} is a table, with the keys {', '.join(inner)}"
    if name in TABLES:
        return f"{name!r} is a table"
    if name.partition(".")[0] == "sweep":
        return "stands in files of sweeps alone: emu sweep FILE, with --dry-run to check it"
    return f"unknown key {name!r}{did_you_mean(name, [*BY_NAME, *TABLES])}"


def _beside(path: str | Path, value: Any) -> Any:
    """Return a relative path as one beside the configuration file if that exists; bare words are names."""
    if not isinstance(value, str) or "\0" in value or not ("/" in value or Path(value).suffix):
        return value
    file, colon, name = value.partition(".py:")  # a user's scheduler is FILE.py:CLASS
    beside = Path(path).parent / (file + ".py" if colon else value)
    if Path(value).is_absolute() or not os.path.exists(beside):
        return value
    return f"{beside}:{name}" if colon else str(beside)


def _line_of(name: str, lines: Mapping[str, int]) -> int | None:
    """Return the line of a key, or of the nearest table around it (an inline table has one line for all)."""
    while name:
        if name in lines:
            return lines[name]
        name = name.rpartition(".")[0]
    return None


def _plain(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))
