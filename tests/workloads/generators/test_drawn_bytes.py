"""Bytes that generators of DAG jobs draw: measured and stated shares, and nothing that comes from nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.dags import DagArrays, DagWorkload
from workloads.errors import InputError
from workloads.generators.mapreduce import BLOCK_BYTES, draw_bytes, facebook_mapreduce
from workloads.generators.query_dags import BENCHMARKS, DISK_BYTES_PER_S, MIXES, PASSED_ON, Shapes, query_dags
from workloads.generators.query_dags import draw_bytes as draw_query_bytes
from workloads.readers.swim import read_swim

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
SAMPLE = SHARED / "traces" / "real" / "swim" / "FB-2009_samples_24_times_1hr_0.tsv"
with_sample = pytest.mark.skipif(not SAMPLE.exists(), reason="no traces beside the repository")
MAKERS: tuple[Callable[..., DagWorkload], ...] = (facebook_mapreduce, query_dags)
SMALL: dict[str, dict[str, Any]] = {
    "facebook_mapreduce": {"jobs": 40, "tasks": 700, "tenants": 2},
    "query_dags": {"jobs": 12, "mix": BENCHMARKS, "one_to_one": 0.3, "task_cv": 0.2, "tenants": 2},
}
# Fingerprints with seed 3 before there were bytes.
BEFORE = {
    "facebook_mapreduce": "5c6152cf82cb631e1c49415838073142750336dd3384d76facdcd72a19d1c8c7",
    "query_dags": "5d24c4dd1dca7f55f70f3988b7a8f45afc0c64c47f39ade85633beb3e1b2b743",
}


def sent_by_stage(arrays: DagArrays) -> np.ndarray:
    """What each stage sends over all its edges."""
    parent = np.repeat(np.arange(len(arrays.first_child) - 1), np.diff(arrays.first_child))
    return np.bincount(parent, arrays.edge_bytes, len(arrays.first_child) - 1)


def got_by_stage(arrays: DagArrays) -> np.ndarray:
    """What each stage gets over all its edges."""
    child = np.repeat(np.arange(len(arrays.first_parent) - 1), np.diff(arrays.first_parent))
    return np.bincount(child, arrays.parent_bytes, len(arrays.first_parent) - 1)


def map_reduce(dag: DagWorkload) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each job: maps, whether it has reducers, bytes read, bytes shuffled."""
    arrays = dag.arrays()
    maps = np.diff(arrays.first_parent) == 0
    return (
        np.diff(arrays.stage_first_task)[maps],
        (np.diff(arrays.first_child) > 0)[maps],
        arrays.input_bytes[maps],
        sent_by_stage(arrays)[maps],
    )


@pytest.mark.parametrize("make", MAKERS)
def test_all_else_is_as_it_was_without_bytes(make: Callable[..., DagWorkload]) -> None:
    given_options = SMALL[make.__name__] | {"seed": 3}
    with_bytes, without = make(**given_options), make(**given_options, bytes_scale=0)
    assert without.fingerprint() == BEFORE[make.__name__]
    assert with_bytes.jobs.equals(without.jobs)
    assert with_bytes.tasks.equals(without.tasks)
    assert with_bytes.stages.drop_columns(["input_bytes"]).equals(without.stages)
    assert with_bytes.edges.drop_columns(["size_bytes"]).equals(without.edges)


@pytest.mark.parametrize("make", MAKERS)
def test_a_scale_is_a_factor_on_all_bytes(make: Callable[..., DagWorkload]) -> None:
    once, twice = (make(**SMALL[make.__name__], bytes_scale=scale).arrays() for scale in (1.0, 2.0))
    for name in ("input_bytes", "edge_bytes"):
        plain, doubled = getattr(once, name), getattr(twice, name)
        assert plain.sum() > 0
        # Whole bytes, of every edge of a path; and at least one of MapReduce jobs.
        np.testing.assert_allclose(doubled, 2 * plain, atol=200)
    assert (np.concatenate([once.input_bytes, once.edge_bytes]) % 1 == 0).all()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf"), True, "much"])
def test_a_scale_that_is_no_factor_is_named(make: Callable[..., DagWorkload], scale: Any) -> None:
    with pytest.raises(InputError, match=r"^field bytes_scale: .* is not a number from 0 on"):
        make(bytes_scale=scale)


# MapReduce jobs.


@with_sample
@pytest.mark.reference
def test_map_reduce_jobs_have_the_curves_of_the_sample() -> None:
    """Quantiles are those measured: of ratios above 1 % within 35 %, of inputs within 25 %."""
    dags = read_swim(SAMPLE, family="dags", map_only=True)
    assert isinstance(dags, DagWorkload)
    sample = map_reduce(dags)
    drawn = draw_bytes(np.random.default_rng(1), *sample[:2])
    maps, shuffles, read, shuffled = sample
    for low, high in ((1, 10), (11, 100), (101, 1000), (1001, 10**9)):
        here = shuffles & (maps >= low) & (maps <= high)
        found, want = (
            np.percentile(of[here] / by[here], [25, 50, 75, 90, 95])
            for of, by in ((drawn.shuffled, drawn.read), (shuffled, read))
        )
        np.testing.assert_allclose(found[want > 0.01], want[want > 0.01], rtol=0.35)
    for shuffling in (False, True):
        here = (maps == 1) & (shuffles == shuffling)
        found, want = (np.percentile(of[here], [10, 25, 50, 75, 90]) for of in (drawn.read, read))
        np.testing.assert_allclose(found, want, rtol=0.25)
    assert drawn.read[maps > 1].sum() == pytest.approx(read[maps > 1].sum(), rel=0.01)
    last = read[maps > 1] / BLOCK_BYTES - maps[maps > 1] + 1
    assert np.percentile(last, [5, 25, 50, 75, 95]) == pytest.approx([0.05, 0.25, 0.5, 0.75, 0.95], abs=0.03)


