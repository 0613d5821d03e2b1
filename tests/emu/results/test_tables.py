"""Text for terminals."""

# ruff: noqa: RUF001 (the sign for "times" is what is printed)

from __future__ import annotations

import doctest
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emu.results.text_tables
import emu.running.progress
from emu.results.summary_text import render_summary, statistics_cells
from emu.results.text_tables import (
    align,
    counter_text,
    counter_texts,
    number,
    percent,
    ratio,
    with_error,
)
from emu.running.progress import describe, progress_bar
from emu.terminal import say, to_ascii


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("module", [emu.results.text_tables, emu.running.progress])
def test_examples_in_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (999.94, "999.9"),
        (1000.4, "1,000"),
        (999.96, "1,000"),
        (1e-7, "0.0000001"),
        (1.23456e-5, "0.00001235"),
        (117452.4, "117,452"),
        (math.nan, "-"),
        (math.inf, "-"),
        (12, "12"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (123.4, 0.123, "123.40±0.12"),  # an error that begins with 100 to 354 has two digits
        (123.4, 0.5, "123.4±0.5"),  # others one
        (123.4, 0.97, "123.4±1.0"),
        (12345.6, 678.9, "12,300±700"),
        (5701.2, 42.4, "5,700±40"),
        (96.59, 0.00012, "96.590±0.001"),  # five digits are enough; an error is never made smaller
        (56566.39, 0.003, "56,566±1"),
        (0.0012, 0.3, "0±0.30"),
        (1.0, math.nan, "1"),
        (1.0, 0.0, "1"),  # the same with every seed: no interval
        (math.nan, 1.0, "-"),
    ],
)
def test_the_error_decides_the_digits(value: float, half: float, text: str) -> None:
    assert with_error(value, half) == text


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.153, math.nan, "0.153×"),
        (1.0, math.nan, "1.00×"),
        (1.0949, math.nan, "1.09×"),
        (64.879, math.nan, "64.9×"),
        (0.0467, math.nan, "1/21.4×"),
        (1.40713e-07, math.nan, "1/7,110,000×"),
        (64878.9, math.nan, "64,900×"),
        (0.0341, 8.4e-05, "1/29.33±0.07×"),
        (0.0341, 0.008, "1/29±7×"),
        (0.0341, 0.009, "0.034±0.009×"),  # one over it would be 1/29±8, and truly between 1/23 and 1/40
        (0.0341, 0.04, "0.03±0.04×"),
        (0.1532, 0.0003, "0.1532±0.0003×"),
        (1.0, 6.4, "1±6×"),
        (1.0, 0.0, "1.00×"),
        (0.0, math.nan, "0×"),
        (math.nan, math.nan, ""),
    ],
)
def test_ratios_as_a_person_reads_them(mean: float, half: float, text: str) -> None:
    assert ratio(mean, half) == text


@pytest.mark.parametrize(
    ("share", "half", "text"),
    [
        (0.8104, math.nan, "81.0%"),
        (0.8104, 0.004, "81.0±0.4%"),
        (0.0, math.nan, "0.0%"),
        (1e-5, math.nan, "<0.1%"),
        (0.99999, math.nan, ">99.9%"),
        (1.0, math.nan, "100.0%"),
        (math.nan, math.nan, ""),
    ],
)
def test_shares(share: float, half: float, text: str) -> None:
    assert percent(share, half) == text


def test_nanoseconds_of_nodes_are_shown_in_node_hours() -> None:
    shown = counter_texts({"probes": 7, "lost_work_ns": 14_976_311_782_015_280, "node_downtime_ns": 0})
    assert shown == {"probes": "7", "lost work": "4,160 node-hours"}
    assert counter_text("lost_work_ns", 3.6e12, 0.36e12) == "1.00±0.10 node-hours"
    assert counter_text("probes", 12345.6, 700.0) == "12,300±700"


def parsed(text: str) -> float:
    """The number that a reader sees."""
    assert "e" not in text
    return float(text.replace(",", ""))


magnitudes = st.floats(-9.0, 9.0).map(lambda e: 10.0**e)
signed = st.builds(lambda size, negative: -size if negative else size, magnitudes, st.booleans())


@given(signed)
def test_a_number_is_shown_to_four_digits(value: float) -> None:
    shown = parsed(number(value))
    assert abs(shown - value) <= max(0.5e-3 * abs(value) * 1.001, 0.5 if abs(value) >= 1000 else 0.0)
    assert shown != 0


