"""Text for terminals."""

# ruff: noqa: RUF001 (the sign for "times" is what is printed)

from __future__ import annotations

import doctest
import io
import math

import pytest

import emu.progress
import emu.tables
from emu.progress import describe, progress_bar
from emu.tables import align, number, render_summary, to_ascii, with_error
from emu.terminal import say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("module", [emu.tables, emu.progress])
def test_examples_in_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (999.94, "999.9"),
        (1000.4, "1,000"),
        (1e-7, "1.000e-07"),
        (math.nan, "-"),
        (math.inf, "-"),
        (12, "12"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_errors_have_two_digits() -> None:
    assert with_error(123.4, 0.0123) == "123.4±0.012"
    assert with_error(12345.6, 678.9) == "12,346±679"
    assert with_error(1.0, math.nan) == "1"
    assert with_error(1.0, 0.0) == "1"  # the same with every seed: no interval


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


def test_progress_text() -> None:
    assert describe(0, 0.0, 0.0) == "0 events/s, virtual time 0 s"
    assert describe(2500, 1.0, 90.0) == "2.5k events/s, virtual time 90 s"
