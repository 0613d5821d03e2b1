"""None"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.generators.arrivals import PROCESSES
from workloads.generators.synthetic import SERVICES, TASK_COUNTS, poisson, synthetic

share = st.floats(0, 1)


@given(
    st.fixed_dictionaries(
        {
            "jobs": st.integers(1, 300),
            "seed": st.integers(0, 2**64 - 1),
            "load": st.floats(0.01, 5),
            "nodes": st.integers(1, 10_000),
            "slots": st.integers(1, 64),
            "arrivals": st.sampled_from(PROCESSES),
            "burst_ratio": st.floats(1, 100),
            "burst_jobs": st.floats(1, 1000),
            "period_s": st.floats(1e-3, 1e7),
            "amplitude": share,
            "task_counts": st.sampled_from(TASK_COUNTS),
            "tasks_per_job": st.integers(1, 20),
            "service": st.sampled_from(SERVICES),
            "mean_task_s": st.floats(1e-6, 10),
            "cv": st.floats(0.01, 5),
            "alpha": st.floats(1.2, 10),
            "long_tasks": share,
            "long_ratio": st.floats(0.1, 1000),
            "long_jobs": share,
            "long_tasks_per_job": st.integers(1, 50),
            "long_mean_task_s": st.floats(11, 1e4),
        }
    )
)
@settings(max_examples=30)
def test_any_parameters_in_range_give_the_jobs_asked_for(options):
    workload = synthetic(**options)
    submit_s, counts = column(workload.jobs, "submit_s"), column(workload.jobs, "num_tasks")
    assert workload.num_jobs == options["jobs"]
    assert workload.num_tasks == counts.sum()
    assert counts.min() >= 1
    assert np.all(np.diff(submit_s) >= 0)
    assert not workload.notes
    assert column(workload.tasks, "duration_s").min() > 0
    assert synthetic(**options).fingerprint() == workload.fingerprint()


@pytest.mark.parametrize("arrivals", PROCESSES)
@pytest.mark.parametrize("task_counts", TASK_COUNTS)
def test_the_offered_load_is_met_in_expectation(arrivals, task_counts):
    loads = []
    for seed in range(5):
        workload = synthetic(
            jobs=20_000,
            seed=seed,
            load=0.6,
            nodes=30,
            slots=4,
            arrivals=arrivals,
            period_s=777,
            task_counts=task_counts,
            tasks_per_job=3,
            long_jobs=0.1,
            long_tasks_per_job=20,
            long_mean_task_s=5.0,
        )
        loads.append(float(workload.metadata["offered_load"].split()[0]))
    assert np.mean(loads) == pytest.approx(0.6, rel=0.03)


@pytest.mark.parametrize(("alpha", "scv"), [(1.5, np.inf), (2.0, np.inf), (4.0, 1 / 8)])
def test_pareto_durations_have_the_tail_and_the_mean(alpha, scv):
    workload = synthetic(jobs=200_000, service="pareto", alpha=alpha, mean_task_s=2.0, seed=4)
    durations = column(workload.tasks, "duration_s")
    assert float(workload.metadata["service_scv"]) == pytest.approx(scv)
    shortest = 2.0 * (alpha - 1) / alpha
    assert durations.min() == pytest.approx(shortest, rel=1e-3)
    for times in (2, 5):
        assert np.mean(durations > times * shortest) == pytest.approx(times**-alpha, rel=0.1)
    assert durations.mean() == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(
    ("task_counts", "variance"), [("fixed", 0), ("geometric", 8 * 7), ("uniform", (15**2 - 1) / 12)]
)
def test_numbers_of_tasks_have_the_distribution_asked_for(task_counts, variance):
    workload = synthetic(jobs=50_000, task_counts=task_counts, tasks_per_job=8, seed=1)
    counts = column(workload.jobs, "num_tasks")
    assert counts.mean() == pytest.approx(8, rel=0.02)
    assert counts.var() == pytest.approx(variance, rel=0.05)


def test_two_classes_have_a_cutoff_between_them_and_a_partition_by_their_work():
    workload = synthetic(
        jobs=1000,
        long_jobs=0.1,
        service="deterministic",
        mean_task_s=1.0,
        tasks_per_job=2,
        long_tasks_per_job=18,
        long_mean_task_s=100.0,
        seed=9,
    )
    means = column(workload.jobs, "mean_task_s")
    assert workload.short_cutoff_s == pytest.approx(10)
    assert np.count_nonzero(means > workload.short_cutoff_s) == 100
    assert workload.num_tasks == 900 * 2 + 100 * 18
    assert workload.long_partition == pytest.approx(180_000 / 181_800)
    # Long jobs are anywhere, not the first.
    assert 0.3 < np.flatnonzero(means > 10).mean() / 1000 < 0.7


def test_poisson_is_the_same_generator_under_the_name_of_queueing_theory():
    options = {"jobs": 500, "seed": 3, "service": "bimodal", "tasks_per_job": 2}
    one, other = poisson(**options), synthetic(**options)
    assert one.fingerprint() == other.fingerprint()
    assert (one.name, one.metadata["origin"]) == ("poisson", "generator poisson")
    assert one.metadata["parameters"] == other.metadata["parameters"]


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
