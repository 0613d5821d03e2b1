"""What schedulers of one's own can ask for: draws, seeds, the load of nodes, and tasks of other schedulers."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import emu
from emu.testing import check_scheduler
from examples.pigeon import Pigeon
from examples.probing_schedulers import Sparrow, TwoChoices
from tests.actors.schedulers.user.user_runs import FAILING, objects, ran, with_and_without_a_pause


class LessWork:
    """The power of two choices by what the scheduler itself has sent and heard of."""

    schedulers = 1

    def start(self, num_nodes: int, seed: int) -> None:
        self.work_s = np.zeros(num_nodes)
        self.pairs: list[tuple[int, int]] = []

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        for _ in range(job.num_tasks):
            a, b = cluster.draw(job, 2).tolist()
            self.pairs.append((a, b))
            node = a if self.work_s[a] < self.work_s[b] else b
            self.work_s[node] += job.estimate_s
            cluster.place(job, [node])

    def on_done(self, job: emu.Job, node: int, start_s: float, finish_s: float, cluster: emu.Cluster) -> None:
        self.work_s[node] -= job.estimate_s


class SamePair(LessWork):
    """The same with one pair for a job."""

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        a, b = cluster.draw(job, 2).tolist()
        for _ in range(job.num_tasks):
            node = a if self.work_s[a] < self.work_s[b] else b
            self.work_s[node] += job.estimate_s
            cluster.place(job, [node])


@pytest.mark.slow("several whole runs")
def test_each_draw_of_a_job_gives_other_nodes() -> None:
    pairs = objects(LessWork)[0].pairs
    assert len(set(pairs)) > 0.5 * len(pairs)
    seen = np.bincount(np.array(pairs).ravel(), minlength=60)
    assert seen.min() > 0.5 * seen.mean()
    assert all(a != b for a, b in pairs)
    of_load = {"workload_options": {"jobs": 200, "nodes": 60}}
    p99 = [ran(own, **of_load).summary["jobs"]["all"]["p99"] for own in (LessWork, SamePair)]
    assert p99[0] < 0.2 * p99[1]


@pytest.mark.slow("thousands of messages in plain Python")
@pytest.mark.parametrize("scheduler", [LessWork, TwoChoices, Pigeon])
def test_the_number_of_partitions_changes_nothing(scheduler: type) -> None:
    for more in ({}, FAILING):
        alone = ran(scheduler, output_events="all", **more)
        apart = ran(scheduler, output_events="all", clock="windows", partitions=3, **more)
        assert apart.tasks.equals(alone.tasks)
        assert apart.counters == alone.counters
        assert apart.events.equals(alone.events)


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize("scheduler", [LessWork, TwoChoices, Pigeon])
def test_a_run_that_is_resumed_goes_on_as_it_would_have(scheduler: type) -> None:
    with_and_without_a_pause(scheduler, **FAILING)


@pytest.mark.parametrize("scheduler", [TwoChoices, Pigeon])
def test_check_scheduler_tries_it(scheduler: type) -> None:
    check_scheduler(scheduler)


class Counted(Sparrow):
    """Keeps what its objects are started with."""

    schedulers = 3
    coordinators = 2
    central = True

    def start(self, num_nodes: int, seed: int, cluster: emu.Cluster) -> None:
        self.given = num_nodes, seed, cluster.scheduler, cluster.coordinators, cluster.slots.tolist()

    def on_message(self, sender: int, numbers: tuple[int, int, int], cluster: emu.Cluster) -> None:
        pass

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        super().on_arrival(job, cluster)
        for other in cluster.coordinators:
            cluster.send(other)


def test_each_object_has_a_number_and_a_seed_of_its_own() -> None:
    given = {number: own.given for number, own in objects(Counted).items()}
    assert sorted(given) == [0, 1, 2, 3, 4, 5]
    assert [given[i][2] for i in range(6)] == [0, 1, 2, 3, 4, 5]
    assert len({seed for _, seed, *_ in given.values()}) == 6
    assert all((nodes, numbers) == (60, range(3, 5)) for nodes, _, _, numbers, _ in given.values())
    assert given[0][4] == [1] * 60
    assert {number: own.given for number, own in objects(Counted).items()} == given
    assert {own.given[1] for own in objects(Counted, seed=4).values()}.isdisjoint(
        seed for _, seed, *_ in given.values()
    )


class Curious:
    """Places all on node 0, and asks both nodes for their load now and then."""

    schedulers = 1

    def start(self, num_nodes: int, seed: int) -> None:
        self.seen: list[tuple[int, emu.NodeView]] = []

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        cluster.place(job, [0] * job.num_tasks)
        for after_s in (2.0, 10.0, 100.0):
            cluster.wake(after_s, int(after_s))

    def on_wake(self, number: int, cluster: emu.Cluster) -> None:
        cluster.ask([0, 1], number)

    def on_load(self, node: emu.NodeView, number: int, cluster: emu.Cluster) -> None:
        self.seen.append((number, node))


def test_a_node_tells_its_queue_and_its_work() -> None:
    """Three tasks of 8 s on node 0 from 1 s on. Asked at 2 s, it answers at 3 s, 2 s into the first."""
    workload = pd.DataFrame({"submit_s": [0.0], "durations_s": [[8.0] * 3]})
    setting = {"workload": workload, "nodes": 2, "workload_options": {}, "network_delay": "1 s"}
    seen = objects(Curious, **setting, short_cutoff="10 s")[0].seen
    idle, busy = {"queued": 0, "work_left_s": 0.0, "has_long": False, "idle_slots": 1}, {"has_long": False}
    expected = {
        (2, 0): {**busy, "idle_slots": 0, "queued": 2, "work_left_s": 22.0},
        (10, 0): {**busy, "idle_slots": 0, "queued": 1, "work_left_s": 14.0},
        (100, 0): idle,
        **{(number, 1): idle for number in (2, 10, 100)},
    }
    assert {(number, node.node_id): node for number, node in seen} == {
        (number, node_id): emu.NodeView(node_id=node_id, **known)
        for (number, node_id), known in expected.items()
    }


class Watched(TwoChoices):
    """Keeps the answers of nodes."""

    schedulers = 1

    def start(self, num_nodes: int, seed: int) -> None:
        super().start(num_nodes, seed)
        self.seen: list[emu.NodeView] = []

    def on_load(self, node: emu.NodeView, number: int, cluster: emu.Cluster) -> None:
        self.seen.append(node)
        super().on_load(node, number, cluster)


def test_a_node_tells_what_its_events_say() -> None:
    """What waits and what runs at every answer, from the record of events; estimates are exact."""
    seen: dict[int, list[emu.NodeView]] = {}
    for answer in objects(Watched)[0].seen:
        seen.setdefault(answer.node_id, []).append(answer)
    result = ran(Watched, output_events="all")
    estimates = result.jobs["mean_task_s"].to_pylist()
    waiting: dict[int, list[int]] = {node: [] for node in range(60)}
    running: dict[int, tuple[int, int]] = {}
    for row in result.events.to_pandas().itertuples():
        if row.kind == "PLACED":
            waiting[row.receiver].append(int(row.job))
        elif row.kind == "START":
            waiting[row.receiver].remove(int(row.job))
            running[row.receiver] = int(row.job), row.time_ns
        elif row.kind == "TASK_END":
            del running[row.receiver]
        elif row.kind == "OWN_ASK":
            work_s = sum(estimates[job] for job in waiting[row.receiver])
            if row.receiver in running:
                job, since = running[row.receiver]
                work_s += max(estimates[job] - (row.time_ns - since) / 1e9, 0.0)
            answer = seen[row.receiver].pop(0)  # a node answers in the order of the questions
            assert answer.queued == len(waiting[row.receiver])
            assert answer.work_left_s == pytest.approx(work_s, abs=1e-3)
    assert not any(seen.values())


def test_pigeon_by_hand() -> None:
    """One group of three workers, one reserved; messages take 1 s: to the distributor's master, and to the worker.

    A low-priority job of three tasks of 20 s takes the two general workers at 2 s; its third task waits. A job of two
    tasks of 4 s comes at 3 s: one gets the reserved worker at 5 s, and the other follows it at 11 s, as the master
    learns of its end at 10 s. At 23 s the master learns that general workers are idle.
    """
    workload = pd.DataFrame({"submit_s": [0.0, 3.0], "durations_s": [[20.0] * 3, [4.0] * 2]})
    result = emu.run(
        Pigeon, workload, 3, parameters={"coordinators": 1, "schedulers": 1}, network_delay="1 s",
        short_cutoff="10 s", in_process=True, output_tasks=True,
    )  # fmt: skip
    tasks = result.tasks.to_pandas().sort_values(
        ["job_id", "task"] if "task" in result.tasks.column_names else "job_id"
    )
    assert tasks.start_s.tolist() == [2.0, 2.0, 24.0, 5.0, 11.0]
    assert tasks.node.tolist()[3:] == [0, 0]
    assert 0 not in tasks.node.tolist()[:3]


@pytest.mark.parametrize(("weight", "order"), [(1, "hlhlhh"), (2, "hhlhhl"), (10, "hhhhll")])
def test_low_priority_has_its_turn_after_so_many_of_high(weight: int, order: str) -> None:
    """One worker, busy while four tasks of high and two of low priority come."""
    workload = pd.DataFrame({"submit_s": [0.0, 1.0, 1.0], "durations_s": [[9.0], [20.0] * 2, [5.0] * 4]})
    result = emu.run(
        Pigeon, workload, 1, parameters={"coordinators": 1, "schedulers": 1, "weight": weight, "reserved": 0.0},
        short_cutoff="10 s", in_process=True, output_tasks=True,
    )  # fmt: skip
    started = sorted(
        zip(result.tasks["start_s"].to_pylist(), result.tasks["job_id"].to_pylist(), strict=True)
    )
    found = "".join("lh"[job - 1] for _, job in started[1:])
    assert [list(g) for _, g in itertools.groupby(found)] == [list(g) for _, g in itertools.groupby(order)]


def test_lost_tasks_that_were_handed_over_come_to_their_coordinator_again() -> None:
    result = ran(Pigeon, **FAILING)
    assert result.counters["sent_again"] > 0
    assert result.counters["placements"] > result.tasks.num_rows
    assert not result.tasks["finish_s"].null_count


class Passes(Sparrow):
    """Hands a job over to the next scheduler, as `wrong` says."""

    schedulers = 2

    def on_tasks(self, job: emu.Job, count: int, cluster: emu.Cluster) -> None:
        cluster.place(job, range(count))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda job, cl: cl.hand_over(job, 9, 1), "hand_over.. got scheduler 9; they are 0 to 2"),
        (lambda job, cl: cl.hand_over(job, cl.scheduler, 1), "hand_over.. got scheduler 0, which it is"),
        (lambda job, cl: cl.hand_over(job, 1, job.num_tasks + 1), "tasks, and job 0 has"),
        (lambda job, cl: cl.hand_over(job, 1, 0), "hand_over.. got 0 tasks"),
        (lambda job, cl: cl.ask([0]), "asks nodes for their load, and it has no method on_load"),
    ],
)
def test_wrong_use_is_one_line(call: Any, why: str) -> None:
    class Wrong(Passes):
        def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
            call(job, cluster)

    with pytest.raises(emu.InputError, match=why):
        ran(Wrong)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (lambda job, cl: cl.place(job, [0] * (job.num_tasks + 1)), "tasks left here"),
        (lambda job, cl: cl.probe(job, [0]), "probe.. got job 0, which arrived at scheduler 0"),
        (lambda job, cl: cl.hand_over(job, 0, 1), "hand_over.. got job 0, which arrived at scheduler 0"),
    ],
)
def test_a_coordinator_has_the_tasks_that_it_was_given_alone(what: Any, why: str) -> None:
    class Wrong(Passes):
        def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
            cluster.hand_over(job, 1 - cluster.scheduler, job.num_tasks)

        def on_tasks(self, job: emu.Job, count: int, cluster: emu.Cluster) -> None:
            what(job, cluster)

    with pytest.raises(emu.InputError, match=why):
        ran(Wrong)
