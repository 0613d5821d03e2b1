"""What seeds vary: workloads, constraints, draws during a run; and how it is reported."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seed_cases import POISSON, jobs_of, plan_of, shas

import emu as emu_package
from emu.configuration.config import layer_from_arguments, resolve
from emu.configuration.seeds import head_of, varied
from emu.results.comparison import Comparison
from emu.results.metrics import summarise_replicas
from workloads.catalogue import load_workload
from workloads.errors import InputError

Cli = Callable[..., Any]


# What follows what


def test_a_seed_is_of_the_workload_too() -> None:
    first, second, again = plan_of(seed=1), plan_of(seed=2), plan_of(seed=2)
    assert jobs_of(first) != jobs_of(second) == jobs_of(again)
    assert jobs_of(second) == load_workload("poisson", seed=2, options={"jobs": 40, "nodes": 8}).fingerprint()
    assert [p.setting(0).seed for p in (first, second)] == [1, 2]
    assert second.drawn == {"workload": 2, "scheduler": 2}


def test_each_has_a_key_of_its_own() -> None:
    base = plan_of(seed=3)
    fixed = plan_of(seed=3, workload_seed=1)
    assert (jobs_of(fixed), fixed.setting(0).seed) == (jobs_of(plan_of()), 3)
    fixed = plan_of(seed=3, scheduler_seed=1)
    assert (jobs_of(fixed), fixed.setting(0).seed) == (jobs_of(base), 1)
    option = plan_of(seed=3, workload_options={"jobs": 40, "nodes": 8, "seed": "1"})
    assert (jobs_of(option), option.setting(0).seed) == (jobs_of(plan_of()), 3)
    assert option.drawn == {"workload": 1, "scheduler": 3}


def test_constraints_follow_the_workload_s_seed() -> None:
    sets = ("constraints.model=cores >= 4: 50%", "infeasible=drop", "cluster=google-2011")
    one, two = plan_of(*sets, seed=2), plan_of(*sets, seed=2, constraints_seed=9)
    assert one.drawn == {"workload": 2, "constraints": 2, "scheduler": 2}
    assert two.drawn["constraints"] == 9
    assert jobs_of(one) != jobs_of(two)
    assert jobs_of(one) == jobs_of(plan_of(*sets, seed=5, workload_seed=2))
    assert plan_of(*sets, "constraints.model=none").drawn == {"workload": 1, "scheduler": 1}


def test_equal_seeds_given_in_two_ways_are_no_contradiction() -> None:
    assert plan_of(workload_seed=3, workload_options={"seed": 3}).drawn["workload"] == 3


def test_a_seed_that_has_no_effect_is_noted(trace: Path) -> None:
    plan = plan_of(workload="small", workload_options={}, workload_seed=4)
    (note,) = (n for n in plan.notes if "workload_seed" in n)
    assert note.startswith("workload_seed has no effect, as nothing of the workload is drawn")
    assert plan.drawn == {"scheduler": 1}
    with pytest.raises(InputError, match="seeds: all 2 runs would be the same, with scheduler_seed given"):
        plan_of(workload="small", workload_options={}, scheduler_seed=1, seeds=2)


# Several seeds


def test_runs_of_a_seed_have_one_workload_and_those_of_others_another() -> None:
    found = shas(emu_package.compare(["random", "central-fifo"], **POISSON, seeds=3, in_process=True))
    assert found["random"] == found["central-fifo"]
    assert len(set(found["random"])) == 3


def test_a_run_of_several_seeds_is_that_of_each(tmp_path: Path) -> None:
    together = emu_package.run("random", **POISSON, seed=5, seeds=2, in_process=True, out=tmp_path / "t")
    assert isinstance(together, Comparison)
    assert [p.name for p in sorted((tmp_path / "t").glob("seed=*"))] == ["seed=5", "seed=6"]
    for seed, run in zip((5, 6), together.results["random"], strict=True):
        alone = emu_package.run("random", **POISSON, seed=seed, in_process=True)
        assert run.jobs.equals(alone.jobs)
        assert run.config == alone.config
    (summary,) = together.summaries
    assert (summary["seeds"], summary["varied"]) == ([5, 6], ["workload", "scheduler"])


def test_seeds_of_a_file_are_given_to_run_by_hand(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text("seeds = 3\n")
    with pytest.raises(InputError, match=r"give seeds=3 to emu\.run, which then returns a Comparison"):
        emu_package.run("random", **POISSON, config=tmp_path / "e.toml")
    assert isinstance(emu_package.run("random", **POISSON, seeds=1, in_process=True), Comparison)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "seeds 1 to 2 (workload and scheduler), means ± 95 %"),
        ({"workload_seed": 1}, "seeds 1 to 2 (scheduler's draws; the workload is the same), means ± 95 %"),
        ({"scheduler_seed": 1}, "seeds 1 to 2 (workload alone), means ± 95 %"),
        ({"seeds": 1, "seed": 4}, "seed 4"),
    ],
)
def test_tables_and_summaries_say_what_was_varied(given: dict[str, Any], expected: str) -> None:
    compared = emu_package.compare(["random"], **(POISSON | {"seeds": 2} | given), in_process=True)
    assert compared.to_text().startswith(f"poisson on 8 nodes, {expected}: job completion time")
    assert head_of([r.summary for r in compared.results["random"]]) == f"poisson on 8 nodes, {expected}"


def test_constraints_are_varied_apart_from_jobs() -> None:
    def run(seed: int, **drawn: int) -> dict[str, Any]:
        return {"seed": seed, "drawn": {"scheduler": seed, **drawn}}

    assert varied([run(1, constraints=1), run(2, constraints=2)]) == ["constraints", "scheduler"]
    assert varied([run(1, workload=7, constraints=1), run(2, workload=7, constraints=1)]) == ["scheduler"]
    assert varied([{"seed": 1}, {"seed": 2}]) == ["scheduler"]  # a run directory of an earlier version


def test_what_is_the_same_with_every_seed_has_no_interval(trace: Path) -> None:
    compared = emu_package.compare(["central-fifo", "random"], "small", 20, seeds=3, in_process=True)
    fifo, random = compared.summaries
    assert fifo["alike"]
    assert "alike" not in random
    assert fifo["confidence_95"] == {"jobs": {}}
    text = compared.to_text()
    assert not re.search(r"±0(?![.\d])", text)
    note = "central-fifo: the same with every seed, as nothing that was drawn made a difference; no interval"
    assert note in text
    lines = [line for line in text.splitlines() if line.strip().startswith("central-fifo ")]
    assert lines
    assert not any("±" in line for line in lines)
    assert "random" not in text.splitlines()[-1]
    (other,) = emu_package.compare(["central-fifo"], **POISSON, seeds=2, in_process=True).summaries
    assert "alike" not in other  # the workload varies


def test_a_summary_of_equal_seeds_by_hand() -> None:
    def run(seed: int, mean: float) -> dict[str, Any]:
        jobs = {"all": {"count": 2, "mean": mean}}
        return {"scheduler": "s", "seed": seed, "jobs": jobs, "engine": {"wall_s": seed}, "counters": {}}

    assert summarise_replicas([run(1, 5.0), run(2, 5.0)])["alike"] is True
    differing = summarise_replicas([run(1, 5.0), run(2, 6.0)])
    assert "alike" not in differing
    assert differing["confidence_95"]["jobs"]["all"]["mean"][0] < 5.5


SMALL: dict[str, Any] = {
    "workload": "poisson",
    "nodes": 8,
    "workload_options": {"jobs": 40, "nodes": 8},
    "in_process": True,
}


def test_seeds_may_be_listed(tmp_path: Path) -> None:
    many = emu_package.run("random", seeds=[7, 3, 11], out=tmp_path / "many", **SMALL)
    assert [run.summary["seed"] for run in many.results["random"]] == sorted([7, 3, 11])
    for run in many.results["random"]:
        assert run.jobs.equals(emu_package.run("random", seed=run.summary["seed"], **SMALL).jobs)
    assert tomllib.loads((tmp_path / "many" / "config.toml").read_text())["seeds"] == [7, 3, 11]
    assert emu_package.compare(["random", "sparrow"], seeds=(3, 4), **SMALL).summaries[1]["seeds"] == [3, 4]
    assert resolve([layer_from_arguments({"seeds": "3, 7"})])["seeds"] == (3, 7)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"seeds": []}, "seeds: has 0 seeds; want their number, or the seeds"),
        ({"seeds": range(10**9)}, "seeds: has 1,000,000,000 seeds; .* at most 100,000"),
    ],
)
def test_a_list_that_is_none_of_seeds_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        emu_package.run("random", **given, **SMALL)
