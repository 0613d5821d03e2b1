"""The timeline costs what happens in a run and not what its period is, and has the rows that it always had."""

from __future__ import annotations

import numpy as np
import pytest
from emulations import mixed_workload, outages, run_setting, run_windows, setting_of
from hypothesis import given
from hypothesis import strategies as st

from actors.hosting.outcome import Observe
from actors.hosting.timeline import MOST_ROWS, TIMELINE, Samples, merge_samples
from actors.kernel.queue import NEVER
from actors.setting import Dynamics

NS = 1_000_000_000
EVENTS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3)), min_size=1, max_size=30)


def steps(events: list[tuple[int, int]], upto: int) -> int:
    """The count at a time: of the last event before it."""
    before = [(t, i, value) for i, (t, value) in enumerate(events) if t < upto]
    return max(before)[2] if before else 0


def sampled(events: list[tuple[int, int]], first: int, period: int, most: int) -> Samples:
    """What a partition notes that handles these events, of time and count, in order of time."""
    samples = Samples(first, period, most)
    pending = sorted(events, key=lambda event: event[0])
    while pending:
        while pending and pending[0][0] < samples.next_ns:
            pending.pop(0)
        due = samples.next_ns
        if due > events_end(events) + 2 * period * 64:
            break
        count = steps(events, due)
        samples.note((0, 0), (count, 0), pending[0][0] if pending else int(NEVER))
    return samples


def events_end(events: list[tuple[int, int]]) -> int:
    return max(t for t, _ in events)


@given(events=EVENTS, period=st.integers(1, 60), most=st.integers(1, 12), later=st.integers(1, 100))
def test_rows_are_those_of_a_row_each_period(
    events: list[tuple[int, int]], period: int, most: int, later: int
) -> None:
    last = events_end(events) + later
    rows = sampled([*events, (last, steps(events, last))], 0, period, most).rows()
    assert len(rows) <= 4 * most + 1
    timeline, step = merge_samples([rows], 0, period, last, 1, most)
    count = timeline["time_s"].size
    assert count <= most
    assert step & (step - 1) == 0
    assert step == 1 or last // period // (step // 2) > most  # no fewer than need be
    times = np.arange(1, last // period // step + 1) * step * period
    assert timeline["time_s"].tolist() == (times / NS).tolist()
    assert timeline["running_short"].tolist() == [steps(events, t) for t in times.tolist()]


def test_without_a_period_there_is_none() -> None:
    samples = Samples(5, 0)
    assert samples.next_ns == NEVER
    timeline, step = merge_samples([samples.rows()], 5, 0, 10**9, 1, MOST_ROWS)
    assert (list(timeline), timeline["time_s"].size, step) == (list(TIMELINE), 0, 1)


def test_a_period_of_nanoseconds_costs_no_more_than_the_events() -> None:
    """It took 27 s, and 38 MB, for 260 events."""
    setting = setting_of("sparrow", mixed_workload(12, 3), 5)
    outcome = run_setting(setting, Observe(timeline_period_s=5e-9))
    times = outcome.timeline["time_s"]
    assert MOST_ROWS / 2 < times.size <= MOST_ROWS
    coarse = run_setting(setting, Observe(timeline_period_s=5e-9 * outcome.timeline_step))
    assert coarse.timeline_step == 1
    for name in TIMELINE:
        assert np.array_equal(outcome.timeline[name], coarse.timeline[name]), name


@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("period_s", [1e-7, 1e-3, 7.0])
def test_partitions_agree_on_which_rows_are_kept(partitions: int, period_s: float) -> None:
    dynamics = Dynamics(outages=outages(("node 1", 2, 500)))
    setting = setting_of(
        "eagle", mixed_workload(12, 3), [1, 2, 1, 2, 1], long_partition=0.7, dynamics=dynamics
    )
    observe = Observe(timeline_period_s=period_s, most_rows=100)
    alone, divided = run_setting(setting, observe), run_windows(setting, observe, partitions)
    assert alone.timeline["time_s"].size <= 100
    assert alone.timeline_step == divided.timeline_step
    for name in TIMELINE:
        assert np.array_equal(alone.timeline[name], divided.timeline[name]), name


def test_what_was_saved_goes_on() -> None:
    events = [(t, t % 3) for t in range(0, 90, 7)]
    one = sampled(events, 0, 2, 3)
    other = Samples(0, 2, 3)
    other.load(one.save())
    assert other.next_ns == one.next_ns
    assert np.array_equal(other.rows(), one.rows())
