"""Constraints drawn for jobs: as often as the models say, seeded, recorded, and for the jobs that are meant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.family_examples import dags_of
from workloads.constraints import constraint_sets, set_of_job, set_text
from workloads.errors import InputError
from workloads.generators.constraints import MODELS, expected, find_model
from workloads.jobs import JobWorkload, make_workload
from workloads.transform import TRANSFORMATIONS, constrain, frequencies, history, redo

MANY = 100_000
TCFV = """
8 7 7 10 23 20 30 1 3 1 4 3 2 1 4 2 9 8 11 25 29
7.5 6.6 6.6 9.4 21.6 18.8 28.2 0.9 2.8 0.9 3.8 2.8 1.9 0.9 3.8 1.9 8.5 7.5 10.3 23.5 27.3
7.8 6.9 6.9 9.8 22.5 19.6 29.4 1 2.9 1 3.9 2.9 2 1 3.9 2 8.8 7.8 10.8 24.5 28.4
5.8 5 5 7.2 16.6 14.4 21.6 0.7 2.2 0.7 2.9 2.2 1.4 0.7 2.9 1.4 6.5 5.8 7.9 18 20.9
9.7 8.5 8.5 12.1 27.8 24.2 36.3 1.2 3.6 1.2 4.8 3.6 2.4 1.2 4.8 2.4 10.9 9.7 13.3 30.2 35.1
6.6 5.7 5.7 8.2 18.9 16.4 24.6 0.8 2.5 0.8 3.3 2.5 1.6 0.8 3.3 1.6 7.4 6.6 9 20.5 23.8
8.7 7.6 7.6 10.9 25.1 21.8 32.7 1.1 3.3 1.1 4.4 3.3 2.2 1.1 4.4 2.2 9.8 8.7 12 27.3 31.6
4.7 4.1 4.1 5.9 13.6 11.8 17.7 0.6 1.8 0.6 2.4 1.8 1.2 0.6 2.4 1.2 5.3 4.7 6.5 14.8 17.1
5.7 5 5 7.1 16.3 14.2 21.3 0.7 2.1 0.7 2.8 2.1 1.4 0.7 2.8 1.4 6.4 5.7 7.8 17.8 20.6
7.2 6.3 6.3 9 20.6 17.9 26.9 0.9 2.7 0.9 3.6 2.7 1.8 0.9 3.6 1.8 8.1 7.2 9.9 22.4 26
"""
"""Percent of the tasks of each statistical cluster that have each constraint, as published with Megha."""


def jobs(count: int, long_every: int = 10, cutoff_s: float | None = 50.0) -> JobWorkload:
    """Jobs of a task each, of which every tenth is long."""
    duration_s = np.where(np.arange(count) % long_every == 0, 100.0, 1.0)
    return make_workload(
        "w", np.arange(float(count)), np.ones(count, int), duration_s, short_cutoff_s=cutoff_s
    )


def test_the_cascade_of_phoenix_gives_the_published_mix() -> None:
    """The rules of the simulator, one after the other, over all pairs of x and y."""
    rules = [(100, 30), (60, 40), (60, 50), (70, 60), (80, 75), (80, 80), (60, 88), (50, 100)]
    pairs = [(x, y) for x in range(1, 101) for y in range(1, 101)]
    met = Counter(
        next((n for n, (below_x, below_y) in enumerate(rules) if x < below_x and y < below_y), None)
        for x, y in pairs
    )
    shares = MODELS["phoenix"].shares[0]
    assert shares.tolist() == pytest.approx([met[n] / 10_000 for n in range(8)], abs=1e-12)
    published = [0.287, 0.059, 0.059, 0.089, 0.149, 0.040, 0.047, 0.059]
    assert np.abs(shares - published).max() < 0.0006
    assert 1 - shares.sum() == pytest.approx(0.202 + 0.010, abs=0.001)


def test_the_clusters_of_sharma_are_the_published_table() -> None:
    assert (MODELS["sharma"].shares * 100).ravel().tolist() == pytest.approx([*map(float, TCFV.split())])
    assert MODELS["sharma"].weights.sum() == pytest.approx(1)
    first_cluster = (0.0396 + 0.1204 + 0.1304 + 0.1168) / 4  # of the four types, whose columns add up to 1
    assert MODELS["sharma"].weights[0] == pytest.approx(first_cluster, abs=2e-4)


@pytest.mark.slow("a large sample")
@pytest.mark.parametrize("combined", [None, False, True])
@pytest.mark.parametrize(
    "model", ["phoenix", "sharma", "cores >= 16 and isa = x86: 12.5%, memory > 8 GiB: 0.3, spread-racks: 5%"]
)
def test_frequencies_are_drawn_within_half_a_point(model: str, combined: bool | None) -> None:
    workload = jobs(MANY, long_every=MANY)
    made = constrain(workload, model, combined, jobs="all", seed=1)
    of = find_model(model)
    found = frequencies(made)
    assert [f.constraints for f in found] == list(of.items)
    for one, asked in zip(found, expected(of, of.combined if combined is None else combined), strict=True):
        assert one.asked == pytest.approx(asked)
        assert abs(one.drawn - asked) < 0.005
        assert one.jobs == round(one.drawn * MANY)
    size_of = np.array([*map(len, constraint_sets(made)), 0])  # the last for jobs without a set
    sizes = size_of[set_of_job(made)]
    if not (of.combined if combined is None else combined):
        most = 2 if "and" in model else 1
        assert sizes.max() == most
        assert (sizes > 0).mean() == pytest.approx(sum(f.drawn for f in found))


def test_one_of_those_drawn_stays_each_as_likely() -> None:
    """What is expected of single constraints of a combined model, against drawing and then choosing."""
    of = MODELS["sharma"]._replace(weights=np.ones(1), shares=np.array([[0.5, 0.25, 1.0] + [0.0] * 18]))
    by_hand = [
        0.5 * (0.75 / 2 + 0.25 / 3),
        0.25 * (0.5 / 2 + 0.5 / 3),
        0.5 * 0.75 + 0.5 * 0.75 / 2 + 0.5 * 0.25 / 2 + 0.125 / 3,
    ]
    assert expected(of, combined=False)[:3].tolist() == pytest.approx(by_hand)


def test_phoenix_constrains_short_jobs_only_unless_asked() -> None:
    workload = jobs(2000)
    is_long = np.arange(2000) % 10 == 0
    for which, may in ((None, ~is_long), ("long", is_long), ("all", np.ones(2000, bool))):
        has = set_of_job(constrain(workload, jobs=which)) >= 0
        assert not has[~may].any()
        assert 0.7 < has[may].mean() < 0.87
    assert (set_of_job(constrain(workload, "sharma"))[is_long] >= 0).any()


@settings(max_examples=20)
@given(
    st.sampled_from(["phoenix", "sharma", "isa = x86: 50%, clock > 2 GHz soft 2: 0.25"]),
    st.none() | st.booleans(),
    st.sampled_from([None, "short", "all"]),
    st.integers(0, 2**64 - 1),
)
def test_history_says_how_to_draw_the_same_again(
    model: str, combined: bool | None, which: str | None, seed: int
) -> None:
    workload = jobs(60)
    made = constrain(workload, model, combined, which, seed=seed)
    assert redo([workload], history(made)[-1]).fingerprint() == made.fingerprint()
    assert constrain(workload, model, combined, which, seed=seed).jobs.equals(made.jobs)
    other = constrain(workload, model, combined, which, seed=seed ^ 1)
    assert set_of_job(other).tolist() != set_of_job(made).tolist()


def test_what_was_drawn_is_in_the_metadata() -> None:
    made = constrain(jobs(100), soft="clock, port", price=1.25, seed=3)
    line = history(made)[0]
    assert line.startswith(
        "constrain model=phoenix combined=no jobs=short soft='clock, port' price=1.25 seed=3 # "
    )
    assert line.endswith(" of 90 short jobs constrained, of a workload of 100")
    soft = {set_text(s) for s in constraint_sets(made) if s[0].price is not None}
    assert soft == {"clock >= 3 GHz soft 1.25", "port >= 10 Gbps soft 1.25"}
    assert redo([jobs(100)], line).fingerprint() == made.fingerprint()


def test_constraints_that_are_there_are_replaced_and_it_is_said() -> None:
    again = constrain(constrain(jobs(1000), seed=1), {"isa = x86": 1.0})
    assert again.jobs["constraint"].to_pylist() == ["isa"] * 1000
    assert again.notes[0].startswith("constrain: 1,000 of 1,000 jobs constrained")
    assert "replaced" in again.notes[0]
    assert frequencies(again)[0][1:] == (1000, 1.0, 1.0)


def test_frequencies_of_constraints_that_were_not_drawn() -> None:
    made = constrain(jobs(100), {"isa = x86 and cores > 4": 1.0})
    plain = frequencies(make_again(made))
    assert [(set_text(f.constraints), f.jobs, f.asked) for f in plain] == [
        ("isa = x86", 100, None),
        ("cores > 4", 100, None),
    ]
    assert frequencies(jobs(3)) == []


def make_again(workload: JobWorkload) -> JobWorkload:
    """The same, without its history."""
    from dataclasses import replace

    return replace(workload, metadata={})


def test_dags_are_constrained_as_jobs_are() -> None:
    dag = dags_of([(float(n), [[1.0], [2.0]], [(0, 1)], None) for n in range(50)])
    made = constrain(dag, "sharma", seed=5)
    assert made.edges is dag.edges
    assert set_of_job(made).tolist() == set_of_job(constrain(jobs(50), "sharma", seed=5)).tolist()


def test_options_are_read_from_text() -> None:
    given = {"model": "isa = x86: 10%", "combined": "yes", "price": "2", "seed": "7"}
    assert TRANSFORMATIONS["constrain"].parse(given) == {
        "model": "isa = x86: 10%",
        "combined": True,
        "price": 2.0,
        "seed": 7,
    }
    with pytest.raises(InputError, match=r"--price: 'dear' is not a number"):
        TRANSFORMATIONS["constrain"].parse({"price": "dear"})
