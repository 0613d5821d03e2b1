"""The world at time 0: estimates, the network, partitions, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from emulations import (
    NS,
    emulate_small,
    jobs,
    mixed_workload,
    run_partition,
    setting_of,
)

from actors.kernel import queue
from actors.schedulers.jobs import build
from actors.schedulers.jobs.build import estimated_ns, long_jobs
from actors.setting import Estimates, Network
from workloads.errors import InputError
from workloads.jobs import make_workload

MEANS_NS = np.array([0, 1, 7, 1000, 10**12], np.int64)


def test_estimates_without_error_are_the_means() -> None:
    assert np.array_equal(estimated_ns(MEANS_NS, Estimates(), 3), MEANS_NS)


@pytest.mark.parametrize(("size", "factor"), [(0.5, 1.5), (-0.5, 0.5), (-1.0, 0.0), (-3.0, 0.0)])
def test_a_constant_error_is_the_same_for_all(size: float, factor: float) -> None:
    estimated = estimated_ns(MEANS_NS, Estimates("constant", size), 3)
    assert np.array_equal(estimated, np.rint(MEANS_NS * factor))
    assert estimated.dtype == np.int64


def test_a_random_error_is_uniform_and_its_own_for_each_job_and_seed() -> None:
    means = np.full(20_000, 10**9, np.int64)
    factor = estimated_ns(means, Estimates("random", 0.4), 3) / 1e9
    assert factor.min() >= 0.6
    assert factor.max() <= 1.4
    assert abs(factor.mean() - 1) < 5 * 0.4 / math.sqrt(3 * factor.size)
    assert abs(factor.std() - 0.4 / math.sqrt(3)) < 0.01
    assert np.array_equal(factor, estimated_ns(means, Estimates("random", 0.4), 3) / 1e9)
    assert not np.array_equal(factor, estimated_ns(means, Estimates("random", 0.4), 4) / 1e9)


def test_schedulers_go_by_the_estimate_and_results_by_the_mean() -> None:
    # Means 4 and 20 around a cut-off of 10; estimates are half of that, and a tenth more.
    workload = jobs((0, [4]), (1, [19, 21]))
    for size, taken_for_long in ((-0.6, [False, False]), (0.1, [False, True]), (2.0, [True, True])):
        setting = setting_of("eagle", workload, 3, estimates=Estimates("constant", size))
        assert long_jobs(setting).tolist() == taken_for_long
        partition = run_partition(setting)
        assert partition.outcome().is_long.tolist() == [False, True]
        assert partition.world.work.is_long.tolist() == taken_for_long


def test_a_job_at_the_cutoff_is_short() -> None:
    workload = jobs((0, [10]), (0, [10.000000001]))
    assert long_jobs(setting_of("eagle", workload, 2)).tolist() == [False, True]
    assert long_jobs(setting_of("eagle", workload, 2, cutoff_s=math.inf)).tolist() == [False, False]


def test_jobs_go_to_the_probe_schedulers_in_turn_and_long_ones_to_the_central_one() -> None:
    workload = jobs(*((i, [20 if i == 2 else 1]) for i in range(5)))
    world, _ = setting_of("hawk", workload, 4, schedulers=2).scheduler.build(
        setting_of("hawk", workload, 4, schedulers=2)
    )
    assert world.work.home.tolist() == [4, 5, 6, 5, 4]
    assert world.work.next_job.tolist() == [4, 3, -1, -1, -1]
    assert not world.work.flags.writeable
    assert not world.duration.flags.writeable


def test_more_actors_than_ids_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MOST_ACTORS", 10)
    emulate_small("sparrow", jobs((0, [1])), 7, schedulers=1)
    with pytest.raises(InputError, match="11 actors; at most 10"):
        emulate_small("sparrow", jobs((0, [1])), 8, schedulers=1)
    assert queue.MOST_ACTORS << queue.SOURCE_SHIFT == 1 << queue.RANK_SHIFT


def test_a_spread_is_exponential_above_the_least_delay() -> None:
    # One task a job and a node for each: start - submit is one message's delay, and nothing else.
    count = 4000
    workload = jobs(*((i, [0.001]) for i in range(count)))
    outcome = emulate_small("central-fifo", workload, 50, network=Network(0.01, spread_s=0.02))
    delay_s = (outcome.start_ns - workload.arrays().submit_ns) / NS
    above = delay_s - 0.01
    assert above.min() >= 0
    assert abs(above.mean() - 0.02) < 5 * 0.02 / math.sqrt(count)
    assert abs(above.std() - 0.02) < 0.002
    # The quarter that is above ln 4 means.
    assert abs((above > 0.02 * math.log(4)).mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / count)


def test_a_seed_changes_random_delays_and_nothing_else_does() -> None:
    workload = mixed_workload(20, 1)
    network = Network(0.01, spread_s=0.02)
    one, same, other = (
        emulate_small("central-fifo", workload, 4, network=network, seed=seed).start_ns for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.compiled  # 60,000 tasks
@pytest.mark.parametrize("live", [False, True])
def test_a_job_with_more_work_than_fits_an_int64_is_served(live: bool) -> None:
    # 60,000 tasks of 2 days: 1e10 s of work. Such a job waits in a queue like any other.
    workload = make_workload("large", [0, 0, 1], [60_000, 2, 1], [1.8e5] * 60_002 + [1.0])
    outcome = emulate_small("eagle", workload, 3000, cutoff_s=1e9, live_progress=live)
    assert outcome.finish_ns.min() > 0
    assert outcome.finish_ns[2] < outcome.finish_ns[0]
