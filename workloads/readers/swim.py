"""SWIM's workloads of Facebook's Hadoop clusters (2009, 2010): bytes of map input, shuffle and output by job.

A line is ``job_id submit_s gap_s map_input_bytes shuffle_bytes reduce_output_bytes``, separated by tabs; one of
the published files also has an input path, which is not used. The files have no tasks and no durations: these are made
from the bytes, the tasks as SWIM's own replay makes them (GenerateReplayScript [1]_):

1. Maps: one for each block of the input, of which the last may be smaller; one for a job without input.
2. Reducers: shuffle and output over `reduce_bytes`, rounded, at least one. Where that is more than the machines of the
   traced cluster, a fifth of the machines. With ``map_only`` a job that shuffles nothing has no reducers and its maps
   write the output, as in the trace; SWIM's replay always has a reducer.
3. A map reads its share of the input and writes that share of the shuffle; a reducer reads its share of the
   shuffle and writes its share of the output. A task takes the time of these bytes at `task_bytes_per_s`, and
   `min_task_s` at least.
4. As DAGs, maps read the input of their job, and the edge to its reducers carries the shuffle. The time in which
   reducers read it is part of their durations, by rule 3: a network that moves it as well counts it twice (a larger
   `task_bytes_per_s` makes durations short). The output is not kept as bytes; it counts in durations alone.

The replay also scales sizes to the number of its machines (here the cluster is chosen later), and rounds small inputs
up to a block (here there is a shortest task instead).

References
----------
.. [1] SWIMProjectUCB/SWIM, workloadSuite/README and GenerateReplayScript.java; wiki page "Workloads repository"
   for the machines: 600 in FB-2009, 3000 in FB-2010.
.. [2] Y. Chen, A. Ganapathi, R. Griffith, R. Katz. The Case for Evaluating MapReduce Performance Using Workload
   Suites. MASCOTS 2011.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import numpy as np

from workloads.coflows import MAX_BYTES
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError
from workloads.groups import refuse_first
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array, JobWorkload, check_times, make_workload
from workloads.limits import check_tasks
from workloads.readers.report import Progress, Report
from workloads.readers.samples import first_lines
from workloads.readers.source import read_lines
from workloads.readers.text import Fields

LINE_FORMAT = "job_id submit_s gap_s map_input_bytes shuffle_bytes reduce_output_bytes"

_FIELDS = LINE_FORMAT.split()
_MACHINES = {"fb-2009": 600, "fb-2010": 3000}
_JOB = re.compile(rb"job([0-9]{1,18})")


class _Rows(NamedTuple):
    """The file's columns, one element a job, and the line each is on."""

    job: Int64Array | None
    submit_s: Float64Array
    input_bytes: Float64Array
    shuffle_bytes: Float64Array
    output_bytes: Float64Array
    line: Int64Array


class _Stages(NamedTuple):
    """Maps and reducers, 2 stages a job: numbers of tasks, durations of the last task and of all others."""

    num_tasks: Int64Array
    task_s: Float64Array
    last_s: Float64Array


