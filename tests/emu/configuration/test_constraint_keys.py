"""Constraints drawn by the configuration: the keys `constraints.*`."""

from pathlib import Path
from typing import Any

import numpy as np

import emu
from emu.configuration.config import Layer, layer_from_set, resolve
from emu.configuration.plan import Plan, prepare
from workloads.constraints import constraint_sets, set_of_job
from workloads.jobs import make_workload
from workloads.transform import constrain

BASE = ["scheduler=sparrow", "workload=yahoo", "workload_options.jobs=400", "nodes=500", "cluster=phoenix"]


def plan_of(*sets: str) -> Plan:
    layers: list[Layer] = [layer_from_set([*BASE, *sets])]
    return prepare(resolve(layers))


def test_they_are_those_that_the_command_draws() -> None:
    plan = plan_of("constraints.model=phoenix", "constraints.seed=7", "constraints.soft=clock")
    source = plan_of().workload
    drawn = constrain(source, "phoenix", soft="clock", seed=7)
    assert drawn.job_constraints.num_rows > 0
    assert plan.workload.fingerprint() == drawn.fingerprint() != source.fingerprint()


def test_none_takes_away_those_that_a_workload_has(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    workload = constrain(make_workload("own", np.arange(50.0), [1] * 50, rng.random(50)), "sharma")
    assert workload.job_constraints.num_rows > 0
    settings: dict[str, Any] = {"cluster": "sharma", "in_process": True, "short_cutoff": "10 s"}
    bare = emu.run("sparrow", workload, 100, constraints_model="none", **settings)
    assert bare.jobs["constraint"].null_count == 50
    # What a run directory keeps has the constraints that were drawn, and draws no others when it runs again.
    drawn = emu.run(
        "sparrow", workload, 100, constraints_model="tags = a3: 40%", infeasible="drop", **settings
    )
    assert drawn.jobs["constraint"].null_count < 50
    again = prepare(resolve([_layer_of(drawn.save(tmp_path / "run"))])).workload
    assert constraint_sets(again) == constraint_sets(drawn.workload or workload)
    assert (set_of_job(again) >= 0).sum() == 50 - drawn.jobs["constraint"].null_count


def _layer_of(run: Path) -> Layer:
    from emu.configuration.config_file import layer_from_file

    return layer_from_file(run / "config.toml")
