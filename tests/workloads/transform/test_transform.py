"""Workloads brought to a load: what changes, and what must not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.jobs import JobWorkload, make_workload
from workloads.transform import at_load, busy_slots


def three() -> JobWorkload:
    return make_workload(
        "three",
        [5.0, 6.0, 15.0],
        [1, 2, 1],
        [2.0, 3.0, 4.0, 11.0],
        constraint=["gpu", None, None],
        short_cutoff_s=9.0,
        long_partition=0.5,
        metadata={"origin": "by hand"},
    )


def test_arrays_are_of_the_new_arrivals() -> None:
    was = three()
    was.arrays()
    assert at_load(was, slots=4, load=0.25).arrays().submit_ns.tolist() == [5 * 10**9, 7 * 10**9, 25 * 10**9]


@given(
    gaps=st.lists(st.floats(0, 1e4), min_size=1, max_size=20).filter(lambda g: sum(g) > 1e-3),
    load=st.floats(0.01, 10),
    slots=st.integers(1, 10**6),
)
def test_the_load_is_met_and_the_order_kept(gaps: list[float], load: float, slots: int) -> None:
    submit_s = np.concatenate([[1.0], 1.0 + np.cumsum(gaps)])
    workload = make_workload("w", submit_s, np.ones(len(submit_s), int), np.full(len(submit_s), 2.0))
    made = at_load(workload, slots, load)
    # Differences of times carry the rounding of the times.
    assert busy_slots(made) / slots == pytest.approx(load, rel=1e-6)
    assert (np.diff(column(made.jobs, "submit_s")) >= 0).all()
    assert made.jobs["job_id"].equals(workload.jobs["job_id"])
