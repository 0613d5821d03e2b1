"""The formats that workloads are read from and written to, known by name or by what a path holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.readers import (
    alibaba_2018,
    coflow_benchmark,
    coflowlib,
    google_2011,
    google_2019,
    parquet,
    swim,
    tpch,
    tr,
)

PARQUET = "parquet"


@dataclass(frozen=True)
class Format:
    """A format of workloads.

    Attributes
    ----------
    about : str
        What it is, in a line.
    family : str
        ``jobs``, ``dags`` or ``coflows``, or several.
    read : callable
        Path and options to a workload.
    recognises : callable
        Whether a path holds this format, by names and first bytes.
    convert : callable, optional
        Path and folder: reads it straight into a Parquet folder, in memory that does not grow with the source.
    write : callable, optional
        Workload and path.
    """

    about: str
    family: str
    read: Callable[..., Any]
    recognises: Callable[[Path], bool]
    convert: Callable[..., None] | None = None
    write: Callable[..., None] | None = None


def _holds_tables(path: Path) -> bool:
    return any((path / name).exists() for files in parquet.FAMILIES.values() for name in files)


def _is_called_tr(path: Path) -> bool:
    return path.name.endswith((".tr", ".tr.gz"))


# In the order in which a path is looked at: what takes a closer look comes last.
FORMATS = {
    PARQUET: Format(
        "Emu's own: a folder of Parquet files", "jobs, dags, coflows", parquet.read_folder, _holds_tables,
        write=parquet.write_parquet,
    ),
    "tr": Format(
        "Hawk's and Eagle's: a line a job, plain or gzip", "jobs", tr.read_tr, _is_called_tr, write=tr.write_tr
    ),
    "google-2011": Format(
        "Google's cluster trace of 2011: task_events and other tables as CSV", "jobs",
        google_2011.read_google_2011, google_2011.recognises, google_2011.convert_google_2011,
    ),
    "google-2019": Format(
        "Google's cluster traces of 2019: exported tables as Parquet or JSON lines", "jobs",
        google_2019.read_google_2019, google_2019.recognises, google_2019.convert_google_2019,
    ),
    "alibaba-2018": Format(
        "Alibaba's cluster trace of 2018: batch_task, batch_instance as CSV", "dags",
        alibaba_2018.read_alibaba_2018, alibaba_2018.recognises, alibaba_2018.convert_alibaba_2018,
    ),
    "tpch": Format(
        "TPC-H queries on Spark, in the layout of Decima's simulator", "dags", tpch.read_tpch, tpch.recognises
    ),
    "coflowlib": Format(
        "CoflowLib's instances: text, or one of an archive", "coflows", coflowlib.read_coflowlib,
        coflowlib.recognises, write=coflowlib.write_coflowlib,
    ),
    "coflow-benchmark": Format(
        "Facebook's coflows: mappers and reducers, a line a coflow", "coflows",
        coflow_benchmark.read_coflow_benchmark, coflow_benchmark.recognises,
        write=coflow_benchmark.write_coflow_benchmark,
    ),
    "swim": Format(
        "SWIM's samples of Facebook: bytes of a job's input, shuffle, output", "jobs, dags", swim.read_swim,
        swim.recognises,
    ),
}  # fmt: skip
"""The formats by name."""


def find_format(name: str) -> Format:
    """Return the format of a name.

    Raises
    ------
    InputError
        There is none.
    """
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}{did_you_mean(name, FORMATS)}", field="format")
    return FORMATS[name]


def recognise(path: Path) -> str:
    """Return the name of the format that a path which exists holds.

    Where none knows it, a folder is taken for Parquet and a file for ``tr``: their readers say what is wrong.
    """
    for name, known in FORMATS.items():
        if known.recognises(path):
            return name
    return PARQUET if os.path.isdir(path) else "tr"


def format_by_ending(path: Path) -> str:
    """Return the name of the format that a path is written in, where nobody says it."""
    return "tr" if _is_called_tr(path) else PARQUET
