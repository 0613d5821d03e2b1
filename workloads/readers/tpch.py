"""TPC-H queries as Spark ran them: stages and task durations in the layout of Decima's simulator [1]_.

A folder has a folder for each size of the data (``2g``, ``10g``, ...), and these for each query q, 1..22,
``adj_mat_q.npy`` (edges from parent to child) and ``task_duration_q.npy``: for each stage the task durations (ms)
of runs with 2 to 100 executors, as ``first_wave`` (an executor's first task of the stage), ``rest_wave`` (its
later ones) and ``fresh_durations`` (those of the first wave whose executor was also new to the job, so that it had
to start and warm up). ``stage_id_to_node_idx_map_q.npy``, which is optional, has Spark's stage numbers.

So the duration of a task depends on the run. A job is assumed to keep `executors` executors from its first stage to its
last; there must be runs with this number. A stage without such a run, because it has fewer tasks, takes its run with
the most executors. With ``durations="sampled"`` each task's duration is drawn as Decima does, with replacement:

1. Tasks after the first `executors` of a stage: from the rest wave, or as 2 if it is empty.
2. The first tasks of a stage with parents: from the first wave without the fresh durations; if that is empty, from the
   one of the run with the next fewer executors that has one, else from the fresh durations.
3. The first tasks of a stage without parents, whose executors are new to the job: from the fresh durations; where
   there are none, as 2 with `WARM_UP_S` added.

With ``durations="recorded"`` a stage has the measured durations of that run, first wave first.

The profiles have no bytes: neither the matrices, which are of 0 and 1, nor the durations say how much stages read and
send, so that edges have none.

References
----------
.. [1] H. Mao, M. Schwarzkopf, S. B. Venkatakrishnan, Z. Meng, M. Alizadeh. Learning Scheduling Algorithms for Data
   Processing Clusters. SIGCOMM 2019; github.com/hongzimao/decima-sim, spark_env/job_generator.py and node.py.
   There the number of executors changes while a job runs, and with numbers between two runs one of both is drawn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from workloads.dags import DagWorkload, make_dag_workload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import Arrivals
from workloads.generators.demands import draw_demands
from workloads.generators.draws import MAX_JOBS, check_positive, check_share, check_whole, generator
from workloads.groups import rows_of_groups
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array
from workloads.limits import check_tasks
from workloads.precedence import check_edges
from workloads.readers.report import Progress, Report
from workloads.readers.restricted_pickle import read_npy

WARM_UP_S = 1.0
"""The additional time of a new executor if it was not measured: Decima's ``warmup_delay``."""

_WAVES = ("first_wave", "rest_wave", "fresh_durations")
_MATRIX = re.compile(r"adj_mat_([0-9]{1,6})\.npy")

Run = dict[str, Float64Array]


class _Pool(NamedTuple):
    """Durations (s) from which the first and the later tasks of a stage are drawn, and the numbers of these tasks."""

    first: Float64Array
    num_first: int
    later: Float64Array
    num_later: int


class _Query(NamedTuple):
    """A query on data of one size: S stages, edges of shape (E, 2), and the runs of each stage by executors."""

    name: str
    stage_names: list[str]
    edges: Int64Array
    runs: list[dict[int, Run]]


