"""The clock `live`: everything is done and accounted for, and lateness explains what differs from `virtual`.

How late events are depends on the machine: `benchmarks/live.py` measures it. Here is
what holds whatever the machine does.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulations import named, run_setting, setting_of
from hypothesis import given
from hypothesis import strategies as st
from live_runs import OBSERVED, check, mixed, run_live, worst_ns

from actors.environment import Pace
from actors.hosting import live
from actors.hosting.grouping import Cast, group_actors
from actors.hosting.interrupts import Lost
from actors.hosting.live import emulate_live
from actors.hosting.live_report import describe_live
from actors.hosting.outcome import NS, Paced, Share
from actors.hosting.paced import Position
from actors.hosting.partition import Partition
from actors.kernel.histogram import BUCKETS, bucket_of, lower_edges, note_time, quantiles
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload

pytestmark = [pytest.mark.compiled, pytest.mark.slow("compiles several schedulers")]

HOPS = 8  # of a task's events at the most, from its job's arrival to the scheduler's knowledge of its end


def spread_out(num_jobs: int = 20, span_s: float = 0.3) -> JobWorkload:
    """Jobs of one task of 20 ms, one after the other."""
    return make_workload(
        "spread out", np.linspace(0.0, span_s, num_jobs), np.ones(num_jobs, int), np.full(num_jobs, 0.02)
    )


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
    begin = time.monotonic()
    virtual, outcome = run_setting(setting, OBSERVED), run_live(setting, dilation=dilation)
    took_s = time.monotonic() - begin
    found = check(outcome, workload)
    waited = virtual.start_ns - workload.arrays().submit_ns
    assert (waited == 3 * 500_000).all(), "the seed lets two jobs share a node"
    assert outcome.counters == virtual.counters
    assert outcome.events == virtual.events
    for ours, theirs in ((outcome.start_ns, virtual.start_ns), (outcome.finish_ns, virtual.finish_ns)):
        assert (ours - theirs).min() >= 0
        assert (ours - theirs).max() <= HOPS * worst_ns(outcome)
    # A second of emulated time takes so many of wall time, or more.
    assert found["dilation"] == dilation
    assert outcome.wall_s == pytest.approx(dilation * outcome.finish_ns.max() / NS)
    assert took_s >= outcome.wall_s


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
    assert (outcome.finish_ns - virtual.finish_ns).min() >= 0
    assert (outcome.finish_ns - virtual.finish_ns).max() <= HOPS * worst_ns(outcome)
    assert found["floor_s"] > 0
    assert found["message_latency"]["p50"] > 0


# When the driver ends a run: partitions that say where they are stand in place of real ones.


def at(finished: int, events: int = 10, open: int = 0, idle: bool = False, on_way: int = 0) -> Position:
    return Position(finished, events, 5 + on_way, 5, idle, 0, open)


@pytest.mark.parametrize(
    ("positions", "polls"),
    [
        ([at(2, idle=True)], 2),  # nothing is left, and nothing has happened since the last look
        ([at(2, idle=True), at(2, 11, idle=True)], 3),
        ([at(2, idle=True, on_way=1)] * 4 + [at(2, idle=True)], 6),
        ([at(2)], 1 + live.GRACE_POLLS),  # heartbeats go on for ever
        ([at(1)] * 5 + [at(2, open=1)] * 3 + [at(2)], 8 + live.GRACE_POLLS),
    ],
    ids=["idle", "events since", "a message on its way", "heartbeats", "tasks whose end is not known"],
)
def test_a_run_ends_when_nothing_is_left_to_do(positions: list[Position], polls: int) -> None:
    asked: list[bool] = []

    def ask(method: str, closing: bool) -> list[Position]:
        asked.append(closing)
        assert len(asked) < 100, "the run has no end"
        return [positions[min(len(asked), len(positions)) - 1]]

    group = SimpleNamespace(ended=lambda timeout_s: False, ask=ask)
    stall: Any = SimpleNamespace(update=lambda *_: None)
    live._until_done(group, 2, stall, None)
    assert len(asked) == polls
    assert asked[1:] == [p.finished == 2 for p in (positions + positions[-1:] * polls)[: polls - 1]]


def test_a_partition_that_does_not_end_is_named() -> None:
    waits: list[float] = []
    group = SimpleNamespace(
        ask=lambda *_: None, ended=lambda timeout_s: waits.append(timeout_s), running=lambda: [1]
    )
    with pytest.raises(Lost, match=r"live: actor 1 \(.*\) did not end within 60 s: it is stopped"):
        live._stop(group, group_actors(Cast(4, 2, 0.375, 0.0), 2), 0, Pace())
    assert 60.0 < sum(waits) <= 60.0 + 2 * live.POLL_S


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
    paced = Paced(lateness, latency, floor, 1, 2, 1, 0, 0, np.zeros(0, np.int64), 10**9, 0, 10 * NS, apart)
    servers = np.zeros(3, [("busy", "i8"), ("served", "i8")])
    servers[scheduler] = (round(busy_s * NS), 1)
    values = {field.name: None for field in dataclasses.fields(Share)}
    return Share(**{**values, "servers": servers, "paced": paced})


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


# Lateness and busy time of three partitions: nodes, probe schedulers, and the central scheduler; what else is given;
# whether the emulation was overloaded, and whether a scheduler is saturated; and words of the verdict.
ON_TIME, IDLE = (0.001, 0.0), (0.001, 1.0)
VERDICTS: dict[str, tuple[list[tuple[float, float]], dict[str, float], tuple[bool, bool], str]] = {
    "on time": ([ON_TIME, (0.001, 9.9), (0.0, 0.1)], {}, (False, False), "the emulation kept up: 99 % of"),
    "nodes are late": (
        [(0.03, 0), IDLE, IDLE],
        {},
        (True, False),
        "overloaded, not the scheduler (3 nodes, 1 probe scheduler: 99 %",
    ),
    "a busy scheduler": (
        [ON_TIME, IDLE, (0.5, 9.7)],
        {},
        (False, True),
        "the scheduler is saturated: it was given 97% of the work that it can do (3 nodes, the central scheduler: 99 %",
    ),
    "one that gets half of a core": (
        [ON_TIME, IDLE, (0.5, 20.0)],
        {"span_s": 40.0},
        (False, True),
        "saturated",
    ),
    "all jobs come at once": ([ON_TIME, IDLE, (2.0, 2.5)], {"arrivals_s": 0.0}, (False, True), "saturated"),
    "and take little": ([ON_TIME, IDLE, (2.0, 0.5)], {"arrivals_s": 0.0}, (True, False), "overloaded"),
    "both": ([(0.03, 0), IDLE, (0.5, 9.7)], {}, (True, True), "3 nodes, the central scheduler: 99 %"),
    "a late one that is not busy": ([ON_TIME, (0.5, 1), IDLE], {}, (True, False), "overloaded"),
    "a wider bound": ([(0.03, 0), IDLE, IDLE], {"lateness_bound_s": 0.04}, (False, False), "kept up"),
    "a narrower bound": ([(0.03, 0), IDLE, IDLE], {"lateness_bound_s": 0.02}, (True, False), "overloaded"),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_the_verdict_follows_from_what_was_recorded(case: str) -> None:
    rows, given, wanted, words = VERDICTS[case]
    shares = [share_of(late_s, busy_s, min(k, 2)) for k, (late_s, busy_s) in enumerate(rows)]
    found = described(*shares, delay_s=0.002, **given)
    assert (found["overloaded"], found["saturated"]) == wanted
    assert words in found["verdict"]
    assert found["notes"] == ([found["verdict"]] if found["overloaded"] else [])
    busiest_s = max(busy_s for _, busy_s in rows)
    assert found["scheduler_cpu"]["busiest"] == pytest.approx(busiest_s / given.get("span_s", 10.0), rel=0.02)


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

    actors: Any = live.RayActors.__new__(live.RayActors)
    actors.partitions = [SimpleNamespace(call=Call(k)) for k in range(2)]
    actors._grouping = group_actors(Cast(4, 2, 0.375, 0.0), 2)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(wait=wait))
    with pytest.raises(
        Lost, match=r"live: actor 1 \(.*\) did not answer within 60 s \(position\): it is stopped"
    ):
        actors.ask("position", True)
    assert sum(waits) == live.ANSWER_S
