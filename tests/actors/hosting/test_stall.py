"""A run in which no task ends for long says so while it lasts and at its end, with the setting that is its cause."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import bounded_runs
import coflow_emulations
import dag_settings
import emulations
import pytest
from bounded_runs import ALL_TASKS, MOST_EVENTS
from emulations import jobs, outages, run_partition, run_setting, setting_of, with_dynamics

from actors.environment import Pace
from actors.hosting import runs
from actors.hosting.checkpoint import Position
from actors.hosting.live import emulate_live
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Progress
from actors.hosting.runs import emulate
from actors.hosting.stall import LONG, MANY_EVENTS, StallWatch, likely_cause
from actors.hosting.windows import emulate_windows
from actors.setting import Dynamics, Setting
from tests.actors.transfers.runs import MACHINES, over

TWO_TASKS = jobs((0, [10]), (1000, [5]))
FAILING = Dynamics(mtbf_s=0.5, mttr_s=0.001)


def test_a_stall_is_ten_longest_tasks_and_a_thousand_events_without_an_end() -> None:
    said: list[str] = []
    watch = StallWatch(setting_of("random", TWO_TASKS, 2), None, said.append)
    assert (LONG, MANY_EVENTS) == (10, 1000)
    for done, events, virtual_s, stalled in (
        (0, 5_000, 100.0, False),  # ten times 10 s, and no more
        (0, 5_000, 101.0, True),
        (0, 6_000, 150.0, True),
        (1, 6_001, 151.0, False),  # a task has ended
        (1, 7_000, 999.0, False),  # 848 s later, but of 999 events
        (1, 9_000, 1100.0, False),  # counted from the arrival at 1000 s: nothing was left to do before
        (1, 9_001, 1101.0, True),
    ):
        watch.update(done, events, virtual_s)
        assert (watch.present is not None) == stalled, virtual_s
    why = "the longest task takes 10 s, and no setting of failures explains it"
    assert said == [
        f"note: random: no task has ended for 101 s of virtual time; {why}; 0 of 2 have ended, 5,000 events were"
        " handled since",
        f"note: random: no task has ended for 101 s of virtual time; {why}; 1 of 2 have ended, 3,000 events were"
        " handled since",
    ]
    assert watch.past == f"no task ended for 150 s of virtual time, until 150 s; {why}"


def test_a_stall_of_one_that_goes_on_from_a_checkpoint_counts_from_there() -> None:
    watch = StallWatch(setting_of("random", TWO_TASKS, 2), None, None)
    watch.update(1, 5_000, 5_000.0)
    assert watch.present is watch.past is None


def cause(dynamics: Dynamics, at_s: float = 50.0) -> str:
    return likely_cause(setting_of("random", TWO_TASKS, 4, dynamics=dynamics), at_s).why


def test_the_setting_of_failures_that_is_the_likely_cause_is_named_and_what_would_be_right() -> None:
    # e^(10/2) = 148 attempts. With an mtbf of 10 s, e = 2.7.
    assert cause(Dynamics(mtbf_s=2.0, mttr_s=1.0)) == (
        "likely cause: dynamics.mtbf: the longest task takes 10 s and nodes fail every 2 s: about 1.5e+02 attempts in"
        " the mean until it ends, as a lost task starts again; with a dynamics.mtbf of at least 10 s it takes fewer"
        " than 3"
    )
    some_down = outages(("node 0", 5, math.inf), ("node 1", 10, 60), ("node 2", 60, 70))
    assert cause(Dynamics(outages=some_down)) == (
        "likely cause: dynamics.failures: 2 of 4 nodes are down, 1 of them for good, and jobs that may use no other"
        " nodes wait; an earlier repair_s would let them run"
    )
    unexplained = "the longest task takes 10 s, and no setting of failures explains it"
    assert cause(Dynamics(outages=some_down), at_s=4.0) == unexplained
    assert cause(Dynamics(mtbf_s=10.0, mttr_s=1.0)) == unexplained


def test_fetches_that_machines_do_not_let_end_are_the_likely_cause() -> None:
    setting = over("fair", dag_settings.two_shuffles(1, 2), MACHINES)
    rare = replace(setting, dynamics=Dynamics(mtbf_s=6000.0, mttr_s=1.0))
    assert (
        "of 5 machines one fails each 20 min, and each fetch from it begins again"
        in likely_cause(rare, 9.0).why
    )
    assert "no setting of failures explains it" in likely_cause(setting, 9.0).why


def test_the_longest_task_is_a_straggler_on_the_slowest_node_and_of_coflows_the_busiest_port() -> None:
    slow = Dynamics(straggler_share=1.0, straggler_slowdown=4.0)
    assert cause(slow).startswith("the longest task takes 40 s")
    # Port 1 receives 6 bytes at 2 bytes/s.
    fan_in = coflow_emulations.coflows((0.0, [(0, 1, 2.0), (2, 1, 4.0)]), ports=3)
    setting = coflow_emulations.setting_of("fifo", fan_in, speed=2.0)
    assert likely_cause(setting, 1.0).why.startswith("the busiest port takes 3 s for all its flows, and")


def interrupted(run: Callable[..., Any], setting: Setting) -> tuple[list[str], list[str]]:
    """The notes of a run's end by Ctrl-C once it shows a stall, and what it has printed before."""

    class Bar:
        stalled_by: str | None = None

        def stalled(self, short: str | None) -> None:
            self.stalled_by = short

        def __call__(self, tasks_done: int, events: int, virtual_s: float) -> None:
            assert events < 10 * MOST_EVENTS, "no stall was seen"
            if self.stalled_by is not None:
                assert self.stalled_by.startswith("no task has ended for ")
                assert self.stalled_by.endswith(": dynamics.mtbf is too short")
                signal.raise_signal(signal.SIGINT)

    printed: list[str] = []
    with pytest.raises(KeyboardInterrupt) as end:
        run(setting, ALL_TASKS, progress=Bar(), tell=printed.append)
    return end.value.__notes__, [line for line in printed if line.startswith("note: ")]


