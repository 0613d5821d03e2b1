"""Arrays that named tuples declare: how long they are, what they hold, and of which type."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from switch_runs import switch

from actors.initial_arrays import at_start, per


class Declaring(NamedTuple):
    given: int
    by_coflow: np.ndarray = per("coflow", np.inf)
    by_port: np.ndarray = per("port", True)
    two: np.ndarray = per("run", np.uint64(7), 2)
    by_flow: np.ndarray = per("flow")


def test_each_field_has_its_length_value_and_type() -> None:
    fabric = switch([(0, [(0, 1, 5.0), (1, 1, 6.0)]), (3, [(2, 0, 7.0)])], 3)
    made = at_start(Declaring, fabric, given=4, by_flow=np.ones(1))
    assert (made.given, made.by_flow.tolist()) == (4, [1.0])
    assert made.by_coflow.tolist() == [np.inf, np.inf]
    assert (made.by_port.size, made.by_port.dtype, made.by_port.all()) == (128, np.bool_, True)
    assert (made.two.tolist(), made.two.dtype) == ([7, 7], np.uint64)
    assert at_start(Declaring, fabric, given=4).by_flow.dtype == np.int64


def test_a_field_without_an_array_must_be_given() -> None:
    with pytest.raises(TypeError, match="given"):
        at_start(Declaring, switch([(0, [(0, 1, 5.0)])], 2))
