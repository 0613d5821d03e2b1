"""Runs of DAG jobs over a network: what they write, their stories, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from actors.hosting import runs
from actors.hosting.checkpoint import Checkpoints
from emu.cli import main
from emu.explaining.timeline import write_timeline
from tests.actors.dag_settings import mixed_dags, with_bytes
from workloads.arrow import column
from workloads.catalogue import save_workload
from workloads.dags import DagWorkload, make_dag_workload

ROOT = Path(__file__).resolve().parents[4]
HERE: dict[str, Any] = {
    "in_process": True,
    "network_delay": 0.0,
    "network_scheduler": "fair",
    "fabric_port_speed": "8 Gbps",
    "cluster": "homogeneous",
    "output_tasks": True,
}


def shuffle(**given: Any) -> DagWorkload:
    """Two maps and two reducers of 1 s, of which each reads 1 GB of either machine."""
    return make_dag_workload(
        "shuffle",
        [0],
        [2],
        [2, 2],
        [1, 1, 1, 1],
        [(0, 0, 1)],
        **{"cpu_cores": [1, 1], "edge_bytes": [4e9], **given},
    )


@pytest.fixture
def dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder with a workload `dags`, whose shuffles have bytes."""
    monkeypatch.chdir(tmp_path)
    save_workload(with_bytes(mixed_dags(8), 1), "dags")
    return tmp_path


