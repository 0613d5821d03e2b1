"""How long a node expects a task to wait: by queueing theory, by hand, and by all that has happened at each node.

In the examples worked out by hand a message takes 1 s, as in test_phoenix.py.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounded_runs import started, steps
from emulations import KINDS, NS, OBSERVED, outages, run_partition, setting_of, with_dynamics
from phoenix_examples import BY_CRV, asking, contended, nodes_of

from actors.environment import Preemption
from actors.kernel.queue import NONE
from actors.kernel.records import Records, records
from actors.nodes.contention import SERVED, Contention, expected_wait, note_idle, note_service
from actors.nodes.waiting import length_of
from actors.nodes.world import N_EVICTIONS, World
from actors.setting import Dynamics, Network, Setting

NODE, BUSY = np.int64(0), np.int64(0)


def served(start: Any, end: Any, slots: int = 1, window: int = 10**9) -> Records:
    """What a node has noted of tasks that ran from these times to those, ns."""
    rows, idle = records(SERVED, 1), slots
    events = [(int(t), 0, i) for i, t in enumerate(end)] + [(int(t), 1, i) for i, t in enumerate(start)]
    for t, starts, i in sorted(events):
        note_idle(rows, NODE, np.int64(t), idle / slots)
        if starts:
            idle -= 1
        else:
            idle += 1
            note_service(rows, NODE, float(end[i] - start[i]) / slots, np.int64(window))
    return rows


def wait_when_busy(rows: Records, rho_cap: float = 0.99, window: int = 10**9) -> float:
    return expected_wait(rows, NODE, BUSY, np.int64(window), rho_cap)


def simulate(
    rate: float, service: np.ndarray, slots: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poisson arrivals, served in their order: arrivals, starts and ends, ns."""
    arrival = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, service.size))
    start, free = np.empty_like(arrival), [0.0] * slots
    for i, t in enumerate(arrival):
        start[i] = max(t, heapq.heappop(free))
        heapq.heappush(free, start[i] + service[i])
    return arrival, start, start + service


def test_a_busy_node_expects_what_tasks_wait_that_find_an_m_g_1_queue_busy() -> None:
    service = np.random.default_rng(4).uniform(2e4, 12e4, 40_000)  # mean 70 µs, one comes every 100
    arrival, start, end = simulate(1e-5, service, 1, seed=5)
    waited = start - arrival
    estimate = wait_when_busy(served(start, end))
    assert estimate == pytest.approx(waited[waited > 0].mean(), rel=0.06)
    # Over time, when idle too, that is the mean of the Pollaczek-Khinchin formula.
    busy = 1e-5 * service.mean()
    theory = 1e-5 * np.mean(service**2) / (2 * (1 - busy))
    assert busy * estimate == pytest.approx(theory, rel=0.06)


def test_on_several_slots_it_is_that_of_an_m_m_c_queue() -> None:
    # Those that find three busy servers wait 1 / (3 / mean - rate) on the mean; how many these are is Erlang's C.
    mean, rate = 1.8e5, 1e-5
    service = np.random.default_rng(6).exponential(mean, 60_000)
    arrival, start, end = simulate(rate, service, 3, seed=7)
    waited = start - arrival
    estimate = wait_when_busy(served(start, end, slots=3))
    assert estimate == pytest.approx(1 / (3 / mean - rate), rel=0.08)
    assert estimate == pytest.approx(waited[waited > 0].mean(), rel=0.08)


def test_by_hand() -> None:
    # The server is idle for 1 s, works for 2, is idle for 3 and works for 4: E[S] = 3, E[S²] = 10, and a running task
    # has 10 / 6 s left on the mean. If a task begins at once, E[I] = (1 + 3 + 0) / 3: it is busy for 9/13 of the time.
    rows = served([1 * NS, 6 * NS], [3 * NS, 10 * NS])
    assert wait_when_busy(rows) == pytest.approx(10 / 6 / (1 - 9 / 13) * NS)
    assert expected_wait(rows, NODE, np.int64(1), np.int64(50), 0.99) == 0
    # After 13 s without work it is busy for 3 / (3 + 17/3) of the time, as soon as a task is there.
    note_idle(rows, NODE, np.int64(23 * NS), 1.0)
    assert wait_when_busy(rows) == pytest.approx(10 / 6 / (1 - 3 / (3 + (1 + 3 + 13) / 3)) * NS)


