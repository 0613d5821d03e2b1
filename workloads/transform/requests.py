"""Jobs with demands and priorities drawn for them: what traces without them, and generators, lack.

The model ``google-2011`` is measured on the first shard of ``task_events`` of Google's trace of 2011 [1]_: the 914 jobs
that are submitted after the trace has begun (those that run when it begins are services, most of them). Cores are those
of a machine of 16, which is 1.00 in the trace; memory is a share of that of the largest machine. Quantiles of both are
interpolated in between; they go together by ranks, correlated as measured. Priorities have the measured shares, and
are drawn by themselves: their rank correlation with the demand of cores is 0.06.

References
----------
.. [1] C. Reiss, J. Wilkes, J. L. Hellerstein. Google cluster-usage traces: format + schema, version 2.1, 2014.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workloads.arrow import from_optional
from workloads.coflows import CoflowWorkload
from workloads.dags import DagWorkload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError, printable
from workloads.generators.clustered import LEVELS, stratified_levels
from workloads.generators.draws import generator
from workloads.groups import apportion
from workloads.hints import did_you_mean
from workloads.jobs import Float64Array, Int64Array
from workloads.requests import read_requests, replace_requests, without_demands
from workloads.resources import check_demands
from workloads.stages import ALWAYS, stages_schema
from workloads.transform.history import recorded
from workloads.transform.primitives import JobsOrDags, with_tables
from workloads.units import parse_share

GOOGLE = "google-2011"
_CORES = (0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.5, 1.0, 1.0, 1.948, 3.8512)
_MEMORY = (
    0.000062,
    0.000155,
    0.000155,
    0.000155,
    0.002728,
    0.007767,
    0.0159,
    0.04773,
    0.04773,
    0.099584,
    0.1335,
)
"""Quantiles over jobs at `LEVELS`, of what a task needs."""
_CORRELATION = 0.584
"""Of the normal variables whose ranks cores and memory follow: 2 sin(pi / 6 * 0.566); the ranks' is 0.566."""
_PRIORITIES = {0: 167, 1: 202, 2: 295, 8: 160, 9: 90}
"""Jobs by priority; those of the trace are 0 to 11, the larger goes first."""
_DEMANDS, _PRIORITY = 0xDE3A2D, 0xDE3A2E
"""Streams of a seed: with the same seed, which is the default, steps draw nothing that goes together."""


def demands(workload: JobsOrDags, model: str = GOOGLE, seed: int = DEFAULT_SEED) -> JobsOrDags:
    """Return the workload with demands drawn for its jobs (for the stages of DAGs), in place of those it has.

    All tasks of a job, or of a stage, need the same.

    Parameters
    ----------
    workload : JobWorkload or DagWorkload
    model : str
        ``google-2011``, or demands and their shares of the jobs, ``"cpu_cores=1 memory_gib=4: 70%, cpu_cores=8: 10%"``,
        which are met to within one job; the others then state none. Without a share all jobs have the demands.
    seed : int

    Raises
    ------
    InputError
        The workload has coflows, or the model is neither a name nor demands of resources and shares up to 1 in all.
    """
    if isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} has coflows, which have no demands of nodes")
    of = "stages" if isinstance(workload, DagWorkload) else "jobs"
    count = int(getattr(workload, of).num_rows)
    drawn = _draw(generator(seed, _DEMANDS), model, count)
    changed: dict[str, pa.Table] = {}
    if isinstance(workload, DagWorkload):
        changed["stages"] = _stages_with(workload.stages, drawn)
    else:
        asked = read_requests(workload.jobs, workload.tasks)._replace(demands=drawn, task_demands={})
        changed["jobs"], changed["tasks"] = replace_requests(workload.jobs, workload.tasks, asked)
    stating = int(np.any([~np.isnan(values) for values in drawn.values()], axis=0).sum())
    outcome = f"{stating:,} of {count:,} {of} state demands of {', '.join(map(printable, drawn))}"
    return recorded(with_tables(workload, **changed), "demands", {"model": model, "seed": seed}, outcome)


