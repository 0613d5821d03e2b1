"""Jobs with constraints drawn for them, by a model of how often jobs ask for what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.arrow import column
from workloads.coflows import CoflowWorkload
from workloads.constraints import (
    MAX_PRICE,
    ConstraintSet,
    constraint_sets,
    kind_of,
    set_of_job,
    set_text,
    with_constraints,
)
from workloads.dags import DagWorkload, JobsOrDags
from workloads.defaults import DEFAULT_SEED, PRICE
from workloads.errors import InputError
from workloads.generators.constraints import Model, draw, expected, find_model, sets_of_bits
from workloads.generators.draws import generator
from workloads.hints import did_you_mean
from workloads.jobs import JobWorkload
from workloads.transform.history import history, parse_step, recorded

_JOBS = ("short", "long", "all")


class Frequency(NamedTuple):
    """The frequency of a constraint, or of several that are drawn together.

    Attributes
    ----------
    constraints : ConstraintSet
    jobs : int
        Jobs that have them.
    drawn : float
        Their share of the jobs that constraints were drawn for (of all jobs, where they were not drawn).
    asked : float | None
        What the model says that share should be.
    """

    constraints: ConstraintSet
    jobs: int
    drawn: float
    asked: float | None


def constrain(
    workload: JobsOrDags,
    model: str | Mapping[str, Any] = "phoenix",
    combined: bool | None = None,
    jobs: str | None = None,
    soft: str | None = None,
    price: float = PRICE,
    seed: int = DEFAULT_SEED,
) -> JobsOrDags:
    """Return the workload with constraints drawn for its jobs, in place of those it has.

    Parameters
    ----------
    workload : JobWorkload or DagWorkload
    model : str or mapping
        ``phoenix``, ``sharma``, or constraints and their shares of the jobs, as text (``"cores >= 16: 10%,
        spread-racks: 0.05"``) or as a mapping. See `workloads.generators.constraints`.
    combined : bool, optional
        Whether a job may have several constraints. By default as the model has it: in ``sharma`` it may.
    jobs : str, optional
        Which jobs to draw for: ``short`` (up to the workload's cut-off), ``long`` or ``all``. By default as the
        model has it: ``short`` in ``phoenix``, as in its authors' simulator, and ``all`` otherwise.
    soft : str, optional
        Attributes whose constraints may be relaxed, with commas between: ``clock, port``. By default none, but
        for constraints that state it themselves.
    price : float
        Factor on the task durations of a job whose constraint is relaxed.
    seed : int

    Raises
    ------
    InputError
        An option that is out of range, a price where nothing is soft, or short jobs of a workload without a cut-off.
    """
    if isinstance(workload, CoflowWorkload):
        raise InputError(f"{workload.name} has coflows; constraints are of jobs")
    if price != PRICE and not soft:
        raise InputError("goes with soft attributes, and there are none", field="price")
    of = find_model(model)
    together = of.combined if combined is None else combined
    which = of.jobs if jobs is None else jobs
    items = _softened(of, soft, price)
    eligible = _eligible(workload, which)
    bits = np.zeros(workload.num_jobs, np.int64)
    bits[eligible] = draw(of, together, int(eligible.sum()), generator(seed))
    replaced = workload.num_jobs - workload.jobs["constraint"].null_count
    made = with_constraints(workload, *sets_of_bits(items, bits))
    options = {
        "model": of.name,
        "combined": together,
        "jobs": which,
        "soft": soft,
        "price": price if soft else None,
        "seed": seed,
    }
    of_which = "" if which == "all" else f" {which}"
    outcome = (
        f"{made.job_constraints.num_rows:,} of {int(eligible.sum()):,}{of_which} jobs constrained, of a "
        f"workload of {workload.num_jobs:,}"
    )
    if replaced:
        outcome += f"; constraints of {replaced:,} jobs replaced"
    return recorded(made, "constrain", options, outcome, note=replaced > 0)


def frequencies(workload: JobWorkload | DagWorkload) -> list[Frequency]:
    """Return how often jobs have each constraint, beside what was asked for where they were drawn.

    What was asked for is known from the workload's history: its last ``constrain``.
    """
    sets = constraint_sets(workload)
    of_job = set_of_job(workload)
    lines = [parse_step(line) for line in history(workload)]
    drawn_by = next((given for name, given in reversed(lines) if name == "constrain"), None)
    if drawn_by is None:
        items: tuple[ConstraintSet, ...] = tuple(dict.fromkeys((c,) for of_set in sets for c in of_set))
        asked: list[float | None] = [None] * len(items)
        eligible = np.ones(workload.num_jobs, bool)
    else:
        model = find_model(drawn_by["model"])
        items = _softened(model, drawn_by.get("soft"), float(drawn_by.get("price", PRICE)))
        asked = [*expected(model, drawn_by["combined"] == "yes").tolist()]
        eligible = _eligible(workload, drawn_by["jobs"])
    jobs = np.bincount(of_job[eligible & (of_job >= 0)], minlength=len(sets))
    members = [set(constraints) for constraints in sets]
    total = max(int(eligible.sum()), 1)
    found = []
    for item, share in zip(items, asked, strict=True):
        count = int(jobs[[members_of >= set(item) for members_of in members]].sum())
        found.append(Frequency(item, count, count / total, share))
    return found


def describe_frequencies(found: Iterable[Frequency]) -> list[str]:
    """Return the lines of a table: what was drawn beside what was asked for, under a head."""
    lines = [f"{'constraint':<40}{'jobs':>12}{'drawn':>9}{'asked':>9}"]
    for one in found:
        asked = "" if one.asked is None else f"{one.asked:.2%}"
        lines.append(f"{set_text(one.constraints):<40}{one.jobs:>12,}{one.drawn:>9.2%}{asked:>9}")
    return lines


def _eligible(workload: JobWorkload | DagWorkload, which: str) -> npt.NDArray[np.bool_]:
    if which not in _JOBS:
        raise InputError(f"{which!r} is not one of {', '.join(_JOBS)}", field="jobs")
    if which == "all":
        return np.ones(workload.num_jobs, bool)
    if workload.short_cutoff_s is None:
        raise InputError(
            f"{workload.name} has no cut-off, so that no job is {which}; draw for all jobs", field="jobs"
        )
    is_short: npt.NDArray[np.bool_] = column(workload.jobs, "mean_task_s") <= workload.short_cutoff_s
    return is_short if which == "short" else ~is_short


def _softened(model: Model, soft: str | None, price: float) -> tuple[ConstraintSet, ...]:
    """Return the items of a model, with the constraints of the attributes in `soft` at a price."""
    names = {name.strip() for name in (soft or "").split(",")} - {""}
    if not 1 <= price <= MAX_PRICE:
        raise InputError(f"{price!r} is not a factor from 1 to {MAX_PRICE:g}", field="price")
    known = {kind_of([c]) for item in model.items for c in item}
    for name in sorted(names - known):
        raise InputError(
            f"{name!r} is not an attribute of the model{did_you_mean(name, known)}", field="soft"
        )
    return tuple(
        tuple(c._replace(price=float(price)) if kind_of([c]) in names else c for c in item)
        for item in model.items
    )
