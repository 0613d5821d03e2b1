"""What makes two runs the same one: configurations, identities, directories that are gone on with, memory."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seed_cases import POISSON, SETS, jobs_of, plan_of
from sweep_grids import SMALL, write

import emu as emu_package
from actors.nodes.worlds import JOB_WORLDS
from emu.configuration.config import resolve
from emu.configuration.plan import Plan, prepare
from emu.configuration.replicas import Replica
from emu.configuration.workload_cache import WorkloadCache
from emu.directories import run_directory as rd
from emu.results.comparison import Comparison
from emu.results.result import read_result
from emu.results.run_groups import group_runs
from emu.results.summary_text import render_summary
from emu.sweeps.report_input import read_runs
from emu.sweeps.sweep import prepare_sweep, sweep
from workloads import catalogue
from workloads.errors import InputError
from workloads.jobs import JobWorkload

Cli = Callable[..., Any]
COMPARE = (
    *(
        "compare",
        "--schedulers",
        "random,central-fifo",
        "--workload",
        "poisson",
        "--nodes",
        "8",
        "--in-process",
    ),
    *SETS,
)


# What a run is, and whether it is the same


def test_the_configuration_of_a_run_holds_all_options_and_no_default_seed() -> None:
    config = tomllib.loads(plan_of(seed=3).config_toml(0))
    assert config["seed"] == 3
    assert not {"workload_seed", "scheduler_seed", "seeds"} & config.keys() - {"seeds"}
    options = catalogue.options_of("poisson", {"jobs": 40, "nodes": 8})
    options.pop("seed")
    assert config["workload_options"] == {name: value for name, value in options.items() if value is not None}
    assert {"load", "service", "tasks_per_job"} <= config["workload_options"].keys()
    fixed = tomllib.loads(plan_of(seed=3, workload_options={"seed": 1}).config_toml(0))
    assert fixed["workload_options"]["seed"] == 1


def test_equal_runs_have_equal_identities_and_others_have_not() -> None:
    base = plan_of(seed=3).identity(0)
    assert plan_of(seed=3, workload_seed=3, scheduler_seed=3).identity(0) == base
    assert plan_of(seed=1, seeds=5).of_replica(Replica(3)).identity(0) == base
    others = [plan_of(), plan_of(seed=3, workload_seed=1), plan_of(seed=3, scheduler_seed=1)]
    assert len({base, *(p.identity(0) for p in others)}) == 4


def test_a_default_that_changes_later_changes_no_rerun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emu.configuration.config_file import layer_from_file
    from workloads.generators.synthetic import poisson

    was = plan_of(seed=3)
    (tmp_path / "config.toml").write_text(was.config_toml(0))
    monkeypatch.setitem(poisson.__kwdefaults__, "load", 0.1)
    assert jobs_of(plan_of(seed=3)) != jobs_of(was)
    assert jobs_of(prepare(resolve([layer_from_file(tmp_path / "config.toml")]))) == jobs_of(was)


def test_more_seeds_go_on_with_what_is_there(emu: Cli, counted: list[str]) -> None:
    text = SMALL.replace('"small"', '"poisson"').replace(
        "nodes = 20", "nodes = 8\nworkload_options.jobs = 40"
    )
    write(text)
    assert emu("sweep", "grid.toml", "--in-process").code == 0
    assert counted == ["random 1", "central-fifo 1", "random 2", "central-fifo 2"]  # workload by workload
    folder = Path("runs/sweep-grid")
    assert [read_result(folder / "scheduler=random" / f"seed={s}").summary["drawn"] for s in (1, 2)] == [
        {"workload": s, "scheduler": s} for s in (1, 2)
    ]
    counted.clear()
    assert emu("sweep", "grid.toml", "--in-process").code == 0
    assert counted == []
    points = json.loads((folder / "summary.json").read_text())["points"]
    assert [p["varied"] for p in points] == [["workload", "scheduler"]] * 2
    assert "seeds 1 to 2 (workload and scheduler)" in emu("sweep", "grid.toml", "--in-process").out


def test_a_sweep_of_seeds_with_another_meaning_is_refused(emu: Cli, trace: Path) -> None:
    sweep(write(SMALL), in_process=True)
    folder = Path("runs/sweep-grid")
    found = rd.read_manifest(folder)
    del found["seeds_version"]
    rd.write_manifest(folder, found)
    ended = emu("sweep", "grid.toml", "--in-process")
    assert ended.code == 2
    assert "holds a sweep of another version of Emu, whose seeds did not vary the workload" in ended.line()


def test_a_comparison_over_seeds_goes_on_where_it_ended(emu: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from emu.running import runs

    argv = (*COMPARE, "--seeds", "3")
    assert emu(*argv, "--out", "whole").code == 0
    execute, ran = runs.execute, []

    def counting(plan: Plan, index: int, *rest: Any) -> Any:
        ran.append((plan.schedulers[index].name, plan.seed))
        if len(ran) == 4:
            raise KeyboardInterrupt
        return execute(plan, index, *rest)

    monkeypatch.setattr(runs, "execute", counting)
    assert emu(*argv, "--out", "part").code == 130
    assert ran == [(name, seed) for seed in (1, 2) for name in ("random", "central-fifo")]
    ran.clear()
    ran.extend([("", 0)] * 10)
    assert emu("run", "--resume", "part").code == 0
    assert ran[10:] == [("central-fifo", 2), ("random", 3), ("central-fifo", 3)]
    for path in sorted(Path("whole").rglob("jobs.parquet")):
        assert (Path("part") / path.relative_to("whole")).read_bytes() == path.read_bytes()


def test_nodes_that_a_load_picks_differ_by_seed_and_the_head_says_so() -> None:
    given = {"workload": "poisson", "workload_options": {"jobs": 40}, "load": 0.8, "load_by": "nodes"}
    plan = plan_of(**given, nodes=None, seeds=3)
    sizes = [plan.of_replica(Replica(seed)).cluster.num_nodes for seed in (1, 2, 3)]
    assert len(set(sizes)) > 1
    whole = tomllib.loads(plan.config_toml())
    assert (whole["load"], whole["load_by"], "nodes" in whole) == (0.8, "nodes", False)
    alone = tomllib.loads(plan.of_replica(Replica(2)).config_toml(0))
    assert (alone["nodes"], alone["load_by"], "load" in alone) == (sizes[1], "arrivals", False)
    (summary,) = emu_package.run("random", **given, seeds=3, in_process=True).summaries
    assert (summary["nodes"], summary["nodes_by_seed"]) == (sizes[0], sizes)
    assert f"{min(sizes)} to {max(sizes)} nodes" in render_summary(summary)


def test_an_error_of_a_later_seed_names_it() -> None:
    def can(seed: int, **more: Any) -> Plan | None:
        try:
            return plan_of(
                "constraints.model=cores >= 64: 5%", workload_options={"jobs": 9}, seed=seed, **more
            )
        except InputError:
            return None

    first = next(seed for seed in range(1, 99) if can(seed) and not can(seed + 1))
    plan = can(first, seeds=2)
    assert plan is not None
    with pytest.raises(
        InputError, match=rf"^seed {first + 1}: workload: job \d+: no node satisfies cores >= 64"
    ):
        plan.of_replica(Replica(first + 1))


def test_variants_are_no_axis(emu: Cli, trace: Path) -> None:
    write(SMALL + "variants.x.scheduler = ['random']\n")
    ended = emu("sweep", "grid.toml", "--in-process")
    assert "'variants.x.scheduler' cannot be an axis; name variants in [sweep] scheduler" in ended.line()


def test_an_object_that_is_resampled_goes_on_in_python(
    workload: JobWorkload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emu.running import runs

    given: dict[str, Any] = {"seeds": 2, "resample_block": 30.0, "in_process": True}
    whole = emu_package.compare(["random"], workload, 20, **given)
    execute = runs.execute

    def interrupted(plan: Plan, *rest: Any) -> Any:
        if plan.seed == 2:
            raise KeyboardInterrupt
        return execute(plan, *rest)

    monkeypatch.setattr(runs, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        emu_package.compare(["random"], workload, 20, **given, out=tmp_path / "c")
    monkeypatch.setattr(runs, "execute", execute)
    resumed = emu_package.resume(tmp_path / "c")
    assert isinstance(resumed, Comparison)
    assert [r.jobs for r in resumed.results["random"]] == [r.jobs for r in whole.results["random"]]


def test_a_report_pairs_runs_of_equal_workloads(emu: Cli) -> None:
    assert emu(*COMPARE, "--seeds", "2", "--out", "c").code == 0
    runs = read_runs(["c"])
    assert [[len(own) for own in group.results.values()] for group in group_runs(runs)] == [[2, 2]]
    assert (
        "poisson on 8 nodes, seeds 1 to 2 (workload and scheduler), means"
        in Path("c/report.html").read_text()
    )
    # Of another workload under the same seed nothing is paired.
    argv = (
        "run",
        "--scheduler",
        "sparrow",
        "--in-process",
        "--nodes",
        "8",
        "--workload",
        "poisson",
        "--seeds",
        "2",
    )
    assert emu(*argv, *SETS[:2], "--set", "workload_options.nodes=9", "--out", "d").code == 0
    assert sorted(len(g.results) for g in group_runs(read_runs(["c", "d"]))) == [1, 2]


def test_a_workload_of_another_seed_without_the_class_is_an_error(emu: Cli) -> None:
    argv = (
        "size",
        "--target",
        "long.p50 < 24 h",
        "--scheduler",
        "random",
        "--workload",
        "poisson",
        "--in-process",
    )
    argv = (
        *argv,
        "--set",
        "workload_options.jobs=2",
        "--set",
        "workload_options.nodes=8",
        "--short-cutoff",
        "3 s",
    )
    found = [
        plan_of(workload_options={"jobs": 2, "nodes": 8}, seed=s, short_cutoff=3.0) for s in range(1, 30)
    ]
    has_long = [bool(JOB_WORLDS.is_long(p.setting(0)).any()) for p in found]
    first = next(s for s in range(1, 29) if has_long[s - 1] and not has_long[s])
    ended = emu(*argv, "--seed", first, "--seeds", "2", "--low", "2", "--high", "3")
    assert f"--target: long.p50 < 24 h: poisson of seed {first + 1} has no long jobs" in ended.line()


def test_size_says_what_its_means_are_of(emu: Cli) -> None:
    argv = (
        "size",
        "--target",
        "p50 < 24 h",
        "--scheduler",
        "random",
        "--workload",
        "poisson",
        "--in-process",
        *SETS,
    )
    ended = emu(*argv, "--seeds", "2", "--low", "4", "--high", "8")
    assert (
        "4 nodes: all.p50 < 24 h is met already, fewer may do; seeds 1 to 2 (workload and scheduler)"
        in ended.out
    )
    found = json.loads(emu(*argv, "--seeds", "2", "--low", "4", "--high", "8", "--json").out)
    assert (found["seeds"], found["varied"]) == ([1, 2], ["workload", "scheduler"])


# Memory


def test_workloads_are_let_go_and_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    load = catalogue.load_workload

    def counting(*arguments: Any, **more: Any) -> Any:
        made.append(more["options"]["seed"])
        return load(*arguments, **more)

    monkeypatch.setattr(catalogue, "load_workload", counting)
    source = POISSON | {"sweep": {"scheduler": ["random", "central-fifo"], "seed": [1, 2, 3]}}
    ready = prepare_sweep(source)
    assert made == [1, 2, 3]  # all kept: there is room
    assert len({run.source for run in ready.runs}) == 3
    monkeypatch.setattr("emu.configuration.workload_cache.ROOM_BYTES", 0)
    monkeypatch.setattr(WorkloadCache.__init__, "__defaults__", (0,))
    made.clear()
    tight = prepare_sweep(source)
    assert made == [1, 2, 3, 1, 2, 3]
    assert [run.plan.workload.fingerprint() for run in tight.runs] == [
        run.plan.workload.fingerprint() for run in ready.runs
    ]


def test_a_memo_keeps_what_was_asked_for_last(workload: JobWorkload) -> None:
    size = sum(table.nbytes for table in (workload.jobs, workload.tasks))
    cache, made = WorkloadCache(room_bytes=round(2.5 * size)), []

    def get(key: str) -> Any:
        from dataclasses import replace

        return cache.get(key, lambda: made.append(key) or replace(workload))

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert made == ["a", "b", "c", "b"]  # c took the place of b, not of a
    assert cache.get("small", lambda: 7) == cache.get("small", lambda: 8) == 7
