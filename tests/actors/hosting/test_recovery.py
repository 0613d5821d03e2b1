"""Runs that are taken up where they broke off: by themselves, after Ctrl-C, and when processes under Ray die."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpointing import Mortal, checkpoints, names, started
from emulations import OBSERVED, digest, mixed_workload, named, run_setting, setting_of
from python_process import run_python

from actors.hosting.checkpoint import Checkpoint, Position
from actors.hosting.interrupts import Lost, interrupts_deferred
from actors.hosting.runs import MOST_RESTARTS, emulate, recover


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.hosting.runs.PAUSE_S", 0.0)


def test_a_run_is_taken_up_until_it_no_longer_comes_forward(tmp_path: Path) -> None:
    messages: list[str] = []
    disk = checkpoints(tmp_path / "c", messages=messages)
    starts: list[float | None] = []
    outcome = run_setting(setting_of("random", mixed_workload(5, 1), 4), OBSERVED)

    def attempt(start: Checkpoint | None) -> Any:
        starts.append(None if start is None else start.at.virtual_s)
        if len(starts) == 1 or len(starts) == 4:
            disk.save([{}], Position(float(len(starts)), 1))
        if len(starts) < 6:
            raise Lost("the actor is gone")
        return outcome

    recovered = recover(attempt, disk)
    assert recovered.restarts == 5
    assert starts == [None, 1.0, 1.0, 1.0, 4.0, 4.0]
    assert messages[0] == "the actor is gone; the run goes on from virtual time 1 s"
    starts.clear()
    with pytest.raises(
        Lost, match=f"the actor is gone; {MOST_RESTARTS + 1} times without a checkpoint in between"
    ):
        recover(lambda start: (_ for _ in ()).throw(Lost("the actor is gone")), disk)


def test_restarts_are_counted_over_processes(tmp_path: Path) -> None:
    setting = setting_of("random", mixed_workload(5, 1), 4)
    partition = started(setting)
    disk = checkpoints(tmp_path)
    disk.restarts = 2
    disk.save([partition.snapshot()], Position(0.0, 0))
    outcome = emulate(setting, OBSERVED, in_process=True, checkpoints=checkpoints(tmp_path, math.inf))
    assert outcome.restarts == 3
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))


@pytest.mark.parametrize("in_process", [True, False], ids=["here", "on Ray"])
def test_a_checkpoint_of_other_arrays_is_refused_and_the_one_before_used(
    in_process: bool, tmp_path: Path
) -> None:
    setting = setting_of("random", mixed_workload(5, 1), 4)
    saved = started(setting).snapshot()
    disk, messages = checkpoints(tmp_path), list[str]()
    disk.save([saved], Position(0.0, 0))
    disk.save([saved | {"world.counts": np.zeros((2, 2))}], Position(1.0, 1))
    again = checkpoints(tmp_path, math.inf, messages=messages)
    outcome = emulate(setting, OBSERVED, in_process=in_process, checkpoints=again)
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))
    assert len(messages) == 1
    assert f"{tmp_path / '000002'} is not used: world.counts is int64 here and float64 there" in messages[0]


def test_ctrl_c_is_noted_once_and_breaks_in_the_second_time() -> None:
    with interrupts_deferred() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_breaks_in_when_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.hosting.interrupts.LAST_CHECKPOINT_S", 0.05)
    with interrupts_deferred():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(60)


class Interrupting:
    """Presses Ctrl-C while it places a job: the checkpoint must not hold half of that."""

    def __init__(self, at: int) -> None:
        self.at = at

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        if job.job_id == self.at:
            signal.raise_signal(signal.SIGINT)
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)


def test_ctrl_c_leaves_a_checkpoint_from_which_the_run_goes_on(tmp_path: Path) -> None:
    workload = mixed_workload(20, 1)
    setting = setting_of(Interrupting(7), workload, 4)
    with pytest.raises(KeyboardInterrupt):
        emulate(setting, OBSERVED, in_process=True, checkpoints=checkpoints(tmp_path, 3600.0))
    assert names(tmp_path) == ["000001"]
    whole = digest(run_setting(setting_of(named("own"), workload, 4), OBSERVED))
    again = emulate(setting, OBSERVED, in_process=True, checkpoints=checkpoints(tmp_path, 3600.0))
    assert digest(again) == whole


# On Ray. What dies are processes of the emulation itself: they end themselves.


@pytest.mark.ray
def test_an_actor_that_is_killed(ray_session: None, tmp_path: Path) -> None:
    workload = mixed_workload(60, 1)
    setting = setting_of(Mortal(tmp_path, [5, 30, 55]), workload, 4)
    messages: list[str] = []
    outcome = emulate(
        setting, OBSERVED, in_process=False, checkpoints=checkpoints(tmp_path / "c", 0.1, messages=messages)
    )
    assert digest(outcome) == digest(run_setting(setting_of(named("own"), workload, 4), OBSERVED))
    assert outcome.restarts == 3
    assert len(messages) == 3
    assert all(line.startswith("the actor of a partition is gone (ActorDiedError)") for line in messages)
    assert "goes on from virtual time" in messages[2]


RAYLET = """
import os, sys
from pathlib import Path
sys.path.append("tests/actors")
from checkpointing import Mortal, checkpoints
from emulations import OBSERVED, digest, mixed_workload, named, run_setting, setting_of
from actors.hosting.child import close
from actors.hosting.runs import emulate

