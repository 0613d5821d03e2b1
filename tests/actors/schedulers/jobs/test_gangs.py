"""Schedulers of gangs: examples by hand, and start by start against a program that shares no code with them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from batch_simulator import Job, starts
from emulations import (
    NS,
    Estimates,
    Network,
    counts,
    emulate_small,
    jobs,
    log_of,
    run_setting,
    setting_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.conditions import estimated_ns
from actors.kernel.compiled import config
from actors.setting import Setting
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.readers.swf import read_swf
from workloads.requests import Requests, priorities
from workloads.transform.primitives import take

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")
SEED = 5
SWF = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[5] / "shared") / "traces" / "real" / "swf"


def gangs_of(*rows: tuple[float, int, float, float]) -> JobWorkload:
    """Gangs on any nodes: (submit_s, tasks, run time, requested time) rows, s."""
    submit_s, widths, runs, requested_s = zip(*rows, strict=True)
    asked = Requests(gang_nodes=[0] * len(rows), requested_s=requested_s)
    return make_workload("by hand", submit_s, widths, np.repeat(runs, widths), requests=asked)


# Two nodes of two slots. A message takes 1 s: a job that is placed at t starts at t + 1, and its end is known two
# messages after it has run, so that the scheduler expects it to hold its slots for 2 s more than was requested. Of the
# nodes, the one that has had an idle slot for the shortest time is filled first.
BY_HAND = gangs_of((0, 2, 10, 12), (1, 3, 5, 5), (2, 4, 2, 2), (3, 1, 20, 20), (4, 1, 6, 6))


def test_first_come_first_served_lets_no_job_pass() -> None:
    #  t=0  job 0 on two slots. t=1: job 1 needs three, two are idle; the others wait behind it.
    #  t=12 the end of job 0 (at 11) is known: job 1 starts, one slot is idle, job 2 needs four.
    #  t=19 the end of job 1 (at 18): job 2. t=23 the end of job 2 (at 22): jobs 3 and 4.
    log = log_of("central-fcfs-gang", BY_HAND, [2, 2])
    assert log.tasks == [
        ("0.0", 0, 1, 11),
        ("0.1", 0, 1, 11),
        ("1.0", 0, 13, 18),
        ("1.1", 0, 13, 18),
        ("1.2", 1, 13, 18),
        ("2.0", 0, 20, 22),
        ("2.1", 0, 20, 22),
        ("2.2", 1, 20, 22),
        ("2.3", 1, 20, 22),
        ("3.0", 1, 24, 44),
        ("4.0", 1, 24, 30),
    ]
    assert log.kinds == counts(ARRIVAL=5, DISPATCH=8, PLACED=11, TASK_END=11, DONE=11)
    assert log.counters == {"placements": 11}


def test_easy_delays_no_start_of_the_first_job() -> None:
    #  t=0  job 0 on two slots; requested 12, so that it is expected to hold them until 14.
    #  t=1  job 1 needs three: shadow time 14, when four are idle, one more than it needs.
    #  t=2  job 2 needs four. t=3: job 3 is expected to hold its slot until 25, and needs no more than the extra one.
    #  t=4  job 4 is expected to end at 12, before the shadow time.
    #  t=12 the ends of jobs 0 (at 11) and 4 (at 11) are known: job 1 starts. Job 2 waits for job 3, until 25.
    log = log_of("easy", BY_HAND, [2, 2])
    assert log.tasks == [
        ("0.0", 0, 1, 11),
        ("0.1", 0, 1, 11),
        ("3.0", 1, 4, 24),
        ("4.0", 1, 5, 11),
        ("1.1", 0, 13, 18),
        ("1.2", 0, 13, 18),
        ("1.0", 1, 13, 18),
        ("2.2", 0, 26, 28),
        ("2.3", 0, 26, 28),
        ("2.0", 1, 26, 28),
        ("2.1", 1, 26, 28),
    ]
    assert log.kinds == counts(ARRIVAL=5, DISPATCH=8, PLACED=11, TASK_END=11, DONE=11)
    assert log.counters == {"placements": 11}


def test_conservative_delays_no_reservation() -> None:
    #  t=0  job 0 on two slots, until 14 as expected. t=1: job 1, three slots, from 14 to 21.
    #  t=2  job 2, four slots, from 21 to 25. t=3: job 3 would hold a slot until 25, which job 2 needs: from 25.
    #  t=4  job 4 ends at 12, as expected: it delays none.
    #  t=12 jobs 0 and 4 have ended, job 0 earlier than expected. Compressed: job 1 from 12 to 19, job 2 from 19 to 23,
    #       job 3 from 23.
    log = log_of("conservative", BY_HAND, [2, 2])
    assert log.tasks == [
        ("0.0", 0, 1, 11),
        ("0.1", 0, 1, 11),
        ("4.0", 1, 5, 11),
        ("1.0", 0, 13, 18),
        ("1.1", 0, 13, 18),
        ("1.2", 1, 13, 18),
        ("2.0", 0, 20, 22),
        ("2.1", 0, 20, 22),
        ("2.2", 1, 20, 22),
        ("2.3", 1, 20, 22),
        ("3.0", 1, 24, 44),
    ]
    # Beside the decisions at arrivals and ends: the scheduler wakes at 14, 19 and 23 for reservations as they were.
    assert log.kinds == counts(ARRIVAL=5, DISPATCH=11, PLACED=11, TASK_END=11, DONE=11)
    assert log.counters == {"placements": 11}


@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
def test_run_times_are_those_requested_or_those_estimated(scheduler: str) -> None:
    # Job 1 waits for job 0, which is expected to hold its slots until 14, as requested, or until 12, as it runs. Job 2
    # would hold its slot from 4 to 13.
    workload = gangs_of((0, 2, 10, 12), (1, 4, 5, 5), (4, 1, 7, 7))
    for plan_by, start_s in (("requested", 5), ("estimate", 20)):
        log = log_of(scheduler, workload, [2, 2], plan_by=plan_by)
        assert {task: start for task, _, start, _ in log.tasks}["2.0"] == start_s


def test_a_gang_lies_evenly_on_as_many_nodes_as_it_states() -> None:
    # Nodes of four slots. Job 0 takes three slots of one node, job 1 three and two of the other two nodes. Job 2 needs
    # two slots of each of two nodes: seven are idle, but only one node has two, until job 0 has ended, at 10.
    asked = Requests(gang_nodes=[1, 2, 2])
    workload = make_workload(
        "by hand", [0, 1, 2], [3, 5, 4], [9.0] * 3 + [20.0] * 5 + [9.0] * 4, requests=asked
    )
    log = log_of("central-fcfs-gang", workload, [4, 4, 4])
    assert [(task, node, start) for task, node, start, _ in log.tasks] == [
        ("0.0", 0, 1),
        ("0.1", 0, 1),
        ("0.2", 0, 1),
        ("1.0", 1, 2),
        ("1.1", 1, 2),
        ("1.2", 1, 2),
        ("1.3", 2, 2),
        ("1.4", 2, 2),
        ("2.0", 0, 12),
        ("2.1", 0, 12),
        ("2.2", 2, 12),
        ("2.3", 2, 12),
    ]


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_a_gang_on_nodes_starts_when_they_are_there(scheduler: str) -> None:
    # Two slots are idle at 1, one on each node; job 1 needs both on one, which it has when job 0's other task ends.
    asked = Requests(gang_nodes=[2, 1])
    workload = make_workload("by hand", [0, 1], [2, 2], [4.0, 8, 3, 3], requests=asked)
    log = log_of(scheduler, workload, [2, 2])
    assert [(task, start) for task, _, start, _ in log.tasks] == [
        ("0.0", 1),
        ("0.1", 1),
        ("1.0", 7),
        ("1.1", 7),
    ]


@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
def test_tasks_of_a_job_that_is_no_gang_start_as_slots_fall_idle(scheduler: str) -> None:
    # One slot is idle, the other from 6 on: job 1 uses it at once if it is no gang, and waits for both if it is one.
    rows = (0, [4]), (1, [9, 9])
    for nodes, starts_s in ((np.nan, [1, 2, 7]), (0, [1, 7, 7])):
        asked = Requests(gang_nodes=[np.nan, nodes])
        workload = make_workload("by hand", [0, 1], [1, 2], [4.0, 9, 9], requests=asked)
        assert [start for _, _, start, _ in log_of(scheduler, workload, 2).tasks] == starts_s
    assert [start for _, _, start, _ in log_of(scheduler, jobs(*rows), 2, gangs="all").tasks] == [1, 7, 7]


def test_a_gang_that_never_fits_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^job 1: its 5 tasks start at once, for which cluster test of 2 nodes and 4 slots"
    ):
        emulate_small("easy", jobs((0, [1]), (0, [1] * 5)), [2, 2], gangs="all")
    asked = Requests(gang_nodes=[3])
    workload = make_workload("by hand", [0], [3], [1.0] * 3, requests=asked)
    with pytest.raises(InputError, match=r"^job 0: its 3 tasks start at once on 3 nodes"):
        emulate_small("conservative", workload, [2, 2])


# Against a program that shares no code.


def starts_by_simulator(setting: Setting) -> np.ndarray:
    """The starts of all jobs by the independent program, ns.

    To the scheduler a task takes two delays longer; it starts one delay after the decision.
    """
    arrays, delay = setting.workload.arrays(), round(setting.network.delay_s * NS)
    expected = (estimated_ns(arrays.mean_ns, setting.estimates, setting.seed) + 2 * delay).tolist()
    runs = np.split(arrays.duration_ns + 2 * delay, arrays.first_task[1:-1])
    found = [
        Job(submit, run.tolist(), known, priority)
        for submit, run, known, priority in zip(
            arrays.submit_ns.tolist(), runs, expected, priorities(setting.workload.jobs).tolist(), strict=True
        )
    ]
    return np.array(starts(setting.scheduler.name, found, setting.cluster.total_slots)) + delay


def gangs(
    num_jobs: int, seed: int, widest: int, alike: bool = True, gap: int = 6, levels: int = 1
) -> JobWorkload:
    """Gangs in whole seconds, so that much happens at one instant."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, widest + 1, num_jobs)
    durations = np.repeat(rng.integers(0, 20, num_jobs), widths)
    if not alike:
        durations = rng.integers(0, 20, widths.sum())
    submit_s, asked = (
        np.cumsum(rng.integers(0, gap, num_jobs)),
        Requests(priority=rng.integers(0, levels, num_jobs)),
    )
    return make_workload("gangs", submit_s, widths, durations, requests=asked)


