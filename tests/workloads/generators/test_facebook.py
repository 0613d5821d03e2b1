import numpy as np
import pytest

from workloads.arrow import column
from workloads.generators.published import FACEBOOK, facebook


@pytest.fixture(scope="module")
def drawn():
    workload = facebook(seed=1)
    return workload, column(workload.jobs, "num_tasks"), column(workload.jobs, "mean_task_s")


def test_the_clusters_are_the_published_ones():
    assert [c.jobs for c in FACEBOOK.clusters] == [
        *(1_145_663, 7911, 779, 670, 104, 11_491, 1876, 454, 169, 67),
    ]
    work = [c.jobs * c.task_s for c in FACEBOOK.clusters]
    # The check of the task-seconds: Hawk's 99.79 % in 2.01 % of the jobs.
    assert sum(work[1:]) / sum(work) == pytest.approx(0.9979, abs=0.0005)
    assert "not checked" in FACEBOOK.stand_in


def test_the_default_has_jobs_of_every_cluster_and_the_task_seconds_in_proportion(drawn):
    workload, counts, means = drawn
    assert workload.num_jobs == 50_000
    published = sum(c.jobs * c.task_s for c in FACEBOOK.clusters)
    assert (counts * means).sum() == pytest.approx(published * 50_000 / FACEBOOK.num_jobs, rel=0.01)
    assert 4_000_000 < workload.num_tasks < 6_000_000
    assert (workload.short_cutoff_s, workload.long_partition) == (76.5951, 0.98)


def test_short_jobs_are_tiny_and_long_ones_have_thousands_of_tasks(drawn):
    workload, counts, means = drawn
    is_long = means > workload.short_cutoff_s
    assert np.median(counts[~is_long]) <= 3
    assert (counts * means)[~is_long].mean() == pytest.approx(82, rel=0.01)
    assert np.median(counts[is_long]) > 1000
    assert np.median(means[is_long]) == pytest.approx(FACEBOOK.long.mean_task_s[5], rel=0.1)
