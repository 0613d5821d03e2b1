"""Metrics against figures worked out by hand or by NumPy."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from emu.families.jobs.metrics import describe_jobs, jain_index, shown_classes
from emu.results.metrics import (
    after_warmup,
    confidence_95,
    describe_values,
    ratios,
    summarise_replicas,
    t_quantile,
)


def jobs_table(
    submit: list[float], jct: list[float | None], ideal: list[float], long: list[bool]
) -> pa.Table:
    finish = [None if j is None else s + j for s, j in zip(submit, jct, strict=True)]
    slowdown = [None if j is None or i == 0 else j / i for j, i in zip(jct, ideal, strict=True)]
    return pa.table(
        {
            "submit_s": submit,
            "finish_s": finish,
            "jct_s": jct,
            "wait_s": [None if j is None else j - i for j, i in zip(jct, ideal, strict=True)],
            "ideal_s": ideal,
            "slowdown": slowdown,
            "job_class": ["long" if x else "short" for x in long],
            "constraint": pa.nulls(len(jct), pa.string()),
        }
    )


def test_percentiles_are_linear() -> None:
    figures = describe_values(np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert figures == {
        "count": 5,
        "mean": 6.2,
        "p50": 4.0,
        "p90": pytest.approx(12.8),
        "p95": pytest.approx(14.4),
        "p99": pytest.approx(15.68),
        "p99.9": pytest.approx(15.968),
        "max": 16.0,
    }
    assert describe_values(np.array([])) == {"count": 0}


def test_jain_index_is_one_for_equals_and_one_over_n_for_one_alone() -> None:
    assert jain_index(np.full(7, 3.0)) == pytest.approx(1.0)
    assert jain_index(np.array([5.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert np.isnan(jain_index(np.zeros(3)))
    assert np.isnan(jain_index(np.array([])))


def test_classes_warmup_and_unfinished_jobs() -> None:
    jobs = jobs_table(
        [100.0, 101.0, 105.0, 110.0, 120.0], [50.0, 2.0, None, 4.0, 30.0], [1.0, 1.0, 1.0, 0.0, 10.0],
        [True, False, False, False, True],
    )  # fmt: skip
    figures = describe_jobs(jobs, warmup_s=1.0)
    assert figures["all"]["count"] == 3  # the first is warm-up, the third never finished
    times = {k: v for k, v in figures["short"].items() if not isinstance(v, dict)}
    expected = {
        "count": 2,
        "mean": 3.0,
        "p50": 3.0,
        "p90": 3.8,
        "p95": 3.9,
        "p99": 3.98,
        "p99.9": 3.998,
        "max": 4.0,
    }
    assert times == pytest.approx(expected)
    assert figures["long"]["mean"] == 30.0
    assert figures["makespan_s"] == 50.0  # warm-up or not, it is time that passed
    assert figures["jain_index"] == pytest.approx((2 + 3) ** 2 / (2 * (4 + 9)))
    assert figures["unfinished"] == 1


def test_waits_and_slowdowns_by_hand() -> None:
    # The second is a job of 5 ms that takes 5 s: slowed down a thousand times, which matters to no user.
    jobs = jobs_table([0.0, 1.0, 2.0, 3.0], [12.0, 5.0, 40.0, None], [6.0, 0.005, 20.0, 1.0], [False] * 4)
    figures = describe_jobs(jobs)
    assert figures["all"]["wait"]["max"] == 20.0
    assert figures["all"]["slowdown"]["mean"] == pytest.approx((2 + 1000 + 2) / 3)
    bounded = [12 / 10, 1.0, 2.0]
    assert figures["short"]["bounded_slowdown"]["mean"] == pytest.approx(sum(bounded) / 3)
    assert figures["short"]["bounded_slowdown"]["p99.9"] == pytest.approx(np.percentile(bounded, 99.9))
    assert figures["jain_index"] == pytest.approx(
        1004**2 / (3 * (4 + 1000**2 + 4))
    )  # one job decides it: 1/3
    assert figures["bounded_jain_index"] == pytest.approx(4.2**2 / (3 * (1.44 + 1 + 4)))
    assert figures["slowdown_threshold_s"] == 10.0
    wider = describe_jobs(jobs, threshold_s=20.0)
    assert wider["all"]["bounded_slowdown"]["mean"] == pytest.approx((1 + 1 + 2) / 3)
    assert describe_jobs(jobs, threshold_s=0.0)["all"]["bounded_slowdown"] == figures["all"]["slowdown"]


def test_a_class_without_jobs_is_absent() -> None:
    figures = describe_jobs(jobs_table([0.0], [1.0], [1.0], [False]))
    assert "long" not in figures
    assert "unfinished" not in figures


def test_a_class_that_has_all_jobs_is_not_shown_apart() -> None:
    def part(count: float) -> dict[str, float]:
        return {"count": count}

    both = {"all": part(3), "short": part(2), "long": part(1)}
    assert shown_classes(both) == ("all", "short", "long")
    for one in ("short", "long"):
        assert shown_classes({"all": part(3), one: part(3)}) == ("all",)
    # Means over seeds, one of which has no long job.
    assert shown_classes({"all": part(3), "short": part(2.5)}) == ("all", "short")
    assert shown_classes({"all": part(3)}) == ("all",)


def test_warmup_counts_from_the_first_arrival() -> None:
    assert after_warmup(np.array([600.0, 605.0, 610.0]), 5.0).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("degrees", "t"), [(1, 12.7062), (4, 2.7764), (35, 2.0423), (200, 1.9799), (5000, 1.96)]
)
def test_t_quantiles_are_never_too_small(degrees: int, t: float) -> None:
    assert t_quantile(degrees) == pytest.approx(t)


def test_confidence_interval_by_hand() -> None:
    mean, half = confidence_95([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.3027 * 1.0 / math.sqrt(3))
    assert math.isnan(confidence_95([1.0])[1])
    assert confidence_95([0.1] * 10) == (0.1, 0.0)


def test_intervals_hold_the_mean_about_95_times_in_100() -> None:
    rng = np.random.default_rng(1)
    held = [abs(m) <= h for m, h in (confidence_95(rng.normal(size=5)) for _ in range(4000))]
    assert 0.94 < np.mean(held) < 0.96


def test_ratios_are_paired_by_seed() -> None:
    mean, half = ratios([1.0, 10.0, 100.0], [2.0, 20.0, 200.0])
    assert (mean, half) == (2.0, 0.0)
    assert math.isnan(ratios([0.0], [1.0])[0])


def test_summary_of_seeds() -> None:
    def one(seed: int, mean: float, long: bool) -> dict[str, object]:
        classes = {"all": {"count": 2, "mean": mean}} | ({"long": {"count": 1, "mean": 1.0}} if long else {})
        return {
            "scheduler": "s",
            "seed": seed,
            "jobs": {**classes, "makespan_s": 5.0},
            "engine": {"wall_s": mean, "events": 10},
            "counters": {"probes": seed},
            "schedulers": {"count": 1, "busiest": seed / 10, "wait_mean_s": 2.0, "wait_max_s": 60.0 * seed},
            "windows": {"exact": True, "windows": 10 * seed},
        }

    figures = summarise_replicas([one(1, 1.0, True), one(2, 3.0, False)])
    assert (figures["scheduler"], figures["seed"], figures["seeds"]) == ("s", 1, [1, 2])
    assert figures["jobs"]["all"] == {"count": 2, "mean": 2.0}
    assert "long" not in figures["jobs"]
    low, high = figures["confidence_95"]["jobs"]["all"]["mean"]
    assert (low + high) / 2 == pytest.approx(2.0)
    assert high - 2.0 == pytest.approx(12.7062 * math.sqrt(2) / math.sqrt(2))
    assert figures["confidence_95"]["jobs"]["makespan_s"] == [5.0, 5.0]
    assert figures["counters"]["probes"] == 1.5
    # Of both seeds, not the first one's.
    assert figures["schedulers"]["busiest"] == pytest.approx(0.15)
    assert figures["schedulers"]["wait_max_s"] == 90.0
    assert figures["windows"]["windows"] == 15.0