def read_tpch(
    path: str | Path,
    *,
    sizes: Sequence[str] | str | None = None,
    queries: Sequence[int] | int | str | None = None,
    jobs: int | None = None,
    mean_gap_s: float = 25.0,
    executors: int = 50,
    durations: Literal["sampled", "recorded"] = "sampled",
    demands: bool = False,
    demand_model: Literal["uniform", "by-place"] = "uniform",
    diversity: float = 1.0,
    seed: int = DEFAULT_SEED,
    report: Report | None = None,
    progress: Progress | None = None,
) -> DagWorkload:
    """Read TPC-H profiles, and make a workload of queries that arrive as a Poisson process.

    Parameters
    ----------
    path : str or Path
        The folder with the sizes, or that of one size.
    sizes, queries : optional
        Such as ``["2g", "10g"]`` and ``[1, 9]`` (or ``"2g,10g"``, ``9``); by default all.
    jobs : int, optional
        The number of queries that arrive, each drawn uniformly, as in Decima; by default each of them arrives once, in
        the order of sizes and queries.
    mean_gap_s : float
        Mean gap between arrivals; 25 s as in Decima.
    executors : int
        Executors of a job, which select the runs; 50 as in Decima's examples.
    durations : "sampled" or "recorded"
        How a task's duration is chosen; see the module.
    demands : bool
        Make up demands of tasks; by default demands are null, as the profiles have none.
    demand_model : "uniform" or "by-place"
        ``uniform``: one core each, and memory uniform in (0, 1] for each stage of a query that arrives. ``by-place``:
        all six resources by the stage's place in its query (`workloads.generators.demands`), drawn once for each
        stage of each query, so that a query that arrives twice needs the same. Both are our own choice.
    diversity : float
        Spread of the demands ``by-place``, 0..1.
    seed : int
        Of arrivals, choice of queries, durations and demands.

    Raises
    ------
    InputError
        Names the file that is wrong, or the option that is out of its range.
    """
    check_positive("mean_gap_s", mean_gap_s)
    check_whole("executors", executors, 1, 1_000_000)
    if jobs is not None:
        check_whole("jobs", jobs, 1, MAX_JOBS)
    if demand_model != "uniform" and not demands:
        raise InputError("goes with demands=true: otherwise demands are not known", field="demand_model")
    check_share("diversity", diversity)
    rng = generator(seed)
    report = Report() if report is None else report
    folders = {folder.resolve().name: folder for folder in _choose_sizes(Path(path), sizes)}
    known = [
        _read_query(folder, number, progress)
        for folder in folders.values()
        for number in _choose_queries(folder, queries)
    ]
    report.read("queries", len(known))
    report.read("stages", sum(len(query.runs) for query in known))
    _check_executors(known, executors, path)
    chosen = range(len(known)) if jobs is None else rng.integers(len(known), size=jobs).tolist()
    drawn = [known[i] for i in chosen]
    submit_s = Arrivals().times(rng, len(drawn), mean_gap_s)
    if submit_s[-1] > MAX_TIME_S:
        raise InputError(f"the last query would arrive after {submit_s[-1]:.2g} s", field="mean_gap_s")
    by_stage = _durations(rng, known, drawn, executors, sampled=durations == "sampled")
    needs, origin = _demands(rng, known, chosen, demand_model, diversity) if demands else ({}, "not known")
    model = f" demand_model={demand_model} diversity={diversity:g}" * (demands and demand_model != "uniform")
    return make_dag_workload(
        Path(path).resolve().name,
        submit_s,
        [len(query.runs) for query in drawn],
        [len(tasks) for tasks in by_stage],
        np.concatenate(by_stage),
        np.concatenate([np.insert(query.edges, 0, job, axis=1) for job, query in enumerate(drawn)]),
        stage_name=[name for query in drawn for name in query.stage_names],
        demands=needs,
        metadata={
            "origin": f"TPC-H profiles of Decima: {len(known)} queries of {', '.join(folders)}",
            "parameters": f"jobs={jobs} mean_gap_s={mean_gap_s:g} executors={executors} "
            f"durations={durations} demands={demands} seed={seed}{model}",
            "recipe": f"Poisson arrivals; durations {durations} from runs with {executors} executors",
            "demands": origin,
            **report.as_metadata(),
        },
        notes=(f"demands of tasks are {origin}", *report.notes()),
        origin=path,
    )


def recognises(path: Path) -> bool:
    """Return whether a folder, or its first subfolder by name, holds ``adj_mat_….npy`` files."""
    try:
        return bool(_numbers(path) or _sizes_in(path))
    except OSError:
        return False


def _sizes_in(path: Path) -> list[Path]:
    """Return the folders below that hold queries, smallest size first."""
    folders = [folder for folder in path.iterdir() if folder.is_dir() and _numbers(folder)]
    return sorted(folders, key=lambda f: (int(re.sub("[^0-9]", "", f.name)[:9] or 0), f.name))


def _numbers(folder: Path) -> list[int]:
    found = (_MATRIX.fullmatch(file.name) for file in folder.iterdir())
    return sorted(int(match[1]) for match in found if match)


