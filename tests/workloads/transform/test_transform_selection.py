"""Slices, samples and truncated workloads of jobs: what is kept, and that nothing else changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import workloads

from workloads.arrow import column
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.transform import history, redo, sample, time_slice, truncate

FEW = settings(max_examples=50)


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


def test_a_slice_by_hand() -> None:
    made = time_slice(five(), 601.0, 603.0)
    assert made.jobs["submit_s"].to_pylist() == [0.0, 1.0]
    assert made.jobs["job_id"].to_pylist() == [8, 7]
    assert made.tasks.to_pydict() == {"job_id": [8, 8, 7], "duration_s": [2.0, 3.0, 50.0]}
    assert made.metadata == {
        "origin": "by hand",
        "transformed.1": "slice start_s=601.0 end_s=603.0 rebase=yes # 2 of 5 jobs",
    }
    assert (made.name, made.short_cutoff_s, made.long_partition, made.notes) == (
        "five",
        10.0,
        0.9,
        ("read so",),
    )
    assert is_well_formed(made)
    assert time_slice(five(), 601.0, rebase=False).jobs["submit_s"].to_pylist() == [
        601.0,
        602.0,
        603.0,
        610.0,
    ]


@FEW
@given(workload=workloads(labelled=True), share=st.floats(0, 1))
def test_slices_partition(workload: JobWorkload, share: float) -> None:
    submit_s = column(workload.jobs, "submit_s")
    cut_s = float(submit_s[0] + share * (submit_s[-1] - submit_s[0]))
    parts: Counter[tuple[object, ...]] = Counter()
    for start_s, end_s in ((0.0, cut_s), (cut_s, None)):
        if any(start_s <= s < (np.inf if end_s is None else end_s) for s in submit_s):
            part = time_slice(workload, start_s, end_s, rebase=False)
            assert is_well_formed(part)
            parts += content(part)
    assert parts == content(workload)


@pytest.mark.parametrize(
    ("start_s", "end_s", "message"),
    [
        (0.0, 600.0, r"none of the jobs of five arrives from 0 s to 600 s; they arrive from 600 s to 610 s"),
        (611.0, None, "from 611 s to inf s"),
        (5.0, 5.0, "is empty; want 0 <= start < end"),
        (-1.0, 5.0, "is empty"),
        (float("nan"), None, "is empty"),
    ],
)
def test_an_empty_slice_is_refused(start_s: float, end_s: float | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        time_slice(five(), start_s, end_s)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give the share or the number of jobs to keep"),
        ({"share": 0.5, "count": 2}, "one of the two"),
        ({"share": 0.0}, "is not a share above 0"),
        ({"share": float("nan")}, "is not a share above 0"),
        ({"count": 6}, "6 is not a whole number from 1 to 5"),
        ({"count": 0}, "field count: 0 is not"),
        ({"count": 2, "seed": -1}, "field seed"),
    ],
)
def test_a_sample_that_cannot_be_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample(five(), **options)  # type: ignore[arg-type]


def test_truncated_by_hand() -> None:
    made = truncate(five(), 8.0)
    assert made.tasks["duration_s"].to_pylist() == [1.0, 2.0, 3.0, 8.0, 5.0, 7.0, 8.0, 8.0]
    assert made.jobs["mean_task_s"].to_pylist() == pytest.approx([1.0, 2.5, 8.0, 5.0, 23 / 3])
    expected = "2 of 8 tasks in 2 jobs cut, by 124 of 166 task-seconds (74.70%); 2 long jobs are short now"
    assert made.metadata["transformed.1"] == f"truncate cap_s=8.0 # {expected}"
    assert made.notes == ("read so", f"truncate: {expected}")
    assert made.jobs.drop_columns(["mean_task_s"]).equals(five().jobs.drop_columns(["mean_task_s"]))


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


@pytest.mark.parametrize("cap_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_cap_is_above_0(cap_s: float) -> None:
    with pytest.raises(InputError, match="is not a duration above 0"):
        truncate(five(), cap_s)
