import os
from pathlib import Path

import numpy as np
import pytest

from workloads.arrow import column
from workloads.generators.clustered import LEVELS, ClassShape, ClusteredTrace, JobCluster, generate, quantile
from workloads.generators.published import YAHOO, closeness, render_closeness, yahoo

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")


@pytest.fixture(scope="module")
def drawn():
    """Workload, task-seconds and mean duration by job, and whether the mean is above the cut-off."""
    workload = yahoo(seed=3)
    means, counts = column(workload.jobs, "mean_task_s"), column(workload.jobs, "num_tasks")
    return workload, means * counts, means, counts, means > workload.short_cutoff_s


def test_the_published_jobs_and_task_seconds_are_met(drawn):
    workload, work, _, _, is_long = drawn
    assert workload.num_jobs == YAHOO.num_jobs == 24262
    published = sum(c.jobs * c.task_s for c in YAHOO.clusters)
    assert work.sum() == pytest.approx(published, rel=1e-6)
    assert workload.metadata["long_by_cluster"] == f"{2281 / 24262:.4f}"
    assert float(workload.metadata["long_task_seconds"]) == pytest.approx(0.984, abs=0.0005)
    # The cut-off separates the clusters: Hawk has 9.41 % of jobs and 98.31 % of task-seconds.
    assert is_long.mean() == pytest.approx(0.0941, abs=0.001)
    assert work[is_long].sum() / work.sum() == pytest.approx(0.9831, abs=0.002)
    assert (workload.short_cutoff_s, workload.long_partition) == (90.5811, 0.98)


def test_the_number_of_tasks_is_near_the_published(drawn):
    assert drawn[0].num_tasks == pytest.approx(YAHOO.tasks, rel=0.05)


@pytest.mark.parametrize("is_long", [False, True])
def test_tasks_and_variation_inside_jobs_have_the_measured_quantiles(drawn, is_long):
    workload, _, means, counts, long_rows = drawn
    rows = long_rows == is_long
    shape = YAHOO.long if is_long else YAHOO.short
    # The class's own sampling error is below 10 % at these levels; rare large jobs are looser.
    for at in range(4, 10):
        assert np.quantile(counts[rows], LEVELS[at]) == pytest.approx(shape.num_tasks[at], rel=0.2, abs=1)
    first = workload.arrays().first_task[:-1]
    second = np.add.reduceat(column(workload.tasks, "duration_s") ** 2, first) / counts
    cv = np.sqrt(np.maximum(second / means**2 - 1, 0))
    for at in range(4, 9):
        assert np.quantile(cv[rows & (counts > 1)], LEVELS[at]) == pytest.approx(
            shape.cv[at], rel=0.2, abs=0.02
        )


def test_durations_are_stretched_away_from_the_excerpt_but_stay_in_their_class(drawn):
    """What gives where clusters and excerpt disagree: they are further out on both sides than measured."""
    _, _, means, _, is_long = drawn
    assert np.median(means[~is_long]) > np.median(YAHOO.short.mean_task_s)
    assert np.median(means[is_long]) > np.median(YAHOO.long.mean_task_s)
    assert means[~is_long].max() <= 90.5811


@pytest.mark.parametrize(("load", "nodes"), [(0.9, 15000), (0.5, 4000)])
def test_the_offered_load_is_met(load, nodes):
    workload = yahoo(load=load, nodes=nodes, seed=7)
    durations, submit = column(workload.tasks, "duration_s"), column(workload.jobs, "submit_s")
    assert durations.sum() / (submit[-1] * nodes) == pytest.approx(load, rel=0.03)
    gaps = np.diff(submit)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.03)


def test_interpolated_quantiles_meet_the_table_and_stay_monotone():
    table = YAHOO.short.num_tasks
    assert quantile(table, LEVELS) == pytest.approx(table)
    assert np.all(np.diff(quantile(table, np.linspace(0, 1, 1000))) >= 0)


def test_a_trace_without_centroids_has_the_work_its_quantiles_give():
    """Tables are data: Google's jobs have published classes, but no task-seconds."""
    shape = ClassShape((2,) * 11, (5.0,) * 11, (0.0,) * 11)
    slow = ClassShape((3,) * 11, (50.0,) * 11, (0.0,) * 11)
    trace = ClusteredTrace("t", (JobCluster(9, None), JobCluster(1, None)), shape, slow, 10.0, 0.9, "here")
    workload = generate(trace, jobs=20, seed=1, load=0.5, nodes=10)
    assert sorted(column(workload.jobs, "num_tasks").tolist()) == [2] * 18 + [3] * 2
    assert sorted(set(column(workload.tasks, "duration_s").tolist())) == [5.0, 50.0]