def read_swim(
    path: str | Path,
    *,
    family: Literal["jobs", "dags"] = "jobs",
    block_bytes: int = 64 << 20,
    reduce_bytes: int = 64 << 20,
    machines: int | None = None,
    map_only: bool = False,
    task_bytes_per_s: float = 10e6,
    min_task_s: float = 10.0,
    report: Report | None = None,
    progress: Progress | None = None,
) -> JobWorkload | DagWorkload:
    """Read a SWIM file, plain or gzip; see the module for how tasks are made of bytes.

    Parameters
    ----------
    family : "jobs" or "dags"
        Jobs of independent tasks, or DAGs of two stages, ``map`` and then ``reduce``, with the bytes that maps read and
        that go from maps to reducers. Tasks are the same.
    block_bytes : int
        Input of a map: 64 MiB as in SWIM's README, a block of the file system of that time.
    reduce_bytes : int
        Shuffle and output of a reducer: 64 MiB as in SWIM's README.
    machines : int, optional
        Of the traced cluster, which limits reducers; by default from the file's name (600 for FB-2009, 3000 for
        FB-2010), no limit for other names.
    map_only : bool
        Whether a job that shuffles nothing has no reducers.
    task_bytes_per_s : float
        Read and written by a task in a second. Not in the traces: 10 MB/s is our choice, a disk of 100 MB/s shared by
        ten tasks.
    min_task_s : float
        The shortest task. Our choice, too: a heartbeat, and the start and end of a Java machine.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong; or an option that is out of its range.
    """
    _check_options(block_bytes, reduce_bytes, machines, task_bytes_per_s, min_task_s)
    report = Report() if report is None else report
    name = Path(path).name.removesuffix(".gz").removesuffix(".tsv")
    if machines is None:
        machines = next((n for prefix, n in _MACHINES.items() if name.lower().startswith(prefix)), None)
    rows = _read_rows(path, report, progress)
    stages = _make_stages(
        rows, block_bytes, reduce_bytes, machines, map_only, task_bytes_per_s, min_task_s, path
    )
    duration_s = np.repeat(stages.task_s, stages.num_tasks)
    duration_s[np.cumsum(stages.num_tasks)[stages.num_tasks > 0] - 1] = stages.last_s[stages.num_tasks > 0]
    metadata = {
        "origin": f"SWIM {Path(path).name}",
        "parameters": f"block_bytes={block_bytes} reduce_bytes={reduce_bytes} machines={machines} "
        f"map_only={map_only} task_bytes_per_s={task_bytes_per_s:g} min_task_s={min_task_s:g}",
        "recipe": "tasks made of bytes: a map a block, reducers by shuffle and output, durations by bytes",
        **report.as_metadata(),
    }
    notes = (
        f"{Path(path).name} has bytes, not tasks: numbers of tasks and durations were made of them",
        *report.notes(),
    )
    if family == "jobs":
        num_tasks = stages.num_tasks.reshape(-1, 2).sum(axis=1)
        return make_workload(
            name,
            rows.submit_s,
            num_tasks,
            duration_s,
            job_id=rows.job,
            metadata=metadata,
            notes=notes,
            origin=path,
        )
    there = stages.num_tasks.reshape(-1, 2) > 0
    shuffling = np.flatnonzero(there[:, 1])
    return make_dag_workload(
        name,
        rows.submit_s,
        there.sum(axis=1),
        stages.num_tasks[there.ravel()],
        duration_s,
        np.stack([shuffling, np.zeros_like(shuffling), np.ones_like(shuffling)], axis=1),
        stage_name=np.tile(["map", "reduce"], len(there))[there.ravel()].tolist(),
        edge_bytes=rows.shuffle_bytes[shuffling],
        input_bytes=np.stack([rows.input_bytes, np.zeros(len(there))], axis=1)[there],
        job_id=rows.job,
        metadata=metadata,
        notes=notes,
        origin=path,
    )


def recognises(path: Path) -> bool:
    """Return whether a file's first line is one of SWIM's."""
    fields = next(iter(first_lines(path)), "").split("\t")
    # A .tr file may have tabs too; it starts with a number.
    return 6 <= len(fields) <= 9 and fields[0][:1].isalpha() and all(f.isdigit() for f in fields[1:6])


def _check_options(
    block_bytes: int, reduce_bytes: int, machines: int | None, task_bytes_per_s: float, min_task_s: float
) -> None:
    for field, value in (
        ("block_bytes", block_bytes),
        ("reduce_bytes", reduce_bytes),
        ("machines", 1 if machines is None else machines),
        ("task_bytes_per_s", task_bytes_per_s),
    ):
        if not 0 < value < np.inf:
            raise InputError(f"{value!r} is not a positive number", field=field)
    if not 0 <= min_task_s <= MAX_TIME_S:
        raise InputError(f"{min_task_s!r} is not a duration in seconds", field="min_task_s")


