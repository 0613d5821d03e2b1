"""What all generators of published traces have in common; each has its own tests beside these."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.catalogue import load_workload, save_workload
from workloads.generators.arrivals import PROCESSES
from workloads.generators.clustered import LEVELS, ClassShape, ClusteredTrace, JobCluster, generate
from workloads.generators.published import (
    TRACES,
    closeness,
    cloudera_c,
    facebook,
    google,
    render_closeness,
    yahoo,
)
from workloads.generators.synthetic import poisson

MAKERS = {"yahoo": yahoo, "cloudera-c": cloudera_c, "facebook": facebook, "google": google}
# Enough jobs for the shares to settle, few enough for ten seeds.
JOBS = {"yahoo": 24_262, "cloudera-c": 5000, "facebook": 10_000, "google": 20_000}
TEN = range(10)


@pytest.fixture(scope="module")
def found():
    """What `closeness` finds in ten seeds of each generator."""
    return {name: [closeness(make(jobs=JOBS[name], seed=s)) for s in TEN] for name, make in MAKERS.items()}


def test_every_trace_has_its_generator():
    assert list(TRACES) == list(MAKERS)
    assert {name: trace.num_jobs for name, trace in TRACES.items()} == {
        "yahoo": 24_262,
        "cloudera-c": 21_030,
        "facebook": 1_169_184,
        "google": 506_460,
    }


@pytest.mark.slow("whole traces over several seeds")
@pytest.mark.parametrize("name", MAKERS)
def test_the_published_shares_are_met_over_ten_seeds(found, name):
    trace = TRACES[name]
    for each in found[name]:
        assert each["jobs"] == {"published": trace.num_jobs, "generated": JOBS[name]}
        for share in ("by_cluster", "by_cutoff"):
            assert each["long_jobs"][share] == pytest.approx(trace.long_jobs, abs=0.003)
            assert each["long_task_seconds"][share] == pytest.approx(trace.long_task_seconds, abs=0.02)


@pytest.mark.slow("whole traces over several seeds")
@pytest.mark.parametrize("name", MAKERS)
def test_what_a_trace_keeps_has_the_quantiles_of_its_table(found, name):
    """Where centroids and quantiles disagree one of two gives; the other is the table's, sampling aside."""
    kept = "num_tasks" if TRACES[name].keeps == "tasks" else "mean_task_s"
    figures = ("num_tasks", "mean_task_s") if name == "google" else (kept,)
    for job_class in ("short", "long"):
        if (name, job_class) == ("facebook", "short"):
            continue  # of one or two tasks: what is less work than a task of the table is a shorter task
        for figure in figures:
            drawn = [each["classes"][job_class][figure] for each in found[name]]
            table = drawn[0]["table"]
            generated = np.mean([d["generated"] for d in drawn], axis=0)
            # Google's long durations carry what the share of task-seconds wants; the others sampling alone.
            rel = 0.25 if (name, job_class, figure) == ("google", "long", "mean_task_s") else 0.15
            for at in range(3, 9):
                assert generated[at] == pytest.approx(table[at], rel=rel, abs=1)


def expected_zeros(durations: np.ndarray, counts: np.ndarray) -> float:
    """Return how many tasks below half a microsecond, which are 0, are to be expected.

    The durations of a job are m·x², x normal with variance s and mean √(1 − s), and a coefficient of variation of
    √(4s − 2s²); half of (0, √(0.5 µs / m)) on both sides of 0 has the density at 0.
    """
    found = 0.0
    for one in np.split(durations, np.cumsum(counts)[:-1]):
        share = 1 - np.sqrt(1 - min(one.var() / one.mean() ** 2, 2.0) / 2)
        if share > 0:
            density = np.exp((share - 1) / share / 2) / np.sqrt(2 * np.pi * share)
            found += len(one) * 2 * np.sqrt(0.5e-6 / one.mean()) * density
    return found


@pytest.mark.parametrize("name", MAKERS)
@given(
    jobs=st.integers(1, 400),
    seed=st.integers(0, 2**64 - 1),
    load=st.floats(0.05, 3),
    nodes=st.integers(1, 100_000),
    arrivals=st.sampled_from(PROCESSES),
    burst_ratio=st.floats(1, 50),
    amplitude=st.floats(0, 1),
)
@settings(max_examples=20)
def test_any_parameters_in_range_give_the_jobs_asked_for(name, **options):
    workload = MAKERS[name](**options)
    submit_s, counts = column(workload.jobs, "submit_s"), column(workload.jobs, "num_tasks")
    durations = column(workload.tasks, "duration_s")
    assert workload.name == name
    assert workload.num_jobs == options["jobs"]
    assert counts.min() >= 1
    assert counts.sum() == len(durations)
    assert np.all(np.diff(submit_s) >= 0)
    assert column(workload.jobs, "mean_task_s").min() > 0
    assert durations.min() >= 0
    expected = expected_zeros(durations, counts)
    assert np.count_nonzero(durations == 0) <= 2 + expected + 5 * np.sqrt(expected)
    assert not workload.notes
    assert MAKERS[name](**options).fingerprint() == workload.fingerprint()


