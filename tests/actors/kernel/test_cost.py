"""What messages cost schedulers: hand-worked examples, a queue in plain NumPy, and recorded costs that come again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from emulations import OBSERVED, digest, jobs, log_of, mixed_workload, named, run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import busy_arriving_ns
from actors.kernel import cost
from actors.kernel.cost import COST, FIXED, RECORDED, make_cost
from actors.kernel.histogram import quantiles
from actors.kernel.system_calls import CPU, WALL, clock_ns
from actors.setting import Costs, Setting
from workloads.jobs import make_workload

NS = 1_000_000_000


def with_costs(setting: Setting, costs: Costs) -> Setting:
    return dataclasses.replace(setting, costs=costs)


def test_one_server_handles_one_message_at_a_time() -> None:
    # A message takes 1 s to arrive; the one scheduler works 2 s for a job, 1 s for each task, 0.25 s for any message.
    #  t=0   job 0 (two tasks): done at 0.25 + 2 + 2 = 4.25. Tasks arrive at 5.25 and end at 15.25.
    #  t=1   job 1 (one task) waits until 4.25, done at 4.25 + 0.25 + 2 + 1 = 7.5: node 2, 8.5 to 11.5.
    #  t=12.5  its report: 12.75 (no message waits). t=16.25: two reports, done at 16.5 and 16.75.
    #  t=16  job 2 begins at once, 16 to 19.25; the two reports of 16.25 wait for it, done at 19.5 and 19.75.
    workload = jobs((0, [10, 10]), (1, [3]), (16, [1]))
    log = log_of("central-fifo", workload, 3, costs=Costs("fixed", 0.25, 2.0, 1.0))
    assert log.tasks == [
        ("0.0", 0, 5.25, 15.25),
        ("0.1", 1, 5.25, 15.25),
        ("1.0", 2, 8.5, 11.5),
        ("2.0", 2, 20.25, 21.25),
    ]


def test_two_servers_share_the_jobs() -> None:
    # Jobs go to two schedulers in turn: the first two are handled side by side, the third waits for the first.
    workload = jobs((0, [10]), (0, [10]), (0, [10]))
    log = log_of("random", workload, 1, schedulers=2, costs=Costs("fixed", per_job_s=4.0))
    placed = sorted(m.time_s for m in log.messages if m.kind == "PLACED")
    assert placed == [5.0, 5.0, 9.0]


def test_busy_time_and_waits_are_counted() -> None:
    setting = setting_of("central-fifo", jobs((0, [1]), (0, [1]), (0, [1])), 5, network=1.0)
    (server, *_) = run_setting(with_costs(setting, Costs("fixed", per_job_s=2.0))).servers
    assert server["served"] == 6  # three arrivals, three reports
    assert server["busy"] == 6 * NS
    # Arrivals wait 0, 2 and 4 s. The reports come at 5, 7 and 9 s: the first one waits until 6.
    assert server["longest"] == 4 * NS
    assert server["waited"] == 7 * NS
    assert server["most"] == 2  # at 0 s, when the third job has arrived and the first is being placed
    assert server["arriving"] == 0  # all jobs arrive at once


@settings(max_examples=20)
@given(st.integers(1, 60), st.integers(0, 10**6), st.sampled_from([0.2, 0.8, 1.5]))
def test_backlog_and_waits_are_those_of_a_queue_in_plain_numpy(count: int, seed: int, load: float) -> None:
    """One server, whose cost of a job grows with its tasks; the ends of tasks come long after, and cost nothing."""
    rng = np.random.default_rng(seed)
    tasks = rng.integers(1, 6, count)
    submit_s = np.cumsum(rng.integers(0, round(2e4 / load), count)) / 1e4  # of 1 s of work each, in the mean
    workload = make_workload("queue", submit_s, tasks, np.full(tasks.sum(), 1e4))
    setting = setting_of("random", workload, 300, network=0.001, schedulers=1)
    outcome = run_setting(with_costs(setting, Costs("fixed", per_job_s=0.25, per_task_s=0.25)))
    due, cost_ns = workload.arrays().submit_ns, (1 + tasks) * NS // 4
    begin, end = [], -1
    for at, took in zip(due.tolist(), cost_ns.tolist(), strict=True):
        begin.append(max(at, end))
        end = begin[-1] + took
    start, last = np.array(begin), int(due[-1])
    (server, *_) = outcome.servers
    assert (server["served"], server["busy"]) == (count + tasks.sum(), cost_ns.sum())
    assert (server["waited"], server["longest"]) == ((start - due).sum(), (start - due).max())
    # Just after a job has arrived: it waits, and so do those before it that are not begun.
    waiting = [int(np.sum(start[: i + 1] > at)) for i, at in enumerate(due.tolist())]
    assert server["most"] == max(waiting)
    within = np.clip(np.minimum(start + cost_ns, last) - np.minimum(start, last), 0, None)
    assert busy_arriving_ns(outcome.servers, last)[0] == within.sum()
    waits = np.concatenate([start - due, np.zeros(tasks.sum(), np.int64)])
    assert outcome.waits.sum() == waits.size
    for share in (0.9, 0.99, 1.0):
        exact = np.quantile(waits, share, method="inverted_cdf")
        assert quantiles(outcome.waits, (share,))[0] == pytest.approx(exact, rel=0.07)


def test_room_for_a_backlog_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LINE_CAPACITY", 4)
    setting = setting_of("random", jobs(*((0, [1]) for _ in range(30))), 30, schedulers=1)
    (server, *_) = run_setting(with_costs(setting, Costs("fixed", per_job_s=1.0))).servers
    assert server["most"] == 29


# Probes and a central scheduler; heartbeats, which a listener of each partition hears; a scheduler in Python.
@pytest.mark.parametrize("scheduler", ["eagle", "dist-lwl", "own"])
def test_measured_costs_are_recorded_and_come_again(scheduler: str) -> None:
    setting = setting_of(named(scheduler), mixed_workload(25, 3), 6, long_partition=0.7, seed=11)
    measured = run_setting(with_costs(setting, Costs("measured")), OBSERVED)
    served = measured.servers["served"]
    assert measured.costs.size == served.sum() > 0
    spent = np.bincount(measured.costs["scheduler"], measured.costs["cost"], served.size)
    assert spent.tolist() == measured.servers["busy"].tolist()
    again = run_setting(with_costs(setting, Costs("recorded", recorded=measured.costs)), OBSERVED)
    assert digest(again) == digest(measured)
    assert again.servers["busy"].tolist() == measured.servers["busy"].tolist()


def test_a_log_of_costs_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_of("sparrow", mixed_workload(25, 3), 6)
    monkeypatch.setattr(cost, "LOG_CAPACITY", 2)
    measured = run_setting(with_costs(setting, Costs("measured")))
    assert measured.costs.size == measured.servers["served"].sum() > 2


def test_costs_that_run_out_are_zero_from_then_on() -> None:
    setting = setting_of("central-fifo", jobs((0, [1]), (5, [1])), 2, network=1.0)
    recorded = np.array([(0, 3 * NS, 0, 0)], COST)
    outcome = run_setting(with_costs(setting, Costs("recorded", recorded=recorded)))
    assert outcome.start_ns.tolist() == [4 * NS, 6 * NS]


def test_recorded_costs_are_sorted_by_scheduler() -> None:
    made = make_cost(RECORDED, 3, recorded=np.array([(2, 5, 0, 0), (0, 7, 0, 0), (2, 6, 0, 0)], COST))
    assert made.log.cost.tolist() == [7, 5, 6]
    assert made.servers.next_cost.tolist() == [0, 1, 1]
    assert made.servers.end_cost.tolist() == [1, 1, 3]
    assert make_cost(FIXED, 3).servers.size == 3


def test_clocks_go_forward() -> None:
    for which in (WALL, CPU):
        first = clock_ns_of(which)
        sum(range(10_000))
        assert clock_ns_of(which) > first > 0


def clock_ns_of(which: np.int64) -> int:
    """A clock as compiled code reads it."""
    found = np.zeros(1, np.int64)
    _read(which, found)
    return int(found[0])


@cost.compiled
def _read(which, found):
    found[0] = clock_ns(which)
