"""What seeds vary: workloads, constraints, resampled traces, what is drawn while a run goes on; and how it is told."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sweep_grids import SMALL, write

import emu as emu_package
from emu.comparison import Comparison
from emu.config import layer_from_arguments, layer_from_set, resolve
from emu.memo import Memo
from emu.metrics import summarise_seeds
from emu.plan import Plan, prepare
from emu.report import group_runs, read_runs
from emu.results import read_result
from emu.seeds import head_of, varied
from emu.sweeps import prepare_sweep, sweep
from emu.tables import render_summary
from workloads import catalogue
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.transform import resample

Cli = Callable[..., Any]
POISSON = {"workload": "poisson", "workload_options": {"jobs": 40, "nodes": 8}, "nodes": 8}
SETS = ("--set", "workload_options.jobs=40", "--set", "workload_options.nodes=8")
RUN = ("run", "--scheduler", "random", "--in-process", "--nodes", "8", "--workload")


def plan_of(*sets: str, **arguments: Any) -> Plan:
    given = POISSON | {"scheduler": "random"} | arguments
    return prepare(resolve([layer_from_arguments(given), layer_from_set(sets)]))


def jobs_of(plan: Plan) -> str:
    return plan.workload.fingerprint()


def shas(comparison: Comparison) -> dict[str, list[str]]:
    return {
        name: [next(i["sha256"] for i in r.manifest["inputs"] if i["what"] == "workload") for r in runs]
        for name, runs in comparison.results.items()
    }


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


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"workload_seed": 2, "workload_options": {"seed": 3}},
            "workload_seed: is 2, and workload_options.seed is 3; give one of the two",
        ),
        ({"workload_options": {"seed": "x"}}, r"workload_options\['seed'\]: 'x' is not a whole number"),
        (
            {"seeds": 3, "scheduler_seed": 1, "workload_seed": 4},
            "seeds: all 3 runs would be the same, with workload_seed and scheduler_seed given",
        ),
        (
            {"seed": 2**63 - 1, "seeds": 2},
            "seeds: the last of 2 seeds from 9223372036854775807 on is too large",
        ),
        ({"resample_block": "1 h"}, "resample_block: poisson is generated, and another one with every seed"),
    ],
)
def test_what_contradicts_itself_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=f"^{told}"):
        plan_of(**given)


def test_equal_seeds_given_in_two_ways_are_no_contradiction() -> None:
    assert plan_of(workload_seed=3, workload_options={"seed": 3}).drawn["workload"] == 3


def test_a_seed_that_has_no_effect_is_told(trace: Path) -> None:
    plan = plan_of(workload="small", workload_options={}, workload_seed=4)
    (note,) = (n for n in plan.notes if "workload_seed" in n)
    assert note.startswith("workload_seed has no effect, as nothing of the workload is drawn")
    assert plan.drawn == {"scheduler": 1}
    with pytest.raises(InputError, match="seeds: all 2 runs would be the same, with scheduler_seed given"):
        plan_of(workload="small", workload_options={}, scheduler_seed=1, seeds=2)


def test_a_workload_that_is_written_and_run_is_that_of_the_generator(emu: Cli) -> None:
    assert emu("workload", "synth", "poisson", "f", *SETS[:2], "--set", "nodes=8").code == 0
    assert emu(*RUN, "f", "--out", "file").code == 0
    assert emu(*RUN, "poisson", *SETS, "--out", "generator").code == 0
    assert Path("file/jobs.parquet").read_bytes() == Path("generator/jobs.parquet").read_bytes()
    assert emu(*RUN, "poisson", *SETS, "--seed", "2", "--out", "other").code == 0
    assert Path("file/jobs.parquet").read_bytes() != Path("other/jobs.parquet").read_bytes()


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


def test_options_may_give_the_first_seed_and_their_number(emu: Cli) -> None:
    summary = json.loads(emu(*RUN, "poisson", *SETS, "--seed", "5", "--seeds", "2", "--json").out)
    assert (summary["seed"], summary["seeds"]) == (5, [5, 6])


def test_seeds_of_a_file_are_given_to_run_by_hand(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text("seeds = 3\n")
    with pytest.raises(InputError, match=r"give seeds=3 to emu\.run, which then returns a Comparison"):
        emu_package.run("random", **POISSON, config=tmp_path / "e.toml")
    assert isinstance(emu_package.run("random", **POISSON, seeds=1, in_process=True), Comparison)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "seeds 1 to 2 (workload and scheduler), means ± 95 %"),
        ({"workload_seed": 1}, "seeds 1 to 2 (scheduler's draws; the workload is the same), means ± 95 %"),
        ({"scheduler_seed": 1}, "seeds 1 to 2 (workload alone), means ± 95 %"),
        ({"seeds": 1, "seed": 4}, "seed 4"),
    ],
)
def test_tables_and_summaries_say_what_was_varied(given: dict[str, Any], told: str) -> None:
    compared = emu_package.compare(["random"], **(POISSON | {"seeds": 2} | given), in_process=True)
    assert compared.to_text().startswith(f"poisson on 8 nodes, {told}: job completion time")
    assert head_of([r.summary for r in compared.results["random"]]) == f"poisson on 8 nodes, {told}"


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

    assert summarise_seeds([run(1, 5.0), run(2, 5.0)])["alike"] is True
    differing = summarise_seeds([run(1, 5.0), run(2, 6.0)])
    assert "alike" not in differing
    assert differing["confidence_95"]["jobs"]["all"]["mean"][0] < 5.5


# Traces that are resampled


def test_a_trace_is_resampled_by_the_seed(trace: Path, workload: JobWorkload) -> None:
    compared = emu_package.compare(
        ["random", "central-fifo"], "small", 20, seeds=2, resample_block="30 s", in_process=True
    )
    found = shas(compared)
    assert (
        found["random"]
        == found["central-fifo"]
        == [resample(workload, 30.0, s).fingerprint() for s in (1, 2)]
    )
    told = "small on 20 nodes, seeds 1 to 2 (trace resampled in blocks of 30 s, and scheduler), means ± 95 %"
    assert compared.to_text().startswith(told)
    assert compared.summaries[0]["resample_block_s"] == 30.0
    assert compared.summaries[0]["varied"] == ["workload", "scheduler"]


def test_resampling_as_a_command_gives_the_same(emu: Cli, trace: Path) -> None:
    assert emu("workload", "resample", "small", "again", "--block", "30 s", "--seed", "7").code == 0
    argv = ("run", "--scheduler", "random", "--in-process", "--nodes", "20", "--seed", "7")
    assert emu(*argv, "--workload", "again", "--out", "a").code == 0
    assert emu(*argv, "--workload", "small", "--set", "resample.block=30 s", "--out", "b").code == 0
    assert Path("a/jobs.parquet").read_bytes() == Path("b/jobs.parquet").read_bytes()
    ended = emu(*argv, "--workload", "small", "--set", "resample.block=0 s", "--out", "c")
    assert (ended.code, ended.line()) == (
        2,
        "emu: --set resample.block: block_s: 0.0 is not a duration above 0",
    )


def test_an_object_is_resampled_and_kept(workload: JobWorkload, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    compared = emu_package.compare(
        ["random"], workload, 20, seeds=2, resample_block=30.0, in_process=True, out=folder
    )
    config = tomllib.loads((folder / "config.toml").read_text())
    assert (config["resample"]["block"], config["workload"]) == ("30.0 s", "./workload")
    assert load_workload(folder / "workload").fingerprint() == workload.fingerprint()
    run = folder / "seed=2"
    assert "resample" not in tomllib.loads((run / "config.toml").read_text())
    assert load_workload(run / "workload").fingerprint() == shas(compared)["random"][1]


def test_updates_of_coflows_name_those_of_the_trace(emu: Cli, tmp_path: Path) -> None:
    from coflow_cases import four_coflows

    from workloads.catalogue import save_workload

    save_workload(four_coflows(), "four")
    Path("u.csv").write_text("time_s,coflow_id,update,side,port,to\n")
    argv = (
        "run",
        "--scheduler",
        "aalo",
        "--in-process",
        "--workload",
        "four",
        "--set",
        "fabric.updates=u.csv",
    )
    assert "--set resample.block: not with fabric.updates" in emu(*argv, "--set", "resample.block=1 s").line()


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
    assert plan_of(seed=1, seeds=5).of_seed(3).identity(0) == base
    others = [plan_of(), plan_of(seed=3, workload_seed=1), plan_of(seed=3, scheduler_seed=1)]
    assert len({base, *(p.identity(0) for p in others)}) == 4


def test_a_default_that_changes_later_changes_no_rerun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emu.config_file import layer_from_file
    from workloads.generators.poisson import poisson

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
    manifest = Path("runs/sweep-grid/manifest.json")
    found = json.loads(manifest.read_text())
    del found["seeds_version"]
    manifest.write_text(json.dumps(found))
    ended = emu("sweep", "grid.toml", "--in-process")
    assert ended.code == 2
    assert "holds a sweep of another version of Emu, whose seeds did not vary the workload" in ended.line()


def test_a_comparison_over_seeds_goes_on_where_it_ended(emu: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from emu import comparison

    argv = (
        "compare",
        "--schedulers",
        "random,central-fifo",
        "--in-process",
        "--nodes",
        "8",
        "--workload",
        "poisson",
    )
    argv = (*argv, *SETS, "--seeds", "3")
    assert emu(*argv, "--out", "whole").code == 0
    execute, ran = comparison.execute, []

    def counting(plan: Plan, index: int, *rest: Any) -> Any:
        ran.append((plan.schedulers[index].name, plan.seed))
        if len(ran) == 4:
            raise KeyboardInterrupt
        return execute(plan, index, *rest)

    monkeypatch.setattr(comparison, "execute", counting)
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
    sizes = [plan.of_seed(seed).cluster.num_nodes for seed in (1, 2, 3)]
    assert len(set(sizes)) > 1
    whole = tomllib.loads(plan.config_toml())
    assert (whole["load"], whole["load_by"], "nodes" in whole) == (0.8, "nodes", False)
    alone = tomllib.loads(plan.of_seed(2).config_toml(0))
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
        plan.of_seed(first + 1)


def test_variants_are_no_axis(emu: Cli, trace: Path) -> None:
    write(SMALL + "variants.x.scheduler = ['random']\n")
    ended = emu("sweep", "grid.toml", "--in-process")
    assert "'variants.x.scheduler' is no axis; name variants in [sweep] scheduler" in ended.line()


def test_an_object_that_is_resampled_goes_on_in_python(
    workload: JobWorkload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emu import comparison

    given: dict[str, Any] = {"seeds": 2, "resample_block": 30.0, "in_process": True}
    whole = emu_package.compare(["random"], workload, 20, **given)
    execute = comparison.execute

    def interrupted(plan: Plan, *rest: Any) -> Any:
        if plan.seed == 2:
            raise KeyboardInterrupt
        return execute(plan, *rest)

    monkeypatch.setattr(comparison, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        emu_package.compare(["random"], workload, 20, **given, out=tmp_path / "c")
    monkeypatch.setattr(comparison, "execute", execute)
    resumed = emu_package.resume(tmp_path / "c")
    assert isinstance(resumed, Comparison)
    assert [r.jobs for r in resumed.results["random"]] == [r.jobs for r in whole.results["random"]]


def test_a_report_pairs_runs_of_equal_workloads(emu: Cli) -> None:
    argv = (
        "compare",
        "--schedulers",
        "random,central-fifo",
        "--in-process",
        "--nodes",
        "8",
        "--workload",
        "poisson",
    )
    assert emu(*argv, *SETS, "--seeds", "2", "--out", "c").code == 0
    runs = read_runs(["c"])
    assert [[len(own) for own in group.values()] for group in group_runs(runs)] == [[2, 2]]
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
    assert sorted(len(g) for g in group_runs(read_runs(["c", "d"]))) == [1, 2]


def test_a_workload_of_another_seed_without_the_class_is_told(emu: Cli) -> None:
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
    has_long = [bool(p.setting(0).is_long().any()) for p in found]
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
    monkeypatch.setattr("emu.memo.ROOM_BYTES", 0)
    monkeypatch.setattr(Memo.__init__, "__defaults__", (0,))
    made.clear()
    tight = prepare_sweep(source)
    assert made == [1, 2, 3, 1, 2, 3]
    assert [run.plan.workload.fingerprint() for run in tight.runs] == [
        run.plan.workload.fingerprint() for run in ready.runs
    ]


def test_a_memo_keeps_what_was_asked_for_last(workload: JobWorkload) -> None:
    size = sum(table.nbytes for table in (workload.jobs, workload.tasks))
    memo, made = Memo(room_bytes=round(2.5 * size)), []

    def get(key: str) -> Any:
        from dataclasses import replace

        return memo.once(key, lambda: made.append(key) or replace(workload))

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert made == ["a", "b", "c", "b"]  # c took the place of b, not of a
    assert memo.once("small", lambda: 7) == memo.once("small", lambda: 8) == 7
