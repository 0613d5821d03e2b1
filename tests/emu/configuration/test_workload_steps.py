"""The key `workload_steps`: what a run of changed workloads is, and what follows which seed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seed_cases import shas

import emu as emu_package
from emu.results.result import read_result
from tests.workloads.family_examples import dags_of
from workloads.catalogue import load_workload, save_workload
from workloads.jobs import JobWorkload
from workloads.transform import sample, truncate

Cli = Callable[..., Any]


def test_a_step_follows_the_seed_of_the_workload(workload: JobWorkload, trace: Path) -> None:
    def drawn(**settings: Any) -> list[str]:
        compared = emu_package.compare(["random"], "small", 20, seeds=2, in_process=True, **settings)
        assert ("workload" in compared.summaries[0]["varied"]) == (len({*shas(compared)["random"]}) == 2)
        return shas(compared)["random"]

    parts = [sample(workload, count=30, seed=seed).fingerprint() for seed in (1, 2, 5)]
    assert drawn(workload_steps="sample count=30") == parts[:2]
    assert drawn(workload_steps="sample count=30", workload_seed=5) == [parts[2]] * 2
    assert drawn(workload_steps=["sample count=30 seed=5"]) == [parts[2]] * 2


def test_a_workload_of_python_is_kept_with_its_steps_done(workload: JobWorkload, tmp_path: Path) -> None:
    out = tmp_path / "one"
    settings = {"workload_steps": ["sample count=30"], "in_process": True}
    one = emu_package.run("random", workload, 20, out=out, **settings)
    assert "workload_steps" not in tomllib.loads((out / "config.toml").read_text())
    assert load_workload(out / "workload").num_jobs == one.jobs.num_rows == 30
    again = emu_package.run("random", out / "workload", 20, config=out / "config.toml", in_process=True)
    assert again.jobs.equals(one.jobs)


def test_steps_change_dags_before_they_become_jobs(tmp_path: Path) -> None:
    dags = dags_of([(0.5 * j, [[1.0, 0.2 + j], [2.0]], [(0, 1)], None) for j in range(4)])
    save_workload(dags, tmp_path / "dags")
    changed = truncate(dags, cap_s=0.5)
    save_workload(changed, tmp_path / "changed")
    one, other = (
        emu_package.run(
            "random", tmp_path / name, 4, in_process=True, short_cutoff="1 s", workload_steps=steps
        )
        for name, steps in (("dags", "truncate cap=0.5s"), ("changed", None))
    )
    assert one.jobs.equals(other.jobs)


def test_an_axis_of_steps(emu: Cli, trace: Path) -> None:
    Path("s.toml").write_text(
        'workload = "small"\nscheduler = "random"\nnodes = 20\n[sweep]\n'
        'workload_steps = ["", "sample share=50%; truncate cap=3s", ["sample share=50%"]]\n'
    )
    assert emu("sweep", "s.toml", "--in-process", "--out", "s").code == 0
    folders = {path.parent.name: path.parent / "seed=1" for path in Path("s").glob("*/*/seed=1")}
    assert set(folders) == {
        "workload_steps=none",
        "workload_steps=sample-share-50-truncate-cap_s-3s",
        "workload_steps=sample-share-50",
    }
    jobs = [read_result(folder).jobs.num_rows for folder in folders.values()]
    assert sorted(jobs)[0] < 60 == max(jobs)
    assert emu("report", "s").code == 0
    assert "workload_steps sample share=50%; truncate cap_s=3s" in Path("s/report.html").read_text()
    ended = emu("sweep", "s.toml", "--set", "nodes=20", "--in-process", "--out", "s", "--dry-run")
    assert "0 to do" in ended.out
