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
    run_setting,
    setting_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.conditions import estimated_ns
from actors.kernel.compiled import config
from actors.setting import Setting
from workloads.jobs import JobWorkload, make_workload
from workloads.readers.swf import read_swf
from workloads.requests import Requests, priorities
from workloads.transform.primitives import take

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")
SEED = 5
SWF = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[5] / "shared") / "traces" / "real" / "swf"


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
