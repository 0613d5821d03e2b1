"""What is being done is shown while it lasts: in the last line of a terminal, or as a line every 30 s."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from emu.running import progress
from emu.running.progress import LINE_S, Teller, progress_bar, runs_bar, telling
from emu.terminal import hidden_by, note, print_line, talking
from workloads import doing as steps
from workloads.doing import Step, current, doing


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def screen(self) -> str:
        """The last line, as it looks."""
        line = ""
        for part in self.getvalue().rpartition("\n")[2].split("\r"):
            line = part + line[len(part) :]
        return line.rstrip()


class Clock:
    """A stand-in for time."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(progress, "LINE_S", LINE_S)  # elsewhere tests have no such lines
    return Clock()


def begun(what: str, clock: Clock) -> Any:
    """A step that begins now."""
    step = doing(what)
    entered = step.__enter__()
    entered.since = clock()
    return step


def look(teller: Teller, clock: Clock, after_s: float) -> None:
    clock.now_s += after_s
    teller.look()


def test_the_innermost_step_is_what_is_being_done() -> None:
    before = current()
    with doing("a run") as run:
        assert current() is run
        with doing("starting Ray") as start:
            assert current() is start
        assert current() is run
        outer = doing("one thread")
        outer.__enter__()
        with doing("another") as other:
            outer.__exit__(None, None, None)  # ends before the other, which began later
            assert current() is other
    assert current() is before


def test_a_terminal_shows_what_is_being_done_and_since_when_in_one_line(clock: Clock) -> None:
    terminal = Terminal()
    teller = Teller(terminal, clock)
    with hidden_by(teller.hide):
        look(teller, clock, 0.0)
        step = begun("starting Ray", clock)
        look(teller, clock, 0.5)
        assert terminal.screen() == ""  # what takes no time is not shown
        look(teller, clock, 11.5)
        assert terminal.screen() == "emu: starting Ray, 12 s so far"
        inner = begun("a", clock)
        look(teller, clock, 9.0)
        assert terminal.screen() == "emu: a, 9 s so far"  # nothing is left of the longer line
        print_line("note: a line", terminal)
        assert terminal.getvalue().endswith("\remu: note: a line\n")
        assert terminal.screen() == ""
        look(teller, clock, 1.0)
        assert terminal.screen() == "emu: a, 10 s so far"
        inner.__exit__(None, None, None)
        step.__exit__(None, None, None)
    assert terminal.screen() == ""


def test_where_no_terminal_shows_it_a_line_every_30_s_does(clock: Clock) -> None:
    plain = io.StringIO()
    teller = Teller(plain, clock)
    step = begun("starting Ray", clock)
    for _ in range(70):
        look(teller, clock, 1.0)
    assert plain.getvalue() == "emu: starting Ray, 30 s so far\nemu: starting Ray, 60 s so far\n"
    step.__exit__(None, None, None)


def test_a_run_says_how_far_it_is_where_no_terminal_shows_its_bar(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = io.StringIO()
    teller = Teller(plain, clock)
    monkeypatch.setattr(progress, "_tellers", [teller])
    with progress_bar("sparrow", 24_000, plain) as show:
        assert show is not None
        show(1_200, 5_000, 7261.0)
        current().since = clock()
        look(teller, clock, LINE_S)
        show.stalled("no task has ended for 2 h")
        show(1_200, 9_000, 14_461.0)
        look(teller, clock, LINE_S)
    with runs_bar("sweep-grid", 8, 2, plain) as show_runs:
        assert show_runs is not None
        show_runs(5, 1, "scheduler=eagle\x1b/seed=1")
        current().since = clock()
        look(teller, clock, LINE_S)
    assert plain.getvalue().splitlines() == [
        "emu: sparrow: 1,200 of 24,000 tasks, virtual time 2.017 h, 30 s so far",
        "emu: sparrow: 1,200 of 24,000 tasks, no task has ended for 2 h, 60 s so far",
        "emu: sweep-grid: 5 of 8 runs, 1 failed, scheduler=eagle\\u001b/seed=1, 30 s so far",
    ]


def test_a_bar_gives_way_to_a_step_within_the_run_and_comes_back(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    teller = Teller(terminal, clock)
    monkeypatch.setattr(progress, "_tellers", [teller])
    with hidden_by(progress._BARS.hide), hidden_by(teller.hide):
        with progress_bar("sparrow", 100, terminal) as show:
            assert show is not None
            show(50, 400, 7261.0)
            assert terminal.screen().startswith("sparrow:  50%")
            step = begun("starting Ray", clock)
            look(teller, clock, 10.0)
            assert terminal.screen() == "emu: starting Ray, 10 s so far"
            step.__exit__(None, None, None)
            current().since = clock() - 20.0
            look(teller, clock, 1.0)  # also if the run does not go on yet
            assert terminal.screen().startswith("sparrow:  50%")
        assert terminal.screen() == ""


def test_a_thread_looks_and_nothing_is_shown_with_quiet() -> None:
    before = threading.active_count()
    plain = io.StringIO()
    with telling(plain), telling(plain):
        assert threading.active_count() == before + 1
    with talking(quiet=True), telling(plain):
        assert threading.active_count() == before
    assert threading.active_count() == before
    assert plain.getvalue() == ""


@pytest.fixture
def begun_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def step(what: str) -> Step:
        names.append(what)
        return Step(what)

    monkeypatch.setattr(steps, "Step", step)
    return names


def test_all_that_may_take_long_is_a_step(
    trace: Any, emu: Callable[..., Any], begun_steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(Teller, "look", lambda self: shown.append("looked"))
    ended = emu(
        "run", "--scheduler", "random", "--workload", "small", "--nodes", "20", "--in-process", "--json"
    )
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["scheduler"] == "random"
    kernel = [name for name in begun_steps if name.endswith("the kernel")]
    assert [name for name in begun_steps if name not in kernel] == [
        "emu run",
        "making the workload and the cluster",
        "random",
        "collecting the results",
        "writing the results",
    ]
    assert kernel


def test_notes_are_lines_of_their_own_beside_progress(capsys: pytest.CaptureFixture[str]) -> None:
    note("a\x1bb")
    assert capsys.readouterr().err == "emu: note: a\\u001bb\n"
