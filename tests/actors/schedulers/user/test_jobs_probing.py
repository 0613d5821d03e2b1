"""Schedulers of one's own that probe, in plain Python."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from emu.testing import check_scheduler
from examples.probing_schedulers import Hawk, RefusesBehindLong, Sparrow
from tests.actors.schedulers.user.user_runs import (
    FAILING,
    objects,
    objects_of,
    ran,
    with_and_without_a_pause,
)


class Talkative(Sparrow):
    """Handles every message, and counts; schedulers pass a number on, and wake themselves."""

    schedulers = 3
    refusals = 2

    def start(self, num_nodes: int, seed: int) -> None:
        self.seen: list[Any] = []

    def on_arrival(self, job: Any, cluster: Any) -> None:
        super().on_arrival(job, cluster)
        cluster.send((cluster.scheduler + 1) % cluster.num_schedulers, job.job_id, 7)
        cluster.wake(0.25, job.job_id)

    def on_probe(self, job: Any, node: Any, cluster: Any) -> bool:
        return (job.job_id + node.node_id) % 5 != 0 or node.idle_slots == 0

    def on_rejected(self, job: Any, node: int, times: int, cluster: Any) -> None:
        self.seen.append(("rejected", job.job_id, node, times))
        assert (job.job_id + node) % 5 == 0
        cluster.probe(job, [cluster.draw_again(job)], times)

    def on_done(self, job: Any, node: int, start_s: float, finish_s: float, cluster: Any) -> None:
        assert finish_s >= start_s >= job.submit_s
        self.seen.append(("done", job.job_id))

    def on_wake(self, number: int, cluster: Any) -> None:
        self.seen.append(("woken", number, cluster.now_s))

    def on_message(self, sender: int, numbers: tuple[int, int, int], cluster: Any) -> None:
        assert numbers[1:] == (7, 0)
        assert sender == (cluster.scheduler - 1) % 3
        self.seen.append(("message", sender, numbers[0]))


@pytest.mark.parametrize(
    "setting", [{}, {"network_spread": "1 ms"}, {"cost_model": "fixed", "cost_per_message": "2 ms"}]
)
def test_sparrow_in_python_is_sparrow_task_by_task(setting: dict[str, Any]) -> None:
    own, built_in = ran(Sparrow, **setting), ran("sparrow", **setting)
    assert own.tasks.equals(built_in.tasks)
    assert own.counters == built_in.counters
    assert own.summary["engine"]["events"] == built_in.summary["engine"]["events"]


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize("scheduler", [Talkative, Hawk, RefusesBehindLong])
def test_the_number_of_partitions_changes_nothing(scheduler: type) -> None:
    alone = ran(scheduler, output_events="all")
    for partitions in (2, 3):
        apart = ran(scheduler, output_events="all", clock="windows", partitions=partitions)
        assert apart.tasks.equals(alone.tasks)
        assert apart.counters == alone.counters
        assert apart.events.equals(alone.events)


def test_every_handler_is_called_for_every_message() -> None:
    seen = [one for own in objects(Talkative, output_events="all").values() for one in own.seen]
    events = ran(Talkative, output_events="all").events.to_pandas()
    kinds = events.kind.value_counts()
    for kind, name in (
        ("REJECTED", "rejected"),
        ("DONE", "done"),
        ("OWN_WAKE", "woken"),
        ("OWN_MESSAGE", "message"),
    ):
        assert kinds[kind] == sum(one[0] == name for one in seen)
    arrivals = events[events.kind == "ARRIVAL"].set_index("job").time_ns
    assert all(
        at_s == pytest.approx(arrivals[job] / 1e9 + 0.25)
        for name, job, at_s in (s for s in seen if s[0] == "woken")
    )


def test_hawk_in_python_steals_and_keeps_long_jobs_to_their_nodes() -> None:
    own = ran(Hawk)
    long = np.array(own.jobs["job_class"].to_pylist()) == "long"
    tasks = own.tasks.to_pandas()
    first_long = round(60 * (1 - 0.98))
    assert (tasks[long[tasks.job_id]].node >= first_long).all()
    assert own.counters["stolen_probes"] > 0
    assert own.counters["placements"] == int(np.sum(own.jobs["num_tasks"].to_numpy()[long]))
    built_in = ran("hawk")
    mean = own.summary["jobs"]["long"]["mean"] / built_in.summary["jobs"]["long"]["mean"]
    assert 0.8 < mean < 1.25  # it places by estimates less ends, and not by what is left of running tasks


def test_short_jobs_do_not_wait_where_long_ones_run() -> None:
    """Of a probe that was accepted no long task was at its node."""
    events = ran(RefusesBehindLong, output_events="all").events.to_pandas()
    jobs = ran(RefusesBehindLong).jobs["job_class"].to_pylist()
    there = dict.fromkeys(range(60), 0)
    refused = {(row.sender, row.left_ns) for row in events[events.kind == "REJECTED"].itertuples()}
    for row in events.itertuples():
        if row.kind == "PLACED":
            there[row.receiver] += 1
        elif row.kind == "TASK_END" and jobs[int(row.job)] == "long":
            there[row.receiver] -= 1
        elif row.kind == "PROBE" and row.sender >= 60:
            assert ((row.receiver, row.time_ns) in refused) == (there[row.receiver] > 0)


def test_a_checkpoint_has_the_objects_of_all_actors() -> None:
    whole, resumed = with_and_without_a_pause(Talkative)
    seen = [{number: own.seen for number, own in objects_of(p).items()} for p in (whole, resumed)]
    assert seen[0] == seen[1]


@pytest.mark.slow("several whole runs")
def test_lost_tasks_and_probes_are_sent_again() -> None:
    for scheduler in (Sparrow, Hawk):
        result = ran(scheduler, **FAILING)
        assert result.counters["sent_again"] > 0
        assert not result.tasks["finish_s"].null_count


@pytest.mark.parametrize("scheduler", [Sparrow, RefusesBehindLong])
def test_check_scheduler_tries_it(scheduler: type) -> None:
    check_scheduler(scheduler)


def wrong(handler: str, call: Any) -> type:
    return type("Wrong", (Sparrow,), {handler: call})


@pytest.mark.parametrize(
    ("handler", "call", "why"),
    [
        (
            "on_arrival",
            lambda self, job, cluster: cluster.probe(job, [60]),
            "probe.. got node 60; node ids are 0 to 59",
        ),
        ("on_arrival", lambda self, job, cluster: cluster.probe(job, [0.5]), "want node ids"),
        ("on_arrival", lambda self, job, cluster: cluster.probe(job, [1] * 10**6), "sends at most"),
        (
            "on_arrival",
            lambda self, job, cluster: cluster.place(job, [1] * (job.num_tasks + 1)),
            "tasks left",
        ),
        (
            "on_arrival",
            lambda self, job, cluster: cluster.send(99),
            "send.. got scheduler 99; they are 0 to 10",
        ),
        ("on_arrival", lambda self, job, cluster: cluster.wake(math.nan), "wake.. got nan s"),
        ("on_arrival", lambda self, job, cluster: 1 / 0, "on_arrival.. raised ZeroDivisionError"),
        ("on_arrival", lambda self, job, cluster: None, "tasks have not finished"),
        (
            "on_probe",
            lambda self, job, node, cluster: False,
            "a probe came back, and it has no method on_rejected",
        ),
    ],
)
def test_what_a_handler_does_wrong_is_one_line(handler: str, call: Any, why: str) -> None:
    with pytest.raises(emu.InputError, match=why):
        ran(wrong(handler, call))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("schedulers", 0, "0 is too little; the least is 1"),
        ("schedulers", 2.5, "2.5 is not a whole number"),
        ("coordinators", -1, "-1 is too little; the least is 0"),
        ("steal_attempts", "x", "'x' is not a whole number"),
    ],
)
def test_attributes_that_have_a_meaning_have_bounds(name: str, value: Any, why: str) -> None:
    own = type("Own", (), {name: value, "on_arrival": lambda self, job, cluster: None})
    with pytest.raises(emu.InputError, match=f"parameter {name} of Own: {why}"):
        ran(own)


def test_the_example_runs_from_its_file(tmp_path: Path) -> None:
    place = Path(__file__).parents[4] / "examples" / "probing_schedulers.py"
    of_file = ran(f"{place}:Sparrow", parameters={"probe_ratio": 3.0})
    assert of_file.counters["probes"] == 3 * of_file.tasks.num_rows
