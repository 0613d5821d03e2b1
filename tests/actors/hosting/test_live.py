"""The clock `live`: everything is done and accounted for, and lateness explains what differs from `virtual`."""

from __future__ import annotations

import dataclasses
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bounded_runs import ALL_TASKS
from emulations import named, run_setting, setting_of
from hypothesis import given
from hypothesis import strategies as st

from actors.environment import Pace
from actors.hosting import live
from actors.hosting.grouping import Cast, group_actors
from actors.hosting.interrupts import Lost
from actors.hosting.live import emulate_live
from actors.hosting.live_report import LIVE_TIMELINE, describe_live
from actors.hosting.outcome import NS, Outcome, Paced, Share
from actors.hosting.partition import Partition
from actors.kernel.histogram import BUCKETS, bucket_of, lower_edges, note_time, quantiles
from actors.setting import Setting
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload

OBSERVED = dataclasses.replace(ALL_TASKS, timeline_period_s=0.1)
HOPS = 8  # of a task's events at the most, from its job's arrival to the scheduler's knowledge of its end


def spread_out(num_jobs: int = 20, span_s: float = 1.0) -> JobWorkload:
    """Jobs of one task of 20 ms, one after the other."""
    return make_workload(
        "spread out", np.linspace(0.0, span_s, num_jobs), np.ones(num_jobs, int), np.full(num_jobs, 0.02)
    )


def mixed(num_jobs: int = 40, span_s: float = 1.0) -> JobWorkload:
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 5, num_jobs)
    means = np.repeat(np.where(rng.random(num_jobs) < 0.8, 0.02, 0.2), counts)
    submit_s = np.sort(rng.uniform(3.0, 3.0 + span_s, num_jobs))
    return make_workload("mixed", submit_s, counts, means * rng.uniform(0.5, 1.5, counts.sum()))


def run_live(setting: Setting, partitions: int | None = None, **options: Any) -> Outcome:
    return emulate_live(setting, OBSERVED, Pace(**options), partitions=partitions, in_process=True)


def check(outcome: Outcome, workload: JobWorkload) -> dict[str, Any]:
    """What holds of every live run that has ended; its measurements."""
    arrays, tasks, live = workload.arrays(), outcome.tasks, outcome.live
    assert tasks is not None
    assert live is not None
    submit = np.repeat(arrays.submit_ns, np.diff(arrays.first_task))
    assert (tasks["node"] >= 0).all()
    assert (tasks["start_ns"] >= submit).all()
    # A task ends when its node gets to it: never early, and no later than events are handled.
    late = tasks["finish_ns"] - tasks["start_ns"] - arrays.duration_ns
    worst = max(spread["max"] for spread in live["lateness"].values()) * NS
    assert late.min() >= 0
    assert late.max() <= worst + 1
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
    return live


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "central-fifo", "dist-lwl", "own"])
def test_all_is_done_and_accounted_for(scheduler: str) -> None:
    workload = mixed()
    parameters = {"heartbeat_s": 0.1} if scheduler == "dist-lwl" else {}
    setting = setting_of(named(scheduler), workload, 30, cutoff_s=0.1, seed=2, **parameters)
    outcome = run_live(setting)
    found = check(outcome, workload)
    cast = Partition(setting, OBSERVED).cast()
    assert (
        outcome.partitions
        == len(found["partitions"])
        == 1 + (cast.probes_share > 0) + (cast.central_share > 0)
    )
    assert found["batches_per_s"] > 0
    assert found["messages_per_batch"] >= 1
    assert found["floor_s"] is not None


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_any_number_of_partitions(partitions: int) -> None:
    workload = mixed()
    found = check(run_live(setting_of("sparrow", workload, 30, cutoff_s=0.1), partitions), workload)
    assert len(found["partitions"]) == partitions
    assert (found["batches_per_s"] > 0) == (partitions > 1)
    assert (found["floor_s"] is None) == (partitions == 1)


@pytest.mark.parametrize("dilation", [1.0, 2.5])
def test_agrees_with_virtual_as_far_as_lateness_explains(dilation: float) -> None:
    """No two jobs probe the same node, so that nothing but late events can keep a job apart from its virtual twin."""
    workload = spread_out()
    setting = setting_of("sparrow", workload, 5000, seed=3)
    virtual, outcome = run_setting(setting, OBSERVED), run_live(setting, dilation=dilation)
    assert virtual.tasks is not None
    assert outcome.tasks is not None
    found = check(outcome, workload)
    waited = virtual.start_ns - workload.arrays().submit_ns
    assert (waited == 3 * 500_000).all(), "the seed lets two jobs share a node"
    assert outcome.counters == virtual.counters
    assert outcome.events == virtual.events
    worst = max(spread["max"] for spread in found["lateness"].values()) * NS
    for ours, theirs in ((outcome.start_ns, virtual.start_ns), (outcome.finish_ns, virtual.finish_ns)):
        assert (ours - theirs).min() >= 0
        assert (ours - theirs).max() <= HOPS * worst


