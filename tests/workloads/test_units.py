import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workloads.apportion
import workloads.hints
import workloads.published_cutoffs
import workloads.units
from workloads.apportion import apportion
from workloads.errors import InputError
from workloads.units import format_duration, parse_bandwidth, parse_duration, parse_share, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90.58s", 90.58),
        ("10 ms", 0.01),
        ("0.5ms", 0.0005),
        ("8", 8.0),
        (8, 8.0),
        (0.25, 0.25),
        ("2h", 7200.0),
        ("3 us", 3e-6),
        ("3µs", 3e-6),
        ("7ns", 7e-9),
        ("1.5 min", 90.0),
        ("1d", 86400.0),
        ("0", 0.0),
        ("1e-999999999", 0.0),
        (".5e1 s", 5.0),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text, "--quantum") == seconds


@pytest.mark.parametrize(
    "text",
    ["", "s", "abc", "-1s", -1, "nan", "inf", math.nan, math.inf, "1 m", "10 msec", "1_000", "1e400", "1 s s",
     True, None, "9" * 400, "1 MB", "٣", "5%", "- 3"],
)  # fmt: skip
def test_wrong_durations_name_the_option_and_an_example(text):
    with pytest.raises(InputError, match=r"^--quantum: .* is not a duration such as '90.58s'"):
        parse_duration(text, "--quantum")


@given(st.floats(0, 1e300))
def test_a_duration_is_the_float_that_was_written(seconds):
    assert parse_duration(repr(seconds), "x") == seconds
    assert parse_duration(seconds, "x") == seconds


@given(st.floats(1e-8, 1e9))
def test_a_formatted_duration_reads_back_to_four_digits(seconds):
    assert parse_duration(format_duration(seconds), "x") == pytest.approx(seconds, rel=1e-3)


def test_shares():
    assert parse_share("98%", "p") == 0.98
    assert parse_share("98 %", "p") == 0.98
    assert parse_share(0.98, "p") == 0.98
    assert parse_share("0.1%", "p") == 0.001
    assert parse_share("100%", "p") == parse_share(1, "p") == 1.0
    assert parse_share("0", "p") == 0.0
    for wrong in ("101%", -0.1, "nan", "x", "1s", "%", 101):
        with pytest.raises(InputError, match=r"^p: .*'98%' or 0\.98"):
            parse_share(wrong, "p")
    with pytest.raises(InputError, match="did you mean '98%'"):
        parse_share(98, "p")


def test_bandwidths_are_bits_and_sizes_are_bytes():
    assert parse_bandwidth("1 Gbps", "b") == 1e9
    assert parse_bandwidth("400Mbps", "b") == 4e8
    assert parse_bandwidth("2.5 Gbit/s", "b") == 2.5e9
    assert parse_bandwidth(1e9, "b") == 1e9
    with pytest.raises(InputError, match="'1 Gbps'"):
        parse_bandwidth("1 GBps", "b")  # bytes: eight times as fast
    assert parse_size("10 MB", "s") == 10_000_000
    assert parse_size("64 KiB", "s") == 65536
    assert parse_size("1.5kB", "s") == 1500
    assert parse_size(7, "s") == 7
    with pytest.raises(InputError, match="whole number of bytes"):
        parse_size("0.5 B", "s")
    with pytest.raises(InputError, match="'10 MB'"):
        parse_size("10 Mb", "s")


@given(st.integers(0, 10**7), st.lists(st.integers(0, 10**6), min_size=1).filter(any))
def test_apportioned_parts_add_up_and_are_within_one_of_the_exact_share(total, weights):
    parts = apportion(total, weights)
    assert parts.sum() == total
    for part, weight in zip(parts.tolist(), weights, strict=True):
        assert abs(part * sum(weights) - total * weight) < sum(weights)


@pytest.mark.parametrize(
    "module",
    [workloads.apportion, workloads.hints, workloads.published_cutoffs, workloads.units],
    ids=lambda m: m.__name__,
)
def test_examples_in_docstrings(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