@given(signed, magnitudes)
def test_the_number_that_is_shown_lies_within_its_error(value: float, half: float) -> None:
    text = with_error(value, half)
    shown, error = map(parsed, text.split("±"))
    assert abs(shown - value) <= error
    assert error > 0
    assert error >= 0.88 * half  # 0.449 is shown as 0.4
    assert error <= 1.13 * half + (1.0 if abs(value) >= 1e4 else 1e-4 * abs(value))
    assert shown or (text.startswith("0±") and abs(value) < half)


@given(magnitudes, st.one_of(st.just(math.nan), magnitudes))
def test_a_ratio_that_is_shown_lies_within_its_error(mean: float, half: float) -> None:
    text = ratio(mean, half)
    body = text.removesuffix("×")
    inverse = body.startswith("1/")
    assert inverse == (mean < 0.1 and not half > mean / 4)
    shown, _, error = body.removeprefix("1/").partition("±")
    truth = 1 / mean if inverse else mean
    allowed = parsed(error) if error else 0.0051 * truth
    assert abs(parsed(shown) - truth) <= allowed * 1.001
    assert error or parsed(shown) > 0


def test_columns_are_aligned() -> None:
    assert align([["", "a"], ["long", "12"]]) == ["       a", "long  12"]


def test_other_signs_in_ascii() -> None:
    assert to_ascii("1±2× — é…") == "1~2x ? ?..."


def test_a_summary_as_printed() -> None:
    times = {"count": 1200, "mean": 10.0, "p50": 5.0, "p90": 20.0, "p99": 100.0}
    summary = {
        "scheduler": "eagle",
        "workload": "w",
        "nodes": 15000,
        "seed": 3,
        "jobs": {"all": times, "makespan_s": 90.0, "jain_index": 0.5, "unfinished": 2},
        "engine": {"wall_s": 0.5, "events": 8000, "tasks": 1000, "tasks_per_s": 2000.0},
        "counters": {"tasks_stolen": 7, "rejections": 0},
    }
    assert render_summary(summary) == (
        "eagle on w, 15,000 nodes, seed 3\n"
        "\n"
        "job completion time (s)   jobs  mean  p50  p90  p99\n"
        "  all                    1,200    10    5   20  100\n"
        "\n"
        "makespan 90 s, Jain index of slowdown 0.500, 2 jobs did not finish\n"
        "1,000 tasks, 8,000 events in 500 ms (2,000 tasks/s)\n"
        "tasks stolen 7\n"
    )


def test_progress_is_shown_to_a_terminal_only() -> None:
    plain, terminal = io.StringIO(), Terminal()
    with progress_bar("eagle", 100, plain) as show:
        assert show is None
    say("hello", plain)
    assert plain.getvalue() == ""
    with progress_bar("eagle", 100, terminal) as show:
        assert show is not None
        show(50, 400, 7261.0)
        show(100, 800, 7300.0)
    say("hello", terminal)
    assert "eagle" in terminal.getvalue()
    assert "emu: hello\n" in terminal.getvalue()
    closed = io.StringIO()
    closed.close()
    say("hello", closed)


def test_progress_goes_by_the_share_that_is_done_where_tasks_do_not_tell_it() -> None:
    terminal = Terminal()
    with progress_bar("mine", 1000, terminal) as show:
        assert show is not None
        for share in (0.25, 0.4, 0.31):
            show.share_done(share)
            show(990, 400, 7261.0)
        assert show._bar.n == 400  # it does not go back
    assert "0%|" in terminal.getvalue()
    assert "/1.00k" not in terminal.getvalue()  # no tasks, which would not tell it
    say("note: this must be read", plain := io.StringIO())
    assert plain.getvalue() == "emu: note: this must be read\n"


def test_progress_says_that_no_task_ends() -> None:
    terminal = Terminal()
    with progress_bar("hawk", 100, terminal) as show:
        assert show is not None
        show.stalled("no task has ended for 2 h: dynamics.mtbf is too short")
        show(3, 400, 7261.0)
    assert "no task has ended for 2 h: dynamics.mtbf is too short]" in terminal.getvalue()


def test_a_count_that_is_a_mean_over_runs_has_four_digits() -> None:
    assert statistics_cells({"count": 78.5 / 49}, {}, ()) == ["1.602"]
    assert statistics_cells({"count": 117_452}, {}, ()) == ["117,452"]


def test_progress_text() -> None:
    assert describe(0, 0.0, 0.0) == "0 events/s, virtual time 0 s"
    assert describe(2500, 1.0, 90.0) == "2.5k events/s, virtual time 90 s"