def test_emulated_time_is_wall_time_divided_by_the_dilation() -> None:
    """No faster than that: how much slower, this machine alone decides."""
    workload = spread_out(5, 0.4)
    begin = time.monotonic()
    outcome = run_live(setting_of("sparrow", workload, 50), dilation=2.0)
    took_s = time.monotonic() - begin
    span_s = (outcome.finish_ns.max() - workload.arrays().submit_ns[0]) / NS
    assert outcome.wall_s == pytest.approx(2 * span_s)
    assert took_s >= outcome.wall_s
    assert outcome.live is not None
    assert outcome.live["dilation"] == 2.0


def test_an_error_in_a_partition_ends_the_run() -> None:
    class Wrong:
        def place(self, job: Any, nodes: Any) -> list[int]:
            raise ArithmeticError("one of mine")

    with pytest.raises(InputError, match="one of mine"):
        run_live(setting_of(Wrong, spread_out(3), 4))


def test_an_interrupt_ends_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    companies = []

    class PartitionGroup(live.Threads):
        def ended(self, timeout_s: float) -> bool:
            companies.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(live, "Threads", PartitionGroup)
    with pytest.raises(KeyboardInterrupt):
        run_live(setting_of("sparrow", spread_out(3, 60.0), 20))
    assert all(future.done() for future in companies[0]._running)


@pytest.mark.ray
def test_in_ray_actors(ray_session: None) -> None:
    workload = spread_out()
    setting = setting_of("hawk", workload, 500, cutoff_s=0.01)
    outcome = emulate_live(setting, OBSERVED, Pace())
    found = check(outcome, workload)
    virtual = run_setting(setting, OBSERVED)
    worst = max(spread["max"] for spread in found["lateness"].values()) * NS
    assert (outcome.finish_ns - virtual.finish_ns).min() >= 0
    assert (outcome.finish_ns - virtual.finish_ns).max() <= HOPS * worst
    assert found["floor_s"] > 0
    assert found["message_latency"]["p50"] > 0


# What is said of measurements.


def share_of(
    late_s: float, busy_s: float, scheduler: int = 0, floor_s: float = 0.001, apart: int = 0
) -> Share:
    """A partition that ran for 10 s, 5 % of whose events were late, and whose schedulers were busy for so long."""
    lateness, latency, floor = np.zeros((2, BUCKETS), np.int64), *np.zeros((2, 1, BUCKETS), np.int64)
    for i in range(100):
        note_time(lateness, 1, np.int64(late_s * NS if i < 5 else 1000))
    note_time(latency, 0, np.int64(1_000_000))
    note_time(floor, 0, np.int64(floor_s * NS))
    paced = Paced(lateness, latency, floor, 1, 2, 2, 1, 0, 0, np.zeros(0, np.int64), 10**9, 0, 10 * NS, apart)
    servers = np.zeros(3, [("busy", "i8"), ("served", "i8")])
    servers[scheduler] = (round(busy_s * NS), 1)
    values = {field.name: None for field in dataclasses.fields(Share)}
    return Share(**{**values, "servers": servers, "paced": paced})  # type: ignore[arg-type]


def described(
    *shares: Share, delay_s: float = 0.0005, arrivals_s: float = 10.0, span_s: float = 10.0, **pace: float
) -> dict[str, Any]:
    grouping = group_actors(Cast(10, 2, 0.25, 0.125), len(shares))
    setting = setting_of("hawk", spread_out(2, arrivals_s), 10, network=delay_s)
    servers = np.zeros(3, shares[0].servers.dtype)
    for share in shares:
        for name in ("busy", "served"):
            servers[name] += share.servers[name]
    outcome = dataclasses.make_dataclass("O", ["servers", "finish_ns"])(
        servers, np.array([round(span_s * NS)])
    )
    return describe_live(shares, grouping, Pace(**pace), setting, outcome)


def test_on_time() -> None:
    found = described(share_of(0.001, 0), share_of(0.001, 9.9), share_of(0.0, 0.1), delay_s=0.002)
    assert (found["overloaded"], found["saturated"], found["notes"]) == (False, False, [])
    assert "kept up" in found["verdict"]
    assert found["scheduler_cpu"]["busiest"] == pytest.approx(1.0, rel=0.02)


def test_late_nodes_are_the_emulation_s_fault() -> None:
    found = described(share_of(0.03, 0), share_of(0.001, 1), share_of(0.001, 1))
    assert (found["overloaded"], found["saturated"]) == (True, False)
    assert found["notes"][0] == found["verdict"]
    assert "3 nodes" in found["verdict"]
    assert "central" not in found["verdict"]


