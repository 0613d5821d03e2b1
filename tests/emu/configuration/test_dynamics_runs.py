"""The keys of the group `dynamics`: what they make, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emu
from emu.configuration.plan import Plan, configure, prepare


def plan_of(**given: Any) -> Plan:
    base = {"scheduler": "random", "workload": "poisson", "nodes": 20, "workload_options": {"jobs": 10}}
    return prepare(configure({**base, **given}))


def test_keys_make_dynamics(tmp_path: Path) -> None:
    path = tmp_path / "failures.csv"
    path.write_text("target,fail_s,repair_s\n3,1,2\n")
    plan = plan_of(
        dynamics_failures=path,
        dynamics_mtbf="30 d",
        dynamics_mttr="1 h",
        dynamics_detection="10 s",
        dynamics_failover="5 s",
        dynamics_straggler_share="1%",
        dynamics_straggler_distribution="pareto",
    )
    dynamics = plan.setting(0).dynamics
    assert (dynamics.mtbf_s, dynamics.mttr_s) == (30 * 86400, 3600)
    assert (dynamics.detection_s, dynamics.failover_s) == (10, 5)
    assert (dynamics.straggler_share, dynamics.straggler_slowdown) == (0.01, 3.0)
    assert dynamics.outages is not None
    assert dynamics.outages.number.tolist() == [3]
    assert [i["name"] for i in plan.inputs if i["what"] == "failures file"] == [str(path)]
    assert str(path) in plan.config_toml()


def test_a_task_that_hardly_ever_ends_is_noted_before_the_run() -> None:
    options = {"jobs": 10, "service": "deterministic", "mean_task_s": 40.0, "nodes": 20}
    fails = {"dynamics_mtbf": "10 s", "dynamics_mttr": "1 s"}
    *_, note = plan_of(workload_options=options, **fails).notes
    assert note == (
        "the longest task takes 40 s and nodes fail every 10 s: about 55 attempts in the mean until it ends, "
        "as a lost task starts again; with a dynamics.mtbf of at least 40 s it takes fewer than 3"
    )
    short = plan_of(workload_options={**options, "mean_task_s": 20.0}, **fails).notes
    assert not any("attempts" in note for note in short)


def test_outages_of_schedulers_that_a_policy_lacks_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "failures.csv"
    path.write_text("target,fail_s,repair_s\n3,1,2\nscheduler 7,1,2\ncentral,1,2\n")
    given = {"workload": "poisson", "nodes": 20, "workload_options": {"jobs": 10}, "in_process": True}
    result = emu.run(scheduler="central-fifo", dynamics_failures=path, **given)
    assert result.summary["counters"]["outages_left_out"] == 1  # there is one scheduler