folder, address, messages = Path(os.environ["FOLDER"]), None, []
if os.environ["WHERE"] == "cluster":
    from ray.cluster_utils import Cluster
    quick = {"initial_delay_ms": 0, "period_ms": 500, "failure_threshold": 4}
    system = {f"health_check_{name}": value for name, value in quick.items()}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": system})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    address = cluster.address
workload = mixed_workload(40, 1)
mortal = setting_of(Mortal(folder, [20], "raylet"), workload, 4)
disk = checkpoints(folder / "c", 0.1, messages=messages)
outcome = emulate(mortal, OBSERVED, in_process=False, address=address, checkpoints=disk)
whole = run_setting(setting_of(named("own"), workload, 4), OBSERVED)
print(outcome.restarts >= 1, digest(outcome) == digest(whole), messages)
close()
if address is not None:
    cluster.shutdown()
"""

QUICK = {"initial_delay_ms": 0, "period_ms": 500, "timeout_ms": 2000, "failure_threshold": 4}
SOON = {f"RAY_health_check_{name}": str(value) for name, value in QUICK.items()}
"""Ray declares a node dead after seconds in which its raylet does not answer, in place of most of a minute."""

STOPPED = """
import os, sys
from pathlib import Path
sys.path.append("tests/actors")
from checkpointing import Mortal, checkpoints
from emulations import OBSERVED, digest, mixed_workload, named, run_setting, setting_of
from actors.hosting import child
from actors.hosting.runs import emulate
from workloads.errors import UnavailableError

child.SILENT_S = 10.0
folder, address, messages = Path(os.environ["FOLDER"]), None, []
if os.environ["WHERE"] == "cluster":
    from ray.cluster_utils import Cluster
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.wait_for_nodes()
    address = cluster.address
workload = mixed_workload(40, 1)
stopping = setting_of(Mortal(folder, [20], os.environ["WHAT"] + " stopped"), workload, 4)
disk = checkpoints(folder / "c", 0.1, messages=messages)
try:
    outcome = emulate(stopping, OBSERVED, in_process=False, address=address, checkpoints=disk)
    whole = run_setting(setting_of(named("own"), workload, 4), OBSERVED)
    print(outcome.restarts, digest(outcome) == digest(whole), messages, flush=True)
except UnavailableError as error:
    print(messages, error, flush=True)
child.close()
os._exit(0)  # a raylet that is stopped would hold up the end of the cluster
"""


@pytest.mark.ray
@pytest.mark.skipif(not os.path.exists("/proc"), reason="the scheduler asks /proc what it runs under")
@pytest.mark.parametrize("where", ["cluster", "one's own"])
def test_a_raylet_that_is_killed(where: str, tmp_path: Path) -> None:
    said = run_python(RAYLET, FOLDER=str(tmp_path), WHERE=where).splitlines()[-1]
    assert said.startswith("True True"), said


@pytest.mark.ray
@pytest.mark.skipif(not os.path.exists("/proc"), reason="the scheduler asks /proc what it runs under")
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raylet", "(the actor of a partition is gone|a part of Ray is gone|no node of Ray lives any more)"),
        ("driver", "the process that drives Ray gave no sign of life for 10 s"),
    ],
)
def test_what_is_stopped_for_good_is_ended_and_the_run_goes_on(what: str, why: str, tmp_path: Path) -> None:
    """With a raylet that does not answer, Ray has no node that lives: it is started again."""
    said = run_python(STOPPED, FOLDER=str(tmp_path), WHERE="here", WHAT=what, **SOON).splitlines()[-1]
    assert re.match(rf"1 True \['{why}.*; the run goes on from virtual time [\d.]+ s'\]$", said), said


@pytest.mark.ray
@pytest.mark.skipif(not os.path.exists("/proc"), reason="the scheduler asks /proc what it runs under")
def test_a_cluster_without_a_live_node_ends_the_run_with_a_line(tmp_path: Path) -> None:
    said = run_python(STOPPED, FOLDER=str(tmp_path), WHERE="cluster", WHAT="raylet", **SOON).splitlines()[-1]
    assert re.search(r"--address [\d.:]+: no node of the Ray cluster there lives, or can be reached", said), (
        said
    )
