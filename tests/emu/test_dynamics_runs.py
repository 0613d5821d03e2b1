"""The keys of the group `dynamics`: what they make, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emu.plan import Plan, configure, prepare
from workloads.errors import InputError


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
    dynamics = plan.setting(0, 1).dynamics
    assert (dynamics.mtbf_s, dynamics.mttr_s) == (30 * 86400, 3600)
    assert (dynamics.detection_s, dynamics.failover_s) == (10, 5)
    assert (dynamics.straggler_share, dynamics.straggler_slowdown) == (0.01, 3.0)
    assert dynamics.outages is not None
    assert dynamics.outages.number.tolist() == [3]
    assert [i["name"] for i in plan.inputs if i["what"] == "failures file"] == [str(path)]
    assert str(path) in plan.config_toml()


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"dynamics_mtbf": "1 d"}, "dynamics_mtbf: goes with dynamics.mttr"),
        ({"dynamics_mttr": "1 d"}, "dynamics_mttr: goes with dynamics.mtbf"),
        ({"dynamics_mtbf": 0, "dynamics_mttr": 1}, "dynamics_mtbf: is 0"),
        ({"dynamics_detection": 1}, "dynamics_detection: goes with failures"),
        ({"dynamics_failover": 1}, "dynamics_failover: goes with failures"),
        ({"dynamics_straggler_slowdown": 0.5}, "dynamics_straggler_slowdown"),
        ({"dynamics_straggler_shape": 1}, "dynamics_straggler_shape: a Pareto distribution"),
        ({"dynamics_failures": "nowhere.csv"}, "nowhere.csv: no such file"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError) as error:
        plan_of(**given)
    assert what in str(error.value)
    assert len(str(error.value).splitlines()) == 1
