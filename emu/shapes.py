"""The form of what a run writes, looked at when it is read: who can fit a manifest's hashes can write anything.

Tables must have the columns of `emu.columns`, and a summary the parts and values of ``docs/reference/results.md``,
which are told by their names. What is absent where it is asked for is named as the file's fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emu.coflow_metrics import BINS
from emu.columns import COFLOW_FILES, FILES, LIVE_TIMELINE, Column
from emu.keys import COFLOWS, JOBS
from emu.metrics import CLASSES, SIDES
from workloads.errors import InputError

TEXTS = frozenset({"scheduler", "policy", "workload", "clock", "live.verdict"})
LISTS = frozenset({"bottlenecks", "live.notes"})
"""Of texts."""
MOST = 2.0**64
"""Numbers are smaller."""

Form = Mapping[str, Any]
_ANY = "*"
_FLAT: Form = {}  # numbers alone
_METRICS: Form = dict.fromkeys(("wait", "slowdown", "bounded_slowdown"), _FLAT)
_CLASSES: Form = dict.fromkeys(CLASSES, _METRICS)
FORM: Form = {
    JOBS: {**_CLASSES, **dict.fromkeys(SIDES, _CLASSES), "by_constraint": {_ANY: _CLASSES}},
    COFLOWS: {
        **_METRICS,
        "bins": dict.fromkeys(BINS, _METRICS),
        "learning": dict.fromkeys(("latency", "cct_share", "bytes", "bytes_share"), _FLAT),
        "estimates": _FLAT,
    },
    **dict.fromkeys(
        ("drawn", "engine", "counters", "utilisation", "schedulers", "windows", "coordinator"), _FLAT
    ),
    "decision_latency": dict.fromkeys(CLASSES, _FLAT),
    "live": {
        **dict.fromkeys(("message_latency", "scheduler_cpu", "backlog"), _FLAT),
        "lateness": dict.fromkeys(("nodes", "schedulers"), _FLAT),
    },
}
"""The parts of a summary, and their parts; what else is in them is a number, true or false."""
_WANTED = {"scheduler", "workload", "nodes", "seed", "clock", "engine", "counters"}


class Part(dict[str, Any]):
    """A part of a summary that was read: what is asked for and not in it is the file's fault."""

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
        Names what has not the form in which a run writes it.
    """
    checked = _part(summary, FORM, file, "")
    for name in sorted(_WANTED):
        checked[name]
    family = COFLOWS if COFLOWS in checked else JOBS
    (checked[COFLOWS] if family == COFLOWS else checked[JOBS]["all"])["count"]
    return checked


def check_table(name: str, table: pa.Table, family: str, file: Path) -> None:
    """Refuse a table of a run that has not the columns it is written with.

    Parameters
    ----------
    name : str
        One of `emu.results.TABLES`.
    table : pyarrow.Table
    family : str
        ``jobs`` or ``coflows``.
    file : Path
        That it was read from.

    Raises
    ------
    InputError
        Names the column that is not there, of another type, or null.
    """
    columns: Sequence[Column] = (FILES | (COFLOW_FILES if family == COFLOWS else {}))[f"{name}.parquet"]
    if name == "timeline" and LIVE_TIMELINE[0].name in table.column_names:
        columns = (*columns, *LIVE_TIMELINE)
    if name in (JOBS, COFLOWS) and not table.num_rows:
        raise InputError(f"has no {name}", file=file)
    for column in columns:
        found = [field for field in table.schema if field.name == column.name]
        if len(found) != 1:
            wrong = f"is there {len(found)} times" if found else "is not there"
            raise InputError(wrong, file=file, field=column.name)
        if found[0].type != column.type:
            raise InputError(f"is of {found[0].type}; want {column.type}", file=file, field=column.name)
        if not column.nullable and table[column.name].null_count:
            raise InputError("is null in some rows", file=file, field=column.name)
        if pa.types.is_floating(column.type) and not np.isfinite(table[column.name].drop_null()).all():
            raise InputError("is not finite in some rows", file=file, field=column.name)


def _part(values: Any, form: Form, file: Path, name: str) -> Part:
    """Return a part of a summary, checked."""
    if not isinstance(values, dict):
        raise InputError(f"want names and values, not {_told(values)}", file=file, field=name or None)
    checked: dict[str, Any] = {}
    for key, value in values.items():
        place = f"{name}.{key}".lstrip(".")
        if (inner := form.get(key, form.get(_ANY))) is not None:
            checked[key] = _part(value, inner, file, place)
        elif place in LISTS:
            checked[key] = _all(str, value, "a list of texts", file, place)
        elif place == "live.partitions":
            checked[key] = _all(dict, value, "a list of partitions", file, place)
        elif place in TEXTS:
            (checked[key],) = _all(str, [value], "a text", file, place)
        else:
            (checked[key],) = _all(int | float, [value], "a number", file, place)
            if not abs(value) < MOST:
                raise InputError("is out of range", file=file, field=place)
    return Part(checked, file, name)


def _all(kind: Any, values: Any, want: str, file: Path, place: str) -> list[Any]:
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise InputError(f"want {want}, not {_told(values)}", file=file, field=place)
    return values


def _told(value: Any) -> str:
    from workloads.readers.source import shown

    return shown(repr(value[0] if isinstance(value, list) and len(value) == 1 else value))
