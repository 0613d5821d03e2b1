"""An archive of instances as the workload: a batch, each of whose instances is run, with means over them."""

from __future__ import annotations

import csv
import json
import shutil
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batch_cases import NAMES, RUN, instance, write_set

import emu as package
from emu.directories import run_directory as rd
from emu.results.comparison import Comparison
from emu.results.metrics import confidence_95
from emu.results.result import Result, read_result
from emu.running import runs
from workloads.errors import InputError

Cli = Callable[..., Any]
COFLOWLIB = Path(__file__).parents[4] / "shared" / "traces" / "coflowlib"
TWO = ("compare", "--schedulers", "edf,cs-mha", *RUN)
TABLES = ("coflows.parquet", "timeline.parquet")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive in the current folder, which is a new one."""
    monkeypatch.chdir(tmp_path)
    return write_set(tmp_path)


def rates(folder: Path, scheduler: str, rate: str = "acceptance_rate") -> list[float]:
    """The rate of each instance, as its run has written it."""
    runs = [folder / f"scheduler={scheduler}" / f"instance={name}" for name in NAMES]
    return [read_result(run).summary["coflows"][rate] for run in runs]


def same_bytes(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in TABLES)


def test_each_instance_is_run_and_means_are_over_them(emu: Cli, archive: Path) -> None:
    ended = emu(*TWO, "--out", "c")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("set on 3 ports, 4 instances, seed 1, means ± 95 %: coflow completion time")
    manifest = rd.read_manifest(Path("c"))
    folders = [f"scheduler={s}/instance={name}" for s in ("edf", "cs-mha") for name in NAMES]
    assert (manifest["status"], manifest["runs"]) == ("finished", folders)
    assert [i["what"] for i in manifest["inputs"]] == ["workload", "workload file"]
    for name, summary in zip(("edf", "cs-mha"), json.loads(Path("c/summary.json").read_text()), strict=True):
        assert (summary["workload"], summary["instances"], summary["varied"]) == (
            "set",
            [*NAMES],
            ["instance"],
        )
        assert not {"instance", "batch", "seeds"} & set(summary)
        mean, half = confidence_95(rates(Path("c"), name))
        assert half > 0
        assert summary["coflows"]["acceptance_rate"] == pytest.approx(mean)
        bounds = summary["confidence_95"]["coflows"]["acceptance_rate"]
        assert bounds == pytest.approx([mean - half, mean + half])
        with open("c/comparison.csv") as file:
            rows = [
                r for r in csv.DictReader(file) if (r["scheduler"], r["metric"]) == (name, "acceptance_rate")
            ]
        assert [(float(r["value"]), float(r["half_95"])) for r in rows] == [pytest.approx((mean, half))]
        assert (rows[0]["seeds"], rows[0]["instances"]) == ("1", "4")
    run = read_result(Path("c") / folders[1])
    assert (run.summary["instance"], run.summary["batch"], run.summary["seed"]) == (NAMES[1], "set", 1)
    assert tomllib.loads(run.config)["workload_options"] == {"instance": NAMES[1]}
    assert "workload_options" not in tomllib.loads(Path("c/config.toml").read_text())


def test_one_scheduler_and_python(emu: Cli, archive: Path) -> None:
    assert emu("run", "--scheduler", "edf", *RUN, "--out", "r").code == 0
    assert sorted(p.name for p in Path("r").glob("*=*")) == [f"instance={name}" for name in NAMES]
    of_python = package.run("edf", archive, in_process=True)
    assert isinstance(of_python, Comparison)
    assert [r.summary["instance"] for r in of_python.results["edf"]] == [*NAMES]
    by_hand = json.loads(Path("r/summary.json").read_text())["coflows"]
    assert of_python.summaries[0]["coflows"] == by_hand
    assert package.run("edf", archive, seeds=1, in_process=True).summaries[0]["coflows"] == by_hand
    alone = package.run("edf", archive, workload_options={"instance": 2}, in_process=True)
    assert isinstance(alone, Result)
    assert alone.coflows.equals(of_python.results["edf"][1].coflows)
    assert package.resume("r").summaries[0]["coflows"] == by_hand


def test_an_archive_of_one_instance_is_an_ordinary_workload(tmp_path: Path) -> None:
    found = package.run("edf", write_set(tmp_path, instances=1), in_process=True)
    assert isinstance(found, Result)
    assert found.summary["workload"] == "set_in001"
    assert not {"instance", "batch"} & set(found.summary)


def test_gains_are_percentiles_over_instances(emu: Cli, archive: Path) -> None:
    ended = emu(*TWO, "--out", "c")
    first, other = (np.array(rates(Path("c"), name)) for name in ("edf", "cs-mha"))
    some = first > 0  # edf meets some deadline
    assert 1 < some.sum() < 4
    gain = np.percentile(((other - first)[some] / first[some]), [1, 10, 50, 90, 99])
    expected = {"count": some.sum(), **dict(zip(("p1", "p10", "p50", "p90", "p99"), gain, strict=True))}
    summaries = json.loads(Path("c/summary.json").read_text())
    assert "gains" not in summaries[0]
    assert summaries[1]["gains"]["all"]["acceptance_rate"] == pytest.approx(expected)
    with open("c/comparison.csv") as file:
        rows = [r for r in csv.DictReader(file) if r["metric"] == "gain"]
    found = {r["statistic"]: float(r["value"]) for r in rows}
    assert {k: found[f"acceptance_rate.{k}"] for k in expected} == pytest.approx(expected)
    table = ended.out.partition("gain over edf in the share of deadlines met, instance by instance")[
        2
    ].splitlines()
    few = 4 - int(some.sum())
    left_out = f"{few} instance{'s'[: few != 1]} in which edf met none left out"
    assert table[0].endswith(f"(share - its share) / its share; {left_out}")
    assert table[1].split() == ["p1", "p10", "p50", "p90", "p99"]
    assert table[2].split() == ["cs-mha", *(f"{v:.1%}" for v in gain)]


def test_steps_draw_for_each_instance_what_they_draw_for_it_alone(archive: Path) -> None:
    settings: dict[str, Any] = {"workload_steps": "deadlines most=5", "in_process": True}
    together = package.compare(["edf"], archive, seed=7, **settings).results["edf"]
    factors = [r.coflows["deadline_s"].to_numpy() for r in together]
    assert len({values.tobytes() for values in factors}) == 4
    options = {"instance": NAMES[2]}
    alone = package.run("edf", archive, seed=7, workload_options=options, **settings)
    assert alone.coflows.equals(together[2].coflows)
    assert not package.run("edf", archive, workload_options=options, **settings).coflows.equals(alone.coflows)


def test_several_seeds_of_a_batch_are_refused(emu: Cli, archive: Path) -> None:
    error = (
        "seeds: set is a batch of 4 instances, and means are over instances or over seeds, not both; give one seed, "
        "or choose one instance by workload_options.instance"
    )
    ended = emu(*TWO, "--seeds", "3")
    assert (ended.code, ended.line()) == (2, f"emu: --{error}")
    Path("s.toml").write_text('workload = "set.zip"\nscheduler = "edf"\n[sweep]\nseed = [1, 2]\n')
    assert error.partition(": ")[2] in emu("sweep", "s.toml", "--dry-run").line()
    chosen = ("--set", f"workload_options.instance={NAMES[0]}", "--seeds", "2")
    ended = emu("run", "--scheduler", "edf", *RUN, *chosen, "--out", "r")
    assert ended.code == 0
    assert f"edf on {NAMES[0]}, 3 ports, seeds 1 to 2" in ended.out


def test_a_malformed_instance_is_named_before_anything_runs(emu: Cli, archive: Path) -> None:
    with zipfile.ZipFile(archive) as source:
        members = {name: source.read(name) for name in source.namelist()}
    broken = f"set/{NAMES[3]}.txt"
    members[broken] = members[broken].replace(b"\n1 1 0.000", b"\n1 -1 0.000", 1)
    with zipfile.ZipFile(archive, "w") as target:
        for name, content in members.items():
            target.writestr(name, content)
    ended = emu(*TWO, "--out", "c")
    assert ended.code == 2
    assert ended.line().startswith(f"emu: set.zip/{broken}: line 8: field weight: '-1' is negative")
    assert not Path("c").exists()


def stop_at(monkeypatch: pytest.MonkeyPatch, scheduler: str, name: str, error: BaseException) -> None:
    """Let one run raise an error, until this is undone."""
    execute = runs.execute

    def raising(plan: Any, index: int, *rest: Any) -> Result:
        if (plan.schedulers[index].name, plan.workload.name) == (scheduler, name):
            raise error
        return execute(plan, index, *rest)

    monkeypatch.setattr(runs, "execute", raising)


@pytest.mark.slow("whole runs with their figures")
def test_what_was_interrupted_goes_on(emu: Cli, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert emu(*TWO, "--out", "whole").code == 0
    with monkeypatch.context() as patch:
        stop_at(patch, "cs-mha", NAMES[1], KeyboardInterrupt())
        assert emu(*TWO, "--out", "c").code == 130
    assert rd.read_manifest(Path("c"))["status"] == "interrupted"
    done = [p.parent for p in Path("c").glob("*/*/summary.json")]
    assert len(done) == 3
    before = {p: (p / "manifest.json").read_bytes() for p in done}
    assert emu("compare", "--resume", "c").code == 0
    assert {p: (p / "manifest.json").read_bytes() for p in done} == before
    runs = rd.read_manifest(Path("whole"))["runs"]
    assert rd.read_manifest(Path("c"))["runs"] == runs
    assert all(same_bytes(Path("c") / run, Path("whole") / run) for run in runs)
    write_set(Path(), instances=3)
    shutil.rmtree("c/scheduler=edf")
    ended = emu("compare", "--resume", "c")
    assert ended.code == 2
    assert "set.zip has changed since c was begun" in ended.err


def test_an_instance_without_a_run_of_every_scheduler_is_in_no_pair(
    emu: Cli, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, "cs-mha", NAMES[1], ValueError("once"))
    ended = emu(*TWO, "--out", "c")
    assert ended.code == 1
    assert f"instances without a run of every scheduler are left out: {NAMES[1]}\n" in ended.err
    assert f"failed: scheduler=cs-mha/instance={NAMES[1]}: " in ended.out
    left = [name for name in NAMES if name != NAMES[1]]
    assert [s["instances"] for s in json.loads(Path("c/summary.json").read_text())] == [left, left]


def test_an_instance_in_which_nothing_finishes_counts_among_deadlines_alone(archive: Path) -> None:
    """Where a step gives coflows less time than they take alone, those with admission serve none of them."""
    hopeless = {"workload_steps": "deadlines least=0.5 most=0.6", "parameters": {"drop_expired": True}}
    compared = package.compare(["edf", "cs-mha"], archive, in_process=True, **hopeless)
    assert [s["coflows"]["acceptance_rate"] for s in compared.summaries] == [0.0, 0.0]
    assert "gains" not in compared.summaries[1]
    rows = [line.split()[:3] for line in compared.to_text().splitlines()]
    assert ["cs-mha", "0.0%", "0.0%"] in rows  # met, and admitted


def test_a_sweep_of_batches(emu: Cli, archive: Path) -> None:
    Path("s.toml").write_text(
        'workload = "set.zip"\nscheduler = ["edf", "cs-mha"]\n[sweep]\n'
        'workload_steps = ["", "deadlines most=5"]\n'
    )
    ended = emu("sweep", "s.toml", "--in-process", "--out", "s")
    assert ended.code == 0, ended.err
    assert "set on 3 ports, workload_steps=deadlines most=5, 4 instances, seed 1, means ± 95 %" in ended.out
    assert ended.out.count("gain over edf in the share of deadlines met, instance by instance") == 2
    folders = sorted(p.parent.relative_to("s").as_posix() for p in Path("s").glob("*/*/*/summary.json"))
    assert len(folders) == 16
    assert folders[0] == f"scheduler=cs-mha/workload_steps=deadlines-most-5/instance={NAMES[0]}"
    assert emu(*TWO, "--out", "c").code == 0
    for name in NAMES:
        ours = Path(f"s/scheduler=edf/workload_steps=none/instance={name}")
        assert same_bytes(ours, Path(f"c/scheduler=edf/instance={name}"))
    points = json.loads(Path("s/summary.json").read_text())["points"]
    assert [point["instances"] for point in points] == [[*NAMES]] * 4
    together = {s["scheduler"]: s for s in json.loads(Path("c/summary.json").read_text())}
    for point in points[:2]:
        assert point["coflows"] == together[point["scheduler"]]["coflows"]
        assert point.get("gains") == together[point["scheduler"]].get("gains")
    with open("s/results.csv") as file:
        assert [r["instance"] for r in csv.DictReader(file)] == [*NAMES] * 4
    assert "16 runs, 0 to do" in emu("sweep", "s.toml", "--in-process", "--out", "s", "--dry-run").out


@pytest.mark.slow("whole runs with their figures")
def test_the_page_of_a_batch_pairs_instances_and_shows_a_few_runs(emu: Cli, archive: Path) -> None:
    assert emu(*TWO, "--out", "c").code == 0
    assert emu("report", "c", "--out", "page.html").code == 0
    page = Path("page.html").read_text()
    assert page.count("<h2>set on 3 ports, 4 instances, seed 1, means ± 95 %</h2>") == 1
    assert "2 schedulers on set, 3 ports, 4 instances, seed 1" in page
    assert "Gain in deadlines met" in page
    assert page.count("<summary>") == 6
    assert "8 runs are compared: emu report of a run&#39;s own directory shows it" in page
    two = [f"c/scheduler=edf/instance={name}" for name in NAMES[:2]]
    assert emu("report", *two, "--out", "two.html").code == 0
    assert "set on 3 ports, 2 instances, seed 1, means ± 95 %" in Path("two.html").read_text()


def test_instances_of_the_same_name_have_folders_of_their_own(tmp_path: Path) -> None:
    from workloads.readers.coflowlib import write_coflowlib

    folder = tmp_path / "archive"
    for name in ("a/x.txt", "b/x.txt", "a-x.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_coflowlib(instance(len(name)), folder / name)
    try:
        package.run("edf", folder, in_process=True, out=tmp_path / "r")
    except InputError as error:  # a folder whose files lie deeper is read or refused as a whole
        pytest.fail(str(error))
    found = sorted(p.name for p in (tmp_path / "r").glob("instance=*"))
    assert found == ["instance=a-x.txt", "instance=a-x.txt-2", "instance=b-x.txt"]


@pytest.mark.slow("whole runs with their figures")
@pytest.mark.reference
@pytest.mark.skipif(not COFLOWLIB.exists(), reason="no CoflowLib instances beside the repository")
def test_means_over_published_instances_are_those_of_the_independent_program() -> None:
    archive = COFLOWLIB / "off_facebook_m10_c10.zip"
    compared = package.compare(["cs-mha", "dcoflow"], archive, in_process=True)
    for summary, theirs in zip(compared.summaries, (0.778, 0.787), strict=True):  # shared/specs/deadlines.md
        assert len(summary["instances"]) == 100
        assert summary["coflows"]["acceptance_rate"] == pytest.approx(theirs, abs=0.005)
        low, high = summary["confidence_95"]["coflows"]["acceptance_rate"]
        assert low < theirs < high
    gains = compared.summaries[1]["gains"]["all"]["acceptance_rate"]
    assert gains["count"] == 100
    assert gains["p1"] <= gains["p50"] <= gains["p99"]
