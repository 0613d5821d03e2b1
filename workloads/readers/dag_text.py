"""The text format of DAGs of the simulators of Graphene and Carbyne [1]_: one DAG after the other.

::

    # name                                   of the DAG; optional
    stages dag_id arrival_s queue            all but the first are optional
    stage duration_s r1 r2 ... tasks         a line for each stage; the demands are those of each task
    edges
    parent child kind                        a line for each edge, with the names of its stages

Blank lines are ignored. The id of a DAG without one is its place in the file, from 1 on, as in those simulators;
without an arrival it arrives at time 0. The queue becomes the job's tenant. The DAG's name becomes a prefix of the
names of its stages (``q7/Map1``), from which the writer takes it.

Demands are shares (0..1) of a machine, as in the simulators; a share of cores is multiplied by `node_cores`, and a
demand of a user's own attribute is an amount. The format does not name the resources: the simulators have six, and the
order of `RESOURCES` is an assumption. Files that Emu writes state resources and cores in their first line (``# emu
resources=cpu_cores,memory node_cores=20``), which those simulators take for a name.

The kind of an edge is ``ata`` (all-to-all) or ``o2o`` (one-to-one); `KINDS` has other spellings. All tasks of a stage
have its duration.

References
----------
.. [1] R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan. Altruistic Scheduling in Multi-Resource Clusters.
   OSDI 2016; the public code of its simulator, StageDag.readDags.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from workloads.arrow import column, optional_column
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError
from workloads.groups import refuse_first
from workloads.jobs import MAX_TIME_S
from workloads.limits import check_tasks, most_tasks
from workloads.readers.report import Progress, Report
from workloads.readers.samples import first_lines
from workloads.readers.source import read_lines, shown
from workloads.readers.text import Fields, is_number, number_text, write_text
from workloads.resources import RESOURCES, check_resource
from workloads.stages import ALL_TO_ALL, ONE_TO_ONE, check_edges, one_to_one_edges

HEAD_FORMAT = "stages dag_id arrival_s queue"
EDGE_FORMAT = "parent child kind"
NODE_CORES = 20.0
"""Cores of a machine in the evaluation of Carbyne (section 5.1)."""
KINDS = {
    **dict.fromkeys(("ata", ALL_TO_ALL, "all_to_all", "scatter_gather", "broadcast"), ALL_TO_ALL),
    **dict.fromkeys(("o2o", ONE_TO_ONE, "one_to_one"), ONE_TO_ONE),
}
"""Spellings of the kinds of edges, in lower case: those of the simulators, of Emu, and of Tez."""

STATED = re.compile(r"emu resources=(\S+) node_cores=(\S+)")
"""The first line of a file that Emu wrote, after the #."""

Lines = Iterator[tuple[int, list[bytes]]]


@dataclass
class _Read:
    """The columns of DAGs, stages and edges that have been read."""

    job_id: list[int] = field(default_factory=list)
    submit_s: list[float] = field(default_factory=list)
    tenant: list[str | None] = field(default_factory=list)
    num_stages: list[int] = field(default_factory=list)
    stage_name: list[str] = field(default_factory=list)
    duration_s: list[float] = field(default_factory=list)
    num_tasks: list[int] = field(default_factory=list)
    demands: list[list[float]] = field(default_factory=list)
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    edge_kind: list[str] = field(default_factory=list)
    edge_line: list[int] = field(default_factory=list)
    total_tasks: int = 0


