"""TPC-H queries as Spark ran them: stages and task durations, made of the profiles of Decima's simulator [1]_.

A folder has two tables. ``tpch_edges.parquet`` has the edges between the stages of each query, 1..22, on data of each
size (``2g``, ``10g``, ...), ``tpch_durations.parquet`` the task durations (ms) of runs with 2 to 100 executors, as
``first_wave`` (an executor's first task of the stage), ``rest_wave`` (its later ones) and ``fresh_durations`` (those of
the first wave whose executor was also new to the job, so that it had to start and warm up), and Spark's numbers of the
stages. Decima's own files hold pickles, which are not read: ``python -m benchmarks.tpch_profiles`` makes these tables
of them.

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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from workloads.arrow import coded_labels, column, described_field
from workloads.dags import DagWorkload, make_dag_workload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import Arrivals
from workloads.generators.demands import draw_demands
from workloads.generators.draws import MAX_JOBS, check_positive, check_share, check_whole, generator
from workloads.groups import refuse_first, rows_of_groups, whole_numbers
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S, Float64Array, Int64Array
from workloads.limits import check_tasks
from workloads.readers.parquet_tables import read_table
from workloads.readers.report import Report
from workloads.stages import check_edges

WARM_UP_S = 1.0
"""The additional time of a new executor if it was not measured: Decima's ``warmup_delay``."""

WAVES = ("first_wave", "rest_wave", "fresh_durations")
MATRIX = re.compile(r"adj_mat_([0-9]{1,6})\.npy")
"""Files of Decima's own layout, a matrix of edges for each query."""
_QUERY = [
    described_field("size", pa.string(), "", "of the data"),
    described_field("query", pa.int64(), "1", "number of the query"),
]
DURATIONS = pa.schema(
    [
        *_QUERY,
        described_field("stage", pa.int64(), "1", "0, 1, 2, ... in the query"),
        described_field("spark_stage", pa.int64(), "1", "Spark's number of the stage"),
        described_field("executors", pa.int64(), "1", "of the run"),
        described_field("wave", pa.string(), "", "first_wave, rest_wave or fresh_durations"),
        described_field("duration_ms", pa.float64(), "ms", "of a task"),
    ]
)
EDGES = pa.schema(
    [
        *_QUERY,
        described_field("parent", pa.int64(), "1", "stage that the other waits for"),
        described_field("child", pa.int64(), "1", "stage that waits"),
    ]
)
TABLES = ("tpch_durations.parquet", "tpch_edges.parquet")
_CONVERT = (
    "in a clone of Emu's repository, python -m benchmarks.tpch_profiles {} NEW_FOLDER makes tables of them"
)

Run = dict[str, Float64Array]


class _Pool(NamedTuple):
    """Durations (s) from which the first and the later tasks of a stage are drawn, and the numbers of these tasks."""

    first: Float64Array
    num_first: int
    later: Float64Array
    num_later: int


class _Stage(NamedTuple):
    """A stage: Spark's number of it, and its runs by number of executors."""

    spark: int
    runs: dict[int, Run]


class _Query(NamedTuple):
    """A query on data of one size: S stages, edges of shape (E, 2), and the runs of each stage by executors."""

    size: str
    number: int
    stage_names: list[str]
    edges: Int64Array
    runs: list[dict[int, Run]]

    @property
    def name(self) -> str:
        return f"{self.size}-q{self.number}"


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
) -> DagWorkload:
    """Read TPC-H profiles, and make a workload of queries that arrive as a Poisson process.

    Parameters
    ----------
    path : str or Path
        The folder with the two tables.
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
    known = _chosen(_read_queries(Path(path)), sizes, queries, path)
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
            "origin": f"TPC-H profiles of Decima: {len(known)} queries of "
            f"{', '.join(dict.fromkeys(query.size for query in known))}",
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
    """Return whether a folder holds the durations, or Decima's own files, which the reader refuses."""
    return (path / TABLES[0]).is_file() or _is_decimas(path)


def _is_decimas(path: Path) -> bool:
    """Return whether a folder, or a folder in it, holds ``adj_mat_….npy`` files."""
    try:
        folders = [path, *(folder for folder in path.iterdir() if folder.is_dir())]
        return any(MATRIX.fullmatch(file.name) for folder in folders for file in folder.iterdir())
    except OSError:
        return False


def _read_queries(path: Path) -> list[_Query]:
    """Return the queries of a folder, smallest size first."""
    if _is_decimas(path) and not (path / TABLES[0]).exists():
        wrong = f"holds Decima's own files, whose pickles are not read; {_CONVERT.format(path)}"
        raise InputError(wrong, file=path)
    files = [path / name for name in TABLES]
    durations, between = (
        read_table(file, schema, (), TABLES)[0]
        for file, schema in zip(files, (DURATIONS, EDGES), strict=True)
    )
    if not durations.num_rows:
        raise InputError("is empty: it has no durations", file=files[0])
    profiles, edges = _profiles(durations, files[0]), _edges_of(between, files[1])
    if strays := sorted(edges.keys() - profiles.keys()):
        size, number = strays[0]
        raise InputError(f"has no durations of query {number} of {size}", file=files[0])
    found = [_query(*own, stages, edges.get(own, []), files) for own, stages in profiles.items()]
    return sorted(found, key=lambda q: (int(re.sub("[^0-9]", "", q.size)[:9] or 0), q.size, q.number))


