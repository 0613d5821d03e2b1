"""Random constraints, and workloads that have them, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.workloads.family_examples import dags_of
from workloads.constraints import OPERATORS, PLACEMENT, PLACEMENTS, Constraint, with_constraints
from workloads.dags import DagWorkload
from workloads.jobs import JobWorkload, make_workload

prices = st.none() | st.floats(1, 10)
names = st.text("abcxyz_0", min_size=1, max_size=3)
compared = st.builds(Constraint, names, st.sampled_from(OPERATORS), st.text("ab 1.", max_size=4), prices)
placed = st.builds(Constraint, st.just(PLACEMENT), st.just("="), st.sampled_from(list(PLACEMENTS)), prices)
sets = st.lists(compared | placed, max_size=4, unique_by=lambda c: c[:3]).map(tuple)


@st.composite
def constrained(draw: Any, dags: bool | None = None) -> JobWorkload | DagWorkload:
    """Jobs or DAGs of up to six jobs, each of a tenant of its own, with up to four different sets."""
    count = draw(st.integers(1, 6))
    tenants = [f"t{n}" for n in range(count)]
    submit_s = sorted(draw(st.lists(st.integers(0, 100).map(float), min_size=count, max_size=count)))
    durations = st.lists(st.floats(0.5, 100), min_size=1, max_size=3)
    if draw(st.booleans()) if dags is None else dags:
        jobs = [
            (at_s, [draw(durations), draw(durations)], [(0, 1)], tenant)
            for at_s, tenant in zip(submit_s, tenants, strict=True)
        ]
        workload: JobWorkload | DagWorkload = dags_of(jobs)
    else:
        of_jobs = [draw(durations) for _ in range(count)]
        workload = make_workload(
            "jobs", submit_s, [len(d) for d in of_jobs], [s for d in of_jobs for s in d], tenant=tenants
        )
    known = draw(st.lists(sets, min_size=1, max_size=4))
    of_job = draw(st.lists(st.integers(-1, len(known) - 1), min_size=count, max_size=count))
    return with_constraints(workload, known, of_job)