def read_dag_text(
    path: str | Path,
    *,
    resources: Sequence[str] | str | None = None,
    node_cores: float | None = None,
    report: Report | None = None,
    progress: Progress | None = None,
) -> DagWorkload:
    """Read a file of DAGs, plain or gzip.

    Parameters
    ----------
    resources : sequence of str, or text with commas, optional
        The resources of a stage's demands, in order; by default those that the file states, else the six of
        `workloads.resources.RESOURCES`.
    node_cores : float, optional
        Cores of the machine of which a demand of cores is a share; by default as the file states, else 20.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong.
    """
    report = Report() if report is None else report
    lines = ((number, f) for number, text in read_lines(path, None, progress) if (f := text.split()))
    first = next(lines, None)
    if first is None:
        raise InputError(f"the file is empty; want DAGs that begin with {HEAD_FORMAT!r}", file=path)
    stated = STATED.fullmatch(_comment(first[1]))
    names = _resources(resources, stated, path)
    cores = _cores(node_cores, stated, path)
    read, seen = _Read(), dict[int, int]()
    most, _ = most_tasks(path)
    name = ""
    for line in itertools.chain([first], lines):
        if line[1][0].startswith(b"#"):
            name = "" if STATED.fullmatch(comment := _comment(line[1])) else comment
        else:
            _read_dag(path, line, lines, name, names, cores, read, seen)
            name = ""
            if read.total_tasks > most:
                check_tasks(read.total_tasks, file=path, line=line[0], field="tasks")
    if not read.job_id:
        raise InputError(f"the file holds no DAG; want one that begins with {HEAD_FORMAT!r}", file=path)
    return _made(path, read, names, cores, report)


def recognises(path: Path) -> bool:
    """Return whether the first lines of a file are a DAG: its numbers, and a stage with a name and numbers.

    Where a comment names it, numbers may be wrong, so that an error names their line.
    """
    lines = first_lines(path)[:-1]
    rows = [fields for line in lines if (fields := line.split()) and not fields[0].startswith("#")]
    if len(rows) < 2 or len(rows[0]) > 4 or not is_number(rows[0][0]):
        return False
    if lines[0].startswith("#"):
        return _is_stage(rows[1]) or not is_number(rows[1][0])
    is_count = re.fullmatch("[1-9][0-9]{0,8}", rows[0][0])
    return bool(is_count) and any(
        _is_stage(row) and not is_number(row[0]) for row in rows[1 : 1 + int(rows[0][0])]
    )


def _is_stage(row: list[str]) -> bool:
    return len(row) >= 4 and all(map(is_number, row[1:])) and row[-1].isdigit()


def _comment(fields: list[bytes]) -> str:
    """Return the text of a comment line after the #, "" for another line."""
    text = b" ".join(fields)
    return text[1:].decode("utf-8", "backslashreplace").strip() if text.startswith(b"#") else ""


def _resources(
    given: Sequence[str] | str | None, stated: re.Match[str] | None, path: str | Path
) -> list[str]:
    """Return the names of the resources: as given, else as the file states, else all six."""
    if given is None:
        given = stated[1] if stated else [*RESOURCES]
    names = [name.strip() for name in (given.split(",") if isinstance(given, str) else given)]
    for name in names:
        check_resource(name, file=path, field="resources")
    if len(set(names)) < len(names) or not names:
        raise InputError("want one or more resources, each once", file=path, field="resources")
    return names


def _cores(given: float | None, stated: re.Match[str] | None, path: str | Path) -> float:
    if given is None and stated is not None:
        try:
            given = float(stated[2])
        except ValueError:
            raise InputError(f"{shown(stated[2])} is not a number", file=path, field="node_cores") from None
    cores = NODE_CORES if given is None else given
    if not 0 < cores < math.inf:
        raise InputError(f"{cores!r} is not a number above 0", file=path, field="node_cores")
    return cores


