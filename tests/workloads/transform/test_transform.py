"""Workloads brought to a load: what changes, and what must not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.errors import InputError
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


def test_busy_slots_by_hand() -> None:
    assert busy_slots(three()) == 20.0 / 10.0


def test_gaps_are_scaled_from_the_first_arrival() -> None:
    made = at_load(three(), slots=4, load=0.25)  # from 2 busy slots to 1
    assert column(made.jobs, "submit_s").tolist() == [5.0, 7.0, 25.0]
    assert busy_slots(made) == 1.0
    assert "gaps scaled by 2" in made.metadata["arrivals"]
    assert made.metadata["origin"] == "by hand"


def test_all_else_stays() -> None:
    made, was = at_load(three(), slots=4, load=0.25), three()
    assert made.tasks.equals(was.tasks)
    assert made.jobs.drop_columns(["submit_s"]).equals(was.jobs.drop_columns(["submit_s"]))
    assert made.jobs.schema.equals(was.jobs.schema, check_metadata=True)
    assert (made.name, made.short_cutoff_s, made.long_partition) == ("three", 9.0, 0.5)


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


def test_a_workload_without_a_load_is_refused() -> None:
    at_once = make_workload("burst", [3.0, 3.0], [1, 1], [1.0, 1.0])
    with pytest.raises(InputError, match="all jobs of burst arrive at once"):
        at_load(at_once, 1, 0.5)
    idle = make_workload("idle", [0.0, 3.0], [1, 1], [0.0, 0.0])
    with pytest.raises(InputError, match="no task of idle takes any time"):
        at_load(idle, 1, 0.5)


def test_arrivals_beyond_all_times_are_refused() -> None:
    with pytest.raises(InputError, match="would arrive after"):
        at_load(three(), slots=1, load=1e-9)