def priorities(workload: JobsOrDags, model: str = GOOGLE, seed: int = DEFAULT_SEED) -> JobsOrDags:
    """Return the workload with priorities drawn for its jobs, in place of those it has.

    Parameters
    ----------
    workload : JobWorkload or DagWorkload
    model : str
        ``google-2011``, or priorities and their shares of the jobs, ``"0: 60%, 5: 30%, 9: 5%"``, which are met to
        within one job; the others then state none.
    seed : int

    Raises
    ------
    InputError
        The workload has coflows, or the model is neither a name nor whole numbers and shares up to 1 in all.
    """
    if isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} has coflows, which have weights and no priorities")
    if model == GOOGLE:
        values, shares = (
            [*map(float, _PRIORITIES)],
            [n / sum(_PRIORITIES.values()) for n in _PRIORITIES.values()],
        )
    else:
        values, shares = _values(model)
    of_job = _apportioned(generator(seed, _PRIORITY), workload.num_jobs, shares)
    asked = read_requests(workload.jobs, workload.tasks)._replace(
        priority=np.array([*values, np.nan])[of_job]
    )
    jobs, _ = replace_requests(workload.jobs, workload.tasks, asked)
    counts = np.bincount(of_job, minlength=len(values) + 1)
    outcome = ", ".join(f"{n:,} of priority {value:.0f}" for value, n in zip(values, counts, strict=False))
    return recorded(with_tables(workload, jobs=jobs), "priorities", {"model": model, "seed": seed}, outcome)


def _draw(rng: np.random.Generator, model: str, count: int) -> dict[str, Float64Array]:
    """Return the demands of `count` jobs or stages by resource, NaN where none is stated."""
    if model == GOOGLE:
        first, second = rng.standard_normal(count), rng.standard_normal(count)
        second = _CORRELATION * first + np.sqrt(1 - _CORRELATION**2) * second
        return {
            name: np.round(np.interp(stratified_levels(rng, normal), LEVELS, table), 6)
            for name, normal, table in (("cpu_cores", first, _CORES), ("memory", second, _MEMORY))
        }
    vectors, shares = _vectors(model)
    of_row = _apportioned(rng, count, shares)
    names = dict.fromkeys(name for vector in vectors for name in vector)
    return {name: np.array([*(v.get(name, np.nan) for v in vectors), np.nan])[of_row] for name in names}


def _stages_with(stages: pa.Table, drawn: dict[str, Float64Array]) -> pa.Table:
    found = check_demands(drawn, stages.num_rows, "stages", None, ALWAYS)
    bare = without_demands(stages)
    schema = stages_schema([*bare.column_names, *found])
    return pa.Table.from_arrays(
        [from_optional(found[name]) if name in found else bare[name] for name in schema.names], schema=schema
    )


def _apportioned(rng: np.random.Generator, count: int, shares: list[float]) -> Int64Array:
    """Return which of the shares each row has, in random order; what is left has the place behind the last."""
    if sum(shares) > 1 + 1e-9:
        raise InputError(f"the shares add up to {sum(shares):.6g}, more than the whole", field="model")
    parts = apportion(count, [*shares, max(1 - sum(shares), 0.0)])
    return rng.permutation(np.repeat(np.arange(len(parts)), parts))


def _vectors(model: str) -> tuple[list[dict[str, float]], list[float]]:
    """Return the demands of a model's text, and their shares."""
    vectors, shares = [], []
    wanted = f"want {GOOGLE}, or demands and shares such as 'cpu_cores=1 memory_gib=4: 70%, cpu_cores=8: 30%'"
    for part in model.split(","):
        text, colon, share = part.rpartition(":")
        alone = not colon or "=" in share  # attr:gpus=1 has a colon of its own
        if alone and "," in model:
            raise InputError(f"{part.strip()!r} has no share; {wanted}", field="model")
        vector: dict[str, float] = {}
        for word in (part if alone else text).split():
            name, equals, amount = word.partition("=")
            if not equals or name in vector:
                hint = "" if "=" in model else did_you_mean(model, [GOOGLE])
                raise InputError(f"{word!r} is not resource=amount, each once{hint}; {wanted}", field="model")
            vector[name] = _number(amount)
            if np.isnan(vector[name]):
                raise InputError(f"{amount!r} is not an amount of {name}", field="model")
        if not vector:
            raise InputError(f"{part.strip()!r} has no demand; {wanted}", field="model")
        vectors.append(vector)
        shares.append(1.0 if alone else parse_share(share.strip(), "model"))
        try:
            check_demands({name: [amount] for name, amount in vector.items()}, 1, "demands", None)
        except InputError as error:
            raise InputError(f"{part.strip()}: {error.message}", field="model") from None
    return vectors, shares


def _values(model: str) -> tuple[list[float], list[float]]:
    """Return the priorities of a model's text, and their shares."""
    shares: dict[float, float] = {}
    for part in model.split(","):
        text, colon, share = part.partition(":")
        value = _number(text)
        if not colon or value != np.rint(value) or value in shares:
            hint = "" if ":" in model else did_you_mean(model, [GOOGLE])
            wanted = f"want {GOOGLE}, or priorities, each once, and shares such as '0: 60%, 9: 40%'"
            raise InputError(
                f"{part.strip()!r} is not a whole number and a share{hint}; {wanted}", field="model"
            )
        shares[value] = parse_share(share.strip(), "model")
    return [*shares], [*shares.values()]


def _number(text: str) -> float:
    """Return a number; NaN for another text."""
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan
