r"""Calls of functions as text, each with what comes of it: `test_calls.py` runs all files of tests/workloads/calls.

    # tests.workloads.transform.test_transform_deadlines        modules whose samples the calls may name
    deadlines(four(), most=0.5)
    !! field most: 0.5 is below least, 1.0                      an InputError
    apportion([1, 2], 9)
    == [3, 6]                                                   a value
    time_slice(five(), 601.0, 603.0)
    >> jobs.job_id: 8 7                                         or lines: of a text, of figures, of a workload's
                                                                tables, notes and metadata
    >> jobs.submit_s: 0 1

Functions and registries are those of `workloads` and `clusters`; a call is made in an empty folder. Of columns of many
values the sum is written, and the sum of each value times its place, so that a change of any of them shows.

    python -m tests.workloads.calls FILE.txt …                  # writes what the calls give now into the files
"""

from __future__ import annotations

import contextlib
import importlib
import math
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.clusters.cluster_files import loaded
from tests.workloads.family_examples import a_flow, coflows_of, dags_of
from tests.workloads.reading_cases import column_text
from workloads.errors import InputError
from workloads.transform.primitives import family

FILES = sorted((Path(__file__).parent / "calls").glob("*.txt"))
_LONGEST = 500
_MANY = 24
"""Values of which a column is written as sums."""


@cache
def functions() -> dict[str, Any]:
    """Return the public functions of `workloads` and `clusters` by name, and what their calls need."""
    found: dict[str, Any] = {
        "nan": math.nan,
        "inf": math.inf,
        "Path": Path,
        "math": math,
        "np": np,
        "pa": pa,
        "loaded": loaded,
    }
    found |= {"coflows_of": coflows_of, "dags_of": dags_of, "a_flow": a_flow}
    for package in ("workloads", "clusters"):
        top = importlib.import_module(package)
        for module in pkgutil.walk_packages(top.__path__, f"{package}."):
            own = importlib.import_module(module.name)
            for name, value in vars(own).items():
                own_code = getattr(value, "__module__", "") == own.__name__
                if not name.startswith("_") and (name.isupper() or (callable(value) and own_code)):
                    found.setdefault(name, value)
    return found


def parse(path: Path) -> list[tuple[str, list[str]]]:
    """Return the calls of a file, and the lines of what comes of each."""
    calls: list[tuple[str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(("!! ", "== ", ">>")):
            calls[-1][1].append(line)
        elif line and not line.startswith("# "):
            calls.append((line, []))
    return calls


def names(path: Path) -> dict[str, Any]:
    """Return the names that the calls of a file may use."""
    found = dict(functions())
    for module in path.read_text(encoding="utf-8").splitlines()[0].split()[1:]:
        found |= vars(importlib.import_module(module))
    return found


def outcome(call: str, names: dict[str, Any]) -> list[str]:
    """Return what comes of a call, in the lines of a file."""
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            made = eval(call, names)
    except InputError as error:
        return [_cropped(f"!! {error}")]
    if isinstance(made, dict) and any(isinstance(value, dict) for value in made.values()):
        return [_cropped(f">> {line}") for line in _flat(made)]
    if isinstance(made, str) and "\n" in made:
        return [f">> {line}".rstrip() for line in made.splitlines()]
    if not hasattr(made, "fingerprint"):
        return [_cropped(f"== {_value(made)}")]
    own = family(made)
    tables = {name: getattr(made, name) for name in (own.name, *own.parts)}
    if own.name == "coflows":
        tables["ports"] = made.ports
    lines = [
        f"{name}.{column}: {_sums(table[column])}"
        for name, table in tables.items()
        for column in table.column_names
        if table[column].null_count < len(table)
        and (name, column) not in (("tasks", "job_id"), ("flows", "coflow_id"))
    ]
    about = {"name": made.name, **made.metadata}
    if made.notes:  # which say these again
        about = {name: value for name, value in about.items() if name not in ("read", "repaired", "dropped")}
    lines += [f"{name}: {value}" for name, value in about.items()] + [f"note: {note}" for note in made.notes]
    return [_cropped(f">> {line}") for line in lines]


def _flat(made: dict[str, Any], of: str = "") -> Iterator[str]:
    """Return the values of a dictionary of dictionaries, a line each."""
    for key, value in made.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{of}{key}.")
        else:
            yield f"{of}{key}: {_value(value)}"


def _cropped(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} … {len(line)} characters"


def _sums(values: pa.ChunkedArray) -> str:
    if len(values) <= _MANY or pa.types.is_string(values.type):
        return column_text(values)
    numbers = np.nan_to_num(np.array(values.to_pylist(), float))
    places = np.arange(1.0, len(numbers) + 1)
    return f"{len(values)} values, sum {numbers.sum():.9g}, by place {(numbers * places).sum():.9g}"


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_value, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_value(inner)}" for key, inner in value.items()) + "}"
    return f"{value:.12g}" if isinstance(value, float) else repr(value)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument).resolve()
        head = path.read_text(encoding="utf-8").splitlines()[0]
        blocks = ["\n".join([call, *outcome(call, names(path))]) for call, _ in parse(path)]
        path.write_text("\n".join([head, *blocks]) + "\n", encoding="utf-8")
