"""Resampled workloads: blocks of a trace's time, drawn with replacement."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.workloads.family_examples import a_flow, coflows_of, dags_of
from tests.workloads.strategies import coflows, dags, workloads
from tests.workloads.transform.test_transform_selection import FEW, is_well_formed
from workloads.arrow import column
from workloads.constraints import constraint_sets, parse_constraint_set, set_of_job, with_constraints
from workloads.errors import InputError
from workloads.jobs import MAX_TIME_S, JobWorkload, make_workload
from workloads.transform import history, redo, resample
from workloads.transform.primitives import arrivals_s, family, heads

SPANS = st.floats(0.01, 2.0)
"""Lengths of blocks, as shares of the span."""


def evenly(jobs: int, gap_s: float = 10.0, start_s: float = 5.0) -> JobWorkload:
    """Jobs that arrive one gap after the other; the n-th has a task of n seconds, and the id 100 + n."""
    ids = np.arange(jobs)
    return make_workload("w", start_s + gap_s * ids, np.ones(jobs, int), ids, job_id=100 + ids)


def rows_by_id(workload: Any, table: str) -> dict[int, list[tuple[Any, ...]]]:
    """The rows of a table by whose they are, without ids and times of arrival."""
    of = family(workload)
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in getattr(workload, table).to_pylist():
        own = row.pop(of.key)
        if table == of.name:
            arrival_s = row.pop(of.arrival)
            if row.get("deadline_s") is not None:
                row["deadline_s"] = pytest.approx(row["deadline_s"] - arrival_s, rel=1e-6, abs=1e-3)
        row.pop("set_id", None)
        found.setdefault(own, []).append(tuple(row.items()))
    return found


def source_ids(made: Any, source: Any) -> list[int]:
    """The ids in the source of what was drawn, in order."""
    of = family(source)
    (line,) = history(made)[-1:]
    by = int(line.split("copy * ")[1].split(" + id")[0])
    own = column(heads(source), of.key)
    inner = column(heads(made), of.key) % by
    return [int(own[i]) for i in inner] if own.min() < 0 or own.max() >= by else inner.tolist()


def drawn(workload: Any, block_s: float, seed: int) -> Any:
    """The workload resampled; None where nothing arrives in the blocks."""
    try:
        return resample(workload, block_s, seed=seed)
    except InputError as error:
        if "want longer blocks" not in str(error):
            raise
        return None


@FEW
@given(workload=workloads(labelled=True) | dags() | coflows(), share=SPANS, seed=st.integers(0, 9))
def test_what_is_drawn_is_of_the_trace_with_all_that_belongs_to_it(
    workload: Any, share: float, seed: int
) -> None:
    times_s = arrivals_s(workload)
    span_s = float(times_s[-1] - times_s[0])
    assume(share * span_s > 0 and times_s[0] + span_s * len(times_s) / (len(times_s) - 1) < MAX_TIME_S / 2)
    if (made := drawn(workload, share * span_s, seed)) is None:
        return
    of, ids = family(workload), source_ids(made, workload)
    if isinstance(made, JobWorkload):
        assert is_well_formed(made)
    new = column(heads(made), of.key)
    assert len(set(new.tolist())) == len(new)
    for table in (of.name, *(part for part in of.parts if part != "job_constraints")):
        was, now = rows_by_id(workload, table), rows_by_id(made, table)
        assert [now.get(n) for n in new.tolist()] == [was.get(i) for i in ids]
    assert redo([workload], history(made)[-1]).fingerprint() == made.fingerprint()
    assert resample(workload, share * span_s, seed=seed).fingerprint() == made.fingerprint()


@given(jobs=st.integers(2, 30), block=st.floats(0.3, 40), seed=st.integers(0, 99))
def test_gaps_within_a_block_are_kept_and_blocks_follow_each_other(
    jobs: int, block: float, seed: int
) -> None:
    gaps = np.random.default_rng(seed).exponential(1.0, jobs)
    source = make_workload("w", np.cumsum(gaps), np.ones(jobs, int), np.arange(jobs), job_id=np.arange(jobs))
    times_s = arrivals_s(source)
    span_s = times_s[-1] - times_s[0]
    circle_s = span_s * jobs / (jobs - 1)
    block_s = block if block < span_s else circle_s
    if (made := drawn(source, block, seed)) is None:
        return
    at_s = arrivals_s(made) - times_s[0]
    assert at_s.min() >= 0
    assert at_s.max() < circle_s
    number = np.floor(at_s / block_s).astype(int)
    own = np.array(source_ids(made, source))
    for of_block in range(number.max() + 1):
        here = np.flatnonzero(number == of_block)
        assert len(set(own[here].tolist())) == len(here)  # nothing is twice in a block
        # On the circle all are as far from where the block begins as they are now from where it is put.
        begins_s = (times_s[own[here]] - times_s[0] - (at_s[here] - of_block * block_s)) % circle_s
        off_s = (begins_s - begins_s[:1] + circle_s / 2) % circle_s - circle_s / 2
        assert np.abs(off_s).max(initial=0) < 1e-6
        # And all that lie so in the trace are here: none was left out.
        length_s = min(block_s, circle_s - of_block * block_s)
        if len(here):
            distance_s = (times_s - times_s[0] - begins_s[0]) % circle_s
            assert set(np.flatnonzero((distance_s > 1e-6) & (distance_s < length_s - 1e-6))) <= set(own[here])


def test_a_block_as_long_as_the_trace_begins_it_at_another_time() -> None:
    source = evenly(8)
    for block_s in (70.0, 1e6):  # the span, and more
        made = resample(source, block_s, seed=3)
        drawn = source_ids(made, source)
        assert sorted(drawn) == list(range(100, 108))
        assert drawn == [*range(drawn[0], 108), *range(100, drawn[0])]
        assert np.diff(arrivals_s(made)) == pytest.approx(10.0)
    starts = {source_ids(resample(source, 70.0, seed=seed), source)[0] for seed in range(40)}
    assert starts == set(range(100, 108))


def test_ids_tell_the_copy_and_the_job() -> None:
    made = resample(evenly(5), 10.0, seed=2)
    ids = made.jobs["job_id"].to_pylist()
    seen: Counter[int] = Counter()
    for new in ids:
        copy, own = divmod(new, 1000)
        assert copy == seen[own]
        assert 100 <= own < 105
        assert made.tasks["duration_s"][ids.index(new)].as_py() == own - 100
        seen[own] += 1
    assert max(seen.values()) > 1
    assert "ids are copy * 1000 + id" in history(made)[0]


def test_ids_too_large_for_copies_become_places() -> None:
    huge = make_workload("w", [0, 1, 2, 3], [1] * 4, [1.0] * 4, job_id=[2**62, 5, -4, 2**63 - 1])
    made = resample(huge, 1.0, seed=1)
    assert {new % 10 for new in made.jobs["job_id"].to_pylist()} <= {0, 1, 2, 3}


@pytest.mark.slow("many resamples of a trace")
@pytest.mark.parametrize("block_s", [3.0, 40.0, 333.0])
def test_the_expected_jobs_and_work_are_those_of_the_trace(block_s: float) -> None:
    rng = np.random.default_rng(1)
    # Bursts, and twice the work in the second half: what a draw that forgets the ends, or wraps wrongly, would miss.
    submit_s = np.sort(np.concatenate([rng.uniform(0, 500, 60), rng.uniform(300, 310, 40)]))
    counts = np.where(submit_s > 250, 2, 1)
    source = make_workload("w", submit_s, counts, np.ones(counts.sum()))
    made = [resample(source, block_s, seed=seed) for seed in range(400)]
    for total, found in (
        (source.num_jobs, [m.num_jobs for m in made]),
        (source.num_tasks, [m.num_tasks for m in made]),
    ):
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        assert abs(np.mean(found) - total) < 4 * error + 1e-9
        assert error > 0 or block_s > 500
    # Each job is as likely: those at the ends are drawn as often as those in the middle.
    drawn = Counter(i for m in made for i in source_ids(m, source))
    often = np.array([drawn[i] for i in range(source.num_jobs)]) / len(made)
    assert abs(often[:10].mean() - 1) < 0.35
    assert abs(often[-10:].mean() - 1) < 0.35


def test_longer_blocks_keep_bursts_and_short_ones_do_not() -> None:
    rng = np.random.default_rng(2)
    bursts_s = np.sort(np.concatenate([at + rng.uniform(0, 1, 20) for at in rng.uniform(0, 1000, 20)]))
    source = make_workload("w", bursts_s, np.ones(400, int), np.ones(400))

    def neighbours(workload: JobWorkload) -> float:
        at_s = arrivals_s(workload)
        return float(np.mean(np.searchsorted(at_s, at_s + 1) - np.searchsorted(at_s, at_s - 1)))

    kept, lost = (np.mean([neighbours(resample(source, b, seed=s)) for s in range(5)]) for b in (100.0, 0.01))
    assert kept > 0.7 * neighbours(source)
    assert lost < 0.4 * neighbours(source)


def test_constraints_deadlines_and_edges_come_along() -> None:
    sets = [(), parse_constraint_set("cores >= 4"), parse_constraint_set("spread-nodes")]
    source = with_constraints(evenly(9), sets, np.arange(9) % 3)
    made = resample(source, 20.0, seed=4)
    texts = [constraint_sets(made)[s] if s >= 0 else () for s in set_of_job(made)]
    assert texts == [tuple(sets[i % 3]) for i in (np.array(source_ids(made, source)) - 100).tolist()]
    some = coflows_of([(0.0, 9.0, a_flow()), (5.0, None, a_flow()), (20.0, 21.0, a_flow())], 3)
    late = resample(some, 6.0, seed=1)
    left = {0: 9.0, 1: None, 2: 1.0}
    for row, own in zip(late.coflows.to_pylist(), source_ids(late, some), strict=True):
        deadline = row["deadline_s"]
        assert deadline == (None if left[own] is None else pytest.approx(row["arrival_s"] + left[own]))
    dag = dags_of([(0, [[1], [2]], [(0, 1)], None), (9, [[3]], [], None), (12, [[4], [5, 6]], [(0, 1)], "t")])
    again = resample(dag, 5.0, seed=1)
    assert [len(rows_by_id(again, "stages")[i]) for i in again.jobs["job_id"].to_pylist()] == [
        {0: 2, 1: 1, 2: 2}[own] for own in source_ids(again, dag)
    ]


def test_blocks_without_arrivals_are_an_error() -> None:
    two = make_workload("w", [0, 100], [1, 1], [1, 1])
    seed = next(seed for seed in range(100) if drawn(two, 1.0, seed) is None)
    with pytest.raises(
        InputError, match="none of the jobs of w arrives in the blocks of 1 s that were drawn"
    ):
        resample(two, 1.0, seed=seed)