def _read_rows(path: str | Path, report: Report, progress: Progress | None) -> _Rows:
    """Return the columns of a file; report gaps that differ from those of the submit times."""
    values, ids, lines = array("d"), array("q"), array("q")
    numbered = True
    input_paths = 0
    for number, line in read_lines(path, None, progress):
        fields = line.rstrip(b"\r\n").split(b"\t")
        if not any(fields):
            continue
        try:
            numbers = array("d", map(float, fields[1:6]))
        except ValueError:
            _refuse(path, number, fields)
        if len(numbers) != 5 or any(fields[7:]) or b"_" in b"".join(fields[1:6]):
            _refuse(path, number, fields)
        values.extend(numbers)
        lines.append(number)
        named = _JOB.fullmatch(fields[0])
        numbered = numbered and named is not None
        ids.append(int(named[1]) if named else 0)
        input_paths += len(fields) > 6
    if not lines:
        raise InputError(f"the file holds no job; want lines of {LINE_FORMAT!r}", file=path)
    line_of = np.frombuffer(lines, np.int64)
    submit_s, gap_s, *sizes = np.frombuffer(values).reshape(-1, 5).T
    submit_s = check_times(submit_s, "submit_s", file=path, lines=line_of)
    for field, size in zip(_FIELDS[3:], sizes, strict=True):
        bad = ~((size >= 0) & (size <= MAX_BYTES) & (size == np.floor(size)))
        wrong = "is not a size; want a whole number of bytes, 0 or more"
        refuse_first(bad, size, wrong, field, file=path, lines=line_of)
    report.read("jobs", len(line_of))
    report.read("input paths, which are not used", input_paths)
    off = int(np.count_nonzero(~(np.abs(np.diff(submit_s) - gap_s[1:]) <= 1e-6 + 1e-9 * submit_s[1:])))
    report.repaired("gaps that are not those of the submit times: submit times taken", off)
    if not numbered:
        report.repaired(
            "job names that are not 'job' and a number: jobs numbered by their place", len(line_of)
        )
    job = np.frombuffer(ids, np.int64) if numbered else None
    return _Rows(job, submit_s, sizes[0], sizes[1], sizes[2], line_of)


def _make_stages(
    rows: _Rows,
    block_bytes: int,
    reduce_bytes: int,
    machines: int | None,
    map_only: bool,
    task_bytes_per_s: float,
    min_task_s: float,
    path: str | Path,
) -> _Stages:
    """Return maps (even) and reducers (odd) of the jobs, by the rules of the module."""
    maps = np.maximum(np.ceil(rows.input_bytes / block_bytes), 1)
    moved = rows.shuffle_bytes + rows.output_bytes
    reducers = np.maximum(np.floor(moved / reduce_bytes + 0.5), 1)  # halves up, as Java's Math.round
    if machines is not None:
        reducers = np.where(reducers > machines, max(machines // 5, 1), reducers)
    alone = (rows.shuffle_bytes == 0) & map_only
    reducers[alone] = 0
    tasks = maps + reducers
    check_tasks(float(tasks.sum()), file=path, line=int(rows.line[np.argmax(tasks)]))

    written = np.where(alone, rows.output_bytes, rows.shuffle_bytes)
    growth = np.divide(written, rows.input_bytes, out=np.zeros_like(written), where=rows.input_bytes > 0)
    last = rows.input_bytes - (maps - 1) * block_bytes
    last_bytes = np.where(rows.input_bytes > 0, last * (1 + growth), written)
    map_bytes = block_bytes * (1 + growth)
    reducer_bytes = moved / np.maximum(reducers, 1)

    def seconds(of_maps: Float64Array, of_reducers: Float64Array) -> Float64Array:
        times = np.maximum(np.stack([of_maps, of_reducers], axis=1) / task_bytes_per_s, min_task_s)
        return check_times(times.ravel(), "duration of a task", file=path, lines=np.repeat(rows.line, 2))

    return _Stages(
        np.stack([maps, reducers], axis=1).ravel().astype(np.int64),
        seconds(np.where(maps > 1, map_bytes, 0), reducer_bytes),
        seconds(last_bytes, reducer_bytes),
    )


def _refuse(path: str | Path, number: int, fields: list[bytes]) -> NoReturn:
    """Raise the error for the first field of a line that is wrong."""
    line = Fields(path, number, fields, "\t".join(_FIELDS))
    line.text("job_id")
    for name in _FIELDS[1:]:
        line.number(name, MAX_BYTES)
    line.refuse(
        str(len(fields)), f"the line has {len(fields)} fields; want {line.form!r} and an input path at most"
    )
