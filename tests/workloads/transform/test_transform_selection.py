"""Slices, samples and truncated workloads of jobs: what is kept, and that nothing else changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.strategies import workloads
from workloads.arrow import column
from workloads.jobs import JobWorkload, make_workload
from workloads.transform import history, redo, sample, truncate

FEW = settings(max_examples=20)


def content(workload: JobWorkload, ids: bool = True) -> Counter[tuple[object, ...]]:
    """The jobs of a workload with their tasks, as a multiset."""
    durations, first = workload.tasks["duration_s"].to_pylist(), workload.arrays().first_task
    return Counter(
        (job["job_id"] if ids else None, *list(job.values())[1:], *durations[first[j] : first[j + 1]])
        for j, job in enumerate(workload.jobs.to_pylist())
    )


def is_well_formed(workload: JobWorkload) -> bool:
    again = make_workload(
        workload.name,
        column(workload.jobs, "submit_s"),
        column(workload.jobs, "num_tasks"),
        column(workload.tasks, "duration_s"),
        column(workload.jobs, "mean_task_s"),
        job_id=column(workload.jobs, "job_id"),
        constraint=workload.jobs["constraint"].combine_chunks(),
        tenant=workload.jobs["tenant"].combine_chunks(),
    )
    return bool(
        again.fingerprint() == workload.fingerprint()
        and again.tasks["job_id"].equals(workload.tasks["job_id"])
    )


def five() -> JobWorkload:
    return make_workload(
        "five",
        [600.0, 601.0, 602.0, 603.0, 610.0],
        [1, 2, 1, 1, 3],
        [1.0, 2.0, 3.0, 50.0, 5.0, 7.0, 8.0, 90.0],
        tenant=["a", "b", "a", None, "b"],
        job_id=[9, 8, 7, 6, 5],
        short_cutoff_s=10.0,
        long_partition=0.9,
        metadata={"origin": "by hand"},
        notes=("read so",),
    )


@FEW
@given(
    classes=st.lists(st.tuples(st.booleans(), st.integers(1, 40)), min_size=1, max_size=60),
    share=st.floats(0.01, 1),
    seed=st.integers(0, 2**64 - 1),
)
def test_a_sample_keeps_the_shares_of_the_classes(
    classes: list[tuple[bool, int]], share: float, seed: int
) -> None:
    num_tasks = np.array([tasks for _, tasks in classes])
    means = np.array([100.0 if long else 1.0 for long, _ in classes])
    workload = make_workload(
        "w", np.arange(len(classes)), num_tasks, np.repeat(means, num_tasks), short_cutoff_s=10.0
    )
    made = sample(workload, share=share, seed=seed)
    total = max(round(share * len(classes)), 1)
    assert made.num_jobs == total
    assert is_well_formed(made)
    assert not content(made) - content(workload)
    was_long, is_long = means > 10.0, column(made.jobs, "mean_task_s") > 10.0
    assert abs(is_long.sum() - was_long.sum() * total / len(classes)) < 1
    for long in (False, True):
        before = np.bincount(np.log2(num_tasks[was_long == long]).astype(int), minlength=6)
        after = np.bincount(np.log2(column(made.jobs, "num_tasks")[is_long == long]).astype(int), minlength=6)
        if before.sum():
            assert (np.abs(after - before * after.sum() / before.sum()) < 1).all()
    assert sample(workload, share=share, seed=seed).fingerprint() == made.fingerprint()
    assert redo([workload], history(made)[0]).fingerprint() == made.fingerprint()


def test_other_seeds_draw_other_jobs() -> None:
    workload = make_workload("w", np.arange(100), np.ones(100, int), np.full(100, 2.0))
    ids = {tuple(sample(workload, count=10, seed=seed).jobs["job_id"].to_pylist()) for seed in range(5)}
    assert len(ids) == 5


def test_without_a_cut_off_a_sample_keeps_powers_of_ten_of_durations() -> None:
    durations = np.repeat([0.0, 0.5, 5.0, 50.0], [10, 20, 30, 40])
    made = sample(make_workload("w", np.arange(100), np.ones(100, int), durations), count=10)
    assert sorted(made.tasks["duration_s"].to_pylist()) == [0.0] + [0.5] * 2 + [5.0] * 3 + [50.0] * 4


@FEW
@given(workload=workloads(labelled=True), cap_s=st.floats(1e-9, 1e9))
def test_truncated_tasks_are_no_longer_than_the_cap(workload: JobWorkload, cap_s: float) -> None:
    made = truncate(workload, cap_s)
    was, now = column(workload.tasks, "duration_s"), column(made.tasks, "duration_s")
    assert now.tolist() == np.minimum(was, cap_s).tolist()
    assert is_well_formed(made)
    kept = np.flatnonzero(np.maximum.reduceat(was, workload.arrays().first_task[:-1]) <= cap_s)
    means = [column(w.jobs, "mean_task_s")[kept].tolist() for w in (workload, made)]
    assert means[0] == means[1]
    assert redo([workload], history(made)[-1]).fingerprint() == made.fingerprint()
