import numpy as np
import pytest

from workloads.arrow import column
from workloads.generators.clustered import _stretch
from workloads.generators.published import _SHORT_POWER, CLOUDERA_C, YAHOO, cloudera_c


@pytest.fixture(scope="module")
def drawn():
    workload = cloudera_c(seed=2)
    return workload, column(workload.jobs, "num_tasks"), column(workload.jobs, "mean_task_s")


def test_the_published_jobs_and_task_seconds_are_met(drawn):
    workload, counts, means = drawn
    assert workload.num_jobs == 21_030
    published = sum(c.jobs * c.task_s for c in CLOUDERA_C.clusters)
    assert (counts * means).sum() == pytest.approx(published, rel=1e-6)
    assert workload.metadata["long_by_cluster"] == f"{1055 / 21_030:.4f}"
    assert float(workload.metadata["long_task_seconds"]) == pytest.approx(0.928, abs=0.0005)
    assert (workload.short_cutoff_s, workload.long_partition) == (272.783, 0.91)


def test_what_stands_in_is_yahoo_relative_to_the_cutoff():
    assert _stretch(YAHOO.short, YAHOO, is_long=False) == pytest.approx(_SHORT_POWER, abs=0.0005)
    ratio = 272.783 / 90.5811
    assert CLOUDERA_C.long.mean_task_s == pytest.approx(np.array(YAHOO.long.mean_task_s) * ratio)
    assert CLOUDERA_C.short.mean_task_s[-1] == pytest.approx(272.783, rel=1e-3)
    assert CLOUDERA_C.short.num_tasks == YAHOO.short.num_tasks
    assert "Yahoo's stand in" in CLOUDERA_C.stand_in


def test_numbers_of_tasks_are_what_gives(drawn):
    workload, counts, means = drawn
    is_long = means > workload.short_cutoff_s
    # 17,519 task-seconds in tasks of about 150 s; the stand-in's median is 15 tasks.
    assert 64 < counts[~is_long].mean() < 250
    assert np.median(means[~is_long]) == pytest.approx(CLOUDERA_C.short.mean_task_s[5], rel=0.03)
    assert "times as many tasks as by the quantiles" in workload.metadata["what_gave"]
