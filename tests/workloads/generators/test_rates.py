"""Arrivals at a rate, one by one, in batches, or at once."""

from __future__ import annotations

import numpy as np
import pytest

from workloads.generators.arrivals import PROCESSES, Arrivals, RatedArrivals
from workloads.generators.draws import generator

COUNT = 30_000


def test_one_by_one_they_are_those_of_the_process():
    made = RatedArrivals("bursty", 5.0, burst_ratio=3.0).times(generator(2), 100)
    rng = generator(2)
    rng.integers(1, 1, 100, endpoint=True)
    np.testing.assert_allclose(made, Arrivals("bursty", 3.0).times(rng, 100, 0.2), atol=1e-9)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize(("least", "most"), [(1, 1), (5, 5), (1, 9)])
def test_the_rate_is_of_what_arrives_whatever_the_batches(process, least, most):
    arrivals = RatedArrivals(process, 20.0, least, most, burst_jobs=3.0, period_s=50.0)
    times = np.concatenate([np.diff(arrivals.times(generator(s), COUNT), prepend=0.0) for s in range(4)])
    assert (times >= 0).all()
    assert times.mean() == pytest.approx(1 / 20, rel=0.06)


def test_batches_are_of_all_sizes_alike():
    times = RatedArrivals("poisson", 20.0, 2, 6).times(generator(1), COUNT)
    sizes = np.unique(times, return_counts=True)[1]
    found, counts = np.unique(sizes[:-1], return_counts=True)  # the last may be cut
    assert found.tolist() == [2, 3, 4, 5, 6]
    expected = counts.sum() / 5
    assert ((counts - expected) ** 2 / expected).sum() < 18.5  # 4 degrees of freedom, 0.1 %
    assert len(times) == COUNT
    cut = RatedArrivals("poisson", 20.0, 50, 50).times(generator(1), 7)
    assert len(cut) == 7
    assert cut[0] == cut[-1] > 0


def test_all_at_once_is_at_time_0_and_needs_no_chance():
    assert RatedArrivals().times(generator(1), 3).tolist() == [0.0, 0.0, 0.0]
    rng = generator(1)
    RatedArrivals().times(rng, 3)
    assert rng.random() == generator(1).random()
