"""Better, equal and worse within a tolerance; which figures are the best; and where the tolerance comes from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.results.measures import SHARES
from emu.results.paired_comparison import Tolerance, best_of, compare_group, shares_of, tolerance_of
from tests.emu.results.test_comparison import result_of

USUAL, EXACT = Tolerance(), Tolerance(0.0, 0.0)
times = st.one_of(st.floats(1e-3, 1e6), st.just(math.nan))


def shares(first: list[float], other: list[float], tolerance: Tolerance = USUAL) -> list[float]:
    found = shares_of(np.array(first), np.array(other), np.ones(len(first), bool), tolerance)
    return [found[name] for name in SHARES]


def test_differences_of_messages_are_no_improvement() -> None:
    # Of four jobs one is 50 s faster; the others save one to four network delays, and count as improved no more.
    first, other = [100.0, 100.0, 5.0, 0.2], [50.0, 99.9995, 4.998, 0.198]
    assert shares(first, other, EXACT) == [1.0, 0.0, 0.0]
    assert shares(first, other) == [0.25, 0.75, 0.0]


def test_either_the_seconds_or_the_share_is_enough() -> None:
    assert shares([10_000.0], [9_991.0]) == [0.0, 1.0, 0.0]  # 0.09 %
    assert shares([10_000.0], [9_989.0]) == [1.0, 0.0, 0.0]
    assert shares([0.011], [0.001]) == [0.0, 1.0, 0.0]  # at 10 ms
    assert shares([0.02], [0.001], Tolerance(0.0, 0.001)) == [1.0, 0.0, 0.0]
    assert str(Tolerance()) == "10 ms or 0.1 %"
    assert str(Tolerance(0.0, 0.02)) == "2 %"


def test_a_job_that_finishes_under_one_alone_is_better_or_worse_by_that() -> None:
    nan = math.nan
    assert shares([nan, 1.0, nan, 5.0], [2.0, nan, nan, 5.0]) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert all(math.isnan(share) for share in shares([nan], [nan]))


@given(
    st.lists(st.tuples(times, times), min_size=1),
    st.sampled_from([EXACT, Tolerance(), Tolerance(0.0, 0.5), Tolerance(1e9, 0.0)]),
)
def test_shares_are_of_the_whole_and_mirror_each_other(
    pairs: list[tuple[float, float]], tolerance: Tolerance
) -> None:
    first, other = (list(column) for column in zip(*pairs, strict=True))
    found = shares(first, other, tolerance)
    if all(math.isnan(a) and math.isnan(b) for a, b in pairs):
        return
    assert sum(found) == pytest.approx(1.0)
    assert shares(other, first, tolerance) == found[::-1]
    wider = shares(first, other, Tolerance(2 * tolerance.absolute_s, 2 * tolerance.relative))
    assert wider[1] >= found[1]


def test_of_one_seed_the_best_are_those_within_one_per_cent() -> None:
    assert best_of({"a": [100.0], "b": [100.9], "c": [101.1]}) == {"a", "b"}
    assert best_of({"a": [100.0], "b": [100.9]}) == frozenset()  # where all are best, none is
    assert best_of({"a": [0.0015], "b": [0.0005]}, Tolerance()) == frozenset()  # a message more
    assert best_of({"a": [0.0015], "b": [0.0005]}) == {"b"}
    assert best_of({"a": [math.nan], "b": [5.0], "c": [9.0]}) == {"b"}
    assert best_of({"a": [math.nan]}) == frozenset()


def test_of_several_seeds_differences_decide_and_not_overlaps() -> None:
    # Seeds move both by hundreds, so that their intervals overlap; yet b is 10 s slower with each of them.
    a = [100.0, 500.0, 900.0, 300.0]
    b = [t + d for t, d in zip(a, (10.0, 11.0, 9.0, 10.0), strict=True)]
    assert best_of({"a": a, "b": b}) == {"a"}
    # c is as much slower in the mean, by chance: the interval of its differences reaches 0.
    c = [t + d for t, d in zip(a, (100.0, -70.0, 50.0, -40.0), strict=True)]
    assert best_of({"a": a, "b": b, "c": c}) == {"a", "c"}
    # What differs by less than is called equal is as good, however certain it is.
    d = [t * 1.0002 for t in a]
    assert best_of({"a": a, "b": b, "d": d}, Tolerance()) == {"a", "d"}


def test_ratios_decide_where_workloads_take_many_times_as_long() -> None:
    # b takes ten times as long with each seed, yet the interval of its differences, 3,917 ± 10,000, reaches 0.
    a = [100.0, 250.0, 1000.0]
    b = [1000.0, 2600.0, 9500.0]
    differences = np.subtract(b, a)
    assert differences.mean() < 4.3027 * differences.std(ddof=1) / np.sqrt(3)
    assert best_of({"a": a, "b": b}) == {"a"}
    assert best_of({"a": [0.0, *a], "b": [0.0, *b]}) == frozenset()  # no ratios of nothing
    # The tolerance is one of ratios too: 0.05 % more with each seed is equal.
    c = [t * f for t, f in zip(a, (1.0005, 1.00051, 1.00049), strict=True)]
    assert best_of({"a": a, "b": b, "c": c}, Tolerance(0.0)) == {"a", "c"}


def test_seeds_that_make_no_difference_are_as_one_seed() -> None:
    same = {"a": [100.0] * 3, "b": [100.9] * 3, "c": [101.1] * 3}
    assert best_of(same) == {"a", "b"}
    assert best_of({**same, "b": [100.9, 100.95, 100.85]}) == {"a"}  # where they do, the interval decides


def test_rows_know_where_they_are_the_best() -> None:
    runs = {
        "a": [result_of("a", [10.0, 1.0, 20.0, 1.0])],
        "b": [result_of("b", [10.01, 1.0, 10.0, 1.0])],
        "c": [result_of("c", [50.0, 1.0, 60.0, 1.0])],
    }
    a, b, c = compare_group(runs, "short", 0.0)
    assert ("p50" in a.best, "p50" in b.best, "p50" in c.best) == (False, True, False)
    assert b.best >= {"mean", "p50", "max", "slowdown.mean"}
    assert not c.best


def test_the_tolerance_is_twenty_network_delays_unless_it_is_given() -> None:
    run = result_of("a", [1.0, 1.0])

    def of(**config: object) -> Tolerance:
        run.manifest["config"] = config
        return tolerance_of({"a": [run]})

    assert of() == Tolerance(0.01, 0.001)
    assert of(network={"delay": "0.5 ms"}) == Tolerance(0.01, 0.001)
    assert of(network={"delay": "0.0 s"}) == Tolerance(0.0, 0.001)
    assert of(network={"delay": "1 ms", "cross_rack_delay": "5 ms"}) == Tolerance(0.1, 0.001)
    assert of(network={"delay": "1 ms"}, tolerance={"absolute": "1 s", "relative": 0.02}) == Tolerance(
        1.0, 0.02
    )
