import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workloads.groups
import workloads.hints
import workloads.published_cutoffs
import workloads.units
from workloads.groups import apportion
from workloads.units import format_duration, parse_duration


@given(st.floats(0, 1e300))
def test_a_duration_is_the_float_that_was_written(seconds):
    assert parse_duration(repr(seconds), "x") == seconds
    assert parse_duration(seconds, "x") == seconds


@given(st.floats(1e-8, 1e9))
def test_a_formatted_duration_reads_back_to_four_digits(seconds):
    assert parse_duration(format_duration(seconds), "x") == pytest.approx(seconds, rel=1e-3)


@given(st.integers(0, 10**7), st.lists(st.integers(0, 10**6), min_size=1).filter(any))
def test_apportioned_parts_add_up_and_are_within_one_of_the_exact_share(total, weights):
    parts = apportion(total, weights)
    assert parts.sum() == total
    for part, weight in zip(parts.tolist(), weights, strict=True):
        assert abs(part * sum(weights) - total * weight) < sum(weights)


@pytest.mark.parametrize(
    "module",
    [workloads.groups, workloads.hints, workloads.published_cutoffs, workloads.units],
    ids=lambda m: m.__name__,
)
def test_examples_in_docstrings(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
