"""Frames of pandas, Polars, Arrow and others; and jobs of one: a row a job, with the durations of its tasks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.jobs import JobWorkload, check_counts, make_workload
from workloads.requests import Requests
from workloads.resources import RESOURCES, is_resource

_WANTED = ("submit_s", "durations_s")
_NUMBERS = ("submit_s", "mean_task_s", "num_tasks", "job_id")
_COLUMNS = (*_NUMBERS, "durations_s", "tenant")
_ASKED = ("priority", "gang_nodes", "requested_s")
_NUMBER = (int, float, np.integer, np.floating)
_INTERFACES = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")


def is_frame(value: Any) -> bool:
    """Return whether a value is a frame: of pandas, Arrow, or with Arrow's interface [1]_, as Polars' and DuckDB's are.

    References
    ----------
    .. [1] arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html.
    """
    if is_of_pandas(value):
        return True
    offers = any(hasattr(value, name) for name in _INTERFACES)
    return offers and (hasattr(value, "columns") or hasattr(value, "schema"))  # a single column has neither


def is_of_pandas(value: Any) -> bool:
    """Return whether a value is a frame of pandas, which need not be imported for that."""
    of_pandas = any(kind.__module__.partition(".")[0] == "pandas" for kind in type(value).__mro__)
    return of_pandas and hasattr(value, "columns")


def arrow_table(frame: Any) -> pa.Table:
    """Return a frame that is not of pandas as Arrow's table, mostly on the same memory.

    Raises
    ------
    InputError
        It is not a frame, or Arrow has no type for one of its columns.
    """
    if not is_frame(frame):
        kind = f"{type(frame).__module__}.{type(frame).__qualname__}".removeprefix("builtins.")
        later = "; collect it first" if hasattr(frame, "collect") else ""
        wrong = (
            f"a {kind} is not a frame: want one of pandas, Polars or Arrow, or with __arrow_c_stream__{later}"
        )
        raise InputError(wrong)
    try:
        if hasattr(frame, "__dataframe__") and not any(hasattr(frame, name) for name in _INTERFACES[:2]):
            from pyarrow.interchange import from_dataframe

            return from_dataframe(frame)
        return pa.table(frame)
    except Exception as error:  # of any library
        raise InputError(f"the frame cannot be read: {' '.join(str(error).split())[:160]}") from None


def workload_of_frame(frame: Any, name: str = "frame") -> JobWorkload:
    """Return the jobs of a frame, sorted by arrival.

    Parameters
    ----------
    frame : pandas.DataFrame, pyarrow.Table, or another that `is_frame` knows
        A row a job, with the columns ``submit_s`` (s) and ``durations_s`` (of its tasks, a list of seconds), and if
        wanted ``job_id``, ``mean_task_s`` (as the trace states it), ``tenant``, and ``num_tasks``, which must then be
        the number of durations. Columns of demands, ``priority``, ``gang_nodes`` and ``requested_s`` are as in
        `workloads.requests`; null is not stated.

    Raises
    ------
    InputError
        A column is missing, unknown or wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> workload_of_frame(pd.DataFrame({"submit_s": [0, 5], "durations_s": [[3.0, 4.0], [1.0]]})).num_tasks
    3
    """
    of_pandas = is_of_pandas(frame)
    frame = frame if of_pandas else arrow_table(frame)
    names = Counter(frame.columns if of_pandas else frame.column_names)
    if twice := [column for column, count in names.items() if count > 1]:
        raise InputError(f"the frame has the column {twice[0]!r} {names[twice[0]]} times")
    if not of_pandas:
        found = frame.to_pydict()
    else:
        found = {column: list(frame[column]) for column in names}
        for column in found:
            if column in ("tenant", *_ASKED) or is_resource(str(column)):
                found[column] = list(frame[column].astype(object).where(frame[column].notna(), None))
    if missing := [column for column in _WANTED if column not in found]:
        wanted = "want submit_s, and durations_s with a list for each job"
        raise InputError(f"the frame has no column {missing[0]!r}; {wanted}")
    demands = [column for column in found if is_resource(str(column))]
    if unknown := [column for column in found if column not in (*_COLUMNS, *_ASKED, *demands)]:
        hint = did_you_mean(str(unknown[0]), (*_COLUMNS, *_ASKED, *RESOURCES))
        raise InputError(f"the frame has a column {unknown[0]!r}{hint}")
    asked = {column: _optional(column, found[column]) for column in (*demands, *_ASKED) if column in found}
    requests = Requests({name: asked.pop(name) for name in demands}, {}, **asked)
    found |= {column: _numbers(column, found[column]) for column in _NUMBERS if column in found}
    durations = [_seconds(value, row) for row, value in enumerate(found["durations_s"])]
    counts = [len(own) for own in durations]
    if "num_tasks" in found:
        stated = check_counts(found["num_tasks"], "num_tasks")
        if np.any(stated != counts):
            row = int(np.argmax(stated != counts))
            raise InputError(f"num_tasks of row {row} is {stated[row]}, and durations_s has {counts[row]}")
    tenants = found.get("tenant")
    return make_workload(
        name,
        found["submit_s"],
        counts,
        np.concatenate([*durations, np.zeros(0)]),
        found.get("mean_task_s"),
        job_id=found.get("job_id"),
        tenant=tenants and [None if t is None else str(t) for t in tenants],
        requests=requests,
    )


def _numbers(column: str, values: list[Any]) -> Any:
    """Return a column of numbers; whole ones stay so, however large."""
    kinds, types = ("iu", (int, np.integer)) if column == "job_id" else ("iuf", _NUMBER)
    try:
        numbers = np.asarray(values) if values else np.zeros(0, np.int64)
    except ValueError:  # lists of different lengths
        numbers = np.array(None)
    if numbers.dtype.kind not in kinds or numbers.ndim != 1:
        is_one = (isinstance(value, types) and not isinstance(value, bool) for value in values)
        row = next((row for row, is_number in enumerate(is_one) if not is_number), 0)
        what = "a whole number" if column in ("job_id", "num_tasks") else "a number of seconds"
        raise InputError(f"{column} of row {row} is {values[row]!r}; want {what}")
    return numbers


def _optional(column: str, values: list[Any]) -> np.ndarray:
    """Return a column of numbers, NaN where one is missing."""
    numbers = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if isinstance(value, _NUMBER) and not isinstance(value, bool):
            numbers[row] = value
        elif value is not None:
            raise InputError(
                f"{column} of row {row} is {value!r}; want a number, or none where it is not stated"
            )
    return numbers


def _seconds(value: Any, row: int) -> np.ndarray:
    try:
        seconds = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        seconds = np.zeros((0, 0))
    if seconds.ndim != 1 or len(seconds) == 0:
        raise InputError(f"durations_s of row {row} is {value!r}; want a list of seconds, one for each task")
    return seconds