@pytest.mark.slow("whole traces over several seeds")
@pytest.mark.parametrize("arrivals", PROCESSES)
@pytest.mark.parametrize("name", MAKERS)
def test_the_load_asked_for_is_offered_whatever_the_arrivals(name, arrivals):
    loads = []
    for seed in range(6):
        workload = MAKERS[name](jobs=3000, seed=seed, load=0.8, nodes=1234, arrivals=arrivals)
        work_s = column(workload.tasks, "duration_s").sum()
        loads.append(work_s / (column(workload.jobs, "submit_s")[-1] * 1234))
        assert float(workload.metadata["offered_load"].split()[0]) == pytest.approx(loads[-1], abs=1e-4)
        assert f"arrivals={arrivals}" in workload.metadata["parameters"]
    assert np.mean(loads) == pytest.approx(0.8, rel=0.08 if arrivals == "bursty" else 0.03)


@pytest.mark.parametrize("name", MAKERS)
def test_arrivals_do_not_change_the_jobs(name):
    by_process = [MAKERS[name](jobs=50, seed=3, arrivals=process) for process in PROCESSES]
    assert all(workload.tasks.equals(by_process[0].tasks) for workload in by_process)
    assert len({workload.fingerprint() for workload in by_process}) == len(PROCESSES)


def test_where_durations_are_kept_tasks_are_work_over_duration():
    """By hand: two jobs of 60 task-seconds in all, durations of 5 s, a cut-off of 10 s."""
    shape, slow = (ClassShape((4,) * 11, (d,) * 11, (0.0,) * 11) for d in (5.0, 20.0))
    trace = ClusteredTrace(
        "t", (JobCluster(2, 30.0), JobCluster(1, 400.0)), shape, slow, 10.0, 0.9, "here", keeps="durations"
    )
    workload = generate(trace, jobs=3, seed=1, load=0.5, nodes=10)
    counts, means = column(workload.jobs, "num_tasks"), column(workload.jobs, "mean_task_s")
    short = means < 10
    assert short.sum() == 2
    assert (counts * means)[short].sum() == pytest.approx(60, abs=1e-4)
    assert counts[short].tolist() == np.maximum(np.rint((counts * means)[short] / 5), 1).tolist()
    # The long job has all of its cluster's 400 task-seconds: 20 tasks of 20 s.
    assert counts[~short].tolist() == [20]
    assert means[~short] == pytest.approx([20.0])
    assert "5 times as many tasks" in workload.metadata["what_gave"].partition("long jobs: ")[2]


def test_closeness_of_a_hand_made_workload():
    workload = yahoo(jobs=40, seed=2)
    found = closeness(workload)
    counts, means = column(workload.jobs, "num_tasks"), column(workload.jobs, "mean_task_s")
    is_long = means > 90.5811
    assert found["tasks"] == {"published": 968_335, "generated": int(counts.sum())}
    assert found["long_jobs"]["by_cutoff"] == is_long.mean()
    work = counts * means
    assert found["long_task_seconds"]["by_cutoff"] == pytest.approx(work[is_long].sum() / work.sum())
    assert found["classes"]["short"]["jobs"] == 40 - is_long.sum()
    assert found["classes"]["long"]["num_tasks"]["generated"] == np.quantile(counts[is_long], LEVELS).tolist()
    assert found["quantiles"] == [0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100]
    assert json.loads(json.dumps(found)) == found


def test_closeness_is_known_from_a_folder_and_shares_by_cluster_while_the_work_is_the_same(tmp_path):
    workload = facebook(jobs=300)
    save_workload(workload, tmp_path / "w")
    read = load_workload(tmp_path / "w")
    assert closeness(read) == closeness(workload)
    # The same metadata on other tasks: what was drawn is not in the workload any more.
    other = yahoo(jobs=300)
    other.metadata.update(workload.metadata)
    assert closeness(other)["long_jobs"]["by_cluster"] is None
    assert "-" in render_closeness(closeness(other))


def test_what_no_trace_generator_made_has_no_closeness():
    assert closeness(poisson(jobs=10)) is None


@pytest.mark.parametrize("jobs", [1, 2000])
@pytest.mark.parametrize("name", MAKERS)
def test_closeness_as_text(name, jobs):
    text = render_closeness(closeness(MAKERS[name](jobs=jobs)))
    trace = TRACES[name]
    assert f"{trace.num_jobs:,}" in text
    assert f"{trace.long_task_seconds:.2%}" in text
    assert f"tasks per job, {trace.quantiles}" in text
    assert ("stands in: " in text) == (name != "yahoo")
    assert max(map(len, text.splitlines()[:15])) < 130