def _profiles(rows: pa.Table, file: Path) -> dict[tuple[str, int], dict[int, _Stage]]:
    """Return the stages of each query by size and number."""
    known, wave = coded_labels(rows["wave"])
    for code, name in enumerate(known):
        wrong = f"is not a wave; want one of {', '.join(WAVES)}"
        refuse_first((wave == code) & (name not in WAVES), np.array(known)[wave], wrong, "wave", file=file)
    sizes, size = coded_labels(rows["size"])
    query, stage, executors = (
        whole_numbers(column(rows, name), name, least, 10**6, file=file)
        for name, least in (("query", 0), ("stage", 0), ("executors", 1))
    )
    took_ms, wrong = column(rows, "duration_ms"), "is not a duration in milliseconds"
    outside = ~((took_ms >= 0) & (took_ms <= MAX_TIME_S * 1000))  # true for NaN
    refuse_first(outside, took_ms, wrong, "duration_ms", file=file)
    keys = np.stack([size, query, stage, executors, wave])
    order = np.lexsort(keys[::-1])  # stable: durations stay in the order of the file
    firsts = np.flatnonzero((np.diff(keys[:, order], prepend=-1) != 0).any(axis=0))
    found: dict[tuple[str, int], dict[int, _Stage]] = {}
    for key, spark, took_s in zip(
        keys[:, order[firsts]].T.tolist(),
        column(rows, "spark_stage")[order[firsts]].tolist(),
        np.split(took_ms[order] / 1000, firsts[1:]),
        strict=True,
    ):
        stages = found.setdefault((sizes[key[0]], key[1]), {})
        runs = stages.setdefault(key[2], _Stage(spark, {})).runs
        runs.setdefault(key[3], dict.fromkeys(WAVES, np.empty(0)))[known[key[4]]] = took_s
    return found


def _edges_of(rows: pa.Table, file: Path) -> dict[tuple[str, int], list[list[int]]]:
    """Return the edges of each query by size and number."""
    found: dict[tuple[str, int], list[list[int]]] = {}
    for size, query, *edge in zip(*(rows[name].to_pylist() for name in EDGES.names), strict=True):
        found.setdefault((size, query), []).append(edge)
    return found


def _query(
    size: str, number: int, stages: dict[int, _Stage], edges: list[list[int]], files: list[Path]
) -> _Query:
    """Return a query, whose stages must be numbered 0, 1, ... and have a task in each run."""
    of = f"query {number} of {size}"
    if absent := sorted({*range(max(stages) + 1)} - stages.keys()):
        raise InputError(f"{of} has no stage {absent[0]}", file=files[0], field="stage")
    for place, stage in stages.items():
        if empty := next((executors for executors, run in stage.runs.items() if not _num_tasks(run)), None):
            raise InputError(
                f"{of}, stage {place}: has no task in the run with {empty} executors", file=files[0]
            )
    between = np.array(sorted(edges), np.int64).reshape(-1, 2)
    try:
        check_edges(np.insert(between, 0, 0, axis=1), np.array([len(stages)]), [number], files[1])
    except InputError as error:  # the line is one of the query's own
        raise InputError(f"{of}: {error.message}", file=files[1], field=error.field) from None
    labels = [f"{size}-q{number}-{stages[place].spark}" for place in range(len(stages))]
    return _Query(size, number, labels, between, [stages[place].runs for place in range(len(stages))])


def _chosen(
    known: list[_Query],
    sizes: Sequence[str] | str | None,
    queries: Sequence[int] | int | str | None,
    path: str | Path,
) -> list[_Query]:
    """Return the queries that options name, in their order: sizes, and of each the queries."""
    by_size: dict[str, dict[str, _Query]] = {}
    for query in known:
        by_size.setdefault(query.size, {})[str(query.number)] = query
    return [
        _pick(of_size, number, "queries", path)
        for of_size in (_pick(by_size, size, "sizes", path) for size in _listed(sizes, by_size))
        for number in _listed(queries, of_size)
    ]


def _listed(names: Sequence[Any] | int | str | None, known: Iterable[str]) -> list[str]:
    """Return names given as a list, one number, or text with commas; all that are known for None."""
    if names is None:
        return [*known]
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return [str(name) for name in ([names] if isinstance(names, int) else names)]


def _pick(known: dict[str, Any], name: str, field: str, path: str | Path) -> Any:
    if name not in known:
        raise InputError(f"no {name!r}{did_you_mean(name, known)}", file=path, field=field)
    return known[name]


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
