"""How far a run is whose scheduler is plain Python, and how long it will take."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_runs import started, steps
from coflow_emulations import coflows, setting_of
from emulations import jobs
from emulations import setting_of as setting_of_jobs

from actors.hosting.partition import Asked, Observe
from actors.hosting.runs import DecisionTime, emulate

# Many flows that end soon, and one that takes nine tenths of the time.
FEW_LAST = coflows(
    *((i * 0.5, [(i % 4, (i + k) % 4, 0.25) for k in range(4)]) for i in range(20)),
    (0.0, [(4, 4, 100.0)]),
    ports=5,
)


class EverySecond:
    """Orders coflows once a second."""

    interval_s = 1.0

    def order(self, coflows, now_s):
        return np.arange(len(coflows.coflow))


class AtEvents:
    """Orders coflows when one comes or ends."""

    def order(self, coflows, now_s):
        return np.arange(len(coflows.coflow))


class FirstNode:
    """All tasks to the first node."""

    def place(self, job, nodes):
        return [0] * job.num_tasks


def looks(setting):
    """How far a run is after every step: virtual seconds, flows or tasks done, and the reported share."""
    partition, rows = started(setting, Observe()), []
    for done in steps(partition):
        asked = partition._asked(done)
        now = partition.world.queue.now[0]
        rows.append((now.time / 1e9, int(partition._tasks(4).sum()), asked.share_done))
    return np.array(rows), asked


def test_a_coordinator_with_an_interval_is_as_far_as_virtual_time_is() -> None:
    rows, asked = looks(setting_of(EverySecond, FEW_LAST))
    virtual_s, flows, share = rows.T
    assert virtual_s[-1] == pytest.approx(101, abs=2)
    late = virtual_s > 25
    assert flows[late].min() >= 80  # of 81: by flows this would be 99 % from here on
    assert np.abs(share - virtual_s / virtual_s[-1]).max() < 0.02
    assert np.all(np.diff(share) >= -1e-9)
    assert share[-1] == 1
    assert asked.times == pytest.approx(101, abs=2)
    assert asked.took_s > 0


def test_one_that_is_asked_at_events_is_as_far_as_flows_are() -> None:
    rows, _ = looks(setting_of(AtEvents, FEW_LAST))
    assert rows[:, 2] == pytest.approx(rows[:, 1] / 81)


def test_a_scheduler_of_jobs_is_as_far_as_arrivals_are() -> None:
    setting = setting_of_jobs(FirstNode, jobs(*((float(i), [50.0, 50.0]) for i in range(10))), 3)
    rows, asked = looks(setting)
    assert asked.times == 10
    arrived = rows[:, 0] >= 9.0
    assert rows[arrived, 2].min() == pytest.approx(1)
    assert rows[np.searchsorted(rows[:, 0], 4.5), 2] == pytest.approx(0.5, abs=0.11)


def test_a_long_run_is_reported_and_once_more_when_it_gets_longer() -> None:
    lines: list[str] = []
    notice = DecisionTime("Mine", lines.append)
    for wall_s, share in ((1, 0.001), (4, 0.5), (5, 0.05), (8, 0.06), (20, 0.07), (21, 0.069), (300, 1.0)):
        notice.update(Asked(int(wall_s * 400), wall_s * 0.8, wall_s, share))
    assert lines == [
        "note: Mine, in plain Python, takes 2 ms a decision, 2,000 so far; about 100 s for this run",
        "note: Mine, in plain Python, takes 2 ms a decision, 8,000 so far; about 285.7 s for this run",
    ]
    notice.update(None)  # a compiled scheduler
    DecisionTime("Mine", None).update(Asked(1, 1.0, 100.0, 0.01))  # without a place to report to


def test_a_run_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from actors.hosting import partition, runs

    monkeypatch.setattr(partition, "ASKING_S", 0.0)  # or all fits into one slice

    monkeypatch.setattr(runs, "FIRST_S", 0.0)
    monkeypatch.setattr(runs, "LONG_S", 0.0)
    monkeypatch.setattr(runs, "SLICE_S", 1e-5)
    messages: list[str] = []
    shares: list[float] = []

    class Watching:
        def share_done(self, share: float) -> None:
            shares.append(share)

        def __call__(self, tasks_done: int, events: int, virtual_s: float) -> None:
            pass

    setting = setting_of(EverySecond, FEW_LAST)
    emulate(setting, Observe(), in_process=True, progress=Watching(), tell=messages.append)
    assert any(line.startswith("note: EverySecond, in plain Python, takes ") for line in messages)
    assert shares == sorted(shares)
    assert shares[-1] == 1
