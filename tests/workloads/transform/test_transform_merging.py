"""Copies, merged and split workloads of jobs; history, and transformations by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.strategies import workloads
from tests.workloads.transform.test_transform_selection import FEW, five
from workloads.arrow import column
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.transform import (
    TRANSFORMATIONS,
    busy_slots,
    history,
    redo,
    replicate,
    scale,
    time_slice,
    truncate,
)


def labelled(workload: JobWorkload) -> bool:
    tenants = set(workload.jobs["tenant"].to_pylist())
    return tenants != {None} and "none" not in tenants


def test_the_load_of_each_node_stays() -> None:
    assert busy_slots(replicate(five(), 3)) == pytest.approx(3 * busy_slots(five()))


def test_arrivals_of_copies_are_shifted_by_up_to_half_the_jitter() -> None:
    workload = make_workload("w", np.arange(0.0, 100.0, 10.0), np.ones(10, int), np.arange(10.0))
    made = replicate(workload, 20, jitter_s=4.0, seed=1)
    shift_s = column(made.jobs, "submit_s") - 10.0 * column(made.tasks, "duration_s")
    assert np.abs(shift_s).max() <= 2.0
    assert np.abs(shift_s).max() > 1.5
    assert (shift_s == 0).sum() == 10  # the first copy
    assert replicate(workload, 2, jitter_s=0.0).jobs["submit_s"].to_pylist() == [
        10.0 * (n // 2) for n in range(20)
    ]


@FEW
@given(workload=workloads(labelled=True), load=st.floats(0.01, 2), nodes=st.integers(1, 10**6))
def test_scale_meets_the_load(workload: JobWorkload, load: float, nodes: int) -> None:
    try:
        made = scale(workload, load, nodes, slots=2)
    except InputError as error:
        assert any(w in str(error) for w in ("at once", "any time", "would arrive after"))  # noqa: PT017
        return
    submit_s = column(made.jobs, "submit_s")
    # Differences of times carry the rounding of the times.
    rounding = float(np.spacing(submit_s[-1])) * 4 / max(float(submit_s[-1] - submit_s[0]), 1e-300)
    assert busy_slots(made) / (2 * nodes) == pytest.approx(load, rel=1e-9 + rounding)
    assert made.tasks.equals(workload.tasks)
    assert redo([workload], history(made)[-1]).fingerprint() == made.fingerprint()


def test_history_is_in_order_and_can_be_done_again() -> None:
    made = five()
    for step in range(5):
        made = truncate(time_slice(made, 0.0, 700.0 - step, rebase=False), 80.0 - step)
    made = scale(made, 0.8, 3)
    assert list(made.metadata)[1:] == [f"transformed.{n}" for n in range(1, 12)]
    again = five()
    for line in history(made):
        again = redo([again], line)
    assert again.fingerprint() == made.fingerprint()
    assert history(again) == history(made)


def test_options_are_read_from_text() -> None:
    scaling, slicing = TRANSFORMATIONS["scale"], TRANSFORMATIONS["slice"]
    assert scaling.parse({"load": "90%", "nodes": "15,000", "port_speed_bps": "1 Gbps"}) == {
        "load": 0.9,
        "nodes": 15000,
        "port_speed_bps": 1e9,
    }
    assert slicing.parse({"start_s": "1h", "rebase": "no"}) == {"start_s": 3600.0, "rebase": False}
    assert [option.flag for option in scaling.options] == ["--load", "--nodes", "--slots", "--port-speed"]
    assert [option.flag for option in slicing.options] == ["--start", "--end", "--rebase"]


def test_every_option_is_a_parameter_of_its_function() -> None:
    import inspect

    for name, step in TRANSFORMATIONS.items():
        parameters = list(inspect.signature(step.function).parameters)
        assert [option.name for option in step.options] == parameters[1:], name
