"""Partitions that meet in shared memory, or over TCP: the same bits as one, whatever stops them on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from emulations import OBSERVED, digest, mixed_workload, run_setting, run_windows, setting_of
from members import BOUND_S, CASES, ONE, SEVERAL, Group, Machines, fails, group_on, size_of, small

from actors.hosting import partition
from actors.hosting.checkpoint import Position
from actors.hosting.cleanup import is_gone, is_stopped
from actors.hosting.interrupts import Lost
from actors.hosting.member import Member
from actors.hosting.outcome import Observe
from actors.kernel import meeting
from actors.kernel.system_calls import CAN_SHARE

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.slow("compiles the loops of all families"),
    pytest.mark.skipif(not CAN_SHARE, reason="plain Python, or a processor without such waiting"),
]


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_one_partition(case: str) -> None:
    setting = CASES[case]()
    whole = digest(run_setting(setting, OBSERVED))
    windows = {k: run_windows(setting, OBSERVED, k).windows for k in map(size_of, ONE)}
    for machines in (*ONE, *SEVERAL):
        with group_on(machines, setting) as group:
            outcome = group.to_the_end(3600.0)
        assert digest(outcome) == whole, machines
        assert outcome.windows == windows[size_of(machines)]
        assert outcome.delayed == (0, 0, 0)


@pytest.mark.parametrize("machines", [ONE[1], *SEVERAL[1:3]], ids=str)
def test_all_pause_at_the_same_window(machines: Machines) -> None:
    setting = small("eagle")
    with group_on(machines, setting) as group:
        group.meet(0.0, 7)  # windows without events
        outcome = group.to_the_end(0.0)  # each call handles one window, which all return
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))
    assert outcome.windows == run_windows(setting, OBSERVED, 3).windows


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("case", ["eagle", "a user's own", "DAGs over a network"])
def test_who_runs_ahead_ends_its_window_after_some_events(
    partitions: int, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a partition that runs ahead to the end could not be interrupted."""
    setting = CASES[case]()
    for module in (partition, sys.modules[Member.__module__]):
        monkeypatch.setattr(module, "SLICE_EVENTS", np.int64(3))
    outcome = Group(setting, OBSERVED, [range(partitions)]).to_the_end(0.0)
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))
    assert outcome.windows > max(run_windows(setting, OBSERVED, partitions).windows, outcome.events // 10)


def test_who_waits_gives_way_to_a_partition_of_its_core_that_is_late() -> None:
    cores = os.sched_getaffinity(0)
    here, window, partitions = min(cores), 7, 2
    words = np.zeros(meeting.shared_words(partitions, 0), np.int64)
    try:
        os.sched_setaffinity(0, [here])
        for core, mark, is_late in (
            (here, window - 1, True),
            (here, window, False),
            (here + 1, window - 1, False),
        ):
            words[meeting.MARK], words[meeting.CORE] = window, here  # the one that waits
            words[meeting.LINE + meeting.MARK], words[meeting.LINE + meeting.CORE] = mark, core
            assert meeting.holds_up(np.int64(words.ctypes.data), window, partitions) == is_late
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.parametrize("messages", [8, 11])
@pytest.mark.parametrize("machines", [ONE[-1], SEVERAL[-1]], ids=["one machine", "several"])
def test_frames_that_are_too_small_change_nothing(
    machines: Machines, messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = small("eagle")
    whole = digest(run_setting(setting, OBSERVED))
    for module in (partition, sys.modules[Member.__module__]):
        monkeypatch.setattr(module, "FRAME_MESSAGES", messages)
    with group_on(machines, setting) as group:
        assert digest(group.to_the_end(3600.0)) == whole


@pytest.mark.parametrize(
    ("case", "first", "second"),
    [
        *((case, ONE[1], ONE[1]) for case in ("eagle", "failures", "DAGs", "DAGs over a network")),
        ("eagle", SEVERAL[1], [[0], [1, 2]]),
    ],
    ids=str,
)
def test_a_run_goes_on_from_a_checkpoint_in_another_memory(
    case: str, first: Machines, second: Machines
) -> None:
    setting = CASES[case]()
    whole = digest(run_setting(setting, OBSERVED))
    with group_on(first, setting) as group:
        for _ in range(25):
            (met, *_) = group.meet(0.0)
        saved = [member.snapshot() for member in group.members]
        # The checkpoint is not the beginning, and taking it changes nothing.
        assert met.windows == 25
        assert digest(group.to_the_end(3600.0)) == whole
    with group_on(second, setting) as again:
        outcome = again.continued(saved, Position(0.0, met.events, met.until_ns, met.windows))
    assert digest(outcome) == whole
    assert outcome.windows == run_windows(setting, OBSERVED, 3).windows


def test_a_timeline_has_the_samples_of_one_partition() -> None:
    setting = setting_of("hawk", mixed_workload(40, seed=4), 12, network=0.01)
    for period_s in (0.003, 1.0):
        observe = Observe(tasks=True, timeline_period_s=period_s)
        whole = run_setting(setting, observe).timeline
        found = Group(setting, observe, ONE[1]).to_the_end(3600.0).timeline
        assert {name: of.tolist() for name, of in found.items()} == {
            n: of.tolist() for n, of in whole.items()
        }


@pytest.mark.parametrize("machines", [ONE[1], [[0], [1, 2]]], ids=["one machine", "several"])
def test_a_partition_that_fails_ends_the_wait_of_the_others(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group_on(machines, small("own")) as group:
        for member in group.members:  # which of them is the first to decide depends on the jobs
            monkeypatch.setattr(member, "_ask", fails)
        with ThreadPoolExecutor(3) as threads:
            calls = [threads.submit(member.meet, 3600.0) for member in group.members]
            errors = [call.exception(BOUND_S) for call in calls]
    assert {type(error) for error in errors} == {Lost, ValueError}
    if len(machines) > 1:
        assert any("has closed its connection" in str(error) for error in errors), errors


@pytest.mark.parametrize(("how", "what"), [(signal.SIGKILL, "is gone"), (signal.SIGSTOP, "was stopped")])
def test_a_partner_that_is_gone_or_stopped_is_noticed(how: signal.Signals, what: str) -> None:
    group = Group(small("eagle"), OBSERVED, ONE[0])
    here, there = group.members
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        there._shared[meeting.LINE + meeting.PROCESS] = process.pid
        try:
            process.send_signal(how)
            with pytest.raises(Lost, match=f"the process of partition 1 .* {what}"):
                here.meet(3600.0)
        finally:
            process.kill()
    assert is_gone(process.pid)
    assert not is_gone(os.getpid())
    assert not is_stopped(os.getpid())


def test_the_words_of_partitions_do_not_overlap() -> None:
    partitions, size = 3, 100
    words = np.zeros(meeting.shared_words(partitions, size), np.int64)
    for window in (0, 1):
        for k in range(partitions):
            begin = meeting.place_of(partitions, size, window, k)
            words[begin : begin + size] += 1
    assert words.tolist() == [0] * meeting.LINE * (partitions + 1) + [1] * 2 * partitions * size