def test_a_node_that_is_never_idle_is_capped_and_old_tasks_fade() -> None:
    rows = records(SERVED, 1)
    assert wait_when_busy(rows) == 0  # nothing is known
    rows = served(np.arange(0, 100, 10), np.arange(10, 110, 10), window=4)
    assert wait_when_busy(rows, 0.9, 4) == pytest.approx(10 / 2 / (1 - 0.9))
    start = np.concatenate([np.arange(0, 100, 10), np.arange(1_000, 100_000, 1_000)])
    end = np.concatenate([np.arange(10, 110, 10), np.arange(1_001, 100_001, 1_000)])
    assert wait_when_busy(served(start, end, window=4), 0.9, 4) == pytest.approx(
        1 / 2 / (1 - 1 / 1000), rel=1e-3
    )


@pytest.mark.parametrize("report_change", [0.1, 1.0])
@pytest.mark.parametrize("rough", [False, True])
def test_an_idle_node_has_reported_an_expected_wait_of_0(rough: bool, report_change: float) -> None:
    """Also where no other change is reported: with report_change=1 a fall to 0 is not a greater change."""
    setting = contended(report_change=report_change)
    state = run_partition(with_dynamics(setting) if rough else setting, OBSERVED).state
    assert state.contention.nodes.seen.any()
    assert not state.monitor.wait.any()
    assert not state.contention.nodes.wait.any()


def test_a_node_that_was_down_knows_nothing_from_before() -> None:
    # It ran a task from 3 to 5, failed at 10 and was back at 12. The task of 20 got its slot at 21, 9 s after that, and
    # ran from 23 to 27: what the node ran before, what it was idle then, and the time it was down, do not count.
    workload = asking((0, [2], "cores >= 8"), (20, [4], "cores >= 8"))
    down = Dynamics(outages=outages(("node 0", 10, 12)))
    setting = setting_of("phoenix", workload, nodes_of(8), network=1.0, dynamics=down, **BY_CRV)
    row = run_partition(setting, OBSERVED).state.contention.nodes[0]
    assert (row.seen, row.idle, row.service) == (1, 9 * NS, 4 * NS)


class History:
    """All tasks that ended at a node, and the idle time before each: the formulas without the node's recursion."""

    def __init__(self, slots: int) -> None:
        self.slots, self.since, self.unused = slots, 0, 0.0
        self.services: list[float] = []
        self.idles: list[float] = []

    def pass_time(self, t: int, idle: int) -> None:
        self.unused += idle * (t - self.since) / self.slots
        self.since = t

    def end(self, service: int) -> None:
        self.services.append(service / self.slots)
        self.idles.append(self.unused)
        self.unused = 0.0

    def expected_wait(self, idle: int, window: int, rho_cap: float) -> float:
        if idle > 0 or not sum(self.services):
            return 0.0
        service, square = mean_of(self.services, window), mean_of([s * s for s in self.services], window)
        rho = min(service / (service + mean_of([*self.idles, self.unused], window)), rho_cap)
        return square / service / 2 / (1 - rho)


def mean_of(values: list[float], window: int) -> float:
    """The mean of the first `window` values, which fades by 1 / window with each one that comes after them."""
    later = values[window:]
    fading = [(1 - 1 / window) ** i for i in range(len(later) + 1)][::-1]
    known = values[:window]
    return (
        fading[0] * sum(known) / len(known)
        + sum(f * v for f, v in zip(fading[1:], later, strict=True)) / window
    )


def evicted_from(before: list[tuple[int, int, int, int]], running: set[int]) -> list[int]:
    """Which of the tasks that ran were evicted: the lowest priority first, of these the one that started last.

    `before`: priority, start (ns, negative), task, node.
    """
    return [task for _, _, task, _ in sorted(before) if task not in running]


