"""Writing the text format of DAGs that `workloads.readers.dag_text` reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from workloads.arrow import column, optional_column
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.groups import refuse_first
from workloads.readers.dag_text import NODE_CORES
from workloads.readers.text import number_text, write_text
from workloads.stages import one_to_one_edges

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