def virtual(setting: Setting, *rest: Any, **given: Any) -> Any:
    return emulate(setting, *rest, in_process=True, **given)


def in_windows(setting: Setting, *rest: Any, **given: Any) -> Any:
    return emulate_windows(setting, *rest, partitions=2, in_process=True, **given)


def live(setting: Setting, *rest: Any, **given: Any) -> Any:
    return emulate_live(setting, *rest, Pace(0.01), in_process=True, **given)


@pytest.mark.slow("interrupts processes")
@pytest.mark.parametrize("run", [virtual, in_windows, live])
def test_ctrl_c_in_a_stall_says_why_no_task_ends_by_each_clock(run: Callable[..., Any]) -> None:
    # 20 times the mean time between failures: e^20 = 4.9e8 attempts.
    setting = setting_of("sparrow", jobs((0, [10.0] * 8)), 8, network=0.01, dynamics=FAILING)
    [note], [printed] = interrupted(run, setting)
    assert note.startswith("no task has ended for ")
    assert "likely cause: dynamics.mtbf: the longest task takes 10 s and nodes fail every 500 ms" in note
    assert "with a dynamics.mtbf of at least 10 s" in note
    assert printed.startswith("note: sparrow: no task has ended for ")


@pytest.mark.slow("interrupts a process")
def test_ctrl_c_in_a_stall_of_dag_jobs_says_it_too() -> None:
    [note], _ = interrupted(virtual, with_dynamics(dag_settings.setting_of("drf"), FAILING))
    assert "likely cause: dynamics.mtbf" in note


def test_a_run_that_ends_after_a_stall_has_it_in_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_of("random", TWO_TASKS, 2)
    positions = [(0, 5_000, 400.0), (1, 6_000, 500.0), (2, 9_000, 1005.0)]

    class Recorded:
        """A run that has come so far after each slice."""

        snapshots = list

        def __init__(self) -> None:
            self.left = list(positions)

        def run(self, most_s: float) -> Progress:
            done, events, virtual_s = self.left.pop(0)
            return Progress(done, Position(virtual_s, events), not self.left)

        def outcome(self) -> Outcome:
            return run_setting(setting)

    outcome = runs.run_in_slices(Recorded(), setting, None, None, None)
    assert outcome.stall is not None
    assert outcome.stall.startswith("no task ended for 400 s of virtual time, until 400 s; the longest task")
    assert run_setting(setting).stall is None


def test_no_test_hangs_in_a_run_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_runs, "MOST_EVENTS", 10_000)
    endless = setting_of("sparrow", jobs((0, [10.0] * 8)), 8, dynamics=FAILING)
    with pytest.raises(AssertionError, match="the run has no end: "):
        run_setting(endless)
    with pytest.raises(AssertionError, match="the run has no end: "):
        run_partition(endless)
    with pytest.raises(AssertionError, match="the run has no end: 20 rounds"):
        for _ in bounded_runs.bounded(20):
            pass
    assert run_setting(emulations.with_failures(endless, FAILING)).finish_ns.min() > 0