@settings(max_examples=30 if not config.DISABLE_JIT else 5)
@given(
    scheduler=st.sampled_from(GANG_SCHEDULERS),
    seed=st.integers(0, 10_000),
    num_jobs=st.integers(1, 60),
    slots=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    alike=st.booleans(),
    levels=st.sampled_from([1, 3]),
    delay_s=st.sampled_from([0.0, 0.5, 1.0]),
    estimates=st.sampled_from(
        [Estimates(), Estimates("constant", 0.5), Estimates("constant", -0.4), Estimates("random", 0.8)]
    ),
)
def test_starts_are_those_of_an_independent_program(
    scheduler: str,
    seed: int,
    num_jobs: int,
    slots: list[int],
    alike: bool,
    levels: int,
    delay_s: float,
    estimates: Estimates,
) -> None:
    workload = gangs(num_jobs, seed, sum(slots), alike, levels=levels)
    setting = setting_of(
        scheduler, workload, slots, network=Network(delay_s), estimates=estimates, seed=SEED, gangs="all"
    )
    setting = replace(setting, priorities=True)
    outcome = run_setting(setting)
    np.testing.assert_array_equal(outcome.start_ns, starts_by_simulator(setting))
    first = workload.arrays().first_task[:-1]
    start_ns = outcome.tasks["start_ns"]
    np.testing.assert_array_equal(np.minimum.reduceat(start_ns, first), np.maximum.reduceat(start_ns, first))