# Durations as measured.


@pytest.mark.slow("the whole trace is drawn")
def test_with_durations_of_the_trace_tasks_and_durations_are_as_measured_and_work_gives():
    drawn = [yahoo(seed=seed, durations="trace") for seed in range(4)]
    for workload in drawn:
        means, counts = column(workload.jobs, "mean_task_s"), column(workload.jobs, "num_tasks")
        for is_long, shape in ((False, YAHOO.short), (True, YAHOO.long)):
            rows = (means > 90.5811) == is_long
            assert rows.mean() == pytest.approx(0.0941 if is_long else 0.9059, abs=0.001)
            for at in range(2, 10):
                # Variation inside jobs moves means of few tasks by some thousandths.
                assert np.quantile(means[rows], LEVELS[at]) == pytest.approx(shape.mean_task_s[at], rel=0.02)
                assert np.quantile(counts[rows], LEVELS[at]) == pytest.approx(
                    shape.num_tasks[at], rel=0.03, abs=1
                )
        assert workload.num_tasks == pytest.approx(YAHOO.tasks, rel=0.05)
    work = [column(w.jobs, "mean_task_s") * column(w.jobs, "num_tasks") for w in drawn]
    long = [column(w.jobs, "mean_task_s") > 90.5811 for w in drawn]
    assert np.mean([w.mean() for w in work]) == pytest.approx(24_000, rel=0.05)
    assert YAHOO.mean_work() == pytest.approx(65_357, abs=1)
    assert np.mean([w[of].sum() / w.sum() for w, of in zip(work, long, strict=True)]) == pytest.approx(
        0.984, abs=0.002
    )


def test_the_load_is_met_whatever_the_durations():
    workload = yahoo(load=0.7, nodes=3000, seed=2, durations="trace")
    durations, submit = column(workload.tasks, "duration_s"), column(workload.jobs, "submit_s")
    assert durations.sum() / (submit[-1] * 3000) == pytest.approx(0.7, rel=0.03)


def test_what_holds_and_what_gives_is_said():
    by_work, by_trace = (closeness(yahoo(jobs=3000, durations=which)) for which in ("work", "trace"))
    assert by_work["holds"] == "task-seconds as published, tasks per job as measured"
    assert by_work["gives"] == "mean task durations"
    assert by_trace["holds"] == "tasks per job and mean task durations, as measured"
    assert by_trace["gives"].startswith("task-seconds")
    assert by_work["task_seconds_per_job"]["generated"] == pytest.approx(65_357, rel=0.15)
    assert by_trace["task_seconds_per_job"]["generated"] < 30_000
    text = render_closeness(by_trace)
    assert "  gives: task-seconds" in text
    assert "task-seconds a job              65,357" in text
    said = yahoo(jobs=3000, durations="trace").metadata
    assert "task-seconds are 0.3" in said["what_gave"]
    assert said["parameters"].endswith("arrivals=poisson durations=trace")


@pytest.mark.reference
def test_durations_of_the_trace_are_those_of_its_excerpt():
    """Against the excerpt itself, line by line, not against the table that was made of it."""
    path = SHARED / "traces" / "YH1_sub.tr"
    if not path.exists():
        pytest.skip("the traces are not here")
    measured = []
    for line in path.read_text().splitlines():
        _, tasks, _, *durations = map(float, line.split())
        measured.append((tasks, sum(durations) / tasks))
    of_excerpt = np.array(measured)
    workload = yahoo(seed=1, durations="trace")
    of_workload = np.stack([column(workload.jobs, "num_tasks"), column(workload.jobs, "mean_task_s")], axis=1)
    for is_long, medians in ((False, (15, 13.5)), (True, (24, 717))):
        found = [np.median(x[(x[:, 1] > 90.5811) == is_long], axis=0) for x in (of_excerpt, of_workload)]
        assert found[0] == pytest.approx(medians, rel=0.01)
        assert found[1] == pytest.approx(medians, rel=0.02)