def test_a_variant_of_a_coordinator(dags: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path, file = dags, dags / "run.toml"
    file.write_text(
        'scheduler = "drf"\nworkload = "dags"\nnodes = 4\nin_process = true\n'
        '[network]\nscheduler = "thick"\n[variants.thick]\nscheduler = "philae"\nthin_limit = 0\n'
        '[variants.lone]\nscheduler = "edf"\n'
    )
    assert main(["run", "--config", str(file), "--out", str(tmp_path / "r")]) == 0
    assert main(["run", "--config", str(file), "--network", "lone", "--out", str(tmp_path / "s")]) == 2
    assert "lone is edf, which does not coordinate the coflows of DAG jobs; want" in capsys.readouterr().err
    again = tmp_path / "r" / "config.toml"  # which has the variant, too
    assert main(["run", "--config", str(again), "--out", str(tmp_path / "t")]) == 0
    one, other = (emu.read_result(tmp_path / name).jobs for name in "rt")
    assert one.equals(other)


@pytest.mark.parametrize(
    ("scheduler", "seed", "until_s"),
    [
        ("drf", 2, 201.001),
        ("drf", 5, 201.001),
        ("tetris", 2, 201.001),
        ("drf@heartbeat_s=0.1", 2, 201.151),
        ("drf@heartbeat_s=0.1", 5, 201.101),
    ],
)
def test_a_job_waits_again_after_a_local_launch(scheduler: str, seed: int, until_s: float) -> None:
    # Four tasks of 100 s, the parts of three of which lie on the machine of a larger number or, with the other seed, of
    # a smaller one. At 100 s it launches a local task, which ends the job's wait; the other machine is idle, and the
    # job is passed over there from then on. So the last task is launched there at 101 s, or at the next heartbeat.
    work = make_dag_workload("reads", [0], [1], [4], [100] * 4, [], cpu_cores=[1], input_bytes=[4e6])
    given: dict[str, Any] = {"network_input": "replicas", "network_replicas": 1, "seed": seed}
    run = emu.run(scheduler, work, 2, **HERE, **given, network_locality_wait=1)
    assert column(run.jobs, "jct_s")[0] == pytest.approx(until_s, abs=1e-6)
    starts = np.sort(column(run.tasks, "start_s"))
    assert starts[2] < 100.2
    assert starts[3] >= 101


def test_events_of_flows_name_no_task() -> None:
    run = emu.run("drf", shuffle(), 2, **HERE | {"network_scheduler": "sebf"}, output_events="all")
    events = run.events.to_pandas()
    of_network = events[events.kind.isin(["FLOW_END", "LINE_END", "PACE", "SHRINK", "REGISTER", "DECIDE"])]
    assert len(of_network) > 0
    assert of_network.task.isna().all()
    assert of_network.job.isna().all()
    for kind in ("LAUNCH", "TASK_DONE"):
        assert sorted(events[events.kind == kind].task) == [0, 1, 2, 3]
    assert sorted(events[events.kind == "FETCH"].task) == [2, 3]


def test_a_timeline_has_the_time_to_fetch_before_that_to_compute(tmp_path: Path) -> None:
    run = emu.run("drf", shuffle(), 2, **HERE)
    write_timeline(run, tmp_path / "trace.json")
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = sorted(
        (e["args"]["task"], e["ts"] / 1e6, e["dur"] / 1e6, e["cat"], e["name"])
        for e in entries
        if e["ph"] == "X"
    )
    assert slices == [
        (0, 0, 1, "task", "job 0"),
        (1, 0, 1, "task", "job 0"),
        (2, 1, 1, "fetch", "fetch of job 0"),
        (2, 2, 1, "task", "job 0"),
        (3, 1, 1, "fetch", "fetch of job 0"),
        (3, 2, 1, "task", "job 0"),
    ]


def test_a_demand_for_bandwidth_gives_way_to_the_network() -> None:
    work = shuffle(demands={"network_in": [0.1, 0.9], "network_out": [0.9, 0.1]})
    run = emu.run("tetris", work, 2, **HERE)
    assert list(run.summary["dags"]["used"]) == ["cpu_cores"]
    assert any("network_in and network_out of shuffle are not held" in note for note in run.notes)


@pytest.mark.parametrize("network", ["fair", "sebf"])
def test_a_manager_of_one_s_own(network: str) -> None:
    own, drf = (
        emu.run(name, shuffle(), 2, **HERE | {"network_scheduler": network}, output_events="all")
        for name in ("examples/shortest_job.py:ShortestFirst", "drf")
    )
    assert own.jobs.equals(drf.jobs)
    assert own.summary["dags"] == drf.summary["dags"]
    with pytest.raises(
        emu.InputError, match=r"clock: ShortestFirst is shown which tasks fetch .* want virtual"
    ):
        emu.run(
            "examples/shortest_job.py:ShortestFirst", shuffle(), 2, network_scheduler=network, clock="windows"
        )


COORDINATOR = """
class Mine:
    largest = False
    def order(self, coflows, now_s):
        return range(len(coflows.coflow))[:: -1 if self.largest else 1]
"""


def test_a_coordinator_of_one_s_own_by_its_file(dags: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path = dags
    (tmp_path / "mine.py").write_text(COORDINATOR)
    given = ["--workload", "dags", "--nodes", "5"]
    for scheduler in ("drf", f"{ROOT}/examples/shortest_job.py:ShortestFirst"):
        base = ["run", "--scheduler", scheduler, *given, "--network", "mine.py:Mine", "--overwrite", "--out"]
        assert main([*base, "here", "--in-process"]) == 0
        assert main([*base, "variant", "--in-process", "--network", "mine.py:Mine@largest=true"]) == 0
        (tmp_path / "else").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "else")
        for name in ("here", "variant"):
            again = ["run", "--config", f"../{name}/config.toml", "--overwrite", "--out", f"../again-{name}"]
            assert main(again) == 0
        monkeypatch.chdir(tmp_path)
        runs = {name: emu.read_result(name) for name in ("here", "variant", "again-here", "again-variant")}
        assert runs["here"].jobs.equals(runs["again-here"].jobs)
        assert runs["variant"].jobs.equals(runs["again-variant"].jobs)
        assert not runs["variant"].jobs.equals(runs["here"].jobs)
        files = [of["name"] for of in runs["here"].manifest["inputs"] if of["what"] == "scheduler file"]
        assert str(tmp_path / "mine.py") in files


FAILS_ONCE = """
import os
from examples.shortest_job import ShortestFirst

class Fewer(ShortestFirst):
    asked = 0
    def launch(self, stages, machines, now_s):
        self.asked += 1
        return super().launch(stages, machines, now_s)[: 1 + self.asked % 3]

class Order:
    asked = 0
    def order(self, coflows, now_s):
        self.asked += 1
        if self.asked == 20 and not os.path.exists("MARK"):
            open("MARK", "w").close()
            raise ValueError("once")
        return range(len(coflows.coflow))
"""


@pytest.mark.slow("the conformance suite tries it in small cases")
def test_a_run_with_both_halves_of_one_s_own_is_resumed(
    dags: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path = dags
    (tmp_path / "halves.py").write_text(FAILS_ONCE.replace("MARK", str(tmp_path / "mark")))
    base = ["run", "--scheduler", "halves.py:Fewer", "--network", "halves.py:Order", "--in-process"]
    base += ["--workload", "dags", "--nodes", "5"]
    monkeypatch.setattr(runs, "SLICE_S", 0.0)
    monkeypatch.setattr(Checkpoints, "due", lambda self: True)
    assert main([*base, "--out", "failed"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "halves.py: line 17: scheduler Order: order() raised ValueError: once" in error
    assert main([*base, "--out", "whole"]) == 0
    monkeypatch.chdir("/")
    assert main(["run", "--resume", str(tmp_path / "failed")]) == 0
    assert "starts again from the beginning" not in capsys.readouterr().err
    whole, resumed = (emu.read_result(tmp_path / name) for name in ("whole", "failed"))
    assert whole.jobs.equals(resumed.jobs)