def test_a_scheduler_that_is_busy_all_the_time_is_a_finding() -> None:
    found = described(share_of(0.001, 0), share_of(0.001, 1), share_of(0.5, 9.7, 2), delay_s=0.001)
    assert (found["overloaded"], found["saturated"], found["notes"]) == (False, True, [])
    assert "the central scheduler" in found["verdict"]
    assert "it was given 97% of the work that it can do" in found["verdict"]


def test_a_scheduler_that_gets_half_a_core_of_a_busy_machine_is_saturated_all_the_same() -> None:
    found = described(share_of(0.001, 0), share_of(0.001, 1), share_of(0.5, 20.0, 2), span_s=40.0)
    assert (found["overloaded"], found["saturated"]) == (False, True)
    assert found["scheduler_cpu"]["busiest"] == pytest.approx(0.5)


def test_jobs_that_all_come_at_once() -> None:
    found = described(share_of(0.001, 0), share_of(0.001, 0.1), share_of(2.0, 2.5, 2), arrivals_s=0.0)
    assert (found["overloaded"], found["saturated"]) == (False, True)
    found = described(share_of(0.001, 0), share_of(0.001, 0.1), share_of(2.0, 0.5, 2), arrivals_s=0.0)
    assert (found["overloaded"], found["saturated"]) == (True, False)


def test_both_at_once() -> None:
    found = described(share_of(0.03, 0), share_of(0.001, 1), share_of(0.5, 9.7, 2))
    assert (found["overloaded"], found["saturated"]) == (True, True)
    assert "saturated" in found["verdict"]
    assert "3 nodes, the central scheduler: 99 %" in found["verdict"]


def test_late_schedulers_that_are_not_busy_are_the_emulation_s_fault() -> None:
    found = described(share_of(0.001, 0), share_of(0.5, 1), share_of(0.001, 1))
    assert (found["overloaded"], found["saturated"]) == (True, False)


def test_the_bound_is_of_emulated_time() -> None:
    assert not described(share_of(0.03, 0), lateness_bound_s=0.04)["overloaded"]
    assert described(share_of(0.03, 0), lateness_bound_s=0.02)["overloaded"]


@pytest.mark.parametrize(
    ("apart", "how"), [((0,), "shared memory"), ((1, 1), "Ray"), ((1, 1, 2), "shared memory and Ray")]
)
def test_a_network_that_is_faster_than_its_messages_is_noted(apart: tuple[int, ...], how: str) -> None:
    shares = [share_of(0.001, 0, floor_s=0.0012, apart=others) for others in apart]
    (note,) = described(*shares, delay_s=0.0005)["notes"]
    assert "network.delay is 0.5 ms" in note
    assert f"but {how} alone takes 1.2" in note
    assert "--dilation 3 on" in note
    assert not described(share_of(0.001, 0, floor_s=0.0012), delay_s=0.002)["notes"]
    assert not described(share_of(0.001, 0, floor_s=0.0012), delay_s=0.0005, dilation=3.0)["notes"]


# Histograms.

times = st.integers(0, 2**62)


@given(times)
def test_a_bucket_holds_its_times_and_is_narrow(time: int) -> None:
    edges, bucket = lower_edges(), int(bucket_of(np.int64(time)))
    assert edges[bucket] <= time
    assert bucket + 1 > BUCKETS - 1 or time < edges[bucket + 1]
    assert edges[bucket + 1] - edges[bucket] <= max(1, edges[bucket] / 16)


def test_buckets_follow_on_each_other() -> None:
    assert (np.diff(lower_edges()[: BUCKETS - 16]) > 0).all()
    assert bucket_of(np.int64(-5)) == 0


@given(st.lists(times, min_size=1), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_quantiles_are_right_to_a_bucket(drawn: list[int], share: float) -> None:
    histogram = np.zeros((1, BUCKETS), np.int64)
    for drawn_time in drawn:
        note_time(histogram, 0, np.int64(drawn_time))
    (found,) = quantiles(histogram[0], (share,))
    exact = float(np.quantile(np.array(drawn, np.float64), share, method="inverted_cdf"))
    assert abs(found - exact) <= max(1.0, exact / 16 * 1.001)


def test_an_actor_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is stopped: Ray would wait for it without end."""
    from actors.hosting import ray_live

    class Call:
        def __init__(self, number: int):
            self.number = number

        def options(self, **_: Any) -> Call:
            return self

        def remote(self, *_: Any) -> int:
            return self.number

    waits: list[float] = []

    def wait(answers: list[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        waits.append(timeout)
        return [0], [1] if 1 in answers else []

    actors: Any = ray_live.RayActors.__new__(ray_live.RayActors)
    actors._actors = [SimpleNamespace(call=Call(k)) for k in range(2)]
    actors._grouping = group_actors(Cast(4, 2, 0.375, 0.0), 2)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(wait=wait))
    with pytest.raises(
        Lost, match=r"live: actor 1 \(.*\) did not answer within 60 s \(position\): it is stopped"
    ):
        actors.ask("position", True)
    assert sum(waits) == ray_live.ANSWER_S
