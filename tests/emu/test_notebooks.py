"""What results are in scripts and notebooks: short texts, tables, figures, progress; and what type checkers see."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mypy import api

import emu
from emu import plots
from emu.running.progress import progress_bar, runs_bar
from emu.terminal import in_notebook

SMALL: dict[str, Any] = {
    "workload": "poisson",
    "nodes": 8,
    "workload_options": {"jobs": 40, "nodes": 8},
    "in_process": True,
}


def test_a_result_is_a_few_lines_and_a_table(tmp_path: Path) -> None:
    one = emu.run("random", **SMALL)
    two = emu.compare(["random", "sparrow"], seeds=[3, 7], **SMALL)
    swept = emu.sweep(
        {**SMALL, "sweep": {"scheduler": ["random", "sparrow"]}}, out=tmp_path / "sweep", in_process=True
    )
    for found, named in (
        (one, "random on poisson, 8 nodes"),
        (two, "random, sparrow on poisson"),
        (swept, "2 runs"),
    ):
        assert named in repr(found)
        assert len(repr(found)) < 300
        assert found._repr_html_().count("<table") >= 1
    assert "better" in two._repr_html_()
    assert "makespan" in one._repr_html_()


def test_a_name_that_is_no_table_is_an_error_with_the_nearest() -> None:
    result = emu.run("random", **SMALL)
    with pytest.raises(AttributeError, match="'jbos'; did you mean 'jobs'"):
        result.jbos  # type: ignore[attr-defined]  # noqa: B018
    assert result.coflows is None
    assert {"jobs", "timeline", "summary"} <= set(dir(result))


CODE = """\
import emu

result = emu.run("eagle", "yahoo", 100)
result.jobs.to_pandas()
result.jbos.to_pandas()  # "Result" has no attribute "jbos"
emu.run("eagle", "yahoo", 100, seeds=[3, 7, 11]).results["eagle"][0].jobs
emu.run("eagle", "yahoo", 100, seeds=[3]).jobs  # "Comparison" has no attribute "jobs"


class Own:
    def start(self, num_nodes: int, seed: int, cluster: emu.Cluster) -> None:
        self.slots = cluster.slots

    def on_arrival(self, job: emu.Job, cluster: emu.Cluster) -> None:
        cluster.probe(job, cluster.draw(job, 2 * job.num_tasks))
        cluster.prob(job, [1])  # "Cluster" has no attribute "prob"
        cluster.place(job, [1] * job.tasks)  # "Job" has no attribute "tasks"

    def on_load(self, node: emu.NodeView, number: int, cluster: emu.Cluster) -> None:
        print(node.queued, node.work_s)  # "NodeView" has no attribute "work_s"

    def place(self, job: emu.Job, nodes: emu.Nodes) -> list[int]:
        return [int(nodes.work_left_s.argmin()), int(nodes.work.argmin())]  # "Nodes" has no attribute "work"

    def launch(self, stages: emu.Stages, machines: emu.Machines, now_s: float) -> list[tuple[int, int]]:
        return [(int(stages.ready[0]), int(stages.redy[0]))]  # "Stages" has no attribute "redy"
"""


@pytest.mark.slow("runs a type checker")
def test_a_type_checker_finds_wrong_names_and_no_others(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CODE)
    cache = str(Path(__file__).parents[2] / ".mypy_cache")
    out, err, _ = api.run(["--strict", "--config-file", "", "--cache-dir", cache, str(file)])
    wrong = [line.partition("# ")[2] for line in CODE.splitlines() if "# " in line]
    found = [line for line in out.splitlines() if "error:" in line]
    assert len(found) == len(wrong), out + err
    assert all(why in line for why, line in zip(wrong, found, strict=True)), out


class Kernel:
    """A shell as a notebook's kernel has it."""

    config = {"IPKernelApp": {}}  # noqa: RUF012


def test_progress_shows_in_a_notebook_and_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def made(bar: Callable[..., Any], **how: Any) -> bool:
        with bar("a run", 3, **how) as show:
            return show is not None

    assert not in_notebook()
    assert not made(progress_bar)
    assert not made(runs_bar)
    assert made(progress_bar, always=True)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Kernel))
    assert in_notebook()
    assert made(progress_bar)
    monkeypatch.undo()
    for asked, shown in ((True, True), (None, False), (False, False)):
        emu.compare(["random", "sparrow"], progress=asked, **SMALL)
        assert ("sparrow" in capsys.readouterr().err) == shown
    calls: list[int] = []
    emu.run("random", progress=lambda tasks, events, virtual_s: calls.append(tasks), **SMALL)
    assert calls[-1] == 40


@pytest.mark.drawn
def test_a_figure_shows_in_a_notebook_without_pyplot() -> None:
    png = plots.cdf(emu.run("random", **SMALL))._repr_png_()
    assert png.startswith(b"\x89PNG")