@pytest.mark.reference
@pytest.mark.skipif(not SWF.is_dir(), reason="the real files are not here")
@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="a hundred thousand tasks")
@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
@pytest.mark.parametrize("estimates", [Estimates(), Estimates("random", 0.9)], ids=["exact", "random"])
@pytest.mark.parametrize(
    ("log", "processors", "num_jobs", "speed_up"),
    [("NASA-iPSC-1993-3.1-cln.swf.zip", 128, 3_000, 1.7), ("LCG.swf.gz", 160, 1_500, 1.0)],
    ids=["nasa", "lcg"],
)
def test_starts_on_real_logs_are_those_of_an_independent_program(
    scheduler: str, estimates: Estimates, log: str, processors: int, num_jobs: int, speed_up: float
) -> None:
    """Arrivals come `speed_up` times as fast as in the log, so that jobs wait."""
    found = take(read_swf(SWF / log), np.arange(num_jobs))
    arrays = found.arrays()
    submit_s = np.rint(arrays.submit_ns / NS / speed_up)
    workload = make_workload(log, submit_s, np.diff(arrays.first_task), arrays.duration_ns / NS)
    setting = setting_of(scheduler, workload, processors, network=0.0, estimates=estimates, gangs="all")
    outcome = run_setting(setting)
    np.testing.assert_array_equal(outcome.start_ns, starts_by_simulator(setting))
    waits = outcome.start_ns > workload.arrays().submit_ns
    assert waits.mean() > 0.05