def _read_dag(
    path: str | Path,
    first: tuple[int, list[bytes]],
    lines: Lines,
    name: str,
    resources: list[str],
    node_cores: float,
    read: _Read,
    seen: dict[int, int],
) -> None:
    """Read a DAG from its first line on into `read`."""
    head = Fields(path, *first, HEAD_FORMAT)
    count = head.whole("stages", 1, 2**40)
    job, given = len(read.job_id), len(first[1])
    job_id = head.whole("dag_id", 0, 2**63 - 1) if given > 1 else job + 1
    submit_s = head.number("arrival_s", MAX_TIME_S) if given > 2 else 0.0
    tenant = _text(head, "queue") if given > 3 else None
    head.end()
    if job_id in seen:
        head.refuse("dag_id", f"DAG {job_id} occurs already in line {seen[job_id]}")
    seen[job_id] = head.line
    place: dict[str, int] = {}
    form = f"stage duration_s {' '.join(resources)} tasks"
    line = head
    for line in _next_lines(lines, count, path, head.line, f"stages of DAG {job_id}", form):
        _read_stage(line, place, resources, node_cores, read)
    read.stage_name += [f"{name}/{stage}" if name else stage for stage in place]
    line = next(
        _next_lines(lines, 1, path, line.line, f"lines with how many edges DAG {job_id} has", "edges")
    )
    num_edges = line.whole("edges", 0, 2**40)
    line.end()
    tasks = read.num_tasks[-count:]
    there: set[tuple[int, int]] = set()
    for edge in _next_lines(lines, num_edges, path, line.line, f"edges of DAG {job_id}", EDGE_FORMAT):
        _read_edge(edge, job, place, tasks, there, read)
    read.job_id.append(job_id)
    read.submit_s.append(submit_s)
    read.tenant.append(tenant)
    read.num_stages.append(count)
    read.total_tasks += sum(tasks)


def _next_lines(
    lines: Lines, count: int, path: str | Path, before: int, what: str, form: str
) -> Iterator[Fields]:
    """Yield the next `count` lines; refuse a file that ends before."""
    for n in range(count):
        line = next(lines, None)
        if line is None:
            wrong = f"the file ends after {n} of {count} {what}"
            raise InputError(wrong, file=path, line=before + 1, field=form.split()[0])
        before = line[0]
        yield Fields(path, *line, form)


def _text(line: Fields, name: str) -> str:
    try:
        return line.text(name).decode()
    except UnicodeDecodeError:
        line.refuse(name, "is not UTF-8")


def _read_stage(
    line: Fields, place: dict[str, int], resources: list[str], node_cores: float, read: _Read
) -> None:
    name = _text(line, "stage")
    if name.startswith("#"):
        line.refuse("stage", f"{shown(name)} in place of a stage; want {line.form!r}")
    if name in place:
        line.refuse("stage", f"{shown(name)} occurs twice")
    place[name] = len(place)
    read.duration_s.append(line.number("duration_s", MAX_TIME_S))
    demand = []
    for resource in resources:
        most = 1.0 if resource in RESOURCES else 1e18
        if resource == "cpu_cores":
            demand.append(float(line.exact(resource, most) * Fraction(node_cores)))
        else:
            demand.append(line.number(resource, most))
    read.demands.append(demand)
    read.num_tasks.append(line.whole("tasks", 1, 2**40))
    line.end()


def _read_edge(
    line: Fields,
    job: int,
    place: dict[str, int],
    tasks: list[int],
    there: set[tuple[int, int]],
    read: _Read,
) -> None:
    ends = []
    for which in ("parent", "child"):
        name = _text(line, which)
        if name not in place:
            line.refuse(which, f"{shown(name)} is not a stage of this DAG")
        ends.append(place[name])
    parent, child = ends
    kind = KINDS.get(_text(line, "kind").lower())
    line.end()
    if kind is None:
        line.refuse("kind", f"is not a kind of edge; want one of {', '.join(KINDS)}")
    if parent == child:
        line.refuse("child", "a stage is its own parent")
    if (parent, child) in there:
        line.refuse("child", "the edge occurs twice")
    if kind == ONE_TO_ONE and tasks[parent] != tasks[child]:
        unlike = f"between {tasks[parent]} and {tasks[child]} tasks; want equally many"
        line.refuse("kind", f"{ONE_TO_ONE} {unlike}")
    there.add((parent, child))
    read.edges.append((job, parent, child))
    read.edge_kind.append(kind)
    read.edge_line.append(line.line)


