"""Checks of the form of a run's files when they are read: a forged manifest may have matching hashes.

Tables must have the columns of `emu.columns`, and a summary the parts and values of ``docs/reference/results.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emu.families.family import Family
from emu.families.registry import families, family_of_summary
from workloads.arrow import optional_column
from workloads.errors import InputError
from workloads.readers.source import shown

TEXTS = frozenset(
    {"scheduler", "policy", "workload", "instance", "batch", "clock", "live.verdict", "live.exchange"}
)
LISTS = frozenset({"bottlenecks", "live.notes"})
"""Of texts."""
MOST = 2.0**64
"""Numbers are smaller."""

Form = Mapping[str, Any]
_ANY = "*"
_FLAT: Form = {}  # numbers alone
FORM: Form = {
    **dict.fromkeys(
        (
            "drawn",
            "engine",
            "counters",
            "utilisation",
            "schedulers",
            "windows",
            "coordinator",
            "programs",
            "decisions",
        ),
        _FLAT,
    ),
    "decision_latency": dict.fromkeys(("all", "short", "long"), _FLAT),
    "live": {
        **dict.fromkeys(("message_latency", "scheduler_cpu", "backlog"), _FLAT),
        "lateness": dict.fromkeys(("nodes", "schedulers"), _FLAT),
    },
}
"""The parts of a summary of any family, and their parts; other values are numbers, true or false."""
_WANTED = {"scheduler", "workload", "nodes", "seed", "clock", "engine", "counters"}


class Part(dict[str, Any]):
    """A part of a summary that was read: a missing key is an error of the file."""

    def __init__(self, values: Mapping[str, Any], file: Path, name: str):
        super().__init__(values)
        self.file, self.name = file, name

    def __missing__(self, key: str) -> Any:
        raise InputError("is not there", file=self.file, field=f"{self.name}.{key}".lstrip("."))


def checked_summary(summary: Any, file: Path) -> dict[str, Any]:
    """Return the summary of a run, read from a file.

    Raises
    ------
    InputError
        A part does not have the form in which a run writes it.
    """
    forms = {family.name: family.form for family in families()}
    checked = _part(summary, {**FORM, **forms}, file, "")
    for name in sorted(_WANTED):
        checked[name]
    own = [family for family in families() if family.name in checked]
    if not own:
        raise InputError("is not there", file=file, field=families()[0].name)
    heads = family_of_summary(checked).heads
    of_all = checked[heads]["all"] if "all" in forms[heads] else checked[heads]
    of_all["count"]
    return checked


def check_table(name: str, table: pa.Table, family: Family, file: Path) -> None:
    """Refuse a table that does not have the columns with which a run writes it.

    Raises
    ------
    InputError
        A column is missing, repeated, of another type, null where it must not be, or holds text that is not UTF-8.
    """
    if name not in family.tables:
        raise InputError(f"is not a table of a run of {family.name}", file=file)
    form = family.tables[name]
    columns = form.columns + tuple(column for column in form.further if column.name in table.column_names)
    if name == family.heads and not table.num_rows:
        raise InputError(f"has no {name}", file=file)
    for column in columns:
        found = [field for field in table.schema if field.name == column.name]
        if len(found) != 1:
            wrong = f"is there {len(found)} times" if found else "is not there"
            raise InputError(wrong, file=file, field=column.name)
        if found[0].type != column.type:
            raise InputError(f"is of type {found[0].type}; want {column.type}", file=file, field=column.name)
        if pa.types.is_string(column.type):
            _check_is_text(table[column.name], column.name, file)
        if not column.nullable and table[column.name].null_count:
            raise InputError("is null in some rows", file=file, field=column.name)
        if pa.types.is_floating(column.type):
            finite = np.count_nonzero(np.isfinite(optional_column(table, column.name)))
            if finite + table[column.name].null_count < table.num_rows:
                raise InputError("is not finite in some rows", file=file, field=column.name)


def _check_is_text(values: pa.ChunkedArray, name: str, file: Path) -> None:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError("is not UTF-8 text in some rows", file=file, field=name) from None


def _part(values: Any, form: Form, file: Path, name: str) -> Part:
    """Return a part of a summary, checked."""
    if not isinstance(values, dict):
        raise _another("names and values", values, file, name)
    checked = {}
    for key, value in values.items():
        place = f"{name}.{key}".lstrip(".")
        inner = form.get(key, form.get(_ANY))
        if inner is None and (wanted := _lacks(place, value)):
            raise _another(wanted, value, file, place)
        checked[key] = value if inner is None else _part(value, inner, file, place)
    return Part(checked, file, name)


def _lacks(place: str, value: Any) -> str:
    """Return what a value at a place in a summary should be; empty if it is that."""
    if place in TEXTS:
        return "" if isinstance(value, str) else "a text"
    if place in LISTS:
        return "" if isinstance(value, list) and all(isinstance(v, str) for v in value) else "a list of texts"
    if place == "live.partitions":
        return (
            "" if isinstance(value, list) and all(isinstance(v, dict) for v in value) else "a list of parts"
        )
    if not isinstance(value, int | float):
        return "a number"
    return "" if abs(value) < MOST else f"a number below {MOST:g}"


def _another(wanted: str, value: Any, file: Path, place: str) -> InputError:
    return InputError(f"want {wanted}, not {shown(str(value))}", file=file, field=place or None)