def test_map_reduce_jobs_move_as_many_bytes_as_is_stated() -> None:
    of_input, per_s, wide = [], [], []
    for seed in range(1, 11):
        _, shuffles, read, shuffled = map_reduce(facebook_mapreduce(seed=seed))
        of_input.append(shuffled.sum() / read[shuffles].sum())
        per_s.append(shuffled.sum() / 21_600 / 1e9)
        wide.append(read[shuffles].sum() / read.sum())
    assert np.mean(of_input) == pytest.approx(1.02, abs=0.02)
    assert np.std(of_input) == pytest.approx(0.18, abs=0.02)
    assert np.mean(per_s) == pytest.approx(0.30, abs=0.01)
    assert np.mean(wide) == pytest.approx(0.16, abs=0.01)


@given(
    jobs=st.lists(st.tuples(st.integers(1, 5000), st.booleans()), min_size=1, max_size=30),
    scale=st.floats(1e-12, 1e3),
    seed=st.integers(0, 9),
)
def test_a_map_reads_a_block_and_reducers_get_something(
    jobs: list[tuple[int, bool]], scale: float, seed: int
) -> None:
    maps, shuffles = np.array([n for n, _ in jobs]), np.array([s for _, s in jobs])
    read, shuffled = draw_bytes(np.random.default_rng(seed), maps, shuffles, scale)
    assert (read <= np.maximum(np.rint(maps * BLOCK_BYTES * scale), 1)).all()
    several = maps > 1
    assert (read[several] >= np.rint((maps[several] - 1) * BLOCK_BYTES * scale)).all()
    assert (read >= 1).all()
    assert ((shuffled >= 1) == shuffles).all()
    assert ((shuffled == 0) == ~shuffles).all()


# Queries.


def test_bytes_of_a_diamond_by_hand() -> None:
    """0 sends to 1 and 2 equal parts of what it passes on, and both to 3, with 4 beside them that reads for itself."""
    shapes = Shapes(
        np.array([0, 5]), np.array([0, 0, 1, 1, 2]), np.array([0, 0, 2, 3, 1]), np.array([2, 3, 4, 4, 4])
    )
    rng = np.random.default_rng(5)
    share = np.random.default_rng(5).uniform(*PASSED_ON, 5)
    made = draw_query_bytes(rng, shapes, np.array([4.0, 2.0, 9.0, 9.0, 9.0]))
    assert made.input_bytes.tolist() == [4 * DISK_BYTES_PER_S, 2 * DISK_BYTES_PER_S, 0, 0, 0]
    half = np.floor(4 * DISK_BYTES_PER_S * share[0] / 2)
    assert made.edge_bytes.tolist() == [
        half,
        half,
        np.floor(half * share[2]),
        np.floor(half * share[3]),
        np.floor(2 * DISK_BYTES_PER_S * share[1]),
    ]


@pytest.mark.parametrize("mix", [*MIXES, BENCHMARKS])
def test_no_stage_sends_more_than_it_has_nor_less_than_is_stated(mix: str) -> None:
    dag = query_dags(mix=mix, jobs=60, one_to_one=0.3)
    arrays = dag.arrays()
    source = np.diff(arrays.first_parent) == 0
    has, sent = arrays.input_bytes + got_by_stage(arrays), sent_by_stage(arrays)
    children = np.diff(arrays.first_child)
    assert (has > 0).all()
    assert (sent <= has).all()
    assert (sent[children > 0] + children[children > 0] >= PASSED_ON[0] * has[children > 0]).all()
    assert ((arrays.input_bytes > 0) == source).all()
    read_s = (
        np.diff(arrays.stage_first_task) * column(dag.stages, "mean_task_s") * column(dag.stages, "disk_in")
    )
    want = np.rint(np.where(source, read_s, 0) * DISK_BYTES_PER_S)
    np.testing.assert_allclose(arrays.input_bytes, want, atol=1)


@pytest.mark.parametrize(
    ("mix", "low", "high"), [("tpc-ds", 2.9, 510), ("tpc-h", 10.3, 713), ("bigbench", 5.8, 538)]
)
def test_queries_read_from_gigabytes_to_hundreds_of_gigabytes(mix: str, low: float, high: float) -> None:
    """Carbyne, section 5.1; the figures are those of docs/workloads.md, means over ten seeds."""
    read, moved = [], []
    for seed in range(1, 11):
        arrays = query_dags(mix=mix, seed=seed).arrays()
        first = arrays.first_stage[:-1]
        read.append(np.add.reduceat(arrays.input_bytes, first))
        moved.append(np.add.reduceat(sent_by_stage(arrays), first) / read[-1])
    found = np.mean([np.percentile(of / 1e9, [5, 95]) for of in read], axis=0)
    assert found == pytest.approx([low, high], rel=0.02)
    assert np.mean([np.median(of) for of in moved]) == pytest.approx(0.78, abs=0.03)