def _made(
    path: str | Path, read: _Read, resources: list[str], node_cores: float, report: Report
) -> DagWorkload:
    """Return the workload; the error about stages that wait for each other names the line of an edge."""
    edges = np.array(read.edges, np.int64).reshape(-1, 3)
    try:
        check_edges(edges, np.array(read.num_stages), read.job_id, path)
    except InputError as error:
        line = None if error.line is None else read.edge_line[error.line - 1]
        raise InputError(error.message, file=path, line=line, field=error.field) from None
    tasks = np.array(read.num_tasks)
    report.read("DAGs", len(read.job_id))
    report.read("stages", len(tasks))
    report.read("edges", len(edges))
    return make_dag_workload(
        Path(path).name.removesuffix(".gz").removesuffix(".txt"),
        read.submit_s,
        read.num_stages,
        tasks,
        np.repeat(read.duration_s, tasks),
        edges,
        stage_mean_s=read.duration_s,
        stage_name=read.stage_name,
        demands=dict(zip(resources, np.array(read.demands).T, strict=True)),
        edge_kind=read.edge_kind,
        job_id=read.job_id,
        tenant=read.tenant,
        metadata={
            "origin": f"text of DAGs {Path(path).name}",
            "resources": ",".join(resources),
            "node_cores": repr(float(node_cores)),
            **report.as_metadata(),
        },
        notes=report.notes(),
        origin=path,
    )


# Writing the format.

_WORD = re.compile(r"[^\s#]\S*")


def write_dag_text(workload: DagWorkload, path: str | Path) -> None:
    """Write a file of DAGs, gzip when the name ends in ``.gz``; it reads back as the same DAGs.

    Demands of cores are divided by `node_cores` of the file that was read, else by 20. Stages without a name are called
    ``s0``, ``s1``. Numbers have the shortest form that reads back to the same float.

    Raises
    ------
    InputError
        The format does not hold tasks of a stage that differ in duration, demands that are not known of all stages or
        are more than a machine has, constraints, classes of jobs, names with blanks or used twice in a DAG, ids below
        0. Or the file cannot be written.
    """
    cores = _node_cores(workload)
    _check_holds(workload, path)
    write_text(path, [*_lines(workload, path, cores)])  # all first: a refusal leaves no file


def _node_cores(workload: DagWorkload) -> float:
    try:
        cores = float(workload.metadata.get("node_cores", NODE_CORES))
    except ValueError:
        return NODE_CORES
    return cores if 0 < cores < np.inf else NODE_CORES


def _refuse(path: str | Path, field: str, wrong: str) -> NoReturn:
    raise InputError(f"{wrong}; write a Parquet folder instead", file=path, field=field)


def _check_holds(workload: DagWorkload, path: str | Path) -> None:
    """Refuse a workload that the format does not hold; names are checked when they are written."""
    for name in ("short_cutoff_s", "long_partition"):
        if getattr(workload, name) is not None:
            _refuse(path, name, f"the text format of DAGs has no {name}")
    if workload.job_constraints.num_rows or workload.jobs["constraint"].null_count < workload.num_jobs:
        _refuse(path, "constraint", "the text format of DAGs has no constraints")
    if not workload.resources:
        _refuse(
            path,
            "demands",
            "the text format of DAGs wants a demand of one resource at least, and none is known",
        )
    for name in workload.resources:
        if unknown := int(workload.stages[name].null_count):
            _refuse(path, name, f"the demand of {unknown:,} of {workload.num_stages:,} stages is not known")
    ids = column(workload.jobs, "job_id")
    refuse_first(ids < 0, ids, "is below 0; the text format of DAGs has no such ids", "job_id", file=path)
    duration_s, means = column(workload.tasks, "duration_s"), column(workload.stages, "mean_task_s")
    first = workload.arrays().stage_first_task[:-1]
    least, most = np.minimum.reduceat(duration_s, first), np.maximum.reduceat(duration_s, first)
    if (unlike := least < most).any():
        wrong = f"tasks of {int(unlike.sum()):,} stages differ in duration"
        _refuse(path, "duration_s", f"{wrong}, and the text format of DAGs has one for a stage")
    if (np.abs(means - most) > 1e-9 * most).any():
        _refuse(path, "mean_task_s", "a stage's stated mean duration is not that of its tasks")
    if "cpu_cores" in workload.resources:
        cores, most_cores = optional_column(workload.stages, "cpu_cores"), _node_cores(workload)
        wrong = f"cores are more than the {most_cores:g} of a machine in this format"
        refuse_first(cores > most_cores, cores, wrong, "cpu_cores", file=path)


