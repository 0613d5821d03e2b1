"""Runs by the wall clock for tests: what holds of each, however slow or busy the machine is, and their workloads."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from bounded_runs import ALL_TASKS

from actors.environment import Pace
from actors.hosting import live
from actors.hosting.live import emulate_live
from actors.hosting.live_report import LIVE_TIMELINE
from actors.hosting.outcome import NS, Outcome
from actors.setting import Setting
from workloads.jobs import JobWorkload, make_workload

OBSERVED = dataclasses.replace(ALL_TASKS, timeline_period_s=0.1)


def run_live(setting: Setting, partitions: int | None = None, **options: Any) -> Outcome:
    """Run in threads of this process, which begin at once: who is not ready yet is late, and says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "LEAD_S", 0.02)
        return emulate_live(setting, OBSERVED, Pace(**options), partitions=partitions, in_process=True)


def worst_ns(outcome: Outcome) -> float:
    """How late an event was at the most, as the run has recorded it: no less than it was."""
    assert outcome.live is not None
    return float(max(spread["max"] for spread in outcome.live["lateness"].values())) * NS


def mixed(num_jobs: int = 40, span_s: float = 0.3) -> JobWorkload:
    """Jobs of some short or long tasks."""
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 5, num_jobs)
    means = np.repeat(np.where(rng.random(num_jobs) < 0.8, 0.02, 0.2), counts)
    submit_s = np.sort(rng.uniform(3.0, 3.0 + span_s, num_jobs))
    return make_workload("mixed", submit_s, counts, means * rng.uniform(0.5, 1.5, counts.sum()))


def check(outcome: Outcome, workload: JobWorkload) -> dict[str, Any]:
    """What holds of every live run that has ended; its measurements."""
    arrays, tasks, measured = workload.arrays(), outcome.tasks, outcome.live
    assert tasks is not None
    assert measured is not None
    submit = np.repeat(arrays.submit_ns, np.diff(arrays.first_task))
    assert (tasks["node"] >= 0).all()
    assert (tasks["start_ns"] >= submit).all()
    # A task ends when its node gets to it: never early, and no later than events are handled.
    late = tasks["finish_ns"] - tasks["start_ns"] - arrays.duration_ns
    assert late.min() >= 0
    assert late.max() <= worst_ns(outcome) + 1
    # A node has one slot: it runs one task at a time.
    order = np.lexsort((tasks["start_ns"], tasks["node"]))
    node, start, finish = (tasks[name][order] for name in ("node", "start_ns", "finish_ns"))
    assert (start[1:] >= finish[:-1])[node[1:] == node[:-1]].all()
    # Jobs start with their first task, and finish with their last one.
    assert (outcome.start_ns == np.minimum.reduceat(tasks["start_ns"], arrays.first_task[:-1])).all()
    assert (outcome.finish_ns == np.maximum.reduceat(tasks["finish_ns"], arrays.first_task[:-1])).all()
    timeline = outcome.timeline
    assert {column.size for column in timeline.values()} == {timeline["time_s"].size}
    assert set(LIVE_TIMELINE) <= set(timeline)
    assert (timeline["scheduler_backlog"] <= timeline["backlog"]).all()
    queued = timeline["queued_short"] + timeline["queued_long"]
    assert queued.min() >= 0
    assert timeline["utilisation"].max() <= 1
    return measured
