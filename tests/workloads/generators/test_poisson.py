import numpy as np
import pytest

from workloads.arrow import column
from workloads.generators.synthetic import poisson


@pytest.mark.parametrize(
    ("options", "scv"),
    [
        ({"service": "exponential"}, 1.0),
        ({"service": "deterministic"}, 0.0),
        ({"service": "lognormal", "cv": 0.5}, 0.25),
        ({"service": "bimodal", "long_tasks": 0.1, "long_ratio": 10.0}, 7.29 / 3.61),
    ],
)
def test_service_times_have_the_mean_and_variation_asked_for(options, scv):
    workload = poisson(jobs=200_000, mean_task_s=3.0, seed=1, **options)
    durations = column(workload.tasks, "duration_s")
    assert float(workload.metadata["service_scv"]) == pytest.approx(scv)
    error = 4 * np.sqrt(scv / len(durations))
    assert durations.mean() == pytest.approx(3.0, rel=error + 1e-9)
    assert durations.var() / durations.mean() ** 2 == pytest.approx(scv, rel=0.05, abs=1e-9)


def test_arrivals_are_poisson_at_the_rate_of_the_load():
    workload = poisson(jobs=200_000, load=0.6, nodes=7, slots=2, tasks_per_job=3, mean_task_s=2.0, seed=2)
    gaps = np.diff(column(workload.jobs, "submit_s"))
    assert gaps.mean() == pytest.approx(3 * 2.0 / (0.6 * 7 * 2), rel=0.01)
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.01)
    assert np.corrcoef(gaps[1:], gaps[:-1])[0, 1] == pytest.approx(0, abs=0.01)
    assert workload.num_tasks == 600_000
    assert workload.short_cutoff_s is None
