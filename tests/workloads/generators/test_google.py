import inspect

import numpy as np
import pytest

from workloads.arrow import column
from workloads.generators.clustered import LEVELS
from workloads.generators.published import GOOGLE, google


@pytest.fixture(scope="module")
def drawn():
    workload = google(jobs=50_000, seed=1)
    return workload, column(workload.jobs, "num_tasks"), column(workload.jobs, "mean_task_s")


def test_the_published_jobs_are_the_default():
    assert inspect.signature(google).parameters["jobs"].default == GOOGLE.num_jobs == 506_460


@pytest.mark.parametrize("is_long", [False, True])
def test_tasks_durations_and_their_correlation_are_the_measured_ones(drawn, is_long):
    workload, counts, means = drawn
    rows = (means > workload.short_cutoff_s) == is_long
    shape = GOOGLE.long if is_long else GOOGLE.short
    assert np.quantile(counts[rows], LEVELS)[:10] == pytest.approx(shape.num_tasks[:10], rel=0.05, abs=1)
    rel = 0.15 if is_long else 0.02  # long durations are stretched to have the share of task-seconds
    assert np.quantile(means[rows], LEVELS)[:10] == pytest.approx(shape.mean_task_s[:10], rel=rel)
    measured = 0.08 if is_long else 0.21
    logs = np.corrcoef(np.log(counts[rows]), np.log(means[rows]))[0, 1]
    assert logs == pytest.approx(measured, abs=0.03)


@pytest.mark.slow("a large sample")
def test_the_quantiles_alone_come_near_the_published_share():
    """The long jobs' durations are stretched by a power near 1, so that they have the published share."""
    powers = []
    for seed in range(5):
        gave = google(jobs=100_000, seed=seed).metadata["what_gave"]
        assert gave.startswith("short jobs: nothing; long jobs: mean durations stretched by power ")
        powers.append(float(gave.split("power ")[1].split()[0]))
    assert np.mean(powers) == pytest.approx(1, abs=0.1)


def test_variation_inside_jobs_is_the_measured_one(drawn):
    workload, counts, means = drawn
    first = workload.arrays().first_task[:-1]
    second = np.add.reduceat(column(workload.tasks, "duration_s") ** 2, first) / counts
    cv = np.sqrt(np.maximum(second / means**2 - 1, 0))
    rows = (means <= workload.short_cutoff_s) & (counts > 20)
    for at in (7, 8):
        assert np.quantile(cv[rows], LEVELS[at]) == pytest.approx(GOOGLE.short.cv[at], rel=0.25)
