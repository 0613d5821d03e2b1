"""Variants of schedulers, and parameters of one's own: on the command line, in files and in Python."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sweep_grids import write

import emu as emu_package
from emu.configuration.config import layer_from_arguments, layer_from_set, resolve
from emu.configuration.config_file import layer_from_file
from emu.configuration.plan import Plan, prepare
from emu.results.comparison import Comparison
from emu.results.result import read_result
from emu.sweeps.sweep import prepare_sweep, sweep
from workloads.errors import InputError
from workloads.jobs import JobWorkload

Cli = Callable[..., Any]
COMPARE = ("compare", "--in-process", "--workload", "small", "--nodes", "20", "--schedulers")
BOTH = "sparrow,sparrow@probe_ratio=3"
NAMES = ["sparrow", "sparrow(probe_ratio=3)"]


class LL:
    """To the first k nodes, in turn."""

    def __init__(self, k: int = 2):
        self.k = k

    def place(self, job: Any, nodes: Any) -> Any:
        return [i % self.k for i in range(job.num_tasks)]


class Worded(LL):
    """With a text, too."""

    def __init__(self, words: str = "none", share: float = 2.5):
        super().__init__()
        self.words, self.share = words, share


def plan_of(scheduler: Any, *sets: str, **more: Any) -> Plan:
    given: dict[str, Any] = {"workload": "poisson", "nodes": 8, "short_cutoff": 3.0, "scheduler": scheduler}
    given |= {"workload_options": {"jobs": 5}, **more}
    return prepare(resolve([layer_from_arguments(given), layer_from_set(sets)]))


def names(plan: Plan) -> list[str]:
    return [s.name for s in plan.schedulers]


def again(plan: Plan, index: int | None, folder: Path) -> Plan:
    """The plan that its configuration file makes."""
    path = folder / "again.toml"
    path.write_text(plan.config_toml(index))
    return prepare(resolve([layer_from_file(path)]))


# Variants


@pytest.mark.drawn
def test_variants_stand_in_one_comparison_under_names_of_their_own(emu: Cli, trace: Path) -> None:
    ended = emu(*COMPARE, BOTH, "--out", "c")
    assert ended.code == 0
    assert all(f"\n  {name} " in ended.out for name in NAMES)
    folders = ["scheduler=sparrow/seed=1", "scheduler=sparrow-probe_ratio=3/seed=1"]
    runs = [read_result(Path("c") / folder) for folder in folders]
    assert [(r.summary["scheduler"], r.summary["policy"]) for r in runs] == [(n, "sparrow") for n in NAMES]
    assert runs[0].counters["probes"] < runs[1].counters["probes"]
    plain = emu_package.run(
        "sparrow", "small", 20, parameters={"probe_ratio": 3}, in_process=True, short_cutoff=10.0
    )
    assert runs[1].jobs.equals(plain.jobs)
    assert all(name in Path("c/report.html").read_text() for name in NAMES)
    assert NAMES[1] in Path("c/cdf-short.svg").read_text()
    assert [s["scheduler"] for s in json.loads(emu("run", "--resume", "c", "--json").out)] == NAMES


def test_a_file_gives_variants_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    source = inspect.getsource(LL).replace(": Any", "").replace("-> Any", "")
    (tmp_path / "in" / "own.py").write_text(source)
    path = tmp_path / "in" / "e.toml"
    path.write_text(
        'scheduler = ["eagle", "eagle-2", "mine"]\nworkload = "poisson"\nnodes = 8\nshort_cutoff = 3\n'
        '[variants.eagle-2]\nscheduler = "eagle"\nslack = 2\n[variants.mine]\nscheduler = "own.py:LL"\nk = 4\n'
    )
    plan = prepare(resolve([layer_from_file(path)]))
    assert names(plan) == ["eagle", "eagle-2", "mine"]
    assert [s.policy for s in plan.schedulers] == ["eagle", "eagle", "LL"]
    assert [p.get("slack") for p in plan.parameters] == [5.0, 2.0, None]
    assert plan.parameters[2]["k"] == 4
    assert [i["what"] for i in plan.inputs][-1] == "scheduler file"
    whole = prepare(resolve([layer_from_file(path), layer_from_set(["variants.eagle-2.slack=3"])]))
    assert whole.parameters[1]["slack"] == 3.0


def test_in_python_they_are_objects_of_their_own() -> None:
    plan = plan_of(["eagle", emu_package.variant("eagle", slack=2), emu_package.variant(LL, name="far", k=7)])
    assert names(plan) == ["eagle", "eagle(slack=2)", "far"]
    by_table = plan_of(["eagle-2"], variants={"eagle-2": {"scheduler": "eagle", "slack": 2}})
    assert by_table.parameters[0] == plan.parameters[1]


@pytest.mark.parametrize(
    "schedulers",
    [
        "eagle,eagle@slack=2@sticky=no",
        ["eagle@slack=2"],
        [emu_package.variant("eagle", name="mild", slack=1), "mild-too"],
        [emu_package.variant("eagle@slack=2", sticky=False), emu_package.variant(LL, k=3), LL],
        [LL(4), LL(2)],
        [LL(4)],
        [Worded("a, b")],
    ],
    ids=["text", "one", "named", "nested", "objects", "object", "comma"],
)
def test_what_is_written_makes_them_again(schedulers: Any, tmp_path: Path) -> None:
    plan = plan_of(schedulers, variants={"mild-too": {"scheduler": "eagle", "slack": "1.5"}})
    for index in (None, *range(len(plan.schedulers))):
        made = again(plan, index, tmp_path)
        assert names(made) == names(plan)[slice(index, None if index is None else index + 1)]
        assert made.config_toml() == plan.config_toml(index)
        chosen = plan.parameters if index is None else plan.parameters[index : index + 1]
        assert made.parameters == chosen


def test_parameters_for_all_leave_what_a_variant_fixes() -> None:
    plan = plan_of("eagle,eagle@slack=2", "slack=4", "eagle.sticky=no", "probe_ratio=3")
    assert [(p["slack"], p["sticky"], p["probe_ratio"]) for p in plan.parameters] == [
        (4.0, False, 3.0),
        (2.0, True, 3.0),
    ]


def test_a_sweep_has_variants_and_axes_that_they_do_not_fix(trace: Path) -> None:
    text = (
        'workload = "small"\nnodes = 20\n[variants.more]\nscheduler = "sparrow"\nprobe_ratio = 4\n[sweep]\n'
    )
    path = write(text + 'scheduler = ["sparrow", "more"]\nparameters.probe_ratio = [2, 3]\n')
    runs = prepare_sweep(path).runs
    assert [run.folder.parent.name for run in runs] == ["probe_ratio=2", "probe_ratio=3", "scheduler=more"]
    assert [run.plan.parameters[0]["probe_ratio"] for run in runs] == [2, 3, 4]
    result = sweep(path, in_process=True)
    assert [row["policy"] for row in result.rows] == ["sparrow"] * 3
    assert [row["scheduler"] for row in result.rows] == ["sparrow", "sparrow", "more"]
    assert all(run.is_done() for run in prepare_sweep(path).runs)
    changed = write(path.read_text().replace("probe_ratio = 4", "probe_ratio = 5"))
    assert [run.is_done() for run in prepare_sweep(changed).runs] == [True, True, False]
    with pytest.raises(InputError, match=r"variants\.more\.probe_ratio is 5 here and 4 there"):
        sweep(changed, in_process=True)


# One's own


def test_objects_with_other_parameters_have_names_of_their_own(workload: JobWorkload, tmp_path: Path) -> None:
    compared = emu_package.compare([LL(2), LL(4)], workload, 20, in_process=True, out=tmp_path / "c")
    assert list(compared.results) == ["LL(k=2)", "LL(k=4)"]
    assert "\n  LL(k=4) " in compared.to_text()
    assert sorted(p.name for p in (tmp_path / "c").glob("scheduler=*")) == [
        "scheduler=LL-k=2",
        "scheduler=LL-k=4",
    ]
    assert [s["policy"] for s in compared.summaries] == ["LL", "LL"]
    alone = emu_package.run(LL(4), workload, 20, in_process=True)
    assert alone.summary["scheduler"] == "LL(k=4)"
    assert alone.jobs.equals(compared.results["LL(k=4)"][0].jobs)
    assert not alone.jobs.equals(compared.results["LL(k=2)"][0].jobs)
    with pytest.raises(InputError, match=r"^scheduler: 'LL\(k=4\)' is given twice"):
        emu_package.compare([LL(4), LL(4)], workload, 20, in_process=True)


def test_a_comparison_of_objects_goes_on(
    workload: JobWorkload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emu.running import runs

    execute = runs.execute

    def interrupted(plan: Plan, index: int, *rest: Any) -> Any:
        if index == 1:
            raise KeyboardInterrupt
        return execute(plan, index, *rest)

    monkeypatch.setattr(runs, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        emu_package.compare([LL(2), LL(4)], workload, 20, in_process=True, out=tmp_path / "c")
    monkeypatch.setattr(runs, "execute", execute)
    with pytest.raises(InputError, match=r"was an object of a Python program"):
        emu_package.resume(tmp_path / "c")
    with pytest.raises(InputError, match=r"no scheduler 'LL\(k=4\)' in this run"):
        emu_package.resume(tmp_path / "c", scheduler=[LL(2), LL(5)])
    resumed = emu_package.resume(tmp_path / "c", scheduler=[LL(2), LL(4)])
    alone = emu_package.run(LL(4), workload, 20, in_process=True)
    assert isinstance(resumed, Comparison)
    assert resumed.results["LL(k=4)"][0].jobs.equals(alone.jobs)


@pytest.mark.parametrize("name", ["a.b", "a,b", "a@b"])
def test_names_that_a_file_could_not_hold_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"variant: the name '{name}' has one of"):
        emu_package.variant("eagle", name=name)


def test_a_sweep_takes_objects(workload: JobWorkload, tmp_path: Path) -> None:
    source = {"workload": workload, "nodes": 20, "sweep": {"scheduler": [LL(2), LL(4), LL], "nodes": [20]}}
    result = sweep(source, out=tmp_path / "s", in_process=True)
    assert [row["scheduler"] for row in result.rows] == ["LL(k=2)", "LL(k=4)", "LL"]
    assert (
        result.rows[0]["jobs.all.mean"] == result.rows[2]["jobs.all.mean"] != result.rows[1]["jobs.all.mean"]
    )


def test_frames_are_workloads() -> None:
    frame = pd.DataFrame({"submit_s": [0.0, 1.0], "durations_s": [[3.0, 4.0], [1.0]]})
    result = emu_package.run("central-fifo", frame, 2, in_process=True)
    assert result.jobs["jct_s"].to_pylist() == pytest.approx([4.001, 3.0005], abs=0.01)
    assert result.summary["workload"] == "frame"
    source = {"workload": frame, "nodes": 2, "sweep": {"scheduler": ["random", "central-fifo"]}}
    assert len({id(run.plan.source) for run in prepare_sweep(source).runs}) == 1


@pytest.mark.parametrize(
    "wrong", [[1, 2], {"a": 1}, 3, pd.Series([1])], ids=["list", "dict", "number", "series"]
)
def test_what_is_no_workload_is_refused(wrong: Any) -> None:
    with pytest.raises(
        InputError, match=r"^workload: a \w+ is not a workload; want a generator's name, a path"
    ):
        emu_package.run("random", wrong, 2)
    with pytest.raises(InputError, match=r"^workload: the frame has no column 'durations_s'"):
        emu_package.run("random", pd.DataFrame({"submit_s": [1]}), 2)