def _choose_sizes(path: Path, sizes: Sequence[str] | str | None) -> list[Path]:
    try:
        there = [path] if _numbers(path) else _sizes_in(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    if not there:
        raise InputError("holds no adj_mat_1.npy, nor folders such as 2g that do", file=path)
    if sizes is None:
        return there
    by_name = {folder.resolve().name: folder for folder in there}
    return [_pick(by_name, size, "sizes", path) for size in _listed(sizes)]


def _choose_queries(folder: Path, queries: Sequence[int] | int | str | None) -> list[int]:
    there = _numbers(folder)
    if queries is None:
        return there
    by_name = {str(number): number for number in there}
    return [_pick(by_name, number, "queries", folder) for number in _listed(queries)]


def _listed(names: Sequence[Any] | int | str) -> list[str]:
    """Return names given as a list, one number, or text with commas."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return [str(name) for name in ([names] if isinstance(names, int) else names)]


def _pick(known: dict[str, Any], name: str, field: str, path: Path) -> Any:
    if name not in known:
        raise InputError(f"no {name!r}{did_you_mean(name, known)}", file=path, field=field)
    return known[name]


def _read_query(folder: Path, number: int, progress: Progress | None) -> _Query:
    matrix_file, durations_file = folder / f"adj_mat_{number}.npy", folder / f"task_duration_{number}.npy"
    matrix = read_npy(matrix_file, progress)
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError("is not a square matrix", file=matrix_file)
    if matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all():
        raise InputError("holds something else than 0 and 1", file=matrix_file)
    edges = np.argwhere(matrix == 1)
    # Here too, so that the error names the file.
    check_edges(np.insert(edges, 0, 0, axis=1), np.array([len(matrix)]), [number], matrix_file)
    stages = read_npy(durations_file, progress)
    if not isinstance(stages, dict) or set(stages) != set(range(len(matrix))):
        wrong = f"is not a dictionary of the stages 0..{len(matrix) - 1} that {matrix_file.name} has"
        raise InputError(wrong, file=durations_file)
    name = f"{folder.resolve().name}-q{number}"
    labels = _spark_stages(folder / f"stage_id_to_node_idx_map_{number}.npy", len(matrix), progress)
    runs = [_read_runs(stages[i], i, durations_file) for i in range(len(matrix))]
    return _Query(name, [f"{name}-{label}" for label in labels], edges, runs)


def _spark_stages(path: Path, count: int, progress: Progress | None) -> list[int]:
    """Return Spark's number of each stage; its place if there is no file of them."""
    if not path.exists():
        return list(range(count))
    stage_of = read_npy(path, progress)
    right = isinstance(stage_of, dict) and all(isinstance(i, int | np.integer) for i in stage_of.values())
    if not right or sorted(stage_of.values()) != list(range(count)):
        raise InputError(f"is not a dictionary of stage ids to 0..{count - 1}", file=path)
    return sorted(stage_of, key=lambda stage: int(stage_of[stage]))


def _read_runs(stage: Any, number: int, path: Path) -> dict[int, Run]:
    """Return the runs of a stage by number of executors, durations in seconds."""

    def refuse(wrong: str) -> NoReturn:
        raise InputError(f"stage {number} {wrong}", file=path)

    if not isinstance(stage, dict) or set(stage) != set(_WAVES):
        refuse(f"is not a dictionary of {', '.join(_WAVES)}")
    if not all(isinstance(stage[wave], dict) for wave in _WAVES):
        refuse("has a wave that is not a dictionary of executors to durations")
    keys = stage["first_wave"].keys()
    if not keys or not all(isinstance(key, int) and key > 0 for key in keys):
        refuse("has runs without a number of executors")
    runs: dict[int, Run] = {}
    for key in sorted(keys):
        runs[key] = {}
        for wave in _WAVES:
            if not isinstance(durations := stage[wave].get(key), list):
                refuse(f"has no {wave} of {key} executors")
            if not all(
                isinstance(d, int | float | np.integer) and 0 <= d <= MAX_TIME_S * 1000 for d in durations
            ):
                refuse(f"has in {wave} of {key} executors what is not a duration in milliseconds")
            runs[key][wave] = np.array(durations, np.float64) / 1000
        if _num_tasks(runs[key]) == 0:
            refuse(f"has no task in the run with {key} executors")
    return runs


def _check_executors(queries: list[_Query], executors: int, path: str | Path) -> None:
    """Refuse a number of executors without a run of a stage that has runs with more."""
    stages = [runs for query in queries for runs in query.runs]
    keys = {key for runs in stages for key in runs}
    there = sorted(key for key in keys if all(key in runs or key > max(runs) for runs in stages))
    if executors not in there:
        wrong = f"no run with {executors} executors; there are {', '.join(map(str, there))}"
        raise InputError(wrong, file=path, field="executors")


def _run(runs: dict[int, Run], executors: int) -> Run:
    return runs.get(executors) or runs[max(runs)]


def _num_tasks(run: Run) -> int:
    return len(run["first_wave"]) + len(run["rest_wave"])


def _durations(
    rng: np.random.Generator, known: list[_Query], drawn: list[_Query], executors: int, *, sampled: bool
) -> list[Float64Array]:
    """Return the durations of the tasks of each stage of the queries that were drawn."""
    num_tasks = {q.name: sum(_num_tasks(_run(runs, executors)) for runs in q.runs) for q in known}
    check_tasks(sum(num_tasks[query.name] for query in drawn), field="jobs")
    if not sampled:
        runs = (_run(runs, executors) for query in drawn for runs in query.runs)
        return [np.concatenate([run["first_wave"], run["rest_wave"]]) for run in runs]
    pools = {query.name: _pools(query, executors) for query in known}
    return [_sampled(rng, pool) for query in drawn for pool in pools[query.name]]


def _demands(
    rng: np.random.Generator, known: list[_Query], chosen: Sequence[int], model: str, diversity: float
) -> tuple[dict[str, Float64Array], str]:
    """Return the demands of each stage of the drawn queries, and in words how they are made up."""
    if model == "uniform":
        count = sum(len(known[i].runs) for i in chosen)
        uniform = {"cpu_cores": np.ones(count), "memory": 1.0 - rng.random(count)}
        return uniform, "made up: 1 core a task, memory uniform in (0, 1] by stage"
    sizes = np.array([len(query.runs) for query in known])
    source, sink = (
        np.concatenate(
            [~np.isin(np.arange(n), query.edges[:, end]) for n, query in zip(sizes, known, strict=True)]
        )
        for end in (1, 0)
    )
    rows = rows_of_groups(sizes, np.array(chosen))
    drawn = draw_demands(rng, source, sink, diversity)
    made_up = f"made up: six resources by the stage's place in its query, diversity {diversity:g}"
    return {name: values[rows] for name, values in drawn.items()}, made_up


def _sampled(rng: np.random.Generator, pool: _Pool) -> Float64Array:
    return np.concatenate([rng.choice(pool.first, pool.num_first), rng.choice(pool.later, pool.num_later)])


def _pools(query: _Query, executors: int) -> list[_Pool]:
    """Return the pools of each stage's durations, by the rules of the module."""
    pools = []
    for stage, runs in enumerate(query.runs):
        run = _run(runs, executors)
        warm = _warm_first_wave(runs, executors)
        rest, fresh = run["rest_wave"], run["fresh_durations"]
        if stage in query.edges[:, 1]:
            first = [warm, fresh, rest]
        else:
            first = [fresh, warm + WARM_UP_S, rest]
        num_first = min(executors, _num_tasks(run))
        num_later = _num_tasks(run) - num_first
        # A run has a task, so one of these is not empty.
        pools.append(_Pool(_first_of(first), num_first, _first_of([rest, warm, fresh]), num_later))
    return pools


def _first_of(choices: list[Float64Array]) -> Float64Array:
    return next(durations for durations in choices if len(durations))


def _warm_first_wave(runs: dict[int, Run], executors: int) -> Float64Array:
    """Return the first wave without the fresh durations; if empty, that of the next run with fewer executors."""
    most = executors if executors in runs else max(runs)
    for key in sorted((key for key in runs if key <= most), reverse=True):
        warm = Counter(runs[key]["first_wave"].tolist())
        warm.subtract(runs[key]["fresh_durations"].tolist())
        if left := [*warm.elements()]:
            return np.array(left)
    return np.empty(0)
