"""A user's own scheduler of DAG jobs: what it launches, what it sees, and the errors for wrong answers."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpointing import digest_with_restores
from emulations import OBSERVED, digest, outages, run_setting, run_windows

import emu
from actors.environment import Pace
from actors.hosting.live import emulate_live
from actors.resources import UNIT
from actors.schedulers.registry import find_scheduler
from actors.setting import Costs, Dynamics, Estimates, Network, Setting
from clusters.cluster import build_cluster
from emu.testing import check_scheduler
from examples.shortest_job import ShortestFirst
from tests.actors.dag_emulations import figure_2
from tests.actors.dag_settings import mixed_dags, setting_of
from workloads.dags import make_dag_workload
from workloads.errors import InputError
from workloads.requests import Requests

ROOT = Path(__file__).parents[4]
ONE = build_cluster("one machine", [1], cpu_cores=[1])
TWO = build_cluster("two machines", [2, 1], cpu_cores=[2, 1])
WORKLOAD = mixed_dags(40, mean_gap_s=0.5)


def own(scheduler: Any, workload: Any = WORKLOAD, nodes: Any = None, **given: Any) -> Setting:
    return setting_of(scheduler, workload, nodes, **{"network": Network(0.0), **given})


class WithinShares:
    """A job launches what fits into its share, an equal part for each of two jobs; nothing is handed out beyond it."""

    share = 0.5

    def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
        pairs, held = [], dict(zip(stages.job.tolist(), stages.job_held.copy(), strict=True))
        for place, job in enumerate(stages.job.tolist()):
            for _ in range(stages.ready[place]):
                if (held[job] + stages.demand[place] <= self.share * machines.capacity[0]).all():
                    held[job] += stages.demand[place]
                    pairs.append((place, 0))
        return pairs


@pytest.mark.parametrize(
    ("scheduler", "ends_s", "starts_s"),
    [
        # DRF without a leftover part: both tasks of S0 and two of S1 hold 0.5; the third waits, as does J2's second.
        (WithinShares, [2.1, 2.0], [0, 0, 0, 0, 1, 2, 0, 1]),
        # J2's path is 1, J1's 1.1: J2 holds 0.58, and S0 and one task of S1 fit beside it.
        (ShortestFirst, [2.1, 1.0], [0, 0, 0, 1, 1, 2, 0, 0]),
    ],
)
def test_the_example_of_carbynes_paper(scheduler: Any, ends_s: list[float], starts_s: list[float]) -> None:
    outcome = run_setting(own(scheduler, figure_2(), ONE))
    assert (outcome.finish_ns / 1e9).tolist() == ends_s
    assert outcome.tasks is not None
    assert (outcome.tasks["start_ns"] / 1e9).tolist() == starts_s


class AsSjf:
    """What `sjf` does: first the machines where tasks have ended, the last one first, then all in order."""

    def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
        free, left, pairs = machines.free.copy(), stages.ready.copy(), []
        order = np.argsort(stages.job_path_s, kind="stable")
        everywhere = [(s, m) for s in order for m in range(len(free))]
        for stage, machine in [(s, m) for m in machines.changed[::-1] for s in order] + everywhere:
            while left[stage] > 0 and (free[machine] >= stages.demand[stage]).all():
                free[machine] -= stages.demand[stage]
                left[stage] -= 1
                pairs.append((stage, machine))
        return np.array(pairs, np.int32).reshape(-1, 2)


def independent_stages() -> Any:
    """Jobs of stages without edges, all at once: until the last launch there are always tasks that may be launched."""
    rng = np.random.default_rng(3)
    stages = rng.integers(1, 4, 20)
    tasks = rng.integers(1, 7, stages.sum())
    durations, cores = rng.exponential(3.0, tasks.sum()), rng.choice([0.5, 1.0, 2.0], stages.sum())
    return make_dag_workload("w", np.zeros(20), stages, tasks, durations, [], cpu_cores=cores)


@pytest.mark.parametrize(
    ("workload", "nodes", "given"),
    [
        (independent_stages(), None, {}),  # on which machine new stages start depends on when nothing could
        (WORKLOAD, build_cluster("one machine", [9], cpu_cores=[9]), {}),
        (WORKLOAD, None, {"heartbeat_s": 0.7}),
    ],
    ids=["events", "events on one machine", "heartbeats"],
)
@pytest.mark.parametrize("delay_s", [0.0, 0.01])
def test_one_that_does_what_sjf_does_launches_the_same_tasks(
    workload: Any, nodes: Any, given: dict[str, Any], delay_s: float
) -> None:
    one, other = (
        run_setting(own(name, workload, nodes, network=Network(delay_s), **given)).tasks
        for name in (AsSjf, "sjf")
    )
    assert one is not None
    assert other is not None
    assert all((one[name] == other[name]).all() for name in one)
    assert np.unique(one["node"]).size == (1 if nodes else 5)


def test_what_it_sees() -> None:
    seen: list[Any] = []

    class Watching(ShortestFirst):
        def start(self, num_nodes: int, seed: int) -> None:
            seen.append((num_nodes, seed))

        def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
            shown = ("stage", "job", "ready", "running", "left", "fits", "level", "job_tasks_left")
            seen.append([now_s, *(getattr(stages, name).tolist() for name in shown)])
            seen[-1] += [machines.free.ravel().tolist(), machines.changed.tolist()]
            assert machines.resources == ("cpu_cores",)
            assert machines.capacity.tolist() == [[2 * UNIT], [UNIT]]
            arrays = [getattr(stages, n) for n in (*shown, "demand", "job_held", "path_s", "arrival_s")]
            for array in (
                *arrays,
                stages.duration_s,
                stages.job_work_left_s,
                machines.free,
                machines.machine,
            ):
                assert not array.flags.writeable
            times = (stages.duration_s, stages.path_s, stages.job_path_s, stages.arrival_s)
            seen[-1] += [[column.tolist() for column in times], stages.job_work_left_s.tolist()]
            assert stages.priority.tolist() == [[0, 4][job] for job in stages.job]
            return super().launch(stages, machines, now_s)

    # J0: two tasks of a core and 2 s, then one of two cores and 1 s. J1: at 1 s, two tasks of a core and 5 s. Nothing
    # is asked at 7, when the last tasks end.
    asking = Requests(priority=[None, 4])
    jobs = make_dag_workload(
        "w", [0, 1], [2, 1], [2, 1, 2], [2, 2, 1, 5, 5], [(0, 0, 1)], cpu_cores=[1, 2, 1], requests=asking
    )
    outcome = run_setting(own(Watching, jobs, TWO, seed=3, priorities=True))
    assert seen[0] == (2, 3)
    u, work = float(UNIT), [6.0 / 3, 10.0 / 3]  # core-seconds over three cores
    #       now  stage job ready running left fits level tasks of job, free, where tasks have ended
    assert [row[:11] for row in seen[1:]] == [
        [0.0, [0], [0], [2], [0], [2], [True], [0], [3], [2 * u, u], []],
        [1.0, [2], [1], [2], [0], [2], [True], [0], [2], [0.0, u], []],
        [2.0, [1, 2], [0, 1], [1, 1], [0, 1], [1, 2], [True, True], [1, 0], [1, 2], [2 * u, 0.0], [0]],
        [3.0, [2], [1], [1], [1], [2], [True], [0], [2], [2 * u, 0.0], [0]],
    ]
    assert seen[3][11] == [[1.0, 5.0], [1.0, 5.0], [3.0, 5.0], [0.0, 1.0]]
    assert seen[1][12] == pytest.approx(work[:1])
    assert seen[3][12] == pytest.approx([2.0 / 3, work[1]])
    assert (outcome.finish_ns / 1e9).tolist() == [3.0, 8.0]


@pytest.mark.parametrize(("counts", "starts_s"), [(True, [1.0, 0.0]), (False, [0.0, 1.0])])
def test_without_priorities_it_sees_none(counts: bool, starts_s: list[float]) -> None:
    class HighestFirst:
        def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
            return [(int(np.argmax(stages.priority)), 0)] if stages.fits.any() else []

    asking = Requests(priority=[0, 4])
    jobs = make_dag_workload("w", [0, 0], [1, 1], [1, 1], [1, 1], [], cpu_cores=[1, 1], requests=asking)
    outcome = run_setting(own(HighestFirst, jobs, ONE, priorities=counts))
    assert (outcome.start_ns / 1e9).tolist() == starts_s


def test_with_heartbeats_it_sees_the_machine_whose_heartbeat_came() -> None:
    seen = []

    class Watching(ShortestFirst):
        heartbeat_s = "2 s"

        def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
            seen.append((now_s, machines.machine.tolist(), machines.free.tolist(), machines.changed.tolist()))
            return super().launch(stages, machines, now_s)

    job = make_dag_workload("w", [0], [1], [4], [1.5] * 4, [], cpu_cores=[1])
    run_setting(own(Watching, job, TWO))
    # The heartbeat of machine 0 at 0 comes before the job. Machine 1 gets a task at 1, which ends at 2.5 and is
    # reported at 3; machine 0 gets two at 2.
    assert seen == [(1.0, [1], [[1e9]], [0]), (2.0, [0], [[2e9]], [0]), (3.0, [1], [[1e9]], [0])]


class Remembering(ShortestFirst):
    """Draws which of two jobs goes first, and remembers how often it was asked."""

    def start(self, num_nodes: int, seed: int) -> None:
        self.rng, self.asked = np.random.default_rng(seed), 0

    def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
        self.asked += 1
        pairs = super().launch(stages, machines, now_s)
        return pairs[: 1 + self.rng.integers(3) + self.asked % 2]


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize(
    ("given", "costs"),
    [({}, Costs("fixed", 0.02, 0.1, 0.1)), ({"heartbeat_s": 0.7}, Costs())],
    ids=["events, with costs", "heartbeats"],
)
def test_partitions_and_checkpoints_change_nothing(given: dict[str, Any], costs: Costs) -> None:
    setting = own(Remembering, mixed_dags(), costs=costs, network=Network(0.01, spread_s=0.02), **given)
    setting = dataclasses.replace(
        setting,
        estimates=Estimates("random", 0.5, demands=True),
        dynamics=Dynamics(mtbf_s=20.0, mttr_s=3.0, detection_s=1.0, straggler_share=0.2),
    )
    outcome = run_setting(setting, OBSERVED)
    assert outcome.counters["tasks_lost"] > 0
    whole = digest(outcome)
    for partitions in (2, 4):
        assert digest(run_windows(setting, OBSERVED, partitions)) == whole
    moved, moves = digest_with_restores(setting, 5)
    assert moved == whole
    assert moves > 5


@pytest.mark.compiled
def test_it_runs_by_the_wall_clock() -> None:
    resources = []

    class Watching(ShortestFirst):
        def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
            resources.append(machines.resources)
            return super().launch(stages, machines, now_s)

    outcome = emulate_live(own(Watching), OBSERVED, Pace(0.02), partitions=2, in_process=True)
    assert (outcome.finish_ns > WORKLOAD.arrays().submit_ns).all()
    assert set(resources) == {WORKLOAD.resources}  # also in the rehearsal before the run


def many_tasks(tasks: int = 4500) -> Setting:
    """More tasks at once than one event may send messages, and than the queue has room for."""
    job = make_dag_workload("w", [0], [1], [tasks], [1.0] * tasks, [], cpu_cores=[1])
    return own(
        ShortestFirst, job, build_cluster("m", [tasks] * 2, cpu_cores=[tasks] * 2), network=Network(0.5)
    )


@pytest.mark.slow("several whole runs")
def test_it_may_launch_more_than_an_event_may_send_messages() -> None:
    setting = many_tasks()
    outcome = run_setting(setting, OBSERVED)
    assert outcome.tasks is not None
    assert (outcome.tasks["start_ns"] == 500_000_000).all()
    assert (outcome.counters["matches"], outcome.counters["launches"]) == (1, 4500)
    assert digest_with_restores(setting, 2)[0] == digest(outcome)
    assert digest(run_windows(setting, OBSERVED, 2)) == digest(outcome)


class Returns(ShortestFirst):
    """Returns what it was made with."""

    def __init__(self, answer: Any = None):
        self.answer = answer

    def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, "launch() returned NoneType; it must return pairs (stage, machine)"),
        ([0, 1], "launch() returned int64 of shape (2,); it must"),
        ([(0, 1), (0,)], "launch() returned list; it must"),
        ([(0.0, 1.0)], "launch() returned float64 of shape (1, 2); it must"),
        ([(0, 0), (2, 0)], "launch() returned stage 2 in pair 1; there are 0 to 1"),
        ([(-1, 0)], "launch() returned stage -1 in pair 0; there are 0 to 1"),
        ([(0, 2)], "launch() returned machine 2 in pair 0; there are 0 to 1"),
        ([(0, 0)] * 3, "launch() returned 3 or more tasks of stage 0 of job 0, of which 2 may be launched"),
        (
            [(0, 1)],
            "a task of stage 0 of job 0 for machine 1, which has 1 cpu_cores free; the task needs 1.2",
        ),
        (
            [(0, 0), (0, 0), (1, 0)],
            "a task of stage 1 of job 0 for machine 0, which has 0.1 cpu_cores free after the 2 before it; the task"
            " needs 0.6",
        ),
        (KeyError("demand"), "launch() raised KeyError: 'demand' at 0 s"),
    ],
)
def test_a_wrong_answer_is_named(answer: Any, expected: str) -> None:
    job = make_dag_workload("w", [0], [2], [2, 1], [1, 1, 1], [], cpu_cores=[1.2, 0.6])
    with pytest.raises(InputError) as caught:
        run_setting(own(Returns(answer), job, build_cluster("m", [2, 1], cpu_cores=[2.5, 1])))
    assert "scheduler Returns" in str(caught.value)
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_machine_that_is_down_has_nothing_free() -> None:
    job = make_dag_workload("w", [2], [1], [1], [1], [], cpu_cores=[1])
    failing = Dynamics(outages=outages(("node 0", 1, 9)))
    for scheduler, nodes in ((ShortestFirst, [1]), (Returns([(0, 1)]), [1])):
        outcome = run_setting(dataclasses.replace(own(scheduler, job, TWO), dynamics=failing))
        assert outcome.tasks is not None
        assert outcome.tasks["node"].tolist() == nodes
    with pytest.raises(InputError, match="for machine 0, which is known to be down"):
        run_setting(dataclasses.replace(own(Returns([(0, 0)]), job, TWO), dynamics=failing))


def test_one_that_launches_nothing_does_not_run_for_ever() -> None:
    job = make_dag_workload("w", [0], [1], [2], [1, 1], [], cpu_cores=[1])
    with pytest.raises(InputError, match="2 tasks have not finished, the first of job 0; it must serve each"):
        run_setting(own(Returns([]), job, TWO))

    class Idle(ShortestFirst):
        heartbeat_s = 1.0

        def launch(self, stages: Any, machines: Any, now_s: float) -> Any:
            return []

    with pytest.raises(InputError, match="launched nothing at 1,000 heartbeats of each machine"):
        run_setting(own(Idle, job, TWO))


def test_its_parameters_are_its_own_and_the_heartbeat() -> None:
    class Choosy(ShortestFirst):
        """Names parameters as policies do."""

        leftover = "much"
        fairness = 0.5

        def __init__(self, packing: str = "mine"):
            self.packing = packing

    found = find_scheduler(Choosy)
    assert (found.family, found.title) == ("dags", "Names parameters as policies do.")
    kinds = {"leftover": "text", "fairness": "number", "packing": "text", "heartbeat_s": "duration"}
    assert {p.name: p.kind for p in found.parameters} == kinds
    tasks = run_setting(own(Choosy, fairness=0.9)).tasks
    plain = run_setting(own(ShortestFirst)).tasks
    assert tasks is not None
    assert plain is not None
    assert all((tasks[name] == plain[name]).all() for name in plain)
    beats = [run_setting(own(Choosy, heartbeat_s=h)).counters.get("heartbeats", 0) for h in (0, "1 s")]
    assert beats[0] == 0 < beats[1]

    class Hasty(ShortestFirst):
        heartbeat_s = "1 parsec"

    with pytest.raises(InputError, match="heartbeat_s of Hasty"):
        find_scheduler(Hasty)


@pytest.mark.parametrize("scheduler", [ShortestFirst, "examples.shortest_job:ShortestFirst"])
def test_it_passes_the_checks_of_all_schedulers(scheduler: Any) -> None:
    check_scheduler(scheduler)
    check_scheduler(scheduler, {"heartbeat_s": "3 s"})


def test_the_page_shows_the_example() -> None:
    page, code = (
        (ROOT / name).read_text("utf-8") for name in ("docs/schedulers.md", "examples/shortest_job.py")
    )
    shown = page[page.index("class ShortestFirst:") :]
    shown = shown[: shown.index("```")]
    without_docstring = re.sub(
        r'        """Return.*?"""\n', "", code[code.index("class ShortestFirst:") :], flags=re.DOTALL
    )
    assert shown == without_docstring


def test_it_runs_and_compares_by_class() -> None:
    comparison = emu.compare([ShortestFirst, "sjf"], WORKLOAD, nodes=4, in_process=True)
    frame = comparison.to_pandas()
    assert set(frame["scheduler"]) == {"ShortestFirst", "sjf"}