def running_on(world: World, nodes: int) -> list[list[tuple[int, int, int, int]]]:
    """Return by node the tasks that run: priority, minus the start, task, node; none where nothing is evicted."""
    found: list[list[tuple[int, int, int, int]]] = [[] for _ in range(nodes)]
    tasks = world.faults.tasks
    for task in np.flatnonzero(tasks.node != NONE).tolist():
        node = int(tasks.node[task])
        found[node].append((int(world.priority[tasks.job[task]]), -int(tasks.start[task]), task, node))
    return found


def asked_in_queue(world: World, contention: Contention, node: int) -> list[int]:
    """Count the short entries of a node's queue that ask for each resource."""
    counts = [0] * contention.crv.size
    entry = int(world.nodes.head[node])
    while entry != NONE:
        row = world.entries[entry]
        if row.level != NONE and not world.work.is_long[row.job]:
            for r in range(len(counts)):
                counts[r] += length_of(world.entries, entry) * (int(contention.asks[row.level]) >> r & 1)
        entry = int(row.next)
    return counts


def preempting(setting: Setting) -> Setting:
    """The same jobs, in four priorities."""
    workload = setting.workload
    priority = np.random.default_rng(2).integers(0, 4, workload.num_jobs)
    table = workload.jobs.append_column("priority", pa.array(priority))
    return replace(
        setting, workload=replace(workload, jobs=table), priorities=True, preemption=Preemption(keeps=False)
    )


@pytest.mark.parametrize(
    ("network", "evicting"),
    [(Network(0.0005), False), (Network(0.01, spread_s=0.02), False), (Network(0.0005), True)],
    ids=["one event", "messages", "evictions"],
)
def test_nodes_have_reported_what_they_expect(network: Network, evicting: bool) -> None:
    """After each heartbeat all nodes have reported what follows from their whole past; then the schedulers know it."""
    setting: Setting = contended(num_jobs=60, report_change=0, window=3, rho_cap=0.9, network=network)
    partition = started(preempting(setting) if evicting else setting, OBSERVED)
    world, contention, monitor = partition.world, partition.state.contention, partition.state.monitor
    now, slots = world.queue.now[0], setting.cluster.slots()
    past = [History(int(each)) for each in slots]
    busy_ones, events, idle, evicted, asking_ones = 0, 0, world.nodes.idle.copy(), 0, 0
    running = running_on(world, len(past))
    for _ in steps(partition):
        before, idle = idle, world.nodes.idle.copy()
        if now.events == events:
            continue
        events, kind, t = int(now.events), KINDS[int(now.kind)], int(now.time)
        if kind != "HEARTBEAT" and now.dst < len(past):
            past[now.dst].pass_time(t, max(int(before[now.dst]), 0))
            ended = int(now.b) if kind == "TASK_END" and past_holds(running[now.dst], now) else NONE
            if kind == "TASK_END" and (not evicting or ended != NONE):
                past[now.dst].end(t - int(now.c))
            ran, running = running[now.dst], running_on(world, len(past))
            still = {task for _, _, task, _ in running[now.dst]} | {ended}
            for task in evicted_from(ran, still):
                past[now.dst].end(t + next(start for _, start, one, _ in ran if one == task))
                evicted += 1
        elif kind == "HEARTBEAT" and contention.round.next[0] == contention.round.end[0]:
            free = np.maximum(world.nodes.idle, 0)
            expected = [h.expected_wait(int(i), 3, 0.9) for h, i in zip(past, free, strict=True)]
            assert contention.nodes.wait.tolist() == pytest.approx(expected, rel=1e-9, abs=1)
            busy_ones += sum(wait > 0 for wait in expected)
            asked = [asked_in_queue(world, contention, node) for node in range(len(past))]
            assert contention.reported[0].tolist() == asked
            asking_ones += sum(map(sum, asked))
    assert busy_ones > 50
    assert asking_ones > 50
    assert evicted == world.counts[N_EVICTIONS]
    assert (evicted > 10) == evicting
    assert np.array_equal(monitor.wait, contention.nodes.wait)


def past_holds(running: list[tuple[int, int, int, int]], now: Any) -> bool:
    """Whether the task of a `TASK_END` still runs in the attempt that started then."""
    return any((task, -start) == (now.b, now.c) for _, start, task, _ in running)