def _lines(workload: DagWorkload, path: str | Path, node_cores: float) -> Iterator[str]:
    yield f"# emu resources={','.join(workload.resources)} node_cores={node_cores!r}\n"
    if not all(_WORD.fullmatch(name) and "," not in name for name in workload.resources):
        _refuse(path, "demands", "a resource has a comma in its name")
    arrays, stages = workload.arrays(), workload.stages
    of_cores = cache(partial(number_text, scale=Fraction(node_cores)))
    texts = [of_cores if name == "cpu_cores" else repr for name in workload.resources]
    columns = [optional_column(stages, name).tolist() for name in workload.resources]
    names = stages["name"].to_pylist()
    tasks = column(stages, "num_tasks").tolist()
    duration_s = column(workload.tasks, "duration_s")[arrays.stage_first_task[:-1]].tolist()
    one_to_one = one_to_one_edges(workload.edges).tolist()
    ends = zip(
        column(workload.edges, "parent").tolist(), column(workload.edges, "child").tolist(), strict=True
    )
    edges = list(ends)
    first_edge = arrays.first_child[arrays.first_stage].tolist()
    heads = zip(
        workload.jobs["job_id"].to_pylist(),
        workload.jobs["submit_s"].to_pylist(),
        workload.jobs["tenant"].to_pylist(),
        strict=True,
    )
    for job, (job_id, submit_s, tenant) in enumerate(heads):
        first, end = int(arrays.first_stage[job]), int(arrays.first_stage[job + 1])
        dag, own = _names(names[first:end], job_id, path)
        if tenant is not None and not _WORD.fullmatch(tenant):
            _refuse(path, "tenant", f"{tenant!r} of job {job_id} is not one word")
        if dag:
            yield f"# {dag}\n"
        yield f"{end - first} {job_id} {submit_s!r}{'' if tenant is None else f' {tenant}'}\n"
        for stage, name in enumerate(own, start=first):
            needs = (text(c[stage]) for c, text in zip(columns, texts, strict=True))
            yield f"{name} {duration_s[stage]!r} {' '.join(needs)} {tasks[stage]}\n"
        yield f"{first_edge[job + 1] - first_edge[job]}\n"
        for at in range(first_edge[job], first_edge[job + 1]):
            parent, child = edges[at]
            yield f"{own[parent]} {own[child]} {'o2o' if one_to_one[at] else 'ata'}\n"


def _names(given: list[str | None], job_id: int, path: str | Path) -> tuple[str, list[str]]:
    """Return the name of a DAG, "" for none, and the names of its stages without this prefix."""
    names = [f"s{stage}" if name is None else name for stage, name in enumerate(given)]
    dags = {name.rpartition("/")[0] for name in names}
    dag = dags.pop() if len(dags) == 1 else ""
    if dag != " ".join(dag.split()) or not dag.isprintable() or dag.startswith("emu "):
        dag = ""
    own = [name.removeprefix(f"{dag}/") for name in names] if dag else names
    if not all(map(_WORD.fullmatch, own)):  # as of the stage "a/"
        dag, own = "", names
    wrong = next((name for name in own if not _WORD.fullmatch(name)), None)
    if wrong is not None:
        _refuse(path, "name", f"{wrong!r}, a stage of job {job_id}, is not one word")
    if len(set(own)) < len(own):
        _refuse(path, "name", f"two stages of job {job_id} have the same name")
    return dag, own
