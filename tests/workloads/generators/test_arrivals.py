"""None"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.generators.arrivals import PROCESSES, Arrivals, RatedArrivals, _by_inversion
from workloads.generators.draws import generator

COUNT = 100_000


class Points:
    """Stands in for the random numbers: gaps of a unit Poisson process, and what else is asked for, as given."""

    def __init__(self, gaps, uniform=(), ends=0, silences=()):
        self.gaps, self.uniform, self.ends, self.silences = gaps, list(uniform), ends, silences
        self.asked = 0

    def standard_exponential(self, count):
        self.asked += 1
        drawn = np.array(self.gaps if self.asked == 1 else self.silences, float)
        assert len(drawn) == count
        return drawn

    def poisson(self, mean):
        return self.ends

    def random(self, count=None):
        drawn = self.uniform.pop(0)
        assert np.size(drawn) == (1 if count is None else count)
        return drawn if count is None else np.array(drawn, float)


@st.composite
def processes(draw):
    return Arrivals(
        draw(st.sampled_from(PROCESSES)),
        burst_ratio=draw(st.floats(1, 20)),
        burst_jobs=draw(st.floats(1, 100)),
        period_s=draw(st.floats(1, 1e6)),
        amplitude=draw(st.floats(0, 1)),
    )


@given(processes(), st.integers(1, 500), st.floats(1e-3, 1e3), st.integers(0, 2**32))
@settings(max_examples=30)
def test_any_process_gives_sorted_times_the_same_for_a_seed(process, count, mean_gap_s, seed):
    times = process.times(generator(seed), count, mean_gap_s)
    assert times.shape == (count,)
    assert np.all(np.isfinite(times))
    assert times[0] >= 0
    assert np.all(np.diff(times) >= 0)
    assert np.array_equal(times, process.times(generator(seed), count, mean_gap_s))


@pytest.mark.parametrize(
    "process",
    [
        Arrivals(),
        Arrivals("bursty"),
        Arrivals("bursty", burst_ratio=2, burst_jobs=100),
        Arrivals("diurnal", period_s=COUNT / 7),
        Arrivals("diurnal", period_s=COUNT / 1.36, amplitude=1),  # not whole periods
        Arrivals("diurnal", period_s=COUNT * 20, amplitude=1),  # a small piece of one
    ],
    ids=str,
)
def test_the_mean_rate_is_the_one_asked_for(process):
    assert process.times(generator(5), COUNT, 3.0)[-1] == pytest.approx(3.0 * COUNT, rel=0.03)


def test_poisson_gaps_are_exponential():
    gaps = np.diff(Arrivals().times(generator(1), COUNT, 2.0))
    assert gaps.std() == pytest.approx(2.0, rel=0.02)
    assert np.mean(gaps > 2.0) == pytest.approx(np.exp(-1), abs=0.01)


@pytest.mark.parametrize(("ratio", "burst"), [(5, 10), (2, 3), (20, 50), (1, 10)])
def test_gaps_of_an_interrupted_poisson_process_vary_as_its_formula_says(ratio, burst):
    gaps = np.diff(Arrivals("bursty", burst_ratio=ratio, burst_jobs=burst).times(generator(3), COUNT, 1.0))
    scv = 1 + 2 * burst * (1 - 1 / ratio) ** 2
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(scv, rel=0.12)
    # A renewal process: gaps do not depend on each other.
    assert np.corrcoef(gaps[1:], gaps[:-1])[0, 1] == pytest.approx(0, abs=0.02)


def test_the_default_bursts_vary_as_the_arrivals_of_yahoo():
    process = Arrivals("bursty")
    assert np.sqrt(1 + 2 * process.burst_jobs * (1 - 1 / process.burst_ratio) ** 2) == pytest.approx(
        3.7, abs=0.05
    )


def test_bursts_and_silences_by_hand():
    # Mean gap 10 s, twice the rate in bursts: on their clock jobs come at 5, 10, 15 and 20 s. A burst holds 4
    # jobs, 20 s, in the mean, and so does a silence: 20 s times the drawn 0.5, 1 and 2.
    process = Arrivals("bursty", burst_ratio=2, burst_jobs=4)
    # Bursts end at 0.6 and 0.3 of 20 s on that clock: after the second and the first job.
    same = {"gaps": [1, 1, 1, 1], "ends": 2, "silences": [0.5, 1, 2]}
    in_a_burst = Points(uniform=[[0.6, 0.3], 0.4], **same)
    assert process.times(in_a_burst, 4, 10.0) == pytest.approx([5, 10 + 20, 15 + 60, 20 + 60])
    in_a_silence = Points(uniform=[[0.6, 0.3], 0.6], **same)
    assert process.times(in_a_silence, 4, 10.0) == pytest.approx([15, 40, 85, 90])


def test_a_diurnal_rate_by_hand():
    # One period of 1 s with amplitude 1: the rate adds up to t + (1 - cos 2πt) / 2π.
    quarter, half = 1 / 4 + 1 / (2 * np.pi), 1 / 2 + 1 / np.pi
    points = np.array([0.0, quarter, half, 1.0, 2.0 + half])
    assert _by_inversion(points, 1.0, 1.0) == pytest.approx([0, 0.25, 0.5, 1.0, 2.5], abs=1e-6)
    # Half a period: the same points fill a span in which more come than in the mean, but not sooner.
    assert _by_inversion(points[:3] / half, 0.5, 1.0) == pytest.approx([0, 0.5, 1.0], abs=1e-6)
    # No swing leaves the points as they are.
    assert _by_inversion(points, 3.7, 0.0) == pytest.approx(points)


def test_diurnal_arrivals_follow_the_rate():
    process = Arrivals("diurnal", period_s=1000, amplitude=0.8)
    phase = process.times(generator(2), COUNT, 0.1) % 1000 / 1000
    counts = np.histogram(phase, 8, (0, 1))[0] / COUNT
    edges = np.linspace(0, 1, 9)
    expected = np.diff(edges + 0.8 * (1 - np.cos(2 * np.pi * edges)) / (2 * np.pi))
    assert counts == pytest.approx(expected, abs=0.006)


# Arrivals at a rate, one by one, in batches, or at once.

ARRIVALS = 30_000


def test_one_by_one_they_are_those_of_the_process():
    made = RatedArrivals("bursty", 5.0, burst_ratio=3.0).times(generator(2), 100)
    rng = generator(2)
    rng.integers(1, 1, 100, endpoint=True)
    np.testing.assert_allclose(made, Arrivals("bursty", 3.0).times(rng, 100, 0.2), atol=1e-9)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize(("least", "most"), [(1, 1), (5, 5), (1, 9)])
def test_the_rate_is_of_what_arrives_whatever_the_batches(process, least, most):
    arrivals = RatedArrivals(process, 20.0, least, most, burst_jobs=3.0, period_s=50.0)
    times = np.concatenate([np.diff(arrivals.times(generator(s), ARRIVALS), prepend=0.0) for s in range(4)])
    assert (times >= 0).all()
    assert times.mean() == pytest.approx(1 / 20, rel=0.06)


def test_batches_are_of_all_sizes_alike():
    times = RatedArrivals("poisson", 20.0, 2, 6).times(generator(1), ARRIVALS)
    sizes = np.unique(times, return_counts=True)[1]
    found, counts = np.unique(sizes[:-1], return_counts=True)  # the last may be cut
    assert found.tolist() == [2, 3, 4, 5, 6]
    expected = counts.sum() / 5
    assert ((counts - expected) ** 2 / expected).sum() < 18.5  # 4 degrees of freedom, 0.1 %
    assert len(times) == ARRIVALS
    cut = RatedArrivals("poisson", 20.0, 50, 50).times(generator(1), 7)
    assert len(cut) == 7
    assert cut[0] == cut[-1] > 0


def test_all_at_once_is_at_time_0_and_needs_no_chance():
    assert RatedArrivals().times(generator(1), 3).tolist() == [0.0, 0.0, 0.0]
    rng = generator(1)
    RatedArrivals().times(rng, 3)
    assert rng.random() == generator(1).random()
